package apply_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"google.golang.org/protobuf/encoding/protojson"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

func TestManifestVectors(t *testing.T) {
	type vector struct {
		Name   string          `json:"name"`
		Plan   json.RawMessage `json:"plan"`
		Create json.RawMessage `json:"create"`
		Pod    json.RawMessage `json:"pod"`
	}
	for _, vector := range testkit.Vectors[[]vector](t, "manifests.json") {
		t.Run(vector.Name, func(t *testing.T) {
			plan, create := &nodewisev1.Plan{}, &nodewisev1.CreatePod{}
			if err := protojson.Unmarshal(vector.Plan, plan); err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal(vector.Create, create); err != nil {
				t.Fatal(err)
			}
			manifest, err := apply.ParseManifest(plan)
			if err != nil {
				t.Fatal(err)
			}
			// An earlier rendering has no effect on this one.
			if _, err := manifest.Render(&nodewisev1.CreatePod{PodName: "other", NodeName: "elsewhere"}, "00-1-2-01"); err != nil {
				t.Fatal(err)
			}
			got, err := manifest.Render(create, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, vector.Pod), canonical(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// canonical decodes JSON with numbers as they are written.
func canonical(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestManifestsThatCannotBeUsed(t *testing.T) {
	for name, plan := range map[string]*nodewisev1.Plan{
		"no JSON":               {PodManifest: []byte("x")},
		"no metadata":           {PodManifest: []byte(`{"spec":{}}`)},
		"no such member":        {PodManifest: []byte(`{"metadata":{}}`), NodeNamePointers: []string{"/spec/nodeName"}},
		"no such element":       {PodManifest: []byte(`{"metadata":{},"a":["x"]}`), NodeNamePointers: []string{"/a/1"}},
		"no string":             {PodManifest: []byte(`{"metadata":{},"a":1}`), NodeNamePointers: []string{"/a"}},
		"no pointer":            {PodManifest: []byte(`{"metadata":{},"a":"x"}`), NodeNamePointers: []string{"a"}},
		"a member of no object": {PodManifest: []byte(`{"metadata":{},"a":"x"}`), NodeNamePointers: []string{"/a/b"}},
	} {
		if _, err := apply.ParseManifest(plan); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	escaped := &nodewisev1.Plan{PodManifest: []byte(`{"metadata":{},"a/b":{"c~d":["x"]}}`), NodeNamePointers: []string{"/a~1b/c~0d/0"}}
	manifest, err := apply.ParseManifest(escaped)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := manifest.Render(&nodewisev1.CreatePod{PodName: "p", NodeName: "n1"}, ""); err != nil ||
		string(got) != `{"a/b":{"c~d":["n1"]},"metadata":{"name":"p"}}` {
		t.Errorf("got %s, %v", got, err)
	}
}
