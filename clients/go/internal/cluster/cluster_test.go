package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

func nothing(Digest) bool { return false }

// The caches send the bytes that every client sends.
func TestBucketBytes(t *testing.T) {
	byKey := func(a, b *nodewisev1.Label) int { return strings.Compare(a.GetKey(), b.GetKey()) }
	for _, vector := range testkit.AllBucketBytes(t) {
		t.Run(vector.Name, func(t *testing.T) {
			store := NewStore(1, DaemonSet)
			workload, err := NewWorkload(DaemonSet, object(t, string(vector.DaemonSet)))
			if err != nil {
				t.Fatal(err)
			}
			store.PutWorkload(workload)
			for i, node := range vector.Nodes {
				slices.SortFunc(node.Labels, byKey)
				store.PutNode(&Node{ResourceVersion: strconv.Itoa(i + 1), Node: node})
			}
			for i, pod := range vector.Pods {
				slices.SortFunc(pod.Labels, byKey)
				store.PutPod(&Pod{Namespace: "ns", ResourceVersion: strconv.Itoa(i + 1), Pod: pod})
			}
			sent := store.PodBuckets(workload, nothing)[0]
			if vector.Nodes != nil {
				sent = store.NodeBuckets(workload, vector.SharesLabels, nothing)[0]
			}
			if vector.WithSharedLabels != (sent.DataWithSharedLabels != nil) {
				t.Errorf("the bytes are in the wrong field: %v", sent)
			}
			if vector.WithSharedLabels && sent.Data == nil {
				sent.Data = sent.DataWithSharedLabels
			}
			if !slices.Equal(sent.GetData(), vector.Data) || hex.EncodeToString(sent.GetDigest()) != vector.Digest {
				t.Errorf("got %x, want %x", sent.GetData(), vector.Data)
			}
		})
	}
}

// workload is a DaemonSet of this name and uid. It selects objects with the label hash.
func workload(t *testing.T, name, uid string) *Workload {
	t.Helper()
	return daemonSet(t, name, uid, `{"matchExpressions":[{"key":"hash","operator":"Exists"}]}`, nil)
}

