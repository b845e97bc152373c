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

// state is what the Reconciler keeps between reconciles: the caches, the protocol state of each workload, the versions of its own writes, and
// undelivered reports. One lock guards it, and nobody waits for anything while holding the lock.
type state struct {
	mu       sync.Mutex
	store    *cluster.Store
	holdings *expect.Holdings
	gate     *gate.Gate
	// undelivered are reports that are sent with the next request for a plan, oldest first.
	undelivered map[types.NamespacedName][]*nodewisev1.ReportRequest
	// readLive are revisions that reconciles read from the apiserver before they had to wait for a cache.
	readLive map[types.NamespacedName]liveRevisions
	// unanswered is the error of the last call of Plan.
	unanswered unanswered
	// loggedLeftOut is when it was last logged that the revisions of a workload are too large together.
	loggedLeftOut map[types.NamespacedName]time.Time
	// traced are the last recorded reconciles of workloads.
	traced   map[types.NamespacedName]tracedReconcile
	rules    wake.Rules
	enqueuer *enqueuer
	// restored is called with the resource whose list was the first to show that etcd was restored from a backup. It may be nil.
	restored func(cluster.Resource)
	// cut is called with objects that have too many labels, so that some that a decision could read are not sent. It may be nil.
	cut func(cluster.CutObject)
}

// maxLive is how many live revisions of a workload are kept for the next plan. Each plan of a reconcile reads a few.
const maxLive = 16

// liveRevisions are revisions that were read from the apiserver for the workload of this uid.
type liveRevisions struct {
	uid       types.UID
	revisions []*cluster.Revision
}

func newState(buckets uint32, options *nodewisev1.PlanOptions, enqueuer *enqueuer) *state {
	rule := expect.Counted
	if isEnabled(options, nodewisev1.Deviation_DEVIATION_DELETIONS_BY_UID) {
		rule = expect.ByUID
	}
	return &state{
		store:         cluster.NewStore(buckets),
		holdings:      expect.NewHoldings(rule),
		gate:          gate.New(),
		undelivered:   map[types.NamespacedName][]*nodewisev1.ReportRequest{},
		readLive:      map[types.NamespacedName]liveRevisions{},
		loggedLeftOut: map[types.NamespacedName]time.Time{},
		traced:        map[types.NamespacedName]tracedReconcile{},
		rules: wake.Rules{
			ClearReplacedOwnWrites: isEnabled(options, nodewisev1.Deviation_DEVIATION_CLEAR_REPLACED_OWN_WRITES),
			WakeOnNodeDelete:       isEnabled(options, nodewisev1.Deviation_DEVIATION_WAKE_ON_NODE_DELETE),
			CountRepeatedDeletions: rule == expect.Counted,
		},
		enqueuer: enqueuer,
	}
}

func (s *state) onCut(cut func(cluster.CutObject)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

// change applies a watch event to the caches. The function apply changes the store, and calls changed with each transition. Then change
// enqueues the workloads that the transitions concern, and those that waited for the version that the watch has reached.
func (s *state) change(apply func(store *cluster.Store, changed func(*cluster.Transition))) {
	seen := s.enqueuer.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := enqueueNone
	// ofAll are the events that enqueue every workload.
	var ofAll causes
	apply(s.store, func(transition *cluster.Transition) {
		if transition == nil {
			return
		}
		trigger := triggerOf(transition, seen)
		if every := s.react(transition, trigger); every != enqueueNone {
			all = max(all, every)
			ofAll.add(trigger)
		}
	})
	for _, cut := range s.store.TakeCuts() {
		if s.cut != nil {
			s.cut(cut)
		}
	}
	for _, key := range s.gate.Opened(s.store.Reached) {
		s.enqueuer.enqueue(key)
	}
	if all == enqueueNone {
		return
	}
	for _, key := range s.store.Keys() {
		for _, trigger := range ofAll.triggers {
			s.enqueuer.addTrigger(key, trigger)
		}
		if all == enqueueUrgently {
			s.enqueuer.enqueueFirst(key)
		} else {
			s.enqueuer.enqueue(key)
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
	reactions := wake.React(s.store, transition, s.rules)
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
func (s *state) listed(resource cluster.Resource, version string) bool {
	if gate.IsBehind(s.store.Reached(resource), version) {
		s.store.BeginAnew()
		s.gate.BeginAnew()
		clear(s.readLive)
		if s.restored != nil {
			s.restored(resource)
		}
	}
	beganAnew := s.store.Relisting()
	s.store.Listed(resource, version)
	if beganAnew && !s.store.Relisting() {
		for _, key := range s.store.Keys() {
			s.enqueuer.enqueue(key)
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

// keepLive keeps the live revisions of a reconcile that must wait for a cache before its next plan. The cache of revisions need not show
// them by then.
func (s *state) keepLive(key types.NamespacedName, uid types.UID, revisions []*cluster.Revision) {
	if len(revisions) == 0 {
		return
	}
	kept := s.readLive[key]
	if kept.uid != uid {
		kept = liveRevisions{uid: uid}
	}
	// A wrong service could cause the same revision to be read again and again.
	kept.revisions = slices.DeleteFunc(kept.revisions, func(kept *cluster.Revision) bool {
		return slices.ContainsFunc(revisions, func(revision *cluster.Revision) bool { return revision.Name == kept.Name })
	})
	kept.revisions = append(kept.revisions, revisions...)
	kept.revisions = kept.revisions[max(len(kept.revisions)-maxLive, 0):]
	s.readLive[key] = kept
}

// takeLive removes and returns the revisions that were kept. In the next snapshot they replace the cached revisions of the same names.
func (s *state) takeLive(key types.NamespacedName, uid types.UID) []*cluster.Revision {
	kept := s.readLive[key]
	delete(s.readLive, key)
	if kept.uid != uid {
		return nil
	}
	return kept.revisions
}

// podView is what the caches show of the pods of a workload.
func (s *state) podView(namespace string, uid types.UID) expect.PodView {
	return expect.PodView{
		Exists:   func(podName string) bool { return s.store.ControlsPod(namespace, uid, podName) },
		Deleting: func() map[string]bool { return s.store.Deleting(namespace, uid) },
	}
}
