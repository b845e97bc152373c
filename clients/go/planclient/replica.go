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
	// eviction is how long a replica that failed a call is not probed. It doubles each time that the replica is evicted again before
	// it has answered a call, up to maxEviction.
	eviction    = 500 * time.Millisecond
	maxEviction = 30 * time.Second
	// generation is how many of the digests used last are certainly remembered, of 32 bytes each. About twice as many are kept at most.
	generation = 1 << 16
	// maxLostHedges is how often in a row a spare replica may answer before this one, until that counts as a failure.
	maxLostHedges = 3
)

// state is what the client knows of a replica's health.
type state int

const (
	unknown state = iota
	ready
	evicted
	draining
)

// rank orders replicas: those that are ready or unknown first, then evicted ones, then draining ones.
func (s state) rank() int {
	if s == unknown {
		return int(ready)
	}
	return int(s)
}

// replica is one replica of the service: its connection, its state, and the buckets that it is believed to have.
type replica struct {
	endpoint
	conn   *grpc.ClientConn
	client nodewisev1.ReconcileServiceClient
	// evictedByCall signals the health watch that a failed call has evicted the replica.
	evictedByCall chan struct{}
	// pieces is a lock. The call that sends pieces to the replica holds it.
	pieces chan struct{}

	mu    sync.Mutex
	known digests
	// capabilities are what the replica knows; nil if it has not been asked since its last failure.
	capabilities *capabilities
	// readsSharedLabels is whether it said last that it reads shared labels. A failure does not change that: a version that does not read them
	// says so when it gets them.
	readsSharedLabels bool
	// incarnation counts how often another version may have begun to run at the address.
	incarnation int
	state       state
	// reason says why the replica was evicted last.
	reason string
	// failures is how many of its calls have failed. A health probe that was sent before the last failure does not count.
	failures int
	// evictions is how often a failed call evicted the replica since it last answered one.
	evictions int
	// lostHedges is how often a spare replica answered before this one, since this one last answered a call or was evicted for that.
	lostHedges int
	// failing is the uid of the workload whose call failed last, if the replica has answered no call since. The workload itself may be
	// the cause of the failure.
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
		// A call fails at once when the connection fails. This client retries by itself, and asks another replica first.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
	options = append(options, config.dial...)
	// These come last: the options of the user must not replace the credentials.
	options = append(options, grpc.WithTransportCredentials(config.credentials), grpc.WithNoProxy())
	// The address is dialled as it is, without a proxy from the environment and without a resolver of gRPC.
	conn, err := grpc.NewClient("passthrough:///"+at.address, options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the planning service at %s: %w", at.address, err)
	}
	return &replica{
		endpoint:      at,
		conn:          conn,
		client:        nodewisev1.NewReconcileServiceClient(conn),
		evictedByCall: make(chan struct{}, 1),
		pieces:        make(chan struct{}, 1),
		known:         digests{recent: map[Digest]struct{}{}},
	}, nil
}

// now returns the state of the replica, and why it was evicted last.
func (r *replica) now() (state, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.reason
}

// isEligible reports whether the replica may be asked before others have failed.
func (r *replica) isEligible() bool {
	state, _ := r.now()
	return state.rank() == ready.rank()
}

// answered records that the replica answered a call. A draining replica stays draining: it still answers the calls that it has accepted.
func (r *replica) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evictions, r.lostHedges, r.failing = 0, 0, ""
	if r.state != draining {
		r.state = ready
	}
}

// failed records that a call failed. It reports whether the replica is evicted by this failure.
func (r *replica) failed(reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == draining {
		return false
	}
	r.failures++
	evicts := r.evict(reason)
	if evicts {
		r.evictions++
		select {
		case r.evictedByCall <- struct{}{}:
		default:
		}
	}
	return evicts
}

// evict reports whether the replica was eligible until now.
func (r *replica) evict(reason string) bool {
	before := r.state
	r.state, r.reason, r.capabilities = evicted, reason, nil
	r.incarnation++
	return before.rank() == ready.rank()
}

// probeFailed records that a health probe failed. It reports whether the replica was eligible until now.
func (r *replica) probeFailed(reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evict(reason)
}

// beginProbe records that a health probe is sent. It returns how many calls have failed by now: if a call fails later, the response to the
// probe does not count, see [replica.serves].
func (r *replica) beginProbe() (failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.evictedByCall:
	default:
	}
	return r.failures
}

// serves records that the response to a probe was SERVING. The argument is what [replica.beginProbe] returned. It reports whether the
// response counts: if a call has failed since the probe was sent, another probe is needed.
func (r *replica) serves(failures int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures != failures {
		return false
	}
	r.state = ready
	return true
}

// drains records that the replica does not serve any longer. It reports whether that is new.
func (r *replica) drains() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.state
	r.state = draining
	return before != draining
}

// failsAnother records that a call for this workload failed. It reports whether a call for another workload failed before, and the replica
// answered none in between.
func (r *replica) failsAnother(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.failing
	r.failing = uid
	return before != "" && before != uid
}

// lostHedge records that a spare replica, asked later, answered first. It reports whether that counts as a failure: it does after
// [maxLostHedges] in a row.
func (r *replica) lostHedge() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lostHedges++
	enough := r.lostHedges == maxLostHedges
	if enough {
		r.lostHedges = 0
	}
	return enough
}

// probeDelay is how long the replica is not probed because calls have failed.
func (r *replica) probeDelay() time.Duration {
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

// learn records that the replica has these buckets: they were sent to it, or it answered a request that used them.
func (r *replica) learn(used []Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.use(used)
}

// forget records that the replica lacks these buckets.
func (r *replica) forget(missing []Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.forget(missing)
}

// digests are the digests of the buckets that a replica is believed to have: those used last.
type digests struct {
	// When there are more than [generation] recent digests, they become the older ones, and the older ones are dropped.
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
