package expect_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

var key = types.NamespacedName{Namespace: "ns", Name: "foo"}

type step struct {
	Hold *struct {
		Planned     json.RawMessage `json:"planned"`
		Sent        json.RawMessage `json:"sent"`
		PresentPods []struct {
			Name     string `json:"name"`
			UID      string `json:"uid"`
			Deleting bool   `json:"deleting"`
		} `json:"present_pods"`
	} `json:"hold"`
	Created *struct {
		PodName  string `json:"pod_name"`
		NodeName string `json:"node_name"`
	} `json:"created"`
	Deleted *struct {
		PodName string `json:"pod_name"`
		PodUID  string `json:"pod_uid"`
	} `json:"deleted"`
	// Applied are outcomes.
	Applied []json.RawMessage `json:"applied"`
	Settle  json.RawMessage   `json:"settle"`
	Gone    *struct {
		PodName  string `json:"pod_name"`
		NodeName string `json:"node_name"`
	} `json:"gone"`
}

// Every client holds the same state after the same events.
func TestVectors(t *testing.T) {
	type vector struct {
		Name  string          `json:"name"`
		Steps []step          `json:"steps"`
		State json.RawMessage `json:"state"`
	}
	for _, vector := range testkit.Vectors[[]vector](t, "expectations.json") {
		t.Run(vector.Name, func(t *testing.T) {
			holdings := expect.NewHoldings(expect.ByUID)
			for _, step := range vector.Steps {
				take(t, holdings, step)
			}
			if diff := cmp.Diff(state(t, vector.State), holdings.Get(key, "d1"), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func take(t *testing.T, holdings *expect.Holdings, step step) {
	t.Helper()
	switch {
	case step.Hold != nil:
		exists, deleting := map[string]bool{}, map[string]bool{}
		for _, pod := range step.Hold.PresentPods {
			exists[pod.Name], deleting[pod.UID] = true, pod.Deleting
		}
		holdings.Replace(key, "d1", state(t, step.Hold.Planned), state(t, step.Hold.Sent), expect.PodView{
			Exists:   func(name string) bool { return exists[name] },
			Deleting: func() map[string]bool { return deleting },
		})
	case step.Created != nil:
		holdings.ObserveCreate(key, step.Created.PodName, step.Created.NodeName)
	case step.Deleted != nil:
		holdings.ObserveDeletion(key, step.Deleted.PodName, step.Deleted.PodUID)
	case step.Applied != nil:
		outcomes := make([]*nodewisev1.Outcome, len(step.Applied))
		for i, text := range step.Applied {
			outcomes[i] = &nodewisev1.Outcome{}
			if err := protojson.Unmarshal(text, outcomes[i]); err != nil {
				t.Fatal(err)
			}
		}
		holdings.Lower(key, "d1", outcomes)
	case step.Settle != nil:
		holdings.Settle(key, "d1", state(t, step.Settle))
	case step.Gone != nil:
		holdings.RetireName(key, "d1", step.Gone.NodeName, step.Gone.PodName)
	default:
		t.Fatal("a step of a kind that is not known")
	}
}

func state(t *testing.T, text []byte) *nodewisev1.ReconcileState {
	t.Helper()
	read := &nodewisev1.ReconcileState{}
	if len(text) == 0 {
		return read
	}
	if err := protojson.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}
