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

// maxUndelivered is how many reports are kept for a workload until they can be delivered; older ones are dropped, which costs
// time only.
const maxUndelivered = 8

// state is everything that is remembered, behind one lock that nobody holds while waiting for anything: the caches, what is held
// for each workload, the own-write records and the reports that could not be delivered.
type state struct {
	mu       sync.Mutex
	store    *cluster.Store
	holdings *expect.Holdings
	gate     *gate.Gate
	// undelivered are reports to ride on the next plan, oldest first.
	undelivered map[types.NamespacedName][]*nodewisev1.ReportRequest
	// readLive are revisions that interrupted reconciles read live.
	readLive map[types.NamespacedName]liveRevisions
	// unanswered is about the last call for a plan.
	unanswered unanswered
	// toldLeftOut is when it was last told of a workload that its revisions are too large together.
	toldLeftOut map[types.NamespacedName]time.Time
	// traced are the last reconciles that were recorded.
	traced map[types.NamespacedName]tracedReconcile
	rules  wake.Rules
	waker  *waker
	// restored is told of the resource whose list showed first that etcd was restored from a backup. It may be nil.
	restored func(cluster.Resource)
	// cut is told of objects of which not everything is sent that a decision could read. It may be nil.
	cut func(cluster.CutObject)
}

// maxLive is the most revisions that were read live which are kept for the next plan: of each of the plans of one reconcile a few.
const maxLive = 16

// liveRevisions are revisions as they were read, for the workload of this uid.
type liveRevisions struct {
	uid       types.UID
	revisions []*cluster.Revision
}

func newState(buckets uint32, options *nodewisev1.PlanOptions, waker *waker) *state {
	rule := expect.Counted
	if isEnabled(options, nodewisev1.Deviation_DEVIATION_DELETIONS_BY_UID) {
		rule = expect.ByUID
	}
	return &state{
		store:       cluster.NewStore(buckets),
		holdings:    expect.NewHoldings(rule),
		gate:        gate.New(),
		undelivered: map[types.NamespacedName][]*nodewisev1.ReportRequest{},
		readLive:    map[types.NamespacedName]liveRevisions{},
		toldLeftOut: map[types.NamespacedName]time.Time{},
		traced:      map[types.NamespacedName]tracedReconcile{},
		rules: wake.Rules{
			ClearReplacedOwnWrites: isEnabled(options, nodewisev1.Deviation_DEVIATION_CLEAR_REPLACED_OWN_WRITES),
			WakeOnNodeDelete:       isEnabled(options, nodewisev1.Deviation_DEVIATION_WAKE_ON_NODE_DELETE),
			CountRepeatedDeletions: rule == expect.Counted,
		},
		waker: waker,
	}
}

func (s *state) sayCuts(say func(cluster.CutObject)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = say
}

// change takes in what a watch showed: what makes the changes in the caches is given a function to tell each transition. It wakes
// whoever is concerned, and whoever has waited for the version that the watch has reached.
func (s *state) change(take func(store *cluster.Store, tell func(*cluster.Transition))) {
	seen := s.waker.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	wakeAll := wakeNobody
	// ofAll are the events that wake every workload.
	var ofAll causes
	take(s.store, func(transition *cluster.Transition) {
		if transition == nil {
			return
		}
		trigger := triggerOf(transition, seen)
		if wakes := s.react(transition, trigger); wakes != wakeNobody {
			wakeAll = max(wakeAll, wakes)
			ofAll.note(trigger)
		}
	})
	for _, cut := range s.store.TakeCuts() {
		if s.cut != nil {
			s.cut(cut)
		}
	}
	for _, key := range s.gate.Opened(s.store.Reached) {
		s.waker.wake(key)
	}
	if wakeAll == wakeNobody {
		return
	}
	for _, key := range s.store.Keys() {
		for _, trigger := range ofAll.triggers {
			s.waker.note(key, trigger)
		}
		if wakeAll == wakeFirst {
			s.waker.wakeFirst(key)
		} else {
			s.waker.wake(key)
		}
	}
}

// Whether an event wakes every workload, and how urgently.
type wakeAll int

const (
	wakeNobody wakeAll = iota
	wakeInTurn
	wakeFirst
)

