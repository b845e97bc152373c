package planclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/nodewisev1"
)

// firstAddress is how long a call waits for the first address.
const firstAddress = 3 * time.Second

// Digest is the SHA-256 of a bucket's bytes.
type Digest = [32]byte

// BuildRequest builds a request; it is told which buckets the replica that is about to be asked is believed to have, which may go
// by their digest alone. It is called anew for each replica that is tried, never twice at a time, and not any more when the call
// that it is for has returned.
type BuildRequest func(known func(Digest) bool) (*nodewisev1.PlanRequest, error)

// Answer is a plan, and the request that it answers.
type Answer struct {
	// Plan is what must happen next.
	Plan *nodewisev1.Plan
	// Request is which of the requests that were built it answers, from 0: a plan is good only together with what it was made
	// from, and that need not be what was built last.
	Request int
}

// Client asks one or more replicas of the service. It is safe for concurrent use.
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

// New makes a client of the replicas that these servers lead to: http://HOST:PORT for one replica, https://HOST:PORT for one over
// TLS, which needs [WithTransportCredentials], and dns:///HOST:PORT for one at each record of a name, as a headless Service has. One that
// is not on loopback is refused without these, unless plain text is asked for: [WithPlaintext].
// Until Close or the end of the context it follows where they are and how they stand. It logs to the logger of the context.
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
	client.discovery = &discovery{targets: targets, replicas: client.replicas, gone: client.drop}
	if err := client.discovery.start(); err != nil {
		cancel()
		return nil, err
	}
	client.tasks.Go(func() { client.discovery.follow(ctx) })
	client.tasks.Go(func() { client.lookAfterAll(ctx) })
	return client, nil
}

// Close ends the connections, and with them the calls under way. To close it again does nothing.
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

// Health is why the service cannot be reached, if so, or that it was not asked yet.
func (c *Client) Health() error { return c.replicas.health() }

// lookAfterAll follows the health of each replica, as they come and go.
func (c *Client) lookAfterAll(ctx context.Context) {
	for {
		members, changed := c.replicas.now()
		c.mu.Lock()
		for _, member := range members {
			if c.followed[member] == nil {
				of, cancel := context.WithCancel(ctx)
				c.followed[member] = cancel
				c.tasks.Go(func() { c.replicas.lookAfter(of, member) })
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

// drop lets go of replicas that are no more. Their calls under way may go on as long as a call takes.
func (c *Client) drop(gone []*replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, replica := range gone {
		if cancel := c.followed[replica]; cancel != nil {
			cancel()
			delete(c.followed, replica)
		}
		time.AfterFunc(c.config.timeout, func() { _ = replica.conn.Close() })
	}
}

// Plan asks what must happen next for the workload of this uid. The error is an [*UnreachableError], a [*RefusedError], or what
// building the request ended with.
func (c *Client) Plan(ctx context.Context, uid string, build BuildRequest) (*Answer, error) {
	deadline := time.Now().Add(c.config.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	asking := &asking{client: c, uid: uid, builder: &builder{build: build}}
	defer asking.builder.end()
	tries, opinions := newTries(&c.config, c.config.minAttempts, deadline), &opinions{replicas: c.replicas}
	for {
		order := c.order(ctx, uid)
		turn := tries.turn(order)
		if turn == nil {
			break
		}
		taken := asking.take(ctx, turn)
		if taken.unbuilt != nil {
			return nil, taken.unbuilt
		}
		for _, failed := range taken.failed {
			opinions.failed(failed.replica, failed.failure)
		}
		if taken.answer != nil {
			opinions.answered(taken.by)
			return taken.answer, nil
		}
		if err := opinions.verdict(len(order)); err != nil {
			return nil, err
		}
		if taken.hedged {
			tries.also(turn.spare)
		}
		pause, more := tries.pause(order, opinions.retryAfter())
		if !more || !sleep(ctx, pause) {
			break
		}
	}
	return nil, opinions.unreachable(ctx)
}

// Report says what became of a plan. Each replica is asked once: a report that is not delivered rides on the next plan. The error
// is an [*UnreachableError] or a [*RefusedError].
func (c *Client) Report(ctx context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	deadline := time.Now().Add(c.config.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	uid := report.GetWorkload().GetUid()
	tries, opinions := newTries(&c.config, 1, deadline), &opinions{replicas: c.replicas}
	order := c.order(ctx, uid)
	for turn := tries.turn(order); turn != nil; turn = tries.turn(order) {
		response, err := c.reportTo(ctx, turn, report)
		if err == nil {
			c.replicas.answered(turn.replica)
			opinions.answered(turn.replica)
			return response, nil
		}
		failure := newFailure(turn.replica, err)
		if ctx.Err() == nil {
			c.replicas.judge(uid, turn.replica, failure)
		}
		opinions.failed(turn.replica, failure)
		if err := opinions.verdict(len(order)); err != nil {
			return nil, err
		}
	}
	return nil, opinions.unreachable(ctx)
}

func (c *Client) reportTo(
	ctx context.Context, turn *turn, report *nodewisev1.ReportRequest,
) (*nodewisev1.ReportResponse, error) {
	ctx, cancel := context.WithDeadline(ctx, turn.until)
	defer cancel()
	return turn.replica.client.Report(ctx, report)
}

// order is the replicas in the order in which a workload asks them. It waits a little for the first.
func (c *Client) order(ctx context.Context, uid string) []*replica {
	ctx, cancel := context.WithTimeout(ctx, firstAddress)
	defer cancel()
	return c.replicas.order(ctx, uid)
}
