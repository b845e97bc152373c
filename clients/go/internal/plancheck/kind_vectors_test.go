package plancheck_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// asOf is the number of the last cache change in the snapshot.
const asOf = 1

// kindVector is a vector of plan_checks_kinds.json: a plan for a ReplicaSet or a Deployment. What it does not have comes from the first vector of
// its kind.
type kindVector struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	Workload    json.RawMessage   `json:"workload"`
	Plan        json.RawMessage   `json:"plan"`
	Pods        []json.RawMessage `json:"pods"`
	ReplicaSets []json.RawMessage `json:"replica_sets"`
	Live        []json.RawMessage `json:"live"`
	Refused     string            `json:"refused"`
	LeftOut     []uint32          `json:"left_out"`
	Burst       int               `json:"burst"`
	// Removed are the resources of which an object was removed since the snapshot.
	Removed []string `json:"removed"`
	// Changed are the names of objects that have changed since the snapshot, by resource.
	Changed map[string][]string `json:"changed"`
	// Unseen are the names of pods that were created and that the caches do not show yet.
	Unseen []string `json:"unseen_creates"`
}

func (v *kindVector) member(resource cluster.Resource) (name string, objects []json.RawMessage) {
	switch resource {
	case cluster.Pods:
		return "pods", v.Pods
	case cluster.ReplicaSets:
		return "replica_sets", v.ReplicaSets
	default:
		return "", nil
	}
}

// kindCaches are the caches as a vector shows them.
type kindCaches struct {
	t        *testing.T
	workload *cluster.Workload
	*kindVector
}

func (c kindCaches) Object(resource cluster.Resource, name string) *cluster.Identity {
	_, objects := c.member(resource)
	for _, object := range objects {
		switch {
		case parsed(c.t, object).Name != name:
		case resource == cluster.Pods:
			pod, err := convert.PodJSON(object)
			if err != nil {
				c.t.Fatal(err)
			}
			return (&cluster.Pod{Pod: pod}).Identity()
		default:
			return replicaSet(c.t, object).Identity()
		}
	}
	return nil
}

func (c kindCaches) Changed(resource cluster.Resource, name string) uint64 {
	member, _ := c.member(resource)
	hasChanged := slices.Contains(c.Removed, member)
	if c.Object(resource, name) != nil {
		hasChanged = slices.Contains(c.kindVector.Changed[member], name)
	}
	if hasChanged {
		return asOf + 1
	}
	return asOf
}

func (c kindCaches) Claimable() []*cluster.Workload {
	store := cluster.NewStore(1, c.workload.Kind)
	for _, object := range c.ReplicaSets {
		store.PutWorkload(replicaSet(c.t, object))
	}
	return store.Claimable(cluster.ReplicaSet, c.workload)
}

func replicaSet(t *testing.T, object []byte) *cluster.Workload {
	t.Helper()
	workload, err := cluster.NewWorkload(cluster.ReplicaSet, parsed(t, object))
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

func (kindCaches) HasNode(string) bool                           { return true }
func (kindCaches) OwnRevisions() [][]byte                        { return nil }
func (kindCaches) HasHash(string) bool                           { return false }
func (kindCaches) RevisionsChanged() uint64                      { return 0 }
func (kindCaches) LivePods([]string) map[string]cluster.LivePods { return nil }
func (c kindCaches) UnseenCreates() []string                     { return c.Unseen }

func (c kindCaches) LivePodsBeyond(most int) (cluster.LivePods, bool) {
	number, live := 0, cluster.LivePods{}
	for _, object := range c.Pods {
		read, err := convert.PodJSON(object)
		if err != nil {
			c.t.Fatal(err)
		}
		pod := &cluster.Pod{Pod: read}
		if controller := pod.Identity().Controller; controller == nil || controller.GetUid() != string(c.workload.UID) {
			continue
		}
		number++
		if c.workload.Selector.Matches(pod.LabelSet()) && pod.DeletionTime == nil {
			live = cluster.LivePods{Count: live.Count + 1, Changed: max(live.Changed, c.Changed(cluster.Pods, pod.GetName()))}
		}
	}
	return live, number > most
}

// Every executor refuses the same plans for ReplicaSets and Deployments, with the same messages.
func TestVectorsOfOtherKinds(t *testing.T) {
	for _, vector := range kindVectors(t) {
		t.Run(vector.Kind+"/"+vector.Name, func(t *testing.T) {
			leftOut, err := vector.check(t)
			compare(t, leftOut, err, vector.Refused, vector.LeftOut)
		})
	}
}

// A claim of a newer service may be more than an adoption or a release.
func TestAnUnknownClaimIsRefused(t *testing.T) {
	vectors := kindVectors(t)
	i := slices.IndexFunc(vectors, func(vector kindVector) bool { return vector.Name == "a release of a ReplicaSet" })
	release := &vectors[i]
	if leftOut, err := release.check(t); err != nil || len(leftOut) > 0 {
		t.Fatalf("left out %v: %v", leftOut, err)
	}
	release.Plan = bytes.Replace(release.Plan, []byte(`"CLAIM_RELEASE"`), []byte("99"), 1)
	if _, err := release.check(t); err == nil || !strings.HasSuffix(err.Error(), "its claim 99 is unknown") {
		t.Errorf("got %v", err)
	}
}

func kindVectors(t *testing.T) []kindVector {
	t.Helper()
	vectors, first := testkit.Vectors[[]kindVector](t, "plan_checks_kinds.json"), map[string]*kindVector{}
	for i := range vectors {
		vector := &vectors[i]
		if first[vector.Kind] == nil {
			first[vector.Kind] = vector
		}
		if vector.Workload == nil {
			vector.Workload = first[vector.Kind].Workload
		}
		if vector.Pods == nil {
			vector.Pods = first[vector.Kind].Pods
		}
		if vector.ReplicaSets == nil {
			vector.ReplicaSets = first[vector.Kind].ReplicaSets
		}
	}
	return vectors
}

func (v *kindVector) check(t *testing.T) (leftOut map[uint32]string, err error) {
	t.Helper()
	kind := map[string]*cluster.Kind{"ReplicaSet": cluster.ReplicaSet, "Deployment": cluster.Deployment}[v.Kind]
	workload, err := cluster.NewWorkload(kind, parsed(t, v.Workload))
	if err != nil {
		t.Fatal(err)
	}
	plan := &nodewisev1.Plan{}
	if err := protojson.Unmarshal(v.Plan, plan); err != nil {
		t.Fatal(err)
	}
	asked := &plancheck.Asked{
		Workload: workload, Burst: cmp.Or(v.Burst, plancheck.Burst(kind)), AsOf: asOf, Sent: &nodewisev1.ReconcileState{},
		DeletesWithUID: true, DecidesAfterCut: true,
	}
	checked, err := plancheck.Check(plan, asked, kindCaches{t, workload, v})
	if err != nil {
		return nil, err
	}
	for _, named := range checked.Unseen {
		kindName := map[cluster.Resource]string{cluster.Pods: "Pod", cluster.ReplicaSets: "ReplicaSet"}[named.Resource]
		for _, object := range v.Live {
			if live := parsed(t, object); live.Kind == kindName && live.Name == named.Reference.GetName() {
				if err := checked.Read(named, object); err != nil {
					return nil, err
				}
			}
		}
	}
	return checked.LeftOut(), nil
}
