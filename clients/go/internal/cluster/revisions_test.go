package cluster

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// selecting is a DaemonSet that selects objects with the label key=x.
func selecting(t *testing.T, name, key string) *Workload {
	t.Helper()
	daemonSet, err := NewWorkload(DaemonSet, object(t, fmt.Sprintf(
		`{"metadata":{"namespace":"ns","name":%q,"uid":%q},"spec":{"selector":{"matchLabels":{%q:"x"}}}}`, name, name, key)))
	if err != nil {
		t.Fatal(err)
	}
	return daemonSet
}

// labelled is a revision of a size and a version. With an empty owner it is an orphan.
func labelled(t *testing.T, name, version, owner string, size int, labels ...string) *Revision {
	t.Helper()
	owners := ""
	if owner != "" {
		owners = fmt.Sprintf(`{"kind":"DaemonSet","name":%q,"uid":%q,"controller":true}`, owner, owner)
	}
	pairs := make([]string, len(labels))
	for i, label := range labels {
		pairs[i] = fmt.Sprintf("%q:\"x\"", label)
	}
	return NewRevision(object(t, fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q,"labels":{%s},
		"ownerReferences":[%s]},"data":%q}`, name, name, version, strings.Join(pairs, ","), owners, strings.Repeat("x", size))))
}

// ways are how a revision comes: in a list, or from a watch.
func ways() map[string]func(*Store, *Revision) {
	return map[string]func(*Store, *Revision){
		"listed": func(store *Store, revision *Revision) {
			store.StageRevision(revision)
			store.PutRevision(revision)
		},
		"shown": func(store *Store, revision *Revision) { store.PutRevision(revision) },
	}
}

func TestTheDataIsKeptOfWhatADaemonSetNeeds(t *testing.T) {
	const size = 100_000
	for _, test := range []struct {
		label, owner string
		kept         bool
	}{{"a", "", true}, {"b", "", false}, {"b", "d", true}, {"a", "other", false}, {"a", strings.Repeat("d", 300), false}} {
		for way, put := range ways() {
			store := NewStore(1, DaemonSet)
			store.PutWorkload(selecting(t, "d", "a"))
			put(store, labelled(t, "r", "1", test.owner, size, test.label))
			store.ForgetStaged()
			if bytes := store.RevisionBytes(); (bytes > size) != test.kept || (bytes > 0) != test.kept {
				t.Errorf("%s: of %s %.10s %d bytes are kept", way, test.label, test.owner, bytes)
			}
		}
	}
}

func TestDataThatIsNeededNoMoreIsDropped(t *testing.T) {
	for name, end := range map[string]func(store *Store){
		"it matches no more": func(store *Store) { store.PutRevision(labelled(t, "r", "2", "", 100, "b")) },
		"it is gone":         func(store *Store) { store.RemoveRevision("ns", "r", nil) },
		"the DaemonSet is gone": func(store *Store) {
			store.RemoveWorkload(DaemonSet, types.NamespacedName{Namespace: "ns", Name: "d"})
		},
		"the DaemonSet selects others": func(store *Store) { store.PutWorkload(selecting(t, "d", "b")) },
	} {
		store := NewStore(1, DaemonSet)
		store.PutWorkload(selecting(t, "d", "a"))
		store.PutRevision(labelled(t, "r", "1", "", 100, "a"))
		if store.RevisionBytes() == 0 {
			t.Fatal("nothing is kept")
		}
		if end(store); store.RevisionBytes() != 0 {
			t.Errorf("%s: %d bytes are kept", name, store.RevisionBytes())
		}
	}
}

// However many large matching revisions a client creates, no more data is kept than is sent.
func TestNoMoreDataIsKeptThanIsSent(t *testing.T) {
	large := labelled(t, "r", "1", "", 1<<20, "a")
	for _, daemonSets := range []int{1, 2} {
		most := daemonSets * MaxRevisionBytes
		staging, showing := NewStore(1, DaemonSet), NewStore(1, DaemonSet)
		for _, store := range []*Store{staging, showing} {
			for i := range daemonSets {
				store.PutWorkload(selecting(t, fmt.Sprint("d", i), "a"))
			}
		}
		for i := range 40 {
			staged, shown := *large, *large
			staged.Name, shown.Name = fmt.Sprint("r", i), fmt.Sprint("r", i)
			staging.StageRevision(&staged)
			showing.PutRevision(&shown)
		}
		for _, store := range []*Store{staging, showing} {
			if bytes := store.RevisionBytes(); bytes > most || bytes < most*3/4 {
				t.Errorf("%d DaemonSets: %d bytes are kept", daemonSets, bytes)
			}
		}
		if staging.ForgetStaged(); staging.RevisionBytes() != 0 {
			t.Error("what was staged is kept")
		}
	}
}

// A revision that was read replaces the cached one only if both have the same version.
func TestAnotherVersionIsNotKeptWhole(t *testing.T) {
	store, workload := NewStore(1, DaemonSet), selecting(t, "d", "a")
	store.PutRevision(labelled(t, "r", "1", "", 100, "a"))
	store.PutWorkload(workload)
	replaced := labelled(t, "r", "1", "", 100, "a")
	replaced.UID = "other"
	for _, other := range []*Revision{labelled(t, "r", "2", "", 100, "a"), labelled(t, "s", "1", "", 100, "a"), replaced} {
		if store.KeepWhole(workload, other); store.RevisionBytes() != 0 {
			t.Errorf("%v is kept", other)
		}
	}
	if store.KeepWhole(workload, labelled(t, "r", "1", "", 100, "a")); !store.Revisions(workload)[0].IsWhole() {
		t.Error("it is not kept")
	}
}

// Of very many labels only those are kept that a DaemonSet names. For a DaemonSet that comes later it is not known whether it selects the
// revision.
func TestLabelsOfRevisionsAreCut(t *testing.T) {
	labels := []string{"a", "b", "controller-revision-hash"}
	for i := range 1000 {
		labels = append(labels, fmt.Sprint("label-", i))
	}
	for way, put := range ways() {
		store := NewStore(1, DaemonSet)
		first, second := selecting(t, "first", "a"), selecting(t, "second", "b")
		store.PutWorkload(first)
		put(store, labelled(t, "many", "1", "", 10, labels...))
		put(store, labelled(t, "few", "1", "", 10, labels[:64]...))
		store.PutWorkload(second)
		key := types.NamespacedName{Namespace: "ns", Name: "many"}
		if kept := store.Revision(key).Labels; len(kept) != 2 || kept["a"] != "x" || kept["controller-revision-hash"] != "x" {
			t.Errorf("%s: %v are kept", way, kept)
		}
		expect := func(workload *Workload, revisions, undecided string) {
			t.Helper()
			if got := names(store.Revisions(workload)); got != revisions {
				t.Errorf("%s: of %s are %s", way, workload.Key.Name, got)
			}
			if got := names(store.Undecided(workload)); got != undecided {
				t.Errorf("%s: of %s it is not known of %s", way, workload.Key.Name, got)
			}
		}
		expect(first, "few many", "")
		expect(second, "few", "many")
		store.KeepWhole(second, labelled(t, "many", "1", "", 10, labels...))
		expect(first, "few many", "")
		expect(second, "few many", "")
	}
}

func names(revisions []*Revision) string {
	var names []string
	for _, revision := range revisions {
		names = append(names, revision.Name)
	}
	return strings.Join(names, " ")
}
