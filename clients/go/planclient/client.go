package planclient

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/nodewisev1"
)

// firstAddress is how long a call waits for the first address.
const firstAddress = 3 * time.Second

// Digest is the SHA-256 of a bucket's bytes.
type Digest = [32]byte

// BuildRequest builds a request for a plan. The receiver is the replica that is asked next. A bucket that it is believed to have may be sent by
// digest alone.
//
// The client calls BuildRequest again for each replica that it tries, and again when a replica lacks buckets. It never calls it
// concurrently, and not after the call has returned.
type BuildRequest func(receiver Receiver) (*nodewisev1.PlanRequest, error)

// BuildExplainRequest builds a request for an explanation, in the same way as [BuildRequest] builds one for a plan.
type BuildExplainRequest func(receiver Receiver) (*nodewisev1.ExplainRequest, error)

// BuildSimulateRequest builds a request for a simulation, in the same way as [BuildRequest] builds one for a plan.
type BuildSimulateRequest func(receiver Receiver) (*nodewisev1.SimulateRequest, error)

// Answer is a plan, and the number of the request that it answers.
type Answer struct {
	// Plan is what the caller must do next.
	Plan *nodewisev1.Plan
	// Request is the number of the request that the plan answers: 0 for the first one that was built. A plan is valid only for the
	// snapshot that it was made from, which need not be the one that was built last.
	Request int
}

// Client calls one or more replicas of the service. It is safe for concurrent use.
type Client struct {
	config    config
	replicas  *replicas
	discovery *discovery
	cancel    context.CancelFunc
	close     func() error
	tasks     sync.WaitGroup
	mu        sync.Mutex
	followed  map[*replica]context.CancelFunc
}

