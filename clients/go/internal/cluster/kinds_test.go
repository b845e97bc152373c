package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// replicaSet should have one pod, and selects app=x. Its controller is a Deployment of this uid; empty for none.
func replicaSet(t *testing.T, name, uid, version, owner string) *Workload {
	t.Helper()
	owners := ""
	if owner != "" {
		owners = fmt.Sprintf(`{"kind":"Deployment","name":"d","uid":%q,"controller":true}`, owner)
	}
	object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q,"labels":{"app":"x"},
		"ownerReferences":[%s]},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"x"}},
		"template":{"metadata":{"labels":{"app":"x","tier":"front"}}}}}`, name, uid, version, owners))
	if err != nil {
		t.Fatal(err)
	}
	made, err := NewWorkload(ReplicaSet, object)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func podOf(name, version, node, kind, owner string, changes ...func(*Pod)) *Pod {
	made := &Pod{Namespace: "ns", ResourceVersion: version, Pod: &nodewisev1.Pod{
		Name: name, Uid: "uid-" + name, NodeName: node,
		Labels: []*nodewisev1.Label{{Key: "app", Value: "x"}, {Key: "other", Value: "1"}, {Key: "tier", Value: "front"}},
	}}
	if owner != "" {
		made.Controller = &nodewisev1.ControllerReference{Kind: kind, Name: "web", Uid: owner}
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

// Each kind watches what its plans need, and no more: a program that owns DaemonSets needs no rights for ReplicaSets.
func TestEachKindWatchesWhatItNeeds(t *testing.T) {
	for want, kinds := range map[string][]*Kind{
		"[daemonsets pods nodes controllerrevisions rolloutpolicies]": {DaemonSet},
		"[replicasets pods]":             {ReplicaSet},
		"[deployments replicasets pods]": {Deployment},
		"[daemonsets deployments replicasets pods nodes controllerrevisions rolloutpolicies]": {Deployment, ReplicaSet, DaemonSet},
	} {
		if got := fmt.Sprint(NewStore(1, kinds...).Watched()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// After any changes the pods of a ReplicaSet are in the buckets of their names, with those labels that a plan reads, and the buckets are as many as
// their number needs.
func TestPodsOfAReplicaSetAreInTheBucketsOfTheirNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	store, live := NewStore(16, ReplicaSet, DaemonSet), map[string]bool{}
	web := replicaSet(t, "web", "u", "1", "")
	store.PutWorkload(web)
	counts := map[int]bool{}
	for version := range 6_000 {
		name := fmt.Sprint("p", random.IntN(1500))
		isGrowing := version < 3_000
		switch {
		case isGrowing || random.IntN(8) == 0:
			owner := "u"
			if random.IntN(5) == 0 {
				owner = "" // An orphan that the ReplicaSet selects.
			}
			store.PutPod(podOf(name, strconv.Itoa(version), "n1", "ReplicaSet", owner))
			live[name] = true
		default:
			store.RemovePod("ns", name, nil)
			delete(live, name)
		}
		if version%97 > 0 {
			continue
		}
		sent := store.PodBuckets(web, func(Digest) bool { return false })
		counts[len(sent)] = true
		var names []string
		for index, bucket := range sent {
			var pods nodewisev1.PodBucket
			if err := proto.Unmarshal(bucket.GetData(), &pods); err != nil {
				t.Fatal(err)
			}
			for _, pod := range pods.GetPods() {
				names = append(names, pod.GetName())
				if at := convert.BucketOf(pod.GetName(), uint32(len(sent))); at != uint32(index) {
					t.Fatalf("%s is in bucket %d of %d", pod.GetName(), index, len(sent))
				}
			}
			for _, shared := range pods.GetSharedMetadata() {
				if got := fmt.Sprint(shared.GetLabels()); strings.Contains(got, "other") || !strings.Contains(got, "tier") {
					t.Fatalf("the labels %s are sent", got)
				}
			}
		}
		if len(names) != len(live) {
			t.Fatalf("%d pods are sent of %d", len(names), len(live))
		}
	}
	if !counts[1] || !counts[8] || counts[32] {
		t.Errorf("there were %v buckets", counts)
	}
}

// A client may write the uid of a DaemonSet into a pod as that of a ReplicaSet.
func TestPodsWithAForgedControllerAreApart(t *testing.T) {
	store := NewStore(4, ReplicaSet, DaemonSet)
	web := replicaSet(t, "web", "u", "1", "")
	store.PutWorkload(web)
	store.PutPod(podOf("right", "1", "n1", "ReplicaSet", "u"))
	store.PutPod(podOf("forged", "2", "n1", "DaemonSet", "u"))
	store.PutPod(podOf("foreign", "3", "n1", "StatefulSet", "u"))
	if owned, _ := store.podsOf(web); owned.size() != 1 {
		t.Errorf("%d pods are the ReplicaSet's", owned.size())
	}
	if len(store.namespaces["ns"].pods.names) != 2 {
		t.Error("a pod of a kind that is not cached is kept")
	}
	if deleting := store.Deleting("ns", "u"); len(deleting) != 2 {
		t.Errorf("got %v", deleting)
	}
}

// live pods of all ReplicaSets with the same controller count, if there are too many of this one.
func TestRelatedPodsAreCountedIfThereAreTooMany(t *testing.T) {
	store := NewStore(4, ReplicaSet)
	finished := func(p *Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_FAILED }
	going := func(p *Pod) { p.DeletionTime = timestamppb.Now() }
	store.PutWorkload(replicaSet(t, "web", "u", "1", "d1"))
	store.PutWorkload(replicaSet(t, "other", "u2", "1", "d1"))
	store.PutPod(podOf("a", "1", "n1", "ReplicaSet", "u"))
	store.PutPod(podOf("b", "2", "n1", "ReplicaSet", "u", finished))
	store.PutPod(podOf("c", "3", "n1", "ReplicaSet", "u", going))
	store.PutPod(podOf("d", "4", "n1", "ReplicaSet", "u2"))
	web := store.Workload(ReplicaSet, types.NamespacedName{Namespace: "ns", Name: "web"})
	if got := store.RelatedPods(web); got != nil {
		t.Errorf("there are as many pods as should be, and got %v", got)
	}
	store.PutPod(podOf("e", "5", "", "ReplicaSet", "u"))
	want := `[pods:1 node_name:"n1" pods:2]`
	if got := strings.ReplaceAll(fmt.Sprint(store.RelatedPods(web)), "  ", " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	store.PutWorkload(replicaSet(t, "web", "u", "2", ""))
	if got := store.RelatedPods(store.Workload(ReplicaSet, web.Key)); got != nil {
		t.Errorf("it has no controller, and got %v", got)
	}
}

// Of too many ReplicaSets with one controller the selectors are not compared, and only the pods that they control count.
func TestSelectorsOfManyReplicaSetsAreNotCompared(t *testing.T) {
	store := NewStore(4, ReplicaSet)
	for i := range 100 {
		store.PutWorkload(replicaSet(t, fmt.Sprint("web-", i), fmt.Sprint("u", i), "1", "d1"))
	}
	for _, pod := range [][2]string{{"a", "u0"}, {"b", "u0"}, {"c", "u1"}, {"selected", ""}} {
		store.PutPod(podOf(pod[0], "1", "n1", "ReplicaSet", pod[1]))
	}
	related := func() uint32 {
		found := store.RelatedPods(store.Workload(ReplicaSet, types.NamespacedName{Namespace: "ns", Name: "web-0"}))
		return found[0].GetPods()
	}
	if got := related(); got != 4 {
		t.Errorf("of 100 ReplicaSets %d pods count", got)
	}
	store.PutWorkload(replicaSet(t, "web-100", "u100", "1", "d1"))
	if got := related(); got != 3 {
		t.Errorf("of 101 ReplicaSets %d pods count", got)
	}
}

// An orphaned ReplicaSet that could not be changed is no orphan until it has changed. Then it counts as new.
func TestSealedOrphanedWorkloads(t *testing.T) {
	store := NewStore(1, Deployment)
	owner := &Workload{Kind: Deployment, Key: types.NamespacedName{Namespace: "ns", Name: "d"}, UID: "d1", Reads: convert.ReadsOfDeployment(
		[]byte(`{"spec":{"selector":{"matchLabels":{"app":"x"}}}}`))}
	put := func(version string) (isNew bool) {
		return store.PutWorkload(replicaSet(t, "a", "u-a", version, "")).Workload.Old == nil
	}
	expect := func(what string, isNew, wantNew bool, orphans int) {
		t.Helper()
		if found := len(store.Orphans(ReplicaSet, owner)); isNew != wantNew || found != orphans {
			t.Errorf("%s: new: %t, want %t; %d orphans, want %d", what, isNew, wantNew, found, orphans)
		}
	}
	expect("first", put("1"), true, 1)
	store.Seal(ReplicaSets, "ns", "a")
	store.Seal(ReplicaSets, "ns", "unknown")
	expect("sealed", put("1"), false, 0)
	expect("changed", put("2"), true, 1)
	expect("changed again", put("3"), false, 1)
	store.Seal(ReplicaSets, "ns", "a")
	store.BeginAnew()
	expect("after a restore", put("3"), false, 1)
	store.Seal(ReplicaSets, "ns", "a")
	store.ForgetOrphan(ReplicaSets, "ns", "a")
	expect("created again", put("3"), true, 1)
}

func TestWorkloadsAreFoundByTheirController(t *testing.T) {
	store := NewStore(1, Deployment)
	owner := &Workload{Kind: Deployment, Key: types.NamespacedName{Namespace: "ns", Name: "d"}, UID: "d1", Reads: convert.ReadsOfDeployment(
		[]byte(`{"spec":{"selector":{"matchLabels":{"app":"x"}}}}`))}
	names := func(of []*Workload) string {
		var names []string
		for _, workload := range of {
			names = append(names, workload.Key.Name)
		}
		return strings.Join(names, " ")
	}
	for _, of := range [][2]string{{"b", "d1"}, {"a", "d1"}, {"c", "d2"}, {"d", ""}} {
		store.PutWorkload(replicaSet(t, of[0], "u-"+of[0], "1", of[1]))
	}
	if got := names(store.Controlled(ReplicaSet, owner)); got != "a b" {
		t.Errorf("it controls %s", got)
	}
	if got := names(store.Orphans(ReplicaSet, owner)); got != "d" {
		t.Errorf("it may adopt %s", got)
	}
	if got := len(store.Claimable(ReplicaSet, owner)); got != 3 {
		t.Errorf("%d are its own or nobody's", got)
	}
	asOf := store.LastChange()
	store.PutWorkload(replicaSet(t, "a", "u-a", "2", "d2"))
	store.ForgetOrphan(ReplicaSets, "ns", "b")
	store.ForgetOrphan(ReplicaSets, "ns", "d")
	if got := names(store.Controlled(ReplicaSet, owner)) + names(store.Orphans(ReplicaSet, owner)); got != "b" {
		t.Errorf("then it controls and may adopt %s", got)
	}
	changed := func(name string) bool { return store.Changed(ReplicaSets, "ns", name) > asOf }
	if !changed("a") || changed("b") || !changed("d") || len(store.workloads[ReplicaSet].controlled["d1"]) != 1 {
		t.Error("the changes are not numbered, or the index is not up to date")
	}
	if missing := store.Missing(ReplicaSets, func(key types.NamespacedName) bool { return key.Name == "a" }); len(missing) != 2 ||
		!slices.ContainsFunc(missing, func(key types.NamespacedName) bool { return key.Name == "b" }) {
		t.Errorf("missing are %v", missing)
	}
}
