package convert_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
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
	Name       string          `json:"name"`
	Node       json.RawMessage `json:"node"`
	Pod        json.RawMessage `json:"pod"`
	Projection json.RawMessage `json:"projection"`
	Error      *struct {
		Path string `json:"path"`
	} `json:"error"`
}

// Every client makes the same of the same object.
func TestProjections(t *testing.T) {
	for _, vector := range testkit.Vectors[[]projection](t, "projections.json") {
		t.Run(vector.Name, func(t *testing.T) {
			if vector.Node != nil {
				check(t, vector, vector.Node, convert.NodeJSON, convert.Node, &nodewisev1.Node{})
			} else {
				check(t, vector, vector.Pod, convert.PodJSON, convert.Pod, &nodewisev1.Pod{})
			}
		})
	}
}

func check[O corev1.Node | corev1.Pod, P proto.Message](
	t *testing.T, vector projection, text []byte, fromJSON func([]byte) (P, error), fromTyped func(*O) (P, error), expected P,
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
			if diff := cmp.Diff(expected, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		}
	}
	compare(fromJSON(text))
	// A typed object cannot hold everything that is served.
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
		t.Run(vector.Name, func(t *testing.T) {
			sent, err := convert.PodBuckets(vector.Pods, 1)
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
