package planclient

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// eviction is how long a replica that failed a call is left alone before it is probed; it doubles each time that the
	// replica fails again before it has answered one, up to maxEviction.
	eviction    = 500 * time.Millisecond
	maxEviction = 30 * time.Second
	// generation is how many digests that were used last are remembered for certain, of 32 bytes each; there are at most some
	// twice as many.
	generation = 1 << 16
	// mostOvertaken is how often in a row a replica may be overtaken by another that was asked later.
	mostOvertaken = 3
)

// standing is how a replica stands. Who is asked first: the least.
type standing int

const (
	unknown standing = iota
	ready
	evicted
	draining
)

// rank orders those that can be asked before those that may not answer, and these before those that refuse for certain.
func (s standing) rank() int {
	if s == unknown {
		return int(ready)
	}
	return int(s)
}

// replica is one replica of the service: its connection, how it stands, and which buckets it is believed to have.
type replica struct {
	endpoint
	conn   *grpc.ClientConn
	client nodewisev1.ReconcileServiceClient
	// callFailed tells the health watch that a call has evicted the replica.
	callFailed chan struct{}
	// pieces has room for one: the call whose turn it is to send pieces.
	pieces chan struct{}

	mu       sync.Mutex
	known    digests
	standing standing
	reason   string
	// failures is how many of its calls have failed. What it said of its health before one of them does not count any more.
	failures int
	// evictions is how often it was evicted for a failed call since it last answered one.
	evictions int
	// overtaken is how often another was quicker since it last answered a call or was evicted for that.
	overtaken int
	// failing is the uid of the workload whose call has failed, if none was answered since. It may be the workload.
	failing string
}

func newReplica(at endpoint, config *config) (*replica, error) {
	var options []grpc.DialOption
	if config.credentials.Info().ServerName == "" { //nolint:staticcheck // gRPC refuses another authority than credentials name
		options = append(options, grpc.WithAuthority(at.of.address()))
	}
	options = append(options,
		grpc.WithStatsHandler(newTraced(at.address, config.tracers)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(config.maxMessage)),
		// A call fails at once when the connection does: there are others to ask, and what retries there are is decided here.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
	options = append(options, config.dial...)
	// Whether connections are secured is not among what somebody adds.
	options = append(options, grpc.WithTransportCredentials(config.credentials), grpc.WithNoProxy())
	// The address is dialled as it is: no proxy of the environment and no resolver of gRPC between us and a replica.
	conn, err := grpc.NewClient("passthrough:///"+at.address, options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the planning service at %s: %w", at.address, err)
	}
	return &replica{
		endpoint:   at,
		conn:       conn,
		client:     nodewisev1.NewReconcileServiceClient(conn),
		callFailed: make(chan struct{}, 1),
		pieces:     make(chan struct{}, 1),
		known:      digests{recent: map[Digest]struct{}{}},
	}, nil
}

func (r *replica) stands() (standing, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.standing, r.reason
}

// isEligible tells whether it may be asked before others have failed.
func (r *replica) isEligible() bool {
	standing, _ := r.stands()
	return standing.rank() == ready.rank()
}

// answered notes that it answered a call. One that drains finishes what it has.
func (r *replica) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evictions, r.overtaken, r.failing = 0, 0, ""
	if r.standing != draining {
		r.standing = ready
	}
}

// failed notes that a call failed; it answers whether that evicts the replica just now.
func (r *replica) failed(reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.standing == draining {
		return false
	}
	r.failures++
	evicts := r.evict(reason)
	if evicts {
		r.evictions++
		select {
		case r.callFailed <- struct{}{}:
		default:
		}
	}
	return evicts
}

// evict answers whether it could be asked until now.
func (r *replica) evict(reason string) bool {
	before := r.standing
	r.standing, r.reason = evicted, reason
	return before.rank() == ready.rank()
}

// unwell notes that it cannot be reached; it answers whether it could be asked until now.
func (r *replica) unwell(reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evict(reason)
}

// probed notes that its health is asked for: what it will say of that is good as long as no more of its calls fail than have
// failed by now.
func (r *replica) probed() (failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.callFailed:
	default:
	}
	return r.failures
}

// serves notes that it said, to a probe at which so many of its calls had failed, that it serves. It answers whether that still
// counts: after a call that has failed since, another probe must tell.
func (r *replica) serves(failures int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures != failures {
		return false
	}
	r.standing = ready
	return true
}

// drains notes that it said that it does not serve any longer; it answers whether that is news.
func (r *replica) drains() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.standing
	r.standing = draining
	return before != draining
}

// failsAnother notes that a call for this workload failed; it answers whether one for another did before, and none was answered
// in between.
func (r *replica) failsAnother(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.failing
	r.failing = uid
	return before != "" && before != uid
}

// isOvertakenAgain notes that another replica, asked later, was quicker; it answers whether it is so often enough to call it a
// failure.
func (r *replica) isOvertakenAgain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.overtaken++
	enough := r.overtaken == mostOvertaken
	if enough {
		r.overtaken = 0
	}
	return enough
}

// rest is how long it is to be left alone because of failed calls.
func (r *replica) rest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.evictions == 0 {
		return 0
	}
	return min(eviction<<min(r.evictions-1, 16), maxEviction)
}

func (r *replica) knows(digest Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.contains(digest)
}

// learn notes that it was sent these, or has shown that it has them.
func (r *replica) learn(used []Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.use(used)
}

// forget notes that it lacks these.
func (r *replica) forget(missing []Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.forget(missing)
}

// digests are the buckets that a replica is believed to have: those used last.
type digests struct {
	// older are dropped when there are enough recent ones.
	recent, older map[Digest]struct{}
}

func (d *digests) contains(digest Digest) bool {
	_, recent := d.recent[digest]
	_, older := d.older[digest]
	return recent || older
}

func (d *digests) use(used []Digest) {
	for _, digest := range used {
		d.recent[digest] = struct{}{}
	}
	if len(d.recent) > generation {
		d.recent, d.older = map[Digest]struct{}{}, d.recent
	}
}

func (d *digests) forget(missing []Digest) {
	for _, digest := range missing {
		delete(d.recent, digest)
		delete(d.older, digest)
	}
}