// daemonSet is a DaemonSet for nodes with these labels.
func daemonSet(t *testing.T, name, uid, selector string, nodeLabels []string) *Workload {
	t.Helper()
	var terms []string
	for _, key := range nodeLabels {
		terms = append(terms, fmt.Sprintf(`{"matchExpressions":[{"key":%q,"operator":"Exists"}]}`, key))
	}
	made, err := NewWorkload(DaemonSet, object(t, fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":%q},"spec":{"selector":%s,
		"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms":[%s]}}}}}}}`, name, uid, selector, strings.Join(terms, ","))))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func pod(name, version, node, owner, hash string) *Pod {
	made := &Pod{Namespace: "ns", ResourceVersion: version, Pod: &nodewisev1.Pod{
		Name: name, Uid: "uid-" + name, NodeName: node,
		Labels: []*nodewisev1.Label{{Key: "hash", Value: hash}},
	}}
	if owner != "" {
		made.Controller = &nodewisev1.ControllerReference{Kind: DaemonSet.Name, Name: "agent", Uid: owner}
	}
	return made
}

// After any changes the buckets are those that a new cache of the same pods would send, with the right digests, and unchanged buckets are sent
// by digest.
func TestBucketsAreUpToDate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	store, live, known := NewStore(4, DaemonSet), map[string]*Pod{}, map[Digest]bool{}
	isKnown := func(digest Digest) bool { return known[digest] }
	for version := range 3_000 {
		name := fmt.Sprint("p", random.IntN(40))
		if live[name] != nil && random.IntN(3) == 0 {
			store.RemovePod("ns", name, nil)
			delete(live, name)
		} else {
			owner := []string{"d1", "d1", "d2", ""}[random.IntN(4)]
			made := pod(name, strconv.Itoa(version+1), fmt.Sprint("n", random.IntN(9)), owner, strconv.Itoa(random.IntN(2)))
			store.PutPod(made)
			live[name] = &Pod{Namespace: "ns", ResourceVersion: made.ResourceVersion, Pod: proto.CloneOf(made.Pod)}
		}
		if version%7 != 0 {
			continue
		}
		for _, uid := range []string{"d1", "d2"} {
			requireSent(t, store, live, uid, isKnown)
			asked := workload(t, uid, uid)
			for _, bucket := range store.PodBuckets(asked, isKnown) {
				known[Digest(bucket.GetDigest())] = true
			}
			for _, bucket := range store.PodBuckets(asked, isKnown) {
				if bucket.Data != nil {
					t.Fatal("what the receiver has was sent again")
				}
			}
		}
	}
	for name := range live {
		store.RemovePod("ns", name, nil)
	}
	if len(store.parts) != 0 || len(store.namespaces) != 0 {
		t.Errorf("%d parts and %d namespaces are left of nothing", len(store.parts), len(store.namespaces))
	}
}

func requireSent(t *testing.T, store *Store, live map[string]*Pod, uid string, known Known) {
	t.Helper()
	var concerned []*nodewisev1.Pod
	for _, pod := range live {
		if pod.Controller == nil || pod.Controller.GetUid() == uid {
			concerned = append(concerned, pod.Pod)
		}
	}
	want, err := convert.PodBuckets(concerned, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range store.PodBuckets(workload(t, uid, uid), known) {
		if !slices.Equal(got.GetDigest(), want[i].GetDigest()) {
			t.Fatalf("bucket %d of %s is another one", i, uid)
		}
		if digest := sha256.Sum256(got.GetData()); got.Data != nil && !slices.Equal(digest[:], got.GetDigest()) {
			t.Fatalf("bucket %d of %s has another digest", i, uid)
		}
	}
}

// Most events of a pod change only fields that are not sent.
func TestOnlyNewsAreTold(t *testing.T) {
	store := NewStore(2, DaemonSet)
	if store.PutPod(pod("p", "1", "n", "d1", "x")) == nil {
		t.Fatal("a new pod is news")
	}
	if store.PutPod(pod("p", "1", "n", "d1", "x")) != nil || store.PutPod(pod("p", "2", "n", "d1", "x")) != nil {
		t.Error("nothing that is read has changed")
	}
	going := pod("p", "3", "n", "d1", "x")
	going.DeletionTime = timestamppb.Now()
	if told := store.PutPod(going); told == nil || told.Pod.Old.DeletionTime != nil {
		t.Errorf("got %v", told)
	}
	again := pod("p", "4", "n", "d1", "x")
	again.DeletionTime = going.DeletionTime
	if store.PutPod(again) == nil {
		t.Error("Q-5: each event of a pod that is being deleted counts with upstream")
	}
	foreign := pod("p", "5", "n", "r1", "x")
	foreign.Controller.Kind = "ReplicaSet"
	if told := store.PutPod(foreign); told == nil || told.Pod.Old == nil || len(store.namespaces) != 0 {
		t.Errorf("a pod that another kind took is kept: %v", told)
	}
	if store.PutPod(foreign) != nil {
		t.Error("what is not kept is no news")
	}
}

// A transition has both whole states.
func TestChangesAreWhole(t *testing.T) {
	store := NewStore(2, DaemonSet)
	before := pod("p", "1", "n", "d1", "x")
	want := proto.CloneOf(before.Pod)
	store.PutPod(before)
	told := store.PutPod(pod("p", "2", "m", "", "y"))
	if diff := cmp.Diff(want, told.Pod.Old.Pod, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if gone := store.Remove(Pods, types.NamespacedName{Namespace: "ns", Name: "p"}); gone.Pod.Old.GetNodeName() != "m" {
		t.Errorf("got %v", gone.Pod.Old)
	}
}

// W15: only live pods that the workload controls and selects count, and only on the very node. Pods on other nodes of the same bucket do not.
func TestLivePods(t *testing.T) {
	store, agent := NewStore(1, DaemonSet), daemonSet(t, "agent", "d1", `{"matchLabels":{"hash":"h"}}`, nil)
	for _, name := range []string{"n1", "n11", "n2"} {
		store.PutNode(node(name, "1", nil))
	}
	others := []func(*Pod){
		func(pod *Pod) { pod.Controller.Uid = "d2" },
		func(pod *Pod) { pod.Controller = nil },
		func(pod *Pod) { pod.Controller.Name = "other" },
		func(pod *Pod) { pod.Controller.Kind = "Other" },
		func(pod *Pod) { pod.Labels[0].Value = "g" },
		func(pod *Pod) { pod.Labels = nil },
		func(pod *Pod) { pod.NodeName = "n11" },
		func(pod *Pod) { pod.NodeName, pod.TargetNodeName = "n11", "n1" },
		func(pod *Pod) { pod.NodeName, pod.TargetNodeName = "n3", "" },
		func(pod *Pod) { pod.NodeName = "" },
		func(pod *Pod) { pod.Phase = nodewisev1.PodPhase_POD_PHASE_FAILED },
		func(pod *Pod) { pod.Phase = nodewisev1.PodPhase_POD_PHASE_SUCCEEDED },
		func(pod *Pod) { pod.DeletionTime = timestamppb.Now() },
	}
	own := []func(*Pod){
		func(*Pod) {},
		func(pod *Pod) { pod.NodeName, pod.TargetNodeName = "", "n1" },
		func(pod *Pod) { pod.Phase = nodewisev1.PodPhase_POD_PHASE_UNKNOWN },
	}
	for i, change := range slices.Concat(others, own) {
		made := pod("p"+strconv.Itoa(i), "1", "n1", "d1", "h")
		change(made)
		store.PutPod(made)
	}
	last := store.LastChange()
	want := map[string]LivePods{"n1": {len(own), last}, "n11": {2, last - 8}, "n2": {}}
	if got := store.LivePods(agent, []string{"n1", "n11", "n2", "n3", ""}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The creates of a plan are checked under the lock, so this must be fast on the largest clusters, too.
func BenchmarkLivePods(b *testing.B) {
	const nodes, creates = 100_000, 250
	store := NewStore(64, DaemonSet)
	var names []string
	for i := range nodes {
		name := "node-" + strconv.Itoa(i)
		store.PutNode(node(name, "1", nil))
		store.PutPod(pod("agent-"+name, "1", name, "d1", "h"))
		if len(names) < creates {
			names = append(names, name)
		}
	}
	agent := &Workload{Kind: DaemonSet, Key: types.NamespacedName{Namespace: "ns", Name: "agent"}, UID: "d1", Selector: kubelabels.Everything()}
	for b.Loop() {
		if len(store.LivePods(agent, names)) != creates {
			b.Fatal("a node is missing")
		}
	}
}

func object(t *testing.T, text string) *served.Object {
	t.Helper()
	parsed, err := served.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// D-4: the workload's own revisions and the orphans that it selects. A sealed revision stays sealed until it changes.
func TestRevisions(t *testing.T) {
	store := NewStore(1, DaemonSet)
	store.PutRevision(NewRevision(object(t, `{"metadata":{"namespace":"ns","name":"another's"}}`)))
	for name, owner := range map[string]string{"mine": "d1", "other": "d2", "orphan": ""} {
		text := fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"resourceVersion":"1","labels":{"hash":"x"},
			"ownerReferences":[{"kind":"DaemonSet","uid":%q,"controller":%t}]}}`, name, owner, owner != "")
		store.PutRevision(NewRevision(object(t, text)))
	}
	names := func() (names []string) {
		for _, revision := range store.Revisions(workload(t, "d1", "d1")) {
			names = append(names, fmt.Sprint(revision.Name, store.IsSealed(revision)))
		}
		return names
	}
	store.Seal(Revisions, "ns", "mine")
	if got := names(); !slices.Equal(got, []string{"minetrue", "orphanfalse"}) {
		t.Errorf("got %v", got)
	}
	store.PutRevision(NewRevision(object(t, `{"metadata":{"namespace":"ns","name":"mine","resourceVersion":"2","labels":{"hash":"x"}}}`)))
	store.ForgetOrphan(Revisions, "ns", "orphan")
	store.ForgetOrphan(Revisions, "ns", "other")
	if got := names(); !slices.Equal(got, []string{"minefalse"}) || len(store.Revisions(workload(t, "d2", "d2"))) != 2 {
		t.Errorf("got %v", got)
	}
}