func (s *state) react(transition *cluster.Transition, trigger trigger) wakeAll {
	reactions := wake.React(s.store, transition, s.rules)
	for _, deletion := range reactions.Deletions {
		s.holdings.ObserveDeletion(deletion.Key, deletion.PodName, deletion.PodUID)
	}
	// Before what came: a pod may have come under the name of one that is gone.
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
		s.waker.note(*reactions.First, trigger)
		s.waker.wakeFirst(*reactions.First)
	}
	for _, key := range slices.Compact(reactions.Enqueue) {
		s.waker.note(key, trigger)
		s.waker.wake(key)
	}
	if after := reactions.After; after != nil {
		s.waker.wakeAfter(after.Key, after.After)
	}
	switch {
	case reactions.Everyone && reactions.Urgent:
		return wakeFirst
	case reactions.Everyone:
		return wakeInTurn
	default:
		return wakeNobody
	}
}

// listed notes that a complete list of a resource is about to be taken in, as of this version. No list that is asked for now can be
// older than what was seen before, unless etcd was restored from a backup. Then whatever versions told is forgotten, and nothing is
// planned until every resource was listed again; then everything is looked at (D-112). What is expected stays; it ends by itself. It
// tells whether what comes may be another state at a version that is known.
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
			s.waker.wake(key)
		}
	}
	return beganAnew
}

// forget keeps nothing about a workload that is gone.
func (s *state) forget(key types.NamespacedName) {
	s.gate.Clear(key)
	s.dropHeld(key)
}

func (s *state) dropHeld(key types.NamespacedName) {
	s.holdings.Forget(key)
	delete(s.undelivered, key)
	delete(s.readLive, key)
	delete(s.traced, key)
	delete(s.toldLeftOut, key)
	if s.unanswered.key == key {
		s.unanswered = unanswered{}
	}
}

// mayTellLeftOut tells whether it is time to tell that the revisions of a workload are too large together, which each of its plans finds.
func (s *state) mayTellLeftOut(key types.NamespacedName) bool {
	now := s.waker.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if told, isTold := s.toldLeftOut[key]; isTold && now.Sub(told) < time.Minute {
		return false
	}
	s.toldLeftOut[key] = now
	return true
}

// undeliveredOf are reports about the workload of this uid that are still to be delivered, oldest first.
func (s *state) undeliveredOf(key types.NamespacedName, uid types.UID) []*nodewisev1.ReportRequest {
	var reports []*nodewisev1.ReportRequest
	for _, report := range s.undelivered[key] {
		if report.GetWorkload().GetUid() == string(uid) {
			reports = append(reports, proto.CloneOf(report))
		}
	}
	return reports
}

// keepReport keeps a report that could not be delivered, to ride on the next plan.
func (s *state) keepReport(key types.NamespacedName, report *nodewisev1.ReportRequest) {
	reports := slices.Concat(s.undelivered[key], []*nodewisev1.ReportRequest{report})
	s.undelivered[key] = reports[max(len(reports)-maxUndelivered, 0):]
}

// keepLive keeps revisions that a reconcile read live, and that has to wait for a cache before its next plan: the cache of
// revisions need not show them by then.
func (s *state) keepLive(key types.NamespacedName, uid types.UID, revisions []*cluster.Revision) {
	if len(revisions) == 0 {
		return
	}
	kept := s.readLive[key]
	if kept.uid != uid {
		kept = liveRevisions{uid: uid}
	}
	// A wrong service could have the same one read again and again.
	kept.revisions = slices.DeleteFunc(kept.revisions, func(kept *cluster.Revision) bool {
		return slices.ContainsFunc(revisions, func(revision *cluster.Revision) bool { return revision.Name == kept.Name })
	})
	kept.revisions = append(kept.revisions, revisions...)
	kept.revisions = kept.revisions[max(len(kept.revisions)-maxLive, 0):]
	s.readLive[key] = kept
}

// takeLive are those that were kept. For the next plan they stand for what the cache shows by their names, as they would have
// without the wait.
func (s *state) takeLive(key types.NamespacedName, uid types.UID) []*cluster.Revision {
	kept := s.readLive[key]
	delete(s.readLive, key)
	if kept.uid != uid {
		return nil
	}
	return kept.revisions
}

// sighted is how the pods of a workload look now.
func (s *state) sighted(namespace string, uid types.UID) expect.Sighted {
	return expect.Sighted{
		Exists:   func(podName string) bool { return s.store.ControlsPod(namespace, uid, podName) },
		Deleting: func() map[string]bool { return s.store.Deleting(namespace, uid) },
	}
}
