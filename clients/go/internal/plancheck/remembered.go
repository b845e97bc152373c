package plancheck

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxBackoffs is how many back-off entries of one node are kept. Each is of another generation of the workload, and only the current one counts.
const maxBackoffs = 4

// checkRemembered checks the state of a plan. The state is sent with every later request, so it may name only existing nodes. A node that was
// deleted since the snapshot is no violation, but its entries are not held.
func checkRemembered(state *nodewisev1.ReconcileState, asked *Asked, caches Caches) error {
	if !asked.rules().hasNodes {
		for _, node := range nodesOf(state) {
			if node != "" {
				return violationOf(nil, "its state names node %q, and pods of a %s are for no node", node, asked.Workload.Kind.Name)
			}
		}
		return checkSlowStart(state)
	}
	sent := sets.New(nodesOf(asked.Sent)...)
	for _, node := range nodesOf(state) {
		var what string
		switch {
		case len(validation.IsDNS1123Subdomain(node)) > 0:
			what = "no object can be called so"
		case sent.Has(node) || caches.HasNode(node) || caches.Changed(cluster.Nodes, node) > asked.AsOf:
			continue
		default:
			what = "that does not exist"
		}
		return violationOf(nil, "its state names node %q, and %s", node, what)
	}
	return checkSlowStart(state)
}

// checkSlowStart checks the hash of the pods whose creates are slowed down.
func checkSlowStart(state *nodewisev1.ReconcileState) error {
	if hash := state.GetSlowStart().GetRevisionHash(); len(validation.IsValidLabelValue(hash)) > 0 {
		return violationOf(nil, "its state names the hash %q, and no label has such a value", hash)
	}
	return nil
}

// nodesOf returns the nodes that a state names in its back-offs and collisions.
func nodesOf(state *nodewisev1.ReconcileState) []string {
	var nodes []string
	for _, entry := range state.GetFailedPodBackoffs() {
		nodes = append(nodes, entry.GetNodeName())
	}
	for _, entry := range state.GetPodNameCollisions() {
		nodes = append(nodes, entry.GetNodeName())
	}
	return nodes
}

// RetainRememberable removes entries from a state that must not be held: those of nodes that neither exist nor were in the sent state, back-offs
// beyond [maxBackoffs], and duplicates.
//
// If pods of the kind are for no node, entries without a node stay, and no others.
func RetainRememberable(kind *cluster.Kind, state, sent *nodewisev1.ReconcileState, hasNode func(string) bool) {
	known := sets.New(nodesOf(sent)...)
	isKnown := func(node string) bool {
		if !rulesOf[kind].hasNodes {
			return node == ""
		}
		return len(validation.IsDNS1123Subdomain(node)) == 0 && (known.Has(node) || hasNode(node))
	}
	newest := map[string]sets.Set[int64]{}
	for _, entry := range state.GetFailedPodBackoffs() {
		generations := newest[entry.GetNodeName()]
		if generations == nil {
			generations = sets.New[int64]()
			newest[entry.GetNodeName()] = generations
		}
		generations.Insert(entry.GetObservedGeneration())
		if len(generations) > maxBackoffs {
			generations.Delete(slices.Min(generations.UnsortedList()))
		}
	}
	state.FailedPodBackoffs = slices.DeleteFunc(state.FailedPodBackoffs, func(entry *nodewisev1.FailedPodBackoff) bool {
		generations := newest[entry.GetNodeName()]
		isKept := generations.Has(entry.GetObservedGeneration())
		// A second entry of the same generation is a duplicate.
		generations.Delete(entry.GetObservedGeneration())
		return !isKept || !isKnown(entry.GetNodeName())
	})
	seen := sets.New[string]()
	state.PodNameCollisions = slices.DeleteFunc(state.PodNameCollisions, func(entry *nodewisev1.PodNameCollision) bool {
		isAgain := seen.Has(entry.GetNodeName())
		seen.Insert(entry.GetNodeName())
		return isAgain || !isKnown(entry.GetNodeName())
	})
	if len(validation.IsValidLabelValue(state.GetSlowStart().GetRevisionHash())) > 0 {
		state.SlowStart = nil
	}
}
