package planclient

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// corrections is how often a replica may lack buckets of one request before it is sent all of them.
const corrections = 3

// errEnded is why nothing is built any more.
var errEnded = errors.New("the call is over")

// builder builds requests for several replicas, and numbers them.
type builder struct {
	mu    sync.Mutex
	made  int
	build BuildRequest
	ended bool
}

// end lets nothing be built any more: a replica that was asked besides may still answer that it lacks something.
func (b *builder) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// buildFor builds a request for a replica, with everything inline or only what it is not believed to have.
func (b *builder) buildFor(replica *replica, everything bool) (int, *nodewisev1.PlanRequest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, nil, errEnded
	}
	number := b.made
	b.made++
	request, err := b.build(func(digest Digest) bool { return !everything && replica.knows(digest) })
	return number, request, err
}

// asking is what asking for one plan needs.
type asking struct {
	client  *Client
	uid     string
	builder *builder
}

// taken is what became of a turn.
type taken struct {
	answer *Answer
	by     *replica
	failed []struct {
		replica *replica
		failure failure
	}
	// hedged: the spare replica was asked, too.
	hedged bool
	// unbuilt is why no request could be built.
	unbuilt error
}

// said is what one replica said.
type said struct {
	replica *replica
	answer  *Answer
	failure failure
	unbuilt error
}

func (t *taken) add(said said) {
	switch {
	case said.unbuilt != nil:
		t.unbuilt = said.unbuilt
	case said.answer != nil:
		t.answer, t.by = said.answer, said.replica
	default:
		t.failed = append(t.failed, struct {
			replica *replica
			failure failure
		}{said.replica, said.failure})
	}
}

// take asks the replica whose turn it is; when the time to hedge has passed without an answer, a spare one as well. The first
// plan is taken, and the other call is cancelled.
func (a *asking) take(ctx context.Context, turn *turn) *taken {
	ctx, cancel := context.WithDeadline(ctx, turn.until)
	defer cancel()
	taken := &taken{}
	if a.client.config.hedgeAfter <= 0 || turn.spare == nil {
		taken.add(a.ask(ctx, turn.replica))
		return taken
	}
	answers := make(chan said, 2)
	go func() { answers <- a.ask(ctx, turn.replica) }()
	hedge := time.NewTimer(a.client.config.hedgeAfter)
	defer hedge.Stop()
	under := 1
	for under > 0 {
		select {
		case <-hedge.C:
			taken.hedged = true
			under++
			go func() { answers <- a.ask(ctx, turn.spare) }()
		case said := <-answers:
			under--
			taken.add(said)
			isFinal := taken.answer != nil || taken.unbuilt != nil || said.failure.fault == faultRequest
			if isFinal || !taken.hedged {
				a.overtaken(turn, taken, under)
				return taken
			}
		}
	}
	return taken
}

// overtaken notes that another replica that was asked later has answered first. That is no failure; but one that hangs is never
// told from one that is slow when nobody waits for it.
func (a *asking) overtaken(turn *turn, taken *taken, stillAsked int) {
	if stillAsked == 0 || taken.by != turn.spare || !turn.replica.isOvertakenAgain() {
		return
	}
	a.client.replicas.failed(turn.replica, turn.replica.address+": others answered first, time after time")
}

// ask asks one replica; again when it turns out to lack buckets. It may lose more while we send, and what it lacks may be
// believed to be there again by the answer to another workload: in the end it gets everything, whatever is believed.
func (a *asking) ask(ctx context.Context, replica *replica) said {
	pieces := newPieces(a.client.config.maxPiece)
	isOurTurn := false
	defer func() {
		if isOurTurn {
			<-replica.pieces
		}
	}()
	for corrected := 0; ; {
		everything := corrected == corrections
		number, request, err := a.builder.buildFor(replica, everything)
		if err != nil {
			return said{replica: replica, unbuilt: err}
		}
		var piece []Digest
		if !everything {
			request, piece = pieces.cut(request)
		}
		if piece != nil && !isOurTurn {
			if isOurTurn = replica.takeTurn(ctx); !isOurTurn {
				reason := replica.address + ": another call sends it buckets in pieces"
				return said{replica: replica, failure: failure{reason: reason, fault: faultMoment}}
			}
			if slices.ContainsFunc(piece, replica.knows) {
				// Another call has sent it meanwhile.
				continue
			}
		}
		plan, err := call(ctx, replica, request)
		if err == nil {
			a.client.replicas.answered(replica)
			replica.learn(append(digestsOf(request.GetSnapshot().GetNodeBuckets()),
				digestsOf(request.GetSnapshot().GetPodBuckets())...))
			return said{replica: replica, answer: &Answer{Plan: plan, Request: number}}
		}
		if status.Code(err) != codes.FailedPrecondition || everything {
			failure := newFailure(replica, err)
			if everything {
				failure = pieces.explain(failure, request)
			}
			if !errors.Is(ctx.Err(), context.Canceled) {
				a.client.replicas.judge(a.uid, replica, failure)
			}
			return said{replica: replica, failure: failure}
		}
		missing := missingOf(err)
		left := len(missing.GetNodeBucketIndices()) + len(missing.GetPodBucketIndices())
		switch {
		case missing == nil, piece != nil && !pieces.areKept(len(piece), left):
			corrected = corrections
		case piece == nil:
			corrected++
		}
		if missing != nil {
			replica.learn(piece)
			replica.forget(lacking(missing, request.GetSnapshot()))
		}
	}
}

// takeTurn waits for the turn to send the replica pieces; false when the context ends first.
func (r *replica) takeTurn(ctx context.Context) bool {
	select {
	case r.pieces <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func call(ctx context.Context, replica *replica, request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
	response, err := replica.client.Plan(ctx, request)
	if err != nil {
		return nil, err
	}
	if response.GetPlan() == nil {
		return nil, status.Error(codes.Internal, "an answer without a plan")
	}
	return response.GetPlan(), nil
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

// missingOf is the detail of FAILED_PRECONDITION that names buckets.
func missingOf(err error) *nodewisev1.MissingBuckets {
	for _, detail := range status.Convert(err).Details() {
		if missing, ok := detail.(*nodewisev1.MissingBuckets); ok {
			return missing
		}
	}
	return nil
}

// lacking are the digests of the buckets that are missing.
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
