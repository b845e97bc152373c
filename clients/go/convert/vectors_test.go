package convert_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

type projection struct {
	Name       string            `json:"name"`
	Node       json.RawMessage   `json:"node"`
	Pod        json.RawMessage   `json:"pod"`
	DaemonSets []json.RawMessage `json:"daemon_sets"`
	Projection json.RawMessage   `json:"projection"`
	Cut        int               `json:"cut"`
	// Many labels and taints that the object has in addition, and how many of them are sent.
	Many     int      `json:"many"`
	ManySent manySent `json:"many_sent"`
	Error    *struct {
		Path string `json:"path"`
	} `json:"error"`
}

type manySent struct{ Labels, Taints int }

// Every client makes the same projection of the same object.
func TestProjections(t *testing.T) {
	for _, vector := range testkit.Vectors[[]projection](t, "projections.json") {
		t.Run(vector.Name, func(t *testing.T) {
			if vector.Node != nil {
				reduce := func(node *nodewisev1.Node) (cut int, many manySent) {
					if vector.DaemonSets != nil {
						cut = convert.ReduceNode(node, convert.NodeKeys(vector.reads()...))
					}
					node.Labels, many.Labels = withoutMany(node.Labels)
					node.Taints, many.Taints = withoutMany(node.Taints)
					return cut, many
				}
				check(t, vector, vector.withMany(t, vector.Node, true), convert.NodeJSON, convert.Node, reduce, &nodewisev1.Node{})
			} else {
				reduce := func(pod *nodewisev1.Pod) (cut int, many manySent) {
					if vector.DaemonSets != nil {
						cut = convert.ReducePod(pod, convert.PodKeys(vector.reads()...))
					}
					pod.Labels, many.Labels = withoutMany(pod.Labels)
					return cut, many
				}
				check(t, vector, vector.withMany(t, vector.Pod, false), convert.PodJSON, convert.Pod, reduce, &nodewisev1.Pod{})
			}
		})
	}
}

func many(index int) string { return fmt.Sprintf("many-%04d", index) }

// withMany is the object of a vector with all of its labels and taints.
func (p projection) withMany(t *testing.T, text []byte, isNode bool) []byte {
	t.Helper()
	if p.Many == 0 {
		return text
	}
	var object map[string]map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for index := range p.Many {
		object["metadata"]["labels"].(map[string]any)[many(index)] = ""
		if isNode {
			taint := map[string]any{"key": many(index), "effect": "NoSchedule"}
			object["spec"]["taints"] = slices.Insert(object["spec"]["taints"].([]any), 0, any(taint))
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reads is what the DaemonSets of a vector read, with one that names all of its many labels.
func (p projection) reads() []convert.Reads {
	all := convert.ReadsOf(nil)
	for index := range p.Many {
		all.NodeLabels.Insert(many(index))
		all.PodLabels.Insert(many(index))
	}
	reads := []convert.Reads{all}
	for _, daemonSet := range p.DaemonSets {
		reads = append(reads, convert.ReadsOf(daemonSet))
	}
	return reads
}

// withoutMany removes and counts the labels that the member many stands for.
func withoutMany[K interface{ GetKey() string }](list []K) (kept []K, taken int) {
	for _, entry := range list {
		if strings.HasPrefix(entry.GetKey(), "many-") {
			taken++
		} else {
			kept = append(kept, entry)
		}
	}
	return kept, taken
}

func check[O corev1.Node | corev1.Pod, P proto.Message](
	t *testing.T, vector projection, text []byte, fromJSON func([]byte) (P, error), fromTyped func(*O) (P, error),
	reduce func(P) (cut int, many manySent), expected P,
) {
	t.Helper()
	if vector.Error == nil {
		if err := protojson.Unmarshal(vector.Projection, expected); err != nil {
			t.Fatal(err)
		}
	}
	compare := func(got P, err error) {
		t.Helper()
		var field *convert.FieldError
		switch {
		case vector.Error != nil && (!errors.As(err, &field) || field.Path != vector.Error.Path):
			t.Errorf("got the error %v, want one of %s", err, vector.Error.Path)
		case vector.Error == nil && err != nil:
			t.Error(err)
		case vector.Error == nil:
			if cut, many := reduce(got); cut != vector.Cut || many != vector.ManySent {
				t.Errorf("got the cut %d and %v of many, want %d and %v", cut, many, vector.Cut, vector.ManySent)
			}
			if diff := cmp.Diff(expected, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		}
	}
	compare(fromJSON(text))
	// A typed object cannot have everything that is served.
	var object O
	if err := json.Unmarshal(text, &object); err == nil {
		compare(fromTyped(&object))
	}
}

func TestBuckets(t *testing.T) {
	type vector struct {
		NodeName    string `json:"node_name"`
		BucketCount uint32 `json:"bucket_count"`
		Bucket      uint32 `json:"bucket"`
	}
	for _, vector := range testkit.Vectors[[]vector](t, "buckets.json") {
		if got := convert.BucketOf(vector.NodeName, vector.BucketCount); got != vector.Bucket {
			t.Errorf("%q of %d: got bucket %d, want %d", vector.NodeName, vector.BucketCount, got, vector.Bucket)
		}
	}
}

func TestBucketBytes(t *testing.T) {
	for _, vector := range testkit.AllBucketBytes(t) {
		if vector.WithSharedLabels {
			// Only caches write them.
			continue
		}
		t.Run(vector.Name, func(t *testing.T) {
			reads := convert.ReadsOf(vector.DaemonSet)
			for _, node := range vector.Nodes {
				convert.ReduceNode(node, convert.NodeKeys(reads))
			}
			pods := slices.DeleteFunc(vector.Pods, func(pod *nodewisev1.Pod) bool {
				return pod.Controller == nil && !reads.Selects(pod.Labels)
			})
			for _, pod := range pods {
				convert.ReducePod(pod, convert.PodKeys(reads))
			}
			sent, err := convert.PodBuckets(pods, 1)
			if vector.Nodes != nil {
				sent, err = convert.NodeBuckets(vector.Nodes, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(sent[0].GetData(), vector.Data) {
				t.Errorf("got %x, want %x", sent[0].GetData(), vector.Data)
			}
			if got := hex.EncodeToString(sent[0].GetDigest()); got != vector.Digest {
				t.Errorf("got the digest %s, want %s", got, vector.Digest)
			}
		})
	}
}

// Fields of a wrong type are skipped, and do not affect the others.
func TestReadsOfOddDaemonSets(t *testing.T) {
	for text, want := range map[string][2]int{
		`{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"nodeSelector":{"c":"d"},"affinity":7}}}}`: {1, 1},
		`{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":7}}`:                                                {1, 0},
		`{"spec":{"selector":7,"template":{"spec":{"nodeSelector":{"c":7}}}}}`:                                        {0, 1},
		`{"spec":null}`: {0, 0},
		`7`:             {0, 0},
		``:              {0, 0},
	} {
		reads := convert.ReadsOf([]byte(text))
		if got := [2]int{reads.PodLabels.Len(), reads.NodeLabels.Len()}; got != want {
			t.Errorf("%s: got %v", text, got)
		}
		if selects := reads.Selects(nil); selects {
			t.Errorf("%s selects what has no labels", text)
		}
	}
}
