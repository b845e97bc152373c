package plancheck_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/encoding/protojson"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

type vector struct {
	Name      string            `json:"name"`
	Workload  json.RawMessage   `json:"workload"`
	Scope     string            `json:"scope"`
	Plan      json.RawMessage   `json:"plan"`
	Pods      []json.RawMessage `json:"pods"`
	Revisions []json.RawMessage `json:"revisions"`
	ReadLive  []json.RawMessage `json:"read_live"`
	Live      []json.RawMessage `json:"live"`
	Policies  []json.RawMessage `json:"policies"`
	Refused   string            `json:"refused"`
	// Changed are the names of pods and revisions that have changed since the snapshot.
	Changed struct{ Pods, Revisions []string } `json:"changed"`
	// Removed are the resources of which an object was removed since the snapshot.
	Removed []string `json:"removed"`
	// LeftOut are the ids of actions that are not executed.
	LeftOut []uint32 `json:"left_out"`
	// Sent is the state in the snapshot.
	Sent json.RawMessage `json:"sent"`
	// DeleteWithUID is whether the deviation DELETE_WITH_UID is on, which is the default.
	DeleteWithUID *bool `json:"delete_with_uid"`
	// Burst is the requested burst; 0 for none.
	Burst int `json:"burst"`
	// DecidesAfterCut is whether the deviation DECIDE_AFTER_CUT is on, which is the default.
	DecidesAfterCut *bool `json:"decides_after_cut"`
	// Nodes are names of nodes.
	Nodes []string `json:"nodes"`
}

// shown are the caches of one workload.
type shown struct {
	*cluster.Store
	workload *cluster.Workload
}

func (s shown) Object(resource cluster.Resource, name string) *cluster.Identity {
	return s.Identity(resource, s.workload.Key.Namespace, name)
}

func (s shown) OwnRevisions() [][]byte {
	var own [][]byte
	for _, revision := range s.Revisions(s.workload) {
		if revision.Controller != nil {
			own = append(own, revision.JSON)
		}
	}
	return own
}

func (s shown) Changed(resource cluster.Resource, name string) uint64 {
	return s.Store.Changed(resource, s.workload.Key.Namespace, name)
}

func (s shown) Claimable() []*cluster.Workload { return nil }

func (s shown) HasHash(hash string) bool {
	return slices.ContainsFunc(s.Revisions(s.workload), func(revision *cluster.Revision) bool { return revision.Hash() == hash })
}

func (s shown) RevisionsChanged() uint64 { return s.Store.RevisionsChanged(s.workload.Key.Namespace) }

func (s shown) LivePods(nodes []string) map[string]cluster.LivePods {
	return s.Store.LivePods(s.workload, nodes)
}

func (s shown) LivePodsBeyond(most int) (cluster.LivePods, bool) {
	return s.Store.LivePodsBeyond(s.workload, most)
}

func (s shown) UnseenCreates() []string { return nil }

// Every executor refuses the same plans, with the same messages.
func TestVectors(t *testing.T) {
	for _, vector := range vectors(t) {
		t.Run(vector.Name, func(t *testing.T) {
			vector.test(t)
		})
	}
}

// A client that deletes a pod sets the time of its deletion, also to a year that no typed object can have. The result of the check is the
// same.
func TestLivePodsMayHaveOddTimes(t *testing.T) {
	isChanged := false
	for _, vector := range vectors(t) {
		for i, live := range vector.Live {
			if parsed(t, live).Kind == "Pod" {
				const time = `{"deletionTimestamp": "10000-01-01T22:59:59Z",`
				vector.Live[i] = bytes.Replace(live, []byte(`"metadata": {`), []byte(`"metadata": `+time), 1)
				isChanged = isChanged || len(vector.Live[i]) > len(live)
				t.Run(vector.Name, func(t *testing.T) { vector.test(t) })
			}
		}
	}
	if !isChanged {
		t.Error("no vector has such a pod")
	}
}

func vectors(t *testing.T) []vector {
	t.Helper()
	return vectorsOf(t, "plan_checks.json")
}

// vectorsOf reads a file of vectors. What a vector does not have comes from the first one.
func vectorsOf(t *testing.T, file string) []vector {
	t.Helper()
	vectors := testkit.Vectors[[]vector](t, file)
	for i := range vectors {
		if vectors[i].Workload == nil {
			vectors[i].Workload = vectors[0].Workload
		}
		if vectors[i].Nodes == nil {
			vectors[i].Nodes = vectors[0].Nodes
		}
		if vectors[i].Revisions == nil {
			vectors[i].Revisions = vectors[0].Revisions
		}
		if vectors[i].Policies == nil {
			vectors[i].Policies = vectors[0].Policies
		}
	}
	return vectors
}

func (v *vector) test(t *testing.T) {
	t.Helper()
	leftOut, err := v.check(t)
	compare(t, leftOut, err, v.Refused, v.LeftOut)
}