// D-104: absent, empty and invalid selectors match nothing, and nothing matches objects without labels.
func TestSelectors(t *testing.T) {
	for selector, want := range map[string]bool{
		`{"matchLabels":{"app":"x"}}`:                                     true,
		`{"matchLabels":{"app":"y"}}`:                                     false,
		`{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}`: true,
		`{"matchExpressions":[{"key":"app","operator":"In"}]}`:            false,
		`{"matchExpressions":[{"key":"app","operator":"Like"}]}`:          false,
		`{}`:   false,
		`null`: false,
	} {
		store := NewStore(1, DaemonSet)
		// A DaemonSet that cannot be read is cached, too.
		daemonSet, _ := NewWorkload(DaemonSet, object(t, `{"metadata":{"namespace":"ns","name":"d","uid":"d1"},"spec":{"selector":`+selector+`}}`))
		store.PutWorkload(daemonSet)
		if got := len(store.Matching(DaemonSet, "ns", map[string]string{"app": "x"})) == 1; got != want {
			t.Errorf("%s: got %t", selector, got)
		}
		if len(store.Matching(DaemonSet, "ns", nil)) > 0 || len(store.Matching(DaemonSet, "other", map[string]string{"app": "x"})) > 0 {
			t.Errorf("%s matches what it must not", selector)
		}
	}
	broken, err := NewWorkload(DaemonSet, object(t, `{"metadata":{"namespace":"ns","name":"d","uid":"d1"},"spec":7}`))
	if err == nil || broken.Key.Name != "d" {
		t.Errorf("got %v, %v", broken, err)
	}
}

