package nodewise

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/wake"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxUndelivered is how many undelivered reports are kept for a workload. Older ones are dropped, which costs only time.
const maxUndelivered = 8

// caches are what all controllers of a Reconciler share, and the states of each. One lock guards all of that, and nobody waits for anything while
// holding the lock.
type caches struct {
	mu    sync.Mutex
	store *cluster.Store
	// states are those of the owned kinds.
	states []*state
	// restored is called with the resource whose list was the first to show that etcd was restored from a backup. It may be nil.
	restored func(cluster.Resource)
	// cut is called with objects that have too many labels, so that some that a decision could read are not sent. It may be nil.
	cut func(cluster.CutObject)
}

// state is what a controller keeps between reconciles: the protocol state of each workload, the versions of its own writes, and undelivered
// reports. The lock of the caches guards it.
type state struct {
	*caches

	kind     *kind
	holdings *expect.Holdings
	gate     *gate.Gate
	// undelivered are reports that are sent with the next request for a plan, oldest first.
	undelivered map[types.NamespacedName][]*nodewisev1.ReportRequest
	// readLive are objects that reconciles read from the apiserver before they had to wait for a cache.
	readLive map[types.NamespacedName]keptLive
	// unanswered is the error of the last call of Plan.
	unanswered unanswered
	// loggedLeftOut is when it was last logged that the objects of a workload's snapshot are too large together.
	loggedLeftOut map[types.NamespacedName]time.Time
	// loggedUnsupported is when it was last logged that the service does not plan for the kind.
	loggedUnsupported time.Time
	// traced are the last recorded reconciles of workloads.
	traced   map[types.NamespacedName]tracedReconcile
	rules    wake.Rules
	enqueuer *enqueuer
}

// maxLive is how many live objects of a resource are kept for a workload's next plan. Each plan of a reconcile reads a few.
const maxLive = 16

// keptLive are objects that were read from the apiserver for the workload of this uid.
type keptLive struct {
	uid     types.UID
	objects liveObjects
}

func newCaches(buckets uint32, owned []*kind) *caches {
	cached := make([]*cluster.Kind, 0, len(owned))
	for _, kind := range owned {
		cached = append(cached, kind.Kind)
	}
	return &caches{store: cluster.NewStore(buckets, cached...)}
}

// addState adds the state of a kind.
func (c *caches) addState(of *kind, options *nodewisev1.PlanOptions, enqueuer *enqueuer) *state {
	rule := expect.Counted
	if !of.countsDeletions || isEnabled(options, nodewisev1.Deviation_DEVIATION_DELETIONS_BY_UID) {
		rule = expect.ByUID
	}
	made := &state{
		caches:        c,
		kind:          of,
		holdings:      expect.NewHoldings(rule),
		gate:          gate.New(),
		undelivered:   map[types.NamespacedName][]*nodewisev1.ReportRequest{},
		readLive:      map[types.NamespacedName]keptLive{},
		loggedLeftOut: map[types.NamespacedName]time.Time{},
		traced:        map[types.NamespacedName]tracedReconcile{},
		rules: wake.Rules{
			ClearReplacedOwnWrites: isEnabled(options, nodewisev1.Deviation_DEVIATION_CLEAR_REPLACED_OWN_WRITES),
			WakeOnNodeDelete:       isEnabled(options, nodewisev1.Deviation_DEVIATION_WAKE_ON_NODE_DELETE),
			CountRepeatedDeletions: rule == expect.Counted,
		},
		enqueuer: enqueuer,
	}
	c.states = append(c.states, made)
	return made
}

func (c *caches) onCut(cut func(cluster.CutObject)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
}

// waits reports whether any workload waits for a cache. The caller holds the lock.
func (c *caches) waits() bool {
	return slices.ContainsFunc(c.states, func(s *state) bool { return s.gate.Waits() })
}

