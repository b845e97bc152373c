package planclient

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

// maxCorrections is how often a replica may answer that it lacks buckets of one request. After that, all buckets are sent inline.
const maxCorrections = 3

// errEnded says that no request is built any more, because the call is over.
var errEnded = errors.New("the call is over")

// snapshotRequest is a request that carries a snapshot: a PlanRequest or an ExplainRequest.
type snapshotRequest interface {
	proto.Message
	GetSnapshot() *nodewisev1.Snapshot
}

// method is an RPC of the service whose request Q carries a snapshot. A is the part of the response that the caller gets.
type method[Q snapshotRequest, A any] func(ctx context.Context, client nodewisev1.ReconcileServiceClient, request Q) (A, error)

func planMethod(
	ctx context.Context, client nodewisev1.ReconcileServiceClient, request *nodewisev1.PlanRequest,
) (*nodewisev1.Plan, error) {
	response, err := client.Plan(ctx, request)
	if err != nil {
		return nil, err
	}
	if response.GetPlan() == nil {
		return nil, status.Error(codes.Internal, "an answer without a plan")
	}
	return response.GetPlan(), nil
}

func explainMethod(
	ctx context.Context, client nodewisev1.ReconcileServiceClient, request *nodewisev1.ExplainRequest,
) (*nodewisev1.ExplainResponse, error) {
	return client.Explain(ctx, request)
}

// play is the stream of a simulation, whose first response has been read.
type play struct {
	first  *nodewisev1.SimulateResponse
	stream grpc.ServerStreamingClient[nodewisev1.SimulateResponse]
}

// simulateMethod starts a simulation and reads its first response. The stream lives as long as outer: the context of an attempt ends
// with the first response.
func simulateMethod(outer context.Context) method[*nodewisev1.SimulateRequest, *play] {
	return func(
		ctx context.Context, client nodewisev1.ReconcileServiceClient, request *nodewisev1.SimulateRequest,
	) (*play, error) {
		// The stream keeps the metadata of the attempt, and ends with the attempt until its first response is there.
		streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stopAttempt := context.AfterFunc(ctx, cancel)
		context.AfterFunc(outer, cancel)
		stream, err := client.Simulate(streamCtx, request)
		if err != nil {
			cancel()
			return nil, err
		}
		first, err := stream.Recv()
		stopAttempt()
		if err != nil {
			cancel()
			if status.Code(err) == codes.Unimplemented {
				return nil, &UnsupportedMethodError{Method: "Simulate", Err: err}
			}
			if errors.Is(err, io.EOF) {
				return nil, status.Error(codes.Internal, "an answer without a step and without an end")
			}
			return nil, err
		}
		return &play{first: first, stream: stream}, nil
	}
}

// builder builds the requests of one call, and numbers them.
type builder[Q snapshotRequest] struct {
	mu    sync.Mutex
	built int
	build func(receiver Receiver) (Q, error)
	ended bool
}

// end stops the building of requests. Without it, the slower replica of a hedged call could still ask for another request.
func (b *builder[Q]) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// buildFor builds a request for a replica. With everything set all buckets are inline. Otherwise the buckets that the replica is
// believed to have go by digest alone.
func (b *builder[Q]) buildFor(replica *replica, everything bool, shared *sharedLabels) (int, Q, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		var none Q
		return 0, none, errEnded
	}
	number := b.built
	b.built++
	request, err := b.build(Receiver{
		has:    func(digest Digest) bool { return !everything && replica.knows(digest) },
		shared: shared,
	})
	return number, request, err
}

// answered is the answer of a call, and the number of the request that it answers.
type answered[A any] struct {
	answer  A
	request int
}

// call is one call of a method for one workload. It may ask several replicas.
type call[Q snapshotRequest, A any] struct {
	client  *Client
	uid     string
	method  method[Q, A]
	builder *builder[Q]
}

