// Package expect holds the protocol state of each workload: the creates and deletes that no watch has shown yet, the back-off of failed pods,
// pod name collisions, and the progress of the slow start. It also keeps the names of pods that are gone, which new pods must not get for now.
//
// The service decides what an outstanding expectation means. This package only removes expectations as the watches show what was expected.
// Everything is kept in memory only, and is empty after a start. Nothing here is safe for concurrent use.
package expect

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// DeletionRule says which deletions meet expectations.
type DeletionRule int

const (
	// ByUID means that only the deletion of an expected pod counts (the deviation DELETIONS_BY_UID, Q-5).
	ByUID DeletionRule = iota
	// Counted means that any deletion of a pod of the workload counts, and each of its events counts again, as upstream does.
	Counted
)

// expectations are creates and deletes of one plan that have not been observed.
type expectations struct {
	setAt *timestamppb.Timestamp
	// named are node names by pod name.
	named map[string]string
	// unnamed is the number of pods whose names the apiserver generates, by node name.
	unnamed map[string]int
	// deletes are the uids of pods.
	deletes map[string]bool
}

func parse(wire *nodewisev1.Expectations) expectations {
	e := expectations{
		setAt:   wire.GetSetAt(),
		named:   map[string]string{},
		unnamed: map[string]int{},
		deletes: map[string]bool{},
	}
	for _, create := range wire.GetCreates() {
		if create.GetPodName() == "" {
			e.unnamed[create.GetNodeName()]++
		} else {
			e.named[create.GetPodName()] = create.GetNodeName()
		}
	}
	for _, uid := range wire.GetDeleteUids() {
		e.deletes[uid] = true
	}
	return e
}

// LeaveOutForeign removes the expectations that neither an action of the plan causes nor the request had. No watch event would ever meet them.
func LeaveOutForeign(planned *nodewisev1.ReconcileState, actions []*nodewisev1.Action, sent *nodewisev1.ReconcileState) {
	expected := planned.GetExpectations()
	if expected == nil {
		return
	}
	type create struct{ pod, node string }
	creates, deletes := map[create]int{}, sets.New(sent.GetExpectations().GetDeleteUids()...)
	for _, before := range sent.GetExpectations().GetCreates() {
		creates[create{before.GetPodName(), before.GetNodeName()}]++
	}
	for _, action := range actions {
		if pod := action.GetCreatePod(); pod != nil {
			creates[create{pod.GetPodName(), pod.GetNodeName()}]++
		}
		for _, pod := range []*nodewisev1.ObjectReference{action.GetDeletePod().GetPod(), action.GetEvictPod().GetPod()} {
			if pod != nil {
				deletes.Insert(pod.GetUid())
			}
		}
	}
	expected.Creates = slices.DeleteFunc(expected.Creates, func(pod *nodewisev1.ExpectedCreate) bool {
		name := create{pod.GetPodName(), pod.GetNodeName()}
		creates[name]--
		return creates[name] < 0
	})
	expected.DeleteUids = slices.DeleteFunc(expected.DeleteUids, func(uid string) bool { return !deletes.Has(uid) })
}

// wire returns the protocol message; nil without a time. A plan that expects nothing sets no time, and the service refuses expectations without
// one.
func (e expectations) wire() *nodewisev1.Expectations {
	if e.setAt == nil {
		return nil
	}
	wire := &nodewisev1.Expectations{SetAt: e.setAt, DeleteUids: slices.Sorted(maps.Keys(e.deletes))}
	for _, pod := range slices.Sorted(maps.Keys(e.named)) {
		wire.Creates = append(wire.Creates, &nodewisev1.ExpectedCreate{PodName: pod, NodeName: e.named[pod]})
	}
	for _, node := range slices.Sorted(maps.Keys(e.unnamed)) {
		for range e.unnamed[node] {
			wire.Creates = append(wire.Creates, &nodewisev1.ExpectedCreate{NodeName: node})
		}
	}
	return wire
}

func (e expectations) creates() int {
	count := len(e.named)
	for _, unnamed := range e.unnamed {
		count += unnamed
	}
	return count
}

// observeCreate removes the expectation of a new pod that a watch has shown (D-73).
func (e expectations) observeCreate(podName, nodeName string) {
	if _, expected := e.named[podName]; expected {
		delete(e.named, podName)
		return
	}
	lower(e.unnamed, nodeName, 1)
}

// observeDeletion removes the expectation of a deletion, after a watch has shown that a pod is gone or being deleted (D-73). An expectation of
// the pod's creation is removed, too.
func (e expectations) observeDeletion(podName, podUID string, rule DeletionRule) {
	delete(e.named, podName)
	if e.deletes[podUID] {
		delete(e.deletes, podUID)
		return
	}
	if rule == Counted && len(e.deletes) > 0 {
		delete(e.deletes, slices.Min(slices.Collect(maps.Keys(e.deletes))))
	}
}

// retain removes the expectations that other does not have. It adds none.
func (e expectations) retain(other expectations) {
	maps.DeleteFunc(e.named, func(pod, _ string) bool { _, kept := other.named[pod]; return !kept })
	maps.DeleteFunc(e.deletes, func(uid string, _ bool) bool { return !other.deletes[uid] })
	for node, count := range e.unnamed {
		lower(e.unnamed, node, count-min(count, other.unnamed[node]))
	}
}

// settle removes the expectations that were sent and are no longer held: they were met while the plan was requested.
func (e expectations) settle(sent, held expectations) {
	maps.DeleteFunc(e.named, func(pod, _ string) bool {
		_, wasSent := sent.named[pod]
		_, isHeld := held.named[pod]
		return wasSent && !isHeld
	})
	maps.DeleteFunc(e.deletes, func(uid string, _ bool) bool { return sent.deletes[uid] && !held.deletes[uid] })
	for node, count := range sent.unnamed {
		lower(e.unnamed, node, max(count-held.unnamed[node], 0))
	}
}

func lower(counts map[string]int, key string, by int) {
	if counts[key] <= by {
		delete(counts, key)
	} else {
		counts[key] -= by
	}
}
