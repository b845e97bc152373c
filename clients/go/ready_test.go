package nodewise

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/planclient"
)

// Ready says why the service cannot be reached, and which watch fails. Before the start there are no watches to wait for.
func TestReadinessSaysWhatIsWrong(t *testing.T) {
	// No program listens on this port.
	const nobody = "127.0.0.1:1"
	planner, err := planclient.New(t.Context(), []string{"http://" + nobody})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	var allowed atomic.Bool
	api := &apiserver{refuses: func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "nodes") && r.URL.Query().Get("watch") == "" && !allowed.Load()
	}}
	r, err := New(api.start(t), planner)
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		if err := r.Ready(nil); err != nil {
			return err.Error()
		}
		return ""
	}
	testkit.Eventually(t, "the service is away", func() bool { return strings.Contains(said(), nobody) })
	if strings.Contains(said(), "first lists") {
		t.Errorf("it waits for lists before the start: %s", said())
	}
	if err := r.Start(t.Context(), &recorded{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "nodes are refused", func() bool {
		return strings.Contains(said(), "watching nodes: not yours") && strings.Contains(said(), "waiting for the first lists of [nodes]")
	})
	allowed.Store(true)
	testkit.Eventually(t, "only the service is away", func() bool {
		return strings.Contains(said(), nobody) && !strings.Contains(said(), "nodes")
	})

	r, err = New(api.start(t), &scripted{plan: noop})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), &recorded{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "all is well", func() bool { return said() == "" })
}