// callWithSnapshot calls a method whose request carries a snapshot. It asks replicas one after the other until one answers.
func callWithSnapshot[Q snapshotRequest, A any](
	ctx context.Context, c *Client, uid string, build func(receiver Receiver) (Q, error), method method[Q, A],
) (*answered[A], error) {
	deadline := time.Now().Add(c.config.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	call := &call[Q, A]{client: c, uid: uid, method: method, builder: &builder[Q]{build: build}}
	defer call.builder.end()
	attempts, failures := newAttempts(&c.config, c.config.minAttempts, deadline), &callFailures{replicas: c.replicas}
	for {
		order := c.order(ctx, uid)
		attempt := attempts.next(order)
		if attempt == nil {
			break
		}
		done := call.attempt(ctx, attempt)
		if done.buildError != nil {
			return nil, done.buildError
		}
		for _, failed := range done.failed {
			failures.add(failed.replica, failed.failure)
		}
		if done.answer != nil {
			failures.answeredBy(done.answeredBy)
			return done.answer, nil
		}
		if err := failures.final(len(order)); err != nil {
			return nil, err
		}
		if done.hedged {
			attempts.addHedge(attempt.spare)
		}
		pause, more := attempts.pause(order, failures.retryAfter())
		if !more || !sleep(ctx, pause) {
			break
		}
	}
	return nil, failures.unreachable(ctx)
}

// replicaResult is the result of asking one replica: an answer, a failure, or why no request could be built.
type replicaResult[A any] struct {
	replica    *replica
	answer     *answered[A]
	failure    failure
	buildError error
}

// attemptResult is the result of one attempt, which asks one replica or, with hedging, two.
type attemptResult[A any] struct {
	answer     *answered[A]
	answeredBy *replica
	failed     []replicaResult[A]
	// hedged is true if the spare replica was asked, too.
	hedged     bool
	buildError error
}

func (r *attemptResult[A]) add(one replicaResult[A]) {
	switch {
	case one.buildError != nil:
		r.buildError = one.buildError
	case one.answer != nil:
		r.answer, r.answeredBy = one.answer, one.replica
	default:
		r.failed = append(r.failed, one)
	}
}

// attempt asks the replica of an attempt. If no answer has come after hedgeAfter, it asks the spare replica, too. It takes the first
// answer and cancels the other request.
func (c *call[Q, A]) attempt(ctx context.Context, attempt *attempt) *attemptResult[A] {
	ctx, cancel := context.WithDeadline(ctx, attempt.until)
	defer cancel()
	done := &attemptResult[A]{}
	if c.client.config.hedgeAfter <= 0 || attempt.spare == nil {
		done.add(c.ask(ctx, attempt.replica))
		return done
	}
	results := make(chan replicaResult[A], 2)
	go func() { results <- c.ask(ctx, attempt.replica) }()
	hedge := time.NewTimer(c.client.config.hedgeAfter)
	defer hedge.Stop()
	pending := 1
	for pending > 0 {
		select {
		case <-hedge.C:
			done.hedged = true
			pending++
			go func() { results <- c.ask(ctx, attempt.spare) }()
		case one := <-results:
			pending--
			done.add(one)
			isFinal := done.answer != nil || done.buildError != nil || one.failure.fault == faultRequest
			if isFinal || !done.hedged {
				if pending > 0 && done.answeredBy == attempt.spare {
					c.countLostHedge(attempt.replica)
				}
				return done
			}
		}
	}
	return done
}

// countLostHedge records that the spare replica answered before this one did. Once is no failure. But the client does not wait for the slower
// replica, so it does not find out whether that one hangs: [maxLostHedges] in a row count as a failure.
func (c *call[Q, A]) countLostHedge(slower *replica) {
	if slower.lostHedge() {
		c.client.replicas.failed(slower, slower.address+": another replica that was asked later answered first, "+strconv.Itoa(maxLostHedges)+" times in a row")
	}
}

// ask asks one replica, and again when the replica lacks buckets.
//
// The replica may evict more buckets meanwhile, and the answer to another workload may let the client believe that the replica has the
// bucket that it just lacked. So after maxCorrections everything is sent inline, whatever the replica is believed to have.
func (c *call[Q, A]) ask(ctx context.Context, replica *replica) replicaResult[A] {
	pieces := newPieces(c.client.config.maxPiece)
	holdsPieces := false
	defer func() {
		if holdsPieces {
			<-replica.pieces
		}
	}()
	shared := replica.sharedLabels()
	for corrected := 0; ; {
		everything := corrected == maxCorrections
		number, request, err := c.builder.buildFor(replica, everything, shared)
		if err != nil {
			return replicaResult[A]{replica: replica, buildError: err}
		}
		if shared.mustBeAsked() {
			if failed := c.askSharedLabels(ctx, replica, shared); failed != nil {
				return c.failed(ctx, replica, *failed)
			}
			if shared.areRead {
				// Build it again, with shared labels.
				continue
			}
		}
		if failed := c.checkNeeds(ctx, replica, request.GetSnapshot()); failed != nil {
			return c.failed(ctx, replica, *failed)
		}
		var piece []Digest
		if !everything {
			request, piece = cutPiece(pieces, request)
		}
		if piece != nil && !holdsPieces {
			if holdsPieces = replica.lockPieces(ctx); !holdsPieces {
				reason := replica.address + ": another call sends it buckets in pieces"
				return replicaResult[A]{replica: replica, failure: failure{reason: reason, fault: faultMoment}}
			}
			if slices.ContainsFunc(piece, replica.knows) {
				// Another call has sent it meanwhile.
				continue
			}
		}
		answer, err := c.method(ctx, replica.client, request)
		if err == nil {
			c.client.replicas.answered(replica)
			replica.learn(append(digestsOf(request.GetSnapshot().GetNodeBuckets()),
				digestsOf(request.GetSnapshot().GetPodBuckets())...))
			return replicaResult[A]{replica: replica, answer: &answered[A]{answer: answer, request: number}}
		}
		missing, lacksBuckets := missingOf(err), status.Code(err) == codes.FailedPrecondition
		if lacksBuckets && shared.areRead && lacksSharedLabels(missing, request.GetSnapshot()) {
			// An earlier version answers behind the same address.
			replica.forgetCapabilities()
			shared = &sharedLabels{isKnown: true}
			continue
		}
		if !lacksBuckets || everything {
			failure := newFailure(replica, err)
			if everything {
				failure = pieces.explain(failure, request)
			}
			return c.failed(ctx, replica, failure)
		}
		left := len(missing.GetNodeBucketIndices()) + len(missing.GetPodBucketIndices())
		switch {
		case missing == nil, piece != nil && !pieces.areKept(len(piece), left):
			corrected = maxCorrections
		case piece == nil:
			corrected++
		}
		if missing != nil {
			replica.learn(piece)
			replica.forget(lacking(missing, request.GetSnapshot()))
		}
	}
}

// failed counts the failure of a replica, unless the call was cancelled.
func (c *call[Q, A]) failed(ctx context.Context, replica *replica, failure failure) replicaResult[A] {
	if !errors.Is(ctx.Err(), context.Canceled) {
		c.client.replicas.callFailed(c.uid, replica, failure)
	}
	return replicaResult[A]{replica: replica, failure: failure}
}

// lockPieces waits until no other call sends pieces to the replica. It returns false if the context ends first.
func (r *replica) lockPieces(ctx context.Context) bool {
	select {
	case r.pieces <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func digestsOf(buckets []*nodewisev1.Bucket) []Digest {
	digests := make([]Digest, 0, len(buckets))
	for _, bucket := range buckets {
		if len(bucket.GetDigest()) == len(Digest{}) {
			digests = append(digests, Digest(bucket.GetDigest()))
		}
	}
	return digests
}

// missingOf returns the MissingBuckets detail of a FAILED_PRECONDITION error; nil if there is none.
func missingOf(err error) *nodewisev1.MissingBuckets {
	for _, detail := range status.Convert(err).Details() {
		if missing, ok := detail.(*nodewisev1.MissingBuckets); ok {
			return missing
		}
	}
	return nil
}

// lacking returns the digests of the missing buckets.
func lacking(missing *nodewisev1.MissingBuckets, snapshot *nodewisev1.Snapshot) []Digest {
	var lacking []Digest
	at := func(buckets []*nodewisev1.Bucket, indices []uint32) {
		for _, index := range indices {
			if int(index) < len(buckets) {
				lacking = append(lacking, digestsOf(buckets[index:index+1])...)
			}
		}
	}
	at(snapshot.GetNodeBuckets(), missing.GetNodeBucketIndices())
	at(snapshot.GetPodBuckets(), missing.GetPodBucketIndices())
	return lacking
}
