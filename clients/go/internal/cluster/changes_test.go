package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Each object has the number of its last change. An object that is shown again unchanged has not changed. A removal counts for all objects
// that are not cached.
func TestWhatHasChanged(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	foreign := labelled(t, "a", "2", "", 1)
	foreign.Controller = pod("x", "1", "", "d1", "").Controller
	foreign.Controller.Kind = "StatefulSet"
	for name, test := range map[string]struct {
		change                                         func(store *Store)
		pods, others, revisions, otherRevisions, nodes bool
	}{
		"nothing":             {change: func(*Store) {}},
		"a pod":               {change: func(store *Store) { store.PutPod(pod("a", "2", "n1", "d1", "y")) }, pods: true},
		"a pod, again":        {change: func(store *Store) { store.PutPod(pod("a", "1", "n1", "d1", "x")) }},
		"a pod goes":          {change: func(store *Store) { store.RemovePod("ns", "a", nil) }, pods: true, others: true},
		"an orphan goes":      {change: func(store *Store) { store.ForgetOrphan(Pods, "ns", "orphan") }, others: true},
		"a revision":          {change: func(store *Store) { store.PutRevision(labelled(t, "a", "2", "", 1)) }, revisions: true},
		"a revision, again":   {change: func(store *Store) { store.PutRevision(labelled(t, "a", "1", "", 1)) }},
		"a revision is whole": {change: func(store *Store) { store.KeepWhole(selecting(t, "d", "x"), labelled(t, "a", "1", "", 1)) }},
		"a revision, after versions began anew": {
			change: func(store *Store) {
				store.BeginAnew()
				store.PutRevision(labelled(t, "a", "1", "", 1))
			},
			revisions: true,
		},
		"a revision goes": {
			change: func(store *Store) { store.RemoveRevision("ns", "a", nil) }, revisions: true, otherRevisions: true,
		},
		"a revision is another kind's": {
			change: func(store *Store) { store.PutRevision(foreign) }, revisions: true, otherRevisions: true,
		},
		"a node":      {change: func(store *Store) { store.PutNode(node("n1", "2", nil)) }},
		"a node goes": {change: func(store *Store) { store.RemoveNode("n1") }, nodes: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(1, DaemonSet)
			store.PutNode(node("n1", "1", nil))
			store.PutPod(pod("a", "1", "n1", "d1", "x"))
			store.PutPod(pod("orphan", "1", "n1", "", "x"))
			store.PutRevision(labelled(t, "a", "1", "", 1))
			last := store.LastChange()
			test.change(store)
			for of, got := range map[string]bool{
				"pods":            store.Changed(Pods, key.Namespace, key.Name) > last == test.pods,
				"other pods":      store.Changed(Pods, key.Namespace, "other") > last == test.others,
				"revisions":       store.Changed(Revisions, key.Namespace, key.Name) > last == test.revisions,
				"other revisions": store.Changed(Revisions, key.Namespace, "other") > last == test.otherRevisions,
				"any revision":    store.RevisionsChanged(key.Namespace) > last == test.revisions,
				"nodes":           store.Changed(Nodes, "", "n1") > last == test.nodes,
			} {
				if !got {
					t.Errorf("of %s it is told otherwise", of)
				}
			}
		})
	}
}