// change applies a watch event to the caches. The function apply changes the store, and calls changed with each transition. Then change
// enqueues the workloads that the transitions concern, and those that waited for the version that the watch has reached.
func (c *caches) change(apply func(store *cluster.Store, changed func(*cluster.Transition))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reacting := make([]*reaction, len(c.states))
	for i, state := range c.states {
		reacting[i] = &reaction{state: state, seen: state.enqueuer.clock.Now()}
	}
	apply(c.store, func(transition *cluster.Transition) {
		if transition == nil {
			return
		}
		for _, reaction := range reacting {
			reaction.to(transition)
		}
	})
	for _, cut := range c.store.TakeCuts() {
		if c.cut != nil {
			c.cut(cut)
		}
	}
	for _, reaction := range reacting {
		reaction.end()
	}
}

// reaction is the reaction of one kind to the transitions of a watch event.
type reaction struct {
	*state

	seen time.Time
	all  everyWorkload
	// ofAll are the events that enqueue every workload.
	ofAll causes
}

func (r *reaction) to(transition *cluster.Transition) {
	trigger := triggerOf(transition, r.seen)
	if every := r.react(transition, trigger); every != enqueueNone {
		r.all = max(r.all, every)
		r.ofAll.add(trigger)
	}
}

// end enqueues the workloads that waited for the version that the watch has reached, and every workload if a transition asks for that.
func (r *reaction) end() {
	for _, key := range r.gate.Opened(r.store.Reached) {
		r.enqueuer.enqueue(key)
	}
	if r.all == enqueueNone {
		return
	}
	for _, key := range r.store.Keys(r.kind.Kind) {
		for _, trigger := range r.ofAll.triggers {
			r.enqueuer.addTrigger(key, trigger)
		}
		if r.all == enqueueUrgently {
			r.enqueuer.enqueueFirst(key)
		} else {
			r.enqueuer.enqueue(key)
		}
	}
}

// everyWorkload says whether an event enqueues every workload, and how urgently.
type everyWorkload int

const (
	enqueueNone everyWorkload = iota
	enqueueNormally
	enqueueUrgently
)

func (s *state) react(transition *cluster.Transition, trigger trigger) everyWorkload {
	reactions := wake.React(s.kind.Kind, s.store, transition, s.rules)
	for _, deletion := range reactions.Deletions {
		s.holdings.ObserveDeletion(deletion.Key, deletion.PodName, deletion.PodUID)
	}
	// Before the creates: a new pod may have the name of one that is gone.
	for _, gone := range reactions.Gone {
		s.holdings.RetireName(gone.Key, gone.WorkloadUID, gone.NodeName, gone.PodName)
	}
	for _, create := range reactions.Creates {
		s.holdings.ObserveCreate(create.Key, create.PodName, create.NodeName)
	}
	if forget := reactions.Forget; forget != nil {
		s.gate.ClearOf(forget.Key, forget.OwnWritesOf)
		s.dropHeld(forget.Key)
	}
	if reactions.First != nil {
		s.enqueuer.addTrigger(*reactions.First, trigger)
		s.enqueuer.enqueueFirst(*reactions.First)
	}
	for _, key := range slices.Compact(reactions.Enqueue) {
		s.enqueuer.addTrigger(key, trigger)
		s.enqueuer.enqueue(key)
	}
	if after := reactions.After; after != nil {
		s.enqueuer.enqueueAfter(after.Key, after.After)
	}
	switch {
	case reactions.Everyone && reactions.Urgent:
		return enqueueUrgently
	case reactions.Everyone:
		return enqueueNormally
	default:
		return enqueueNone
	}
}

// listed records that a complete list of a resource, of this version, is about to be applied to the caches. A list is older than what the
// watch showed before only if etcd was restored from a backup. Then all known versions are dropped, and nothing is planned until every
// resource has been listed again; after that every workload is enqueued (D-112). Expectations stay until they expire. It reports whether an
// object of the list may have another content than the cached one, although both have the same version.
func (c *caches) listed(resource cluster.Resource, version string) bool {
	if gate.IsBehind(c.store.Reached(resource), version) {
		c.store.BeginAnew()
		for _, state := range c.states {
			state.gate.BeginAnew()
			clear(state.readLive)
		}
		if c.restored != nil {
			c.restored(resource)
		}
	}
	beganAnew := c.store.Relisting()
	c.store.Listed(resource, version)
	if beganAnew && !c.store.Relisting() {
		for _, state := range c.states {
			for _, key := range c.store.Keys(state.kind.Kind) {
				state.enqueuer.enqueue(key)
			}
		}
	}
	return beganAnew
}