// An orphan that cannot be adopted is not sent until it changes, whether it was selected before or not. A change of a field that is not sent
// counts, too.
func TestSealedOrphans(t *testing.T) {
	store := NewStore(1, DaemonSet)
	nothing := func(Digest) bool { return false }
	sent := func(uid string) int {
		var bucket nodewisev1.PodBucket
		if err := proto.Unmarshal(store.PodBuckets(workload(t, uid, uid), nothing)[0].GetData(), &bucket); err != nil {
			t.Fatal(err)
		}
		return len(bucket.GetPods())
	}
	put := func(version string) string {
		told := store.PutPod(pod("a", version, "n1", "", "x"))
		switch {
		case told == nil:
			return "nothing"
		case told.Pod.Old == nil:
			return "new"
		default:
			return "changed"
		}
	}
	expect := func(want string, got ...any) {
		t.Helper()
		if got := fmt.Sprintln(got...); got != want+"\n" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect("new", put("1"))
	store.PutPod(pod("owned", "1", "n1", "d1", "x"))
	expect("2", sent("d1"))
	store.Seal(Pods, "ns", "a")
	store.Seal(Pods, "ns", "owned")
	expect("1 0", sent("d1"), sent("d2"))
	expect("nothing 1", put("1"), sent("d1"))
	expect("new 2 1", put("2"), sent("d1"), sent("d2"))
	expect("nothing", put("3"))
	store.Seal(Pods, "ns", "a")
	store.RemovePod("ns", "a", nil)
	expect("new 2", put("4"), sent("d1"))
	// After a restore of etcd an object of a known version may be another one.
	store.Seal(Pods, "ns", "a")
	store.BeginAnew()
	store.ForgetVersions(Pods)
	expect("new 2", put("4"), sent("d1"))
}

// An orphaned revision that could not be changed enqueues the DaemonSets that select it when it has changed.
func TestSealedOrphanedRevisions(t *testing.T) {
	store := NewStore(1, DaemonSet)
	put := func(version string) bool {
		told := store.PutRevision(NewRevision(object(t, `{"metadata":{"namespace":"ns","name":"r","resourceVersion":"`+version+`"}}`)))
		return told.Revision.Old != nil
	}
	known := []bool{put("1"), put("2")}
	store.Seal(Revisions, "ns", "r")
	known = append(known, put("3"), put("4"))
	if !slices.Equal(known, []bool{false, true, false, true}) {
		t.Errorf("got %v", known)
	}
}
