package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// planning is a service that returns plans without actions, and counts the requests of each workload.
type planning struct {
	nodewisev1.UnimplementedReconcileServiceServer
	mu    sync.Mutex
	asked map[string]int
}

func (p *planning) Plan(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	name := "other"
	if strings.Contains(string(request.GetSnapshot().GetWorkload().GetDaemonSet().GetObject()), `"uid":"uid-ours"`) {
		name = "ours"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[name]++
	return &nodewisev1.PlanResponse{Plan: &nodewisev1.Plan{
		Verdict:  nodewisev1.Verdict_VERDICT_NOOP,
		Workload: &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: "ns", Name: name, Uid: "uid-" + name},
	}}, nil
}

func (p *planning) times(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[name]
}

// The controller owns the DaemonSets that its selector matches, and no others.
func TestTheSelectorSaysWhatIsOwned(t *testing.T) {
	service := &planning{asked: map[string]int{}}
	cluster := testkit.NewCluster(t)
	for name, team := range map[string]string{"ours": "storage", "other": "network"} {
		cluster.Put(t, "daemonsets", fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":"uid-%s","labels":{"team":%q}}}`, name, name, team))
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, cluster.Config().Host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	t.Setenv("NODEWISE_SERVER", testkit.Serve(t, service))
	t.Setenv("NODEWISE_LEADER_ELECT", "false")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, daemonSetController, "team in (storage, backup)", &analysis.Settings{}) }()
	for node := range 3 {
		cluster.Put(t, "nodes", fmt.Sprintf(`{"metadata":{"name":"n%d","uid":"n%d"}}`, node, node))
		testkit.Eventually(t, "a plan for ours", func() bool { return service.times("ours") > node })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := service.times("other"); got > 0 {
		t.Errorf("%d plans were asked for that of another team", got)
	}
}

func TestASelectorThatCannotBeReadIsRefused(t *testing.T) {
	if err := run(t.Context(), daemonSetController, "team in storage", &analysis.Settings{}); err == nil || !strings.Contains(err.Error(), "--selector") {
		t.Errorf("got %v", err)
	}
}

func TestTheListOfControllersDecidesAsInKubeControllerManager(t *testing.T) {
	const daemonSet, deployment, replicaSet = nodewise.DaemonSets, nodewise.Deployments, nodewise.ReplicaSets
	for list, want := range map[string][]nodewise.Kind{
		"*":                             {daemonSet, deployment, replicaSet},
		"daemonset-controller":          {daemonSet},
		"daemonset,deployment":          {daemonSet, deployment},
		"*,-replicaset-controller":      {daemonSet, deployment},
		"-replicaset,*":                 {daemonSet, deployment},
		"deployment,-deployment":        {deployment},
		"-deployment":                   nil,
		"statefulset-controller":        nil,
		"":                              nil,
		"Deployment":                    nil,
		"daemonset-controller,-unknown": nil,
	} {
		got, err := kindsOf(list)
		if !slices.Equal(got, want) || (err == nil) != (len(want) > 0) {
			t.Errorf("%q: got %v, %v", list, got, err)
		}
	}
}