// forget drops everything about a workload that is gone.
func (s *state) forget(key types.NamespacedName) {
	s.gate.Clear(key)
	s.dropHeld(key)
}

func (s *state) dropHeld(key types.NamespacedName) {
	s.holdings.Forget(key)
	delete(s.undelivered, key)
	delete(s.readLive, key)
	delete(s.traced, key)
	delete(s.loggedLeftOut, key)
	if s.unanswered.key == key {
		s.unanswered = unanswered{}
	}
}

// mayLogLeftOut reports whether to log that the revisions of a workload are too large together. That is logged at most once a minute.
func (s *state) mayLogLeftOut(key types.NamespacedName) bool {
	now := s.enqueuer.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if logged, isLogged := s.loggedLeftOut[key]; isLogged && now.Sub(logged) < time.Minute {
		return false
	}
	s.loggedLeftOut[key] = now
	return true
}

// mayLogUnsupported reports whether to log that the service does not plan for the kind. That is logged at most once a minute.
func (s *state) mayLogUnsupported() bool {
	now := s.enqueuer.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loggedUnsupported.IsZero() && now.Sub(s.loggedUnsupported) < time.Minute {
		return false
	}
	s.loggedUnsupported = now
	return true
}

// undeliveredOf returns the undelivered reports about the workload of this uid, oldest first.
func (s *state) undeliveredOf(key types.NamespacedName, uid types.UID) []*nodewisev1.ReportRequest {
	var reports []*nodewisev1.ReportRequest
	for _, report := range s.undelivered[key] {
		if report.GetWorkload().GetUid() == string(uid) {
			reports = append(reports, proto.CloneOf(report))
		}
	}
	return reports
}

// keepReport keeps a report that could not be delivered. It is sent with the next request for a plan.
func (s *state) keepReport(key types.NamespacedName, report *nodewisev1.ReportRequest) {
	reports := slices.Concat(s.undelivered[key], []*nodewisev1.ReportRequest{report})
	s.undelivered[key] = reports[max(len(reports)-maxUndelivered, 0):]
}

// keepLive keeps the live objects of a reconcile that must wait for a cache before its next plan. The caches need not show them by then.
func (s *state) keepLive(key types.NamespacedName, uid types.UID, live *liveObjects) {
	if live.isEmpty() {
		return
	}
	kept := s.readLive[key]
	if kept.uid != uid {
		kept = keptLive{uid: uid}
	}
	kept.objects.revisions = keepNewest(kept.objects.revisions, live.revisions, func(of *cluster.Revision) string { return of.Name })
	kept.objects.workloads = keepNewest(kept.objects.workloads, live.workloads, func(of *cluster.Workload) string { return of.Key.Name })
	s.readLive[key] = kept
}

// keepNewest adds objects to those that are kept, each name once. It keeps at most [maxLive]: a wrong service could cause the same object to be
// read again and again.
func keepNewest[T any](kept, objects []T, name func(T) string) []T {
	kept = slices.DeleteFunc(kept, func(kept T) bool {
		return slices.ContainsFunc(objects, func(object T) bool { return name(object) == name(kept) })
	})
	kept = append(kept, objects...)
	return kept[max(len(kept)-maxLive, 0):]
}

// takeLive removes and returns the objects that were kept. In the next snapshot they replace the cached objects of the same names.
func (s *state) takeLive(key types.NamespacedName, uid types.UID) *liveObjects {
	kept := s.readLive[key]
	delete(s.readLive, key)
	if kept.uid != uid {
		return &liveObjects{}
	}
	return &kept.objects
}

// podView is what the caches show of the pods of a workload.
func (s *state) podView(namespace string, uid types.UID) expect.PodView {
	return expect.PodView{
		Exists:   func(podName string) bool { return s.store.ControlsPod(namespace, uid, podName) },
		Deleting: func() map[string]bool { return s.store.Deleting(namespace, uid) },
	}
}