// New makes a client of the replicas at these servers. A server is one of:
//
//   - http://HOST:PORT, one replica in plain text;
//   - https://HOST:PORT, one replica over TLS, which needs [WithTransportCredentials];
//   - dns:///HOST:PORT, one replica at each A and AAAA record of the name, as a headless Service has.
//
// New refuses plain text to a server that is not on loopback, unless [WithPlaintext] is given.
// Until Close or the end of the context the client looks names up and follows the health of the replicas. It logs to the logger of the
// context.
func New(ctx context.Context, servers []string, options ...Option) (*Client, error) {
	if len(servers) == 0 {
		return nil, errors.New("no planning service is given: at least one is needed")
	}
	config := defaults()
	for _, option := range options {
		if option != nil {
			option(&config)
		}
	}
	if err := config.settle(); err != nil {
		return nil, err
	}
	targets := make([]target, 0, len(servers))
	for _, server := range servers {
		target, err := parseTarget(server)
		if err != nil {
			return nil, err
		}
		if err := target.suits(&config); err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	ctx, cancel := context.WithCancel(ctx)
	client := &Client{config: config, cancel: cancel, followed: map[*replica]context.CancelFunc{}}
	client.close = sync.OnceValue(client.closeOnce)
	client.replicas = newReplicas(&client.config, klog.FromContext(ctx))
	client.discovery = &discovery{targets: targets, replicas: client.replicas, removed: client.drop}
	if err := client.discovery.start(); err != nil {
		cancel()
		return nil, err
	}
	client.tasks.Go(func() { client.discovery.follow(ctx) })
	client.tasks.Go(func() { client.followHealth(ctx) })
	return client, nil
}

// Close closes the connections, and with them the calls under way. Closing again does nothing.
func (c *Client) Close() error {
	return c.close()
}

func (c *Client) closeOnce() error {
	c.cancel()
	c.tasks.Wait()
	members, _ := c.replicas.now()
	var closed []error
	for _, member := range members {
		closed = append(closed, member.conn.Close())
	}
	return errors.Join(closed...)
}

// Health returns nil if a replica answers. Otherwise the error says why the service cannot be reached, or that it was not asked yet.
func (c *Client) Health() error { return c.replicas.health() }

// followHealth follows the health of each replica, as replicas are added and removed.
func (c *Client) followHealth(ctx context.Context) {
	for {
		members, changed := c.replicas.now()
		c.mu.Lock()
		for _, member := range members {
			if c.followed[member] == nil {
				of, cancel := context.WithCancel(ctx)
				c.followed[member] = cancel
				c.tasks.Go(func() { c.replicas.followHealth(of, member) })
			}
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// drop stops following removed replicas, and closes their connections after the longest time of a call, so that calls under way can end.
func (c *Client) drop(removed []*replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, replica := range removed {
		if cancel := c.followed[replica]; cancel != nil {
			cancel()
			delete(c.followed, replica)
		}
		time.AfterFunc(c.config.timeout, func() { _ = replica.conn.Close() })
	}
}

// Plan asks what must happen next for the workload of this uid. The error is an [*UnreachableError], a [*RefusedError], or the error of
// build. Where every replica is too old for the snapshot, it is an [*UnsupportedKindError] or an [*UnsupportedFeatureError].
func (c *Client) Plan(ctx context.Context, uid string, build BuildRequest) (*Answer, error) {
	answered, err := callWithSnapshot(ctx, c, uid, build, planMethod)
	if err != nil {
		return nil, err
	}
	return &Answer{Plan: answered.answer, Request: answered.request}, nil
}

// Explain asks, for each node or for one, whether the workload of this uid runs there, and which rule decides that. Replicas, attempts,
// deadlines and buckets are handled as by [Client.Plan], and so are errors.
func (c *Client) Explain(ctx context.Context, uid string, build BuildExplainRequest) (*nodewisev1.ExplainResponse, error) {
	answered, err := callWithSnapshot(ctx, c, uid, build, explainMethod)
	if err != nil {
		return nil, err
	}
	return answered.answer, nil
}

// Simulate plays the rollout of the workload of this uid to its end, and calls each with every step as it comes, and at last with the
// end. Replicas, attempts and buckets are handled as by [Client.Plan], until a replica has sent a step. After that the play is not
// repeated. The error is an [*UnreachableError], a [*RefusedError], the error of build, or that of each, which ends the play.
func (c *Client) Simulate(
	ctx context.Context, uid string, build BuildSimulateRequest, each func(*nodewisev1.SimulateResponse) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.timeout)
	defer cancel()
	answered, err := callWithSnapshot(ctx, c, uid, build, simulateMethod(ctx))
	if err != nil {
		return err
	}
	for response := answered.answer.first; ; {
		if err := each(response); err != nil {
			return err
		}
		response, err = answered.answer.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &UnreachableError{Reason: "the play ended early: " + err.Error(), Err: err}
		}
	}
}

// Report sends the outcomes of a plan. Each replica is asked once: an executor sends a report that was not delivered with its next
// request for a plan. The error is an [*UnreachableError] or a [*RefusedError].
func (c *Client) Report(ctx context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	return askEachOnce(ctx, c, report.GetWorkload().GetUid(), report, nodewisev1.ReconcileServiceClient.Report)
}

// Capabilities returns the version, the limits and the features of a replica. Each replica is asked once. The error is an
// [*UnreachableError] or a [*RefusedError].
func (c *Client) Capabilities(ctx context.Context) (*nodewisev1.GetCapabilitiesResponse, error) {
	request := &nodewisev1.GetCapabilitiesRequest{}
	return askEachOnce(ctx, c, "", request, nodewisev1.ReconcileServiceClient.GetCapabilities)
}

// askEachOnce asks each replica once until one answers.
func askEachOnce[Q, A any](
	ctx context.Context, c *Client, uid string, request Q,
	method func(nodewisev1.ReconcileServiceClient, context.Context, Q, ...grpc.CallOption) (A, error),
) (answer A, err error) {
	deadline := time.Now().Add(c.config.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	attempts, failures := newAttempts(&c.config, 1, deadline), &callFailures{replicas: c.replicas}
	order := c.order(ctx, uid)
	ask := func(attempt *attempt) (A, error) {
		ctx, cancel := context.WithDeadline(ctx, attempt.until)
		defer cancel()
		return method(attempt.replica.client, ctx, request)
	}
	for attempt := attempts.next(order); attempt != nil; attempt = attempts.next(order) {
		response, err := ask(attempt)
		if err == nil {
			c.replicas.answered(attempt.replica)
			failures.answeredBy(attempt.replica)
			return response, nil
		}
		failure := newFailure(attempt.replica, err)
		if ctx.Err() == nil {
			c.replicas.callFailed(uid, attempt.replica, failure)
		}
		failures.add(attempt.replica, failure)
		if err := failures.final(len(order)); err != nil {
			return answer, err
		}
	}
	return answer, failures.unreachable(ctx)
}

// order returns the replicas in the order in which a workload asks them. If none is known yet, it waits up to [firstAddress].
func (c *Client) order(ctx context.Context, uid string) []*replica {
	ctx, cancel := context.WithTimeout(ctx, firstAddress)
	defer cancel()
	return c.replicas.order(ctx, uid)
}
