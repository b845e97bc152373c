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

// replicas is the set of replicas: who is in it, how each stands, and so whether the service can be reached at all.
type replicas struct {
	config *config
	logger logr.Logger

	mu      sync.Mutex
	members []*replica
	// changed is closed and made anew when the members change.
	changed chan struct{}
	// doubts asks for the names to be looked up again.
	doubts chan struct{}
	// search is why the replicas of a target could not be found lately.
	search map[target]string
	// saidAway: it was said that nobody answers.
	saidAway bool
}

func newReplicas(config *config, logger logr.Logger) *replicas {
	return &replicas{
		config:  config,
		logger:  logger,
		changed: make(chan struct{}),
		doubts:  make(chan struct{}, 1),
		search:  map[target]string{},
	}
}

func (r *replicas) now() (members []*replica, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members, r.changed
}

// replace says where the replicas are from now on. One that stays keeps its connection, its standing and what it is believed to
// have. Those that go are given back: calls under way on them go on until their connection is closed.
func (r *replicas) replace(endpoints []endpoint) (gone []*replica, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var members []*replica
	came := 0
	for _, at := range endpoints {
		if slices.ContainsFunc(members, func(known *replica) bool { return known.address == at.address }) {
			continue
		}
		if place := slices.IndexFunc(r.members, func(known *replica) bool { return known.endpoint == at }); place >= 0 {
			members = append(members, r.members[place])
			continue
		}
		made, err := newReplica(at, r.config)
		if err != nil {
			return nil, err
		}
		members = append(members, made)
		came++
	}
	for _, before := range r.members {
		if !slices.Contains(members, before) {
			gone = append(gone, before)
		}
	}
	if came == 0 && len(gone) == 0 {
		return nil, nil
	}
	r.logger.Info("The replicas of the planning service have changed", "replicas", len(members), "came", came, "gone", len(gone))
	r.members = members
	close(r.changed)
	r.changed = make(chan struct{})
	return gone, nil
}

// order is the replicas in the order in which a workload asks them: those that do not serve last, else by rendezvous hash. It
// waits for the first ones, if there are none yet, as long as the context lasts.
func (r *replicas) order(ctx context.Context, uid string) []*replica {
	members, changed := r.now()
	if len(members) == 0 {
		r.doubt()
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
		standing, _ := member.stands()
		ranks[member] = standing.rank()
	}
	order := slices.Clone(members)
	slices.SortFunc(order, func(a, b *replica) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), compareWeights(uid, a.address, b.address))
	})
	return order
}

// doubt asks for the names to be looked up again: whoever was known may have moved.
func (r *replicas) doubt() {
	select {
	case r.doubts <- struct{}{}:
	default:
	}
}

func (r *replicas) answered(replica *replica) {
	replica.answered()
	r.note()
}

func (r *replicas) serves(replica *replica, failures int) bool {
	counts := replica.serves(failures)
	r.note()
	return counts
}

func (r *replicas) drains(replica *replica) {
	if replica.drains() {
		r.logger.Info("A replica of the planning service drains; asking others", "replica", replica.address)
	}
	r.note()
}

// failed notes that a call failed.
func (r *replicas) failed(replica *replica, reason string) {
	if replica.failed(reason) {
		r.tellEviction(replica, reason)
	}
	r.note()
}

// unwell notes that a probe failed, or the connection on which its health is followed.
func (r *replicas) unwell(replica *replica, reason string) {
	if replica.unwell(reason) {
		r.tellEviction(replica, reason)
	}
	r.note()
}

func (r *replicas) tellEviction(replica *replica, reason string) {
	r.logger.Info("Asking other replicas until this one answers again", "replica", replica.address, "reason", reason)
	r.doubt()
}

// searched notes whether the replicas of a target could be found just now; who was known stays known.
func (r *replicas) searched(of target, err error) {
	r.mu.Lock()
	_, failedBefore := r.search[of]
	if err == nil {
		delete(r.search, of)
	} else {
		r.search[of] = err.Error()
	}
	r.mu.Unlock()
	if err != nil && !failedBefore {
		r.logger.Error(err, "Replicas of the planning service cannot be looked up", "target", of.String())
	}
}

// health is why the service cannot be reached, if so, or that it was not tried yet.
func (r *replicas) health() error {
	if away := r.away(); away != nil {
		return away
	}
	return nil
}

// awayError is why the service cannot be reached.
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

// errNotAsked is what is said before the first answer.
var errNotAsked = &awayError{what: "the planning service was not asked yet"}

// away is nil if a replica answers.
func (r *replicas) away() *awayError {
	r.mu.Lock()
	members := r.members
	var searches []string
	for _, reason := range r.search {
		searches = append(searches, reason)
	}
	r.mu.Unlock()
	if len(members) == 0 {
		slices.Sort(searches)
		return &awayError{what: "no replica of the planning service is known", reason: strings.Join(searches, "; ")}
	}
	reason := ""
	for _, member := range members {
		switch standing, why := member.stands(); standing {
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

// note says what has changed.
func (r *replicas) note() {
	err := r.health()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.saidAway:
		r.saidAway = false
		r.logger.Info("The planning service answers again")
	case err != nil && !errors.Is(err, errNotAsked) && !r.saidAway:
		r.saidAway = true
		r.logger.Error(err, "The planning service is away; nothing is written until it answers")
	}
}
