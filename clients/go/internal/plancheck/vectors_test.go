package plancheck_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
	Refused   string            `json:"refused"`
	// MayHaveChanged: the plan is wrong by an object as it is now, and may have been right by the snapshot.
	MayHaveChanged bool `json:"may_have_changed"`
	// DeleteWithUID is whether the deviation DELETE_WITH_UID is on, as it is where the vector does not say.
	DeleteWithUID *bool `json:"delete_with_uid"`
	// Burst is what was asked for; 0 for none.
	Burst int `json:"burst"`
	// DecidesAfterCut is whether the deviation DECIDE_AFTER_CUT is on, as it is where the vector does not say.
	DecidesAfterCut *bool `json:"decides_after_cut"`
	// Nodes are names of nodes.
	Nodes []string `json:"nodes"`
}

// shown are caches of one workload.
type shown struct {
	*cluster.Store
	workload *cluster.DaemonSet
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

func (s shown) LivePods(nodes []string) map[string]int {
	return s.Store.LivePods(s.workload, nodes)
}

// Every executor refuses the same plans, with the same words.
func TestVectors(t *testing.T) {
	for _, vector := range vectors(t) {
		t.Run(vector.Name, func(t *testing.T) {
			vector.test(t)
		})
	}
}

// Who deletes a pod says when it will be gone, also in a year that no typed object takes. What becomes of the plan is the same.
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
	vectors := testkit.Vectors[[]vector](t, "plan_checks.json")
	for i := range vectors {
		if vectors[i].Workload == nil {
			vectors[i].Workload = vectors[0].Workload
		}
		if vectors[i].Nodes == nil {
			vectors[i].Nodes = vectors[0].Nodes
		}
	}
	return vectors
}

func (v *vector) test(t *testing.T) {
	t.Helper()
	var refused string
	var violation *plancheck.Violation
	if err := v.check(t); err != nil {
		refused = err.Error()
		errors.As(err, &violation)
	}
	if refused != v.Refused {
		t.Errorf("got  %q\nwant %q", refused, v.Refused)
	}
	if mayHaveChanged := violation != nil && violation.Contradicts != ""; mayHaveChanged != v.MayHaveChanged {
		t.Errorf("it may have changed: %t", mayHaveChanged)
	}
}

func (v *vector) check(t *testing.T) error {
	workload, err := cluster.NewDaemonSet(parsed(t, v.Workload))
	if err != nil {
		t.Fatal(err)
	}
	caches := shown{cluster.NewStore(4), workload}
	caches.PutDaemonSet(workload)
	for _, name := range v.Nodes {
		caches.PutNode(&cluster.Node{ResourceVersion: "1", Node: &nodewisev1.Node{Name: name, Uid: name}})
	}
	for _, object := range v.Pods {
		var pod corev1.Pod
		if err := json.Unmarshal(object, &pod); err != nil {
			t.Fatal(err)
		}
		projection, err := convert.Pod(&pod)
		if err != nil {
			t.Fatal(err)
		}
		caches.PutPod(&cluster.Pod{Namespace: pod.Namespace, ResourceVersion: pod.ResourceVersion, Pod: projection})
	}
	for _, object := range v.Revisions {
		caches.PutRevision(cluster.NewRevision(parsed(t, object)))
	}
	asked := &plancheck.Asked{
		Workload: workload, Scope: nodewisev1.Scope(nodewisev1.Scope_value[v.Scope]),
		DeletesWithUID:  v.DeleteWithUID == nil || *v.DeleteWithUID,
		Burst:           cmp.Or(v.Burst, plancheck.DefaultBurst),
		DecidesAfterCut: v.DecidesAfterCut == nil || *v.DecidesAfterCut,
	}
	for _, object := range v.ReadLive {
		asked.Live = append(asked.Live, cluster.NewRevision(parsed(t, object)))
	}
	plan := &nodewisev1.Plan{}
	if err := protojson.Unmarshal(v.Plan, plan); err != nil {
		t.Fatal(err)
	}
	unseen, err := plancheck.Check(plan, asked, caches)
	if err != nil {
		return err
	}
	for _, named := range unseen {
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
			if err := named.CheckLive(asked, v.Live[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func parsed(t *testing.T, object []byte) *served.Object {
	t.Helper()
	found, err := served.Parse(object)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
