package planclient

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// replicas is the set of replicas of the service, and knows whether any of them can be reached.
type replicas struct {
	config *config
	logger logr.Logger

	mu      sync.Mutex
	members []*replica
	// changed is closed and replaced when the members change.
	changed chan struct{}
	// lookups requests that the names are looked up again.
	lookups chan struct{}
	// lookupErrors says why the last look-up of a target failed.
	lookupErrors map[target]string
	// loggedAway is true after it was logged that no replica answers.
	loggedAway bool
}

func newReplicas(config *config, logger logr.Logger) *replicas {
	return &replicas{
		config:       config,
		logger:       logger,
		changed:      make(chan struct{}),
		lookups:      make(chan struct{}, 1),
		lookupErrors: map[target]string{},
	}
}

// now returns the replicas, and a channel that is closed when they change.
func (r *replicas) now() (members []*replica, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members, r.changed
}

// replace sets the addresses of the replicas. A replica whose address stays keeps its connection, its state and its known buckets. The
// removed replicas are returned. Calls under way on them go on until the caller closes their connections.
func (r *replicas) replace(endpoints []endpoint) (removed []*replica, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var members []*replica
	added := 0
	for _, at := range endpoints {
		if slices.ContainsFunc(members, func(known *replica) bool { return known.address == at.address }) {
			continue
		}
		if index := slices.IndexFunc(r.members, func(known *replica) bool { return known.endpoint == at }); index >= 0 {
			members = append(members, r.members[index])
			continue
		}
		made, err := newReplica(at, r.config)
		if err != nil {
			return nil, err
		}
		members = append(members, made)
		added++
	}
	for _, before := range r.members {
		if !slices.Contains(members, before) {
			removed = append(removed, before)
		}
	}
	if added == 0 && len(removed) == 0 {
		return nil, nil
	}
	if len(r.members) > 0 {
		r.logger.Info("The replicas of the planning service have changed", "replicas", len(members), "came", added, "gone", len(removed))
	}
	r.members = members
	close(r.changed)
	r.changed = make(chan struct{})
	return removed, nil
}

// order returns the replicas in the order in which a workload asks them: by the rank of their state, and then by rendezvous hash. If there
// are none yet, it waits for the first ones until the context ends.
func (r *replicas) order(ctx context.Context, uid string) []*replica {
	members, changed := r.now()
	if len(members) == 0 {
		r.requestLookup()
	}
	for len(members) == 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			members, changed = r.now()
		}
	}
	ranks := make(map[*replica]int, len(members))
	for _, member := range members {
		state, _ := member.now()
		ranks[member] = state.rank()
	}
	order := slices.Clone(members)
	slices.SortFunc(order, func(a, b *replica) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), compareWeights(uid, a.address, b.address))
	})
	return order
}

// requestLookup requests that the names are looked up again: a replica may have another address by now.
func (r *replicas) requestLookup() {
	select {
	case r.lookups <- struct{}{}:
	default:
	}
}

func (r *replicas) answered(replica *replica) {
	replica.answered()
	r.logHealth()
}

func (r *replicas) serves(replica *replica, failures int) bool {
	counts := replica.serves(failures)
	r.logHealth()
	return counts
}

func (r *replicas) drains(replica *replica) {
	if replica.drains() {
		r.logger.Info("A replica of the planning service drains; asking others", "replica", replica.address)
	}
	r.logHealth()
}

// failed records that a call failed.
func (r *replicas) failed(replica *replica, reason string) {
	if replica.failed(reason) {
		r.evicted(replica, reason)
	}
	r.logHealth()
}

// probeFailed records that a health probe failed, or the connection on which the health is watched.
func (r *replicas) probeFailed(replica *replica, reason string) {
	if replica.probeFailed(reason) {
		r.evicted(replica, reason)
	}
	r.logHealth()
}

func (r *replicas) evicted(replica *replica, reason string) {
	r.logger.Info("Asking other replicas until this one answers again", "replica", replica.address, "reason", reason)
	r.requestLookup()
}

// lookedUp records the result of looking up a target. After an error the known replicas of the target stay.
func (r *replicas) lookedUp(of target, err error) {
	r.mu.Lock()
	_, failedBefore := r.lookupErrors[of]
	if err == nil {
		delete(r.lookupErrors, of)
	} else {
		r.lookupErrors[of] = err.Error()
	}
	r.mu.Unlock()
	if err != nil && !failedBefore {
		r.logger.Error(err, "Replicas of the planning service cannot be looked up", "target", of.String())
	}
}

// health returns nil if a replica answers. Otherwise the error says why the service cannot be reached, or that it was not asked yet.
func (r *replicas) health() error {
	if away := r.away(); away != nil {
		return away
	}
	return nil
}

// awayError says why the service cannot be reached.
type awayError struct {
	what string
	// reason may be empty.
	reason string
}

func (e *awayError) Error() string {
	if e.reason == "" {
		return e.what
	}
	return e.what + ": " + e.reason
}

// errNotAsked is the health before the first answer.
var errNotAsked = &awayError{what: "the planning service was not asked yet"}

// away returns nil if a replica answers.
func (r *replicas) away() *awayError {
	r.mu.Lock()
	members := r.members
	var lookups []string
	for _, reason := range r.lookupErrors {
		lookups = append(lookups, reason)
	}
	r.mu.Unlock()
	if len(members) == 0 {
		slices.Sort(lookups)
		return &awayError{what: "no replica of the planning service is known", reason: strings.Join(lookups, "; ")}
	}
	reason := ""
	for _, member := range members {
		switch state, why := member.now(); state {
		case ready:
			return nil
		case evicted:
			reason = why
		case draining:
			reason = cmp.Or(reason, member.address+": it is draining")
		case unknown:
		}
	}
	if reason == "" {
		return errNotAsked
	}
	return &awayError{what: "no replica of the planning service answers", reason: reason}
}

// logHealth logs when the service cannot be reached any more, and when it can be reached again.
func (r *replicas) logHealth() {
	err := r.health()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.loggedAway:
		r.loggedAway = false
		r.logger.Info("The planning service answers again")
	case err != nil && !errors.Is(err, errNotAsked) && !r.loggedAway:
		r.loggedAway = true
		r.logger.Error(err, "The planning service is away; nothing is written until it answers")
	}
}