// compare compares the result of a check with what a vector says: why the plan is refused, or which actions are left out.
func compare(t *testing.T, leftOut map[uint32]string, err error, refused string, ids []uint32) {
	t.Helper()
	var got string
	if err != nil {
		got = err.Error()
	}
	if got != refused {
		t.Errorf("got  %q\nwant %q", got, refused)
	}
	if found := slices.Sorted(maps.Keys(leftOut)); !slices.Equal(found, ids) {
		t.Errorf("left out %v, want %v", found, ids)
	}
}

func (v *vector) check(t *testing.T) (leftOut map[uint32]string, err error) {
	workload, err := cluster.NewWorkload(cluster.DaemonSet, parsed(t, v.Workload))
	if err != nil {
		t.Fatal(err)
	}
	caches := shown{cluster.NewStore(4, cluster.DaemonSet), workload}
	caches.PutWorkload(workload)
	for _, name := range v.Nodes {
		caches.PutNode(&cluster.Node{ResourceVersion: "1", Node: &nodewisev1.Node{Name: name, Uid: name}})
	}
	// The objects that have changed or gone since the snapshot change after all others are cached.
	gone := v.showRemoved(caches)
	v.show(t, caches, false)
	asOf := caches.LastChange()
	v.show(t, caches, true)
	gone()
	asked := &plancheck.Asked{
		Workload: workload, Scope: nodewisev1.Scope(nodewisev1.Scope_value[v.Scope]),
		DeletesWithUID:  v.DeleteWithUID == nil || *v.DeleteWithUID,
		Burst:           cmp.Or(v.Burst, plancheck.Burst(cluster.DaemonSet)),
		DecidesAfterCut: v.DecidesAfterCut == nil || *v.DecidesAfterCut,
		AsOf:            asOf, Sent: &nodewisev1.ReconcileState{},
	}
	if v.Sent != nil {
		if err := protojson.Unmarshal(v.Sent, asked.Sent); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range v.Policies {
		asked.Policies = append(asked.Policies, cluster.NewPolicy(parsed(t, object)))
	}
	for _, object := range v.ReadLive {
		asked.Live = append(asked.Live, cluster.NewRevision(parsed(t, object)))
	}
	plan := &nodewisev1.Plan{}
	if err := protojson.Unmarshal(v.Plan, plan); err != nil {
		t.Fatal(err)
	}
	checked, err := plancheck.Check(plan, asked, caches)
	if err != nil {
		return nil, err
	}
	for _, named := range checked.Unseen {
		isIt := func(object json.RawMessage) bool {
			var found struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := json.Unmarshal(object, &found); err != nil {
				t.Fatal(err)
			}
			return found.Metadata.Name == named.Reference.GetName() && (found.Kind == "Pod") == (named.Resource == cluster.Pods)
		}
		if i := slices.IndexFunc(v.Live, isIt); i >= 0 {
			if err := checked.Read(named, v.Live[i]); err != nil {
				return nil, err
			}
		}
	}
	return checked.LeftOut(), nil
}

// show caches the pods and revisions that have changed since the snapshot, or the others.
func (v *vector) show(t *testing.T, caches shown, haveChanged bool) {
	t.Helper()
	for _, object := range v.Pods {
		var pod corev1.Pod
		if err := json.Unmarshal(object, &pod); err != nil {
			t.Fatal(err)
		}
		projection, err := convert.Pod(&pod)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(v.Changed.Pods, pod.Name) == haveChanged {
			caches.PutPod(&cluster.Pod{Namespace: pod.Namespace, ResourceVersion: pod.ResourceVersion, Pod: projection})
		}
	}
	for _, object := range v.Revisions {
		if revision := parsed(t, object); slices.Contains(v.Changed.Revisions, revision.Name) == haveChanged {
			caches.PutRevision(cluster.NewRevision(revision))
		}
	}
}

// showRemoved caches the objects that are removed after the snapshot. It returns a function that removes them.
func (v *vector) showRemoved(caches shown) (remove func()) {
	const name = "gone"
	key := types.NamespacedName{Namespace: caches.workload.Key.Namespace, Name: name}
	resources := map[string]cluster.Resource{"nodes": cluster.Nodes, "pods": cluster.Pods, "revisions": cluster.Revisions}
	caches.PutNode(&cluster.Node{ResourceVersion: "1", Node: &nodewisev1.Node{Name: name, Uid: name}})
	caches.PutPod(&cluster.Pod{Namespace: key.Namespace, ResourceVersion: "1", Pod: &nodewisev1.Pod{Name: name, Uid: name}})
	caches.PutRevision(&cluster.Revision{Namespace: key.Namespace, Name: name, UID: name, ResourceVersion: "1"})
	for resource, of := range resources {
		if !slices.Contains(v.Removed, resource) {
			caches.Remove(of, key)
		}
	}
	return func() {
		for _, resource := range v.Removed {
			caches.Remove(resources[resource], key)
		}
	}
}

func parsed(t *testing.T, object []byte) *served.Object {
	t.Helper()
	found, err := served.Parse(object)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
