package cluster

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

const selectsX = `{"matchLabels":{"app":"x"}}`

func onNodes(t *testing.T, name string, labels ...string) *Workload {
	t.Helper()
	return daemonSet(t, name, name, selectsX, labels)
}

func node(name, version string, labels map[string]string) *Node {
	return &Node{ResourceVersion: version, Node: &nodewisev1.Node{Name: name, Uid: name, Labels: convert.Labels(labels)}}
}

// sentKeys returns the keys of the labels of each node, as they would be sent for this workload.
func sentKeys(t *testing.T, store *Store, workload *Workload) map[string][]string {
	t.Helper()
	sent := map[string][]string{}
	for _, bucket := range store.NodeBuckets(workload, false, nothing) {
		var nodes nodewisev1.NodeBucket
		if err := proto.Unmarshal(bucket.GetData(), &nodes); err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes.GetNodes() {
			sent[node.GetName()] = []string{}
			for _, label := range node.GetLabels() {
				sent[node.GetName()] = append(sent[node.GetName()], label.GetKey())
			}
		}
	}
	return sent
}

// A label is sent as soon as a DaemonSet names it, whether the DaemonSet or the node came first.
func TestLabelsAreSentThatADaemonSetNames(t *testing.T) {
	store, a, b := NewStore(2, DaemonSet), onNodes(t, "a", "a"), onNodes(t, "b", "b")
	requireKeys := func(asked *Workload, want ...string) {
		t.Helper()
		if got := sentKeys(t, store, asked)["n"]; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	store.PutWorkload(a)
	store.PutNode(node("n", "1", map[string]string{"a": "1", "b": "1", "c": "1"}))
	requireKeys(a, "a")
	store.PutWorkload(b)
	requireKeys(a, "a", "b")
	// A key that no DaemonSet names any more changes no bucket until another key is added.
	store.RemoveWorkload(DaemonSet, b.Key)
	requireKeys(a, "a", "b")
	store.PutWorkload(onNodes(t, "a", "c"))
	requireKeys(onNodes(t, "a", "c"), "c")
	requireKeys(onNodes(t, "not-cached", "a"), "a", "c")
}

// A change that affects no plan makes no transition and changes no bucket.
func TestALabelThatNothingNamesIsNoNews(t *testing.T) {
	store, a := NewStore(1, DaemonSet), onNodes(t, "a", "a")
	store.PutWorkload(a)
	store.PutNode(node("n", "1", map[string]string{"a": "1", "x": "1"}))
	digest := store.NodeBuckets(a, false, nothing)[0].GetDigest()
	if store.PutNode(node("n", "2", map[string]string{"a": "1", "x": "2", "y": ""})) != nil {
		t.Error("nothing that a DaemonSet names has changed")
	}
	isKnown := func(known Digest) bool { return slices.Equal(known[:], digest) }
	if store.NodeBuckets(a, false, isKnown)[0].Data != nil {
		t.Error("the bucket is another one")
	}
	told := store.PutNode(node("n", "3", map[string]string{"a": "2", "x": "2"}))
	if told == nil || len(told.Node.New.Labels) != 1 || len(told.Node.Old.Labels) != 1 {
		t.Errorf("got %v", told)
	}
	before, after := pod("p", "1", "n", "a", "x"), pod("p", "2", "n", "a", "y")
	store.PutPod(before)
	if store.PutPod(after) != nil {
		t.Error("nor of a pod")
	}
}

func TestLabelsOfNodesGoWithTheLastNodeThatHasThem(t *testing.T) {
	store := NewStore(4, DaemonSet)
	store.PutNode(node("n", "1", map[string]string{"a": "1", "b": "1"}))
	store.PutNode(node("m", "1", map[string]string{"a": "1", "b": "2"}))
	store.PutNode(node("m", "2", map[string]string{"a": "1"}))
	if len(store.labels) != 2 {
		t.Errorf("%d labels are kept", len(store.labels))
	}
	store.RemoveNode("n")
	store.RemoveNode("m")
	if len(store.labels) != 0 {
		t.Errorf("%d labels are left of nothing", len(store.labels))
	}
}

// An orphan that a workload does not select never enqueues it, in whatever order the objects came and changed.
func TestOrphansAreSentThatTheWorkloadSelects(t *testing.T) {
	store := NewStore(4, DaemonSet)
	selects := func(hash string) *Workload {
		return daemonSet(t, "d", "d1", fmt.Sprintf(`{"matchLabels":{"hash":%q}}`, hash), nil)
	}
	requireSent := func(hash string, want ...string) {
		t.Helper()
		var got []string
		for _, bucket := range store.PodBuckets(selects(hash), nothing) {
			var pods nodewisev1.PodBucket
			if err := proto.Unmarshal(bucket.GetData(), &pods); err != nil {
				t.Fatal(err)
			}
			for _, pod := range pods.GetPods() {
				got = append(got, pod.GetName())
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", hash, got, want)
		}
	}
	store.PutPod(pod("p", "1", "n1", "", "a"))
	store.PutPod(pod("q", "1", "n1", "", "b"))
	store.PutPod(pod("r", "1", "n1", "", "a"))
	requireSent("a", "p", "r")
	store.PutPod(pod("p", "2", "n1", "", "b"))
	store.PutPod(pod("q", "2", "n2", "", "a"))
	store.PutPod(pod("r", "2", "n3", "", "a"))
	store.PutPod(pod("s", "2", "n4", "", "a"))
	requireSent("a", "q", "r", "s")
	store.RemovePod("ns", "r", nil)
	store.PutPod(pod("q", "3", "n2", "d2", "a"))
	requireSent("a", "s")
	requireSent("b", "p")
	requireSent("c")
}

// An object with too many labels stops nothing: the excess labels are left out, and the object is reported.
func TestWhatDoesNotFitIsLeftOutAndTold(t *testing.T) {
	store, labels := NewStore(1, DaemonSet), map[string]string{}
	for index := range convert.MaxLabels + 6 {
		labels[fmt.Sprintf("k%04d", index)] = ""
	}
	keys := slices.Sorted(maps.Keys(labels))
	many := onNodes(t, "many", keys...)
	store.PutNode(node("n", "1", labels))
	if cuts := store.TakeCuts(); cuts != nil {
		t.Errorf("got %v as long as nothing names them", cuts)
	}
	store.PutWorkload(many)
	want := []CutObject{{Resource: Nodes, Name: "n", Labels: 6}}
	if cuts := store.TakeCuts(); !slices.Equal(cuts, want) {
		t.Errorf("got %v, want %v", cuts, want)
	}
	if got := sentKeys(t, store, many)["n"]; !slices.Equal(got, keys[:convert.MaxLabels]) {
		t.Errorf("%d labels are sent", len(got))
	}
	if cuts := store.TakeCuts(); cuts != nil {
		t.Errorf("got %v, and it is told once for each change", cuts)
	}
}

// In whatever order labels and DaemonSets came, a bucket has the bytes of the reduced projections.
func TestBucketsAreThoseOfTheReducedProjections(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	store, live := NewStore(2, DaemonSet), map[string]*nodewisev1.Node{}
	key := func() string { return string(rune('a' + random.IntN(4))) }
	for version := range 1_000 {
		if random.IntN(3) == 0 {
			workload := onNodes(t, string(rune('x'+random.IntN(3))), key())
			if store.PutWorkload(workload); random.IntN(3) == 0 {
				store.RemoveWorkload(DaemonSet, workload.Key)
			}
		}
		labels := map[string]string{key(): "0", key(): "1", key(): "n1", key(): strconv.Itoa(random.IntN(2))}
		made := node(fmt.Sprint("n", random.IntN(6)), strconv.Itoa(version), labels)
		made.Taints = []*nodewisev1.Taint{{Key: "t", Effect: "NoSchedule"}}
		live[made.GetName()] = proto.CloneOf(made.Node)
		store.PutNode(made)
		isKnown := random.IntN(2) == 0
		asked := onNodes(t, "x", key())
		sent := store.NodeBuckets(asked, false, func(Digest) bool { return isKnown })
		if !store.nodeKeys.keys().Labels.IsSuperset(asked.Reads.NodeLabels) {
			t.Fatal("a label that the workload names is not sent")
		}
		var nodes []*nodewisev1.Node
		for _, name := range slices.Sorted(maps.Keys(live)) {
			reduced := proto.CloneOf(live[name])
			convert.ReduceNode(reduced, store.nodeKeys.keys())
			nodes = append(nodes, reduced)
		}
		want, err := convert.NodeBuckets(nodes, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if digest := sha256.Sum256(want[i].GetData()); !slices.Equal(digest[:], sent[i].GetDigest()) {
				t.Fatalf("bucket %d at %d is another one", i, version)
			}
		}
		known := store.NodeBuckets(asked, true, func(Digest) bool { return isKnown })
		for i, bucket := range store.NodeBuckets(asked, true, nothing) {
			if got := sha256.Sum256(wholeOf(t, bucket)); !slices.Equal(got[:], want[i].GetDigest()) {
				t.Fatalf("bucket %d at %d has other labels", i, version)
			}
			if !slices.Equal(known[i].GetDigest(), bucket.GetDigest()) {
				t.Fatalf("bucket %d at %d has a digest of its own", i, version)
			}
		}
	}
}

// wholeOf returns the bytes of a bucket whose nodes have all labels of their own.
func wholeOf(t *testing.T, bucket *nodewisev1.Bucket) []byte {
	t.Helper()
	data := bucket.GetData()
	if bucket.DataWithSharedLabels != nil {
		data = bucket.GetDataWithSharedLabels()
	}
	if digest := sha256.Sum256(data); !slices.Equal(digest[:], bucket.GetDigest()) {
		t.Fatal("the digest is that of other bytes")
	}
	nodes := &nodewisev1.NodeBucket{}
	if err := proto.Unmarshal(data, nodes); err != nil {
		t.Fatal(err)
	}
	if shares := len(nodes.GetSharedLabels()) > 0; shares != (bucket.DataWithSharedLabels != nil) {
		t.Fatal("it is in the wrong field")
	}
	for _, node := range nodes.GetNodes() {
		for _, number := range node.GetSharedLabels() {
			label := nodes.GetSharedLabels()[number-1]
			value := label.GetValue()
			if label.GetValueIsNodeName() {
				value = node.GetName()
			}
			node.Labels = append(node.Labels, &nodewisev1.Label{Key: label.GetKey(), Value: value})
		}
		node.SharedLabels = nil
	}
	whole, err := convert.NodeBucketBytes(nodes.GetNodes())
	if err != nil {
		t.Fatal(err)
	}
	return whole
}
