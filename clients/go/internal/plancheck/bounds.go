package plancheck

import (
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxLivePods is how many live pods of the workload a node may have when a plan creates another one. With a surge there is an old pod beside the
// new one.
const maxLivePods = 1

const (
	// minClaims and maxClaims limit the adoptions, releases, relabels, and changes of revisions and other objects of a plan. The limit is the
	// burst, but at least minClaims and at most maxClaims. The plan may also have as many deletes of such objects.
	minClaims, maxClaims = 1000, 10_000
	// maxOtherEvents is how many Events a plan may emit in addition to one for each deleted pod.
	maxOtherEvents = 10
	// maxWrites is how often a plan may write one object of any resource: it may adopt an object and change it.
	maxWrites = 4
	// maxMeasurements is how many measurements a plan may ask for. A stage of a RolloutPolicy has at most ten checks.
	maxMeasurements = 100
	// maxFollowingEvents is how many Events may follow the success of an action.
	maxFollowingEvents = 4
)

// checkBounds limits how much a plan does. Otherwise a wrong service could fill the cluster with pods of the workload's template, or keep the
// executor busy with writes.
func checkBounds(plan *nodewisev1.Plan, actions []*nodewisev1.Action, asked *Asked) error {
	for _, phase := range plan.GetPhases() {
		if len(phase.GetBatches()) == 0 {
			return violationOf(nil, "it has a phase without batches")
		}
		for _, batch := range phase.GetBatches() {
			// Even an empty batch may cause a read, because it may ask to confirm the workload.
			if len(batch.GetActions()) == 0 {
				return violationOf(nil, "it has a batch without actions")
			}
		}
	}
	var creates, deletes, revisions, objects, statuses, measurements, claims, events int
	for _, action := range actions {
		switch action.GetKind().(type) {
		case *nodewisev1.Action_CreatePod:
			creates++
		case *nodewisev1.Action_DeletePod, *nodewisev1.Action_EvictPod:
			deletes++
		case *nodewisev1.Action_Measure:
			measurements++
		case *nodewisev1.Action_CreateRevision:
			revisions++
		case *nodewisev1.Action_CreateObject:
			objects++
		case *nodewisev1.Action_UpdateStatus:
			statuses++
		case *nodewisev1.Action_EmitEvent:
			events++
		default:
			// This includes actions of an unknown kind.
			claims++
		}
	}
	maxEvents := asked.Burst + maxOtherEvents
	if !asked.DecidesAfterCut {
		maxEvents = events
	}
	for _, bound := range []struct {
		does        string
		count, most int
		what        string
	}{
		{"creates", creates, asked.Burst, "pods"},
		{"deletes", deletes, asked.Burst, "pods"},
		{"creates", revisions, 1, "revisions"},
		{"creates", objects, 1, "objects"},
		{"writes", statuses, 1, "statuses"},
		{"asks for", measurements, maxMeasurements, "measurements"},
		{"adopts, releases, relabels, changes and deletes", claims, 2 * min(max(asked.Burst, minClaims), maxClaims), "objects"},
		{"emits", events, maxEvents, "Events"},
	} {
		if bound.count > bound.most {
			are := "are"
			if bound.most == 1 {
				are = "is"
			}
			return violationOf(nil, "it %s %d %s, and %d %s the most", bound.does, bound.count, bound.what, bound.most, are)
		}
	}
	if err := checkWrites(actions); err != nil {
		return err
	}
	return checkNodesOfCreates(actions, asked)
}

// checkWrites checks how often a plan writes one object of any resource, and how many Events follow an action.
func checkWrites(actions []*nodewisev1.Action) error {
	writes := map[string]int{}
	for _, action := range actions {
		if len(action.GetSuccessEvents()) > maxFollowingEvents {
			return violationOf(action, "more than %d events follow it", maxFollowingEvents)
		}
		for _, object := range []*nodewisev1.ObjectReference{action.GetPatchObject().GetObject(), action.GetDeleteObject().GetObject()} {
			if object == nil {
				continue
			}
			if writes[object.GetUid()]++; writes[object.GetUid()] > maxWrites {
				return violationOf(action, "it writes %s more than %d times", object.GetName(), maxWrites)
			}
		}
	}
	return nil
}

// checkNodesOfCreates checks that each created pod is for another node, or that all are for none.
func checkNodesOfCreates(actions []*nodewisev1.Action, asked *Asked) error {
	nodes := sets.New[string]()
	for action, create := range created(actions) {
		node := create.GetNodeName()
		if !asked.rules().hasNodes {
			if node != "" {
				return violationOf(action, "it creates a pod for node %q, and pods of a %s are for no node", node, asked.Workload.Kind.Name)
			}
			continue
		}
		if nodes.Has(node) {
			return violationOf(action, "it creates a second pod for node %q", node)
		}
		nodes.Insert(node)
	}
	return nil
}

// checkNodes checks the nodes that pods are created for. Nodes and pods may have changed since the snapshot.
func (c *Checked) checkNodes(actions []*nodewisev1.Action) error {
	var nodes []string
	for _, create := range created(actions) {
		nodes = append(nodes, create.GetNodeName())
	}
	if len(nodes) == 0 {
		return nil
	}
	live := c.caches.LivePods(nodes)
	for action, create := range created(actions) {
		node := create.GetNodeName()
		var err error
		switch pods, exists := live[node]; {
		case !exists:
			err = c.leaveOut(action, c.caches.Changed(cluster.Nodes, node), "node %q does not exist", node)
		case pods.Count > maxLivePods:
			err = c.leaveOut(action, pods.Changed, "node %q has %d pods of the workload already", node, pods.Count)
		default:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkReplicas checks that the workload gets no more pods than it should have, with those that the caches show now, and those that were created
// and that they do not show yet: a plan that was made from an old snapshot must not create pods once more.
func (c *Checked) checkReplicas(actions []*nodewisev1.Action) error {
	creates, names := 0, sets.New[string]()
	for _, create := range created(actions) {
		creates++
		names.Insert(create.GetPodName())
	}
	if creates == 0 {
		return nil
	}
	replicas, unseen := max(int(c.asked.Workload.Replicas), 0), 0
	for _, name := range c.caches.UnseenCreates() {
		// A pod that is created once more is the same pod.
		if !names.Has(name) {
			unseen++
		}
	}
	// More creates than replicas are a violation whatever the caches show.
	room := max(replicas-creates, 0)
	live, isBeyond := c.caches.LivePodsBeyond(max(room-unseen, 0))
	if !isBeyond {
		live = cluster.LivePods{}
	}
	// fit is how many creates there is room for beside this many pods.
	fit := func(pods int) int { return max(min(replicas-pods, creates), 0) }
	number, beside := 0, fmt.Sprintf("the plan creates %d pods beside %d that the caches show", creates, live.Count)
	for action := range created(actions) {
		number++
		switch {
		case number > fit(live.Count):
			if err := c.leaveOut(action, live.Changed, "%s, and spec.replicas is %d", beside, replicas); err != nil {
				return err
			}
		case number > fit(live.Count+unseen):
			c.leftOut[action.GetId()] = brief.Text(
				fmt.Sprintf("%s and %d that they do not show yet, and spec.replicas is %d", beside, unseen, replicas))
		default:
		}
	}
	return nil
}

// created iterates over the actions that create pods.
func created(actions []*nodewisev1.Action) iter.Seq2[*nodewisev1.Action, *nodewisev1.CreatePod] {
	return func(yield func(*nodewisev1.Action, *nodewisev1.CreatePod) bool) {
		for _, action := range actions {
			if create := action.GetCreatePod(); create != nil && !yield(action, create) {
				return
			}
		}
	}
}
