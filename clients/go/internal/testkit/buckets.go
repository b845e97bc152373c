package testkit

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

// BucketBytes is one bucket of bucket_bytes.json: its nodes or pods, and its canonical bytes.
type BucketBytes struct {
	Name string
	// DaemonSet is the DaemonSet of the snapshot, as JSON.
	DaemonSet []byte
	Nodes     []*nodewisev1.Node
	Pods      []*nodewisev1.Pod
	Data      []byte
	Digest    string
	// SharesLabels is whether the receiver reads shared labels.
	SharesLabels bool
	// WithSharedLabels is whether Data has some.
	WithSharedLabels bool
}

// AllBucketBytes reads bucket_bytes.json.
func AllBucketBytes(t testing.TB) []BucketBytes {
	t.Helper()
	type vector struct {
		Name      string            `json:"name"`
		DaemonSet json.RawMessage   `json:"daemon_set"`
		Nodes     []json.RawMessage `json:"nodes"`
		Pods      []json.RawMessage `json:"pods"`
		Data      []byte            `json:"data"`
		Digest    string            `json:"digest"`
		Shares    bool              `json:"shares_labels"`
		Shared    bool              `json:"with_shared_labels"`
	}
	var all []BucketBytes
	for _, vector := range Vectors[[]vector](t, "bucket_bytes.json") {
		all = append(all, BucketBytes{
			Name:      vector.Name,
			DaemonSet: vector.DaemonSet,
			Nodes:     parse[nodewisev1.Node](t, vector.Nodes),
			Pods:      parse[nodewisev1.Pod](t, vector.Pods),
			Data:      vector.Data,
			Digest:    vector.Digest,

			SharesLabels: vector.Shares, WithSharedLabels: vector.Shared,
		})
	}
	return all
}

func parse[T any, M interface {
	*T
	proto.Message
}](t testing.TB, texts []json.RawMessage) []M {
	t.Helper()
	var messages []M
	for _, text := range texts {
		message := M(new(T))
		if err := protojson.Unmarshal(text, message); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message)
	}
	return messages
}
