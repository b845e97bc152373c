package nodewise_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// These tests use only the public API: a Reconciler on an apiserver, with a planner of the test.

var agent = types.NamespacedName{Namespace: "ns", Name: "agent"}

// daemonSet is the DaemonSet ns/agent with these labels, as JSON.
func daemonSet(labels string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"ns","name":"agent","uid":"d1","generation":1,
		"labels":{%s}},"spec":{"selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},
		"spec":{"containers":[{"name":"a","image":"agent:1"}]}}}}`, labels)
}

const ours = `"owner":"us"`

// service is a planner with scripted answers. Without a script it creates a pod on each of two nodes.
type service struct {
	plan   func(ctx context.Context, build planclient.BuildRequest) (*planclient.Answer, error)
	report func() error

	mu    sync.Mutex
	asked []*nodewisev1.PlanRequest
}

func (s *service) Plan(ctx context.Context, _ string, build planclient.BuildRequest) (*planclient.Answer, error) {
	if s.plan != nil {
		return s.plan(ctx, build)
	}
	request, err := build(planclient.Receiver{})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, proto.CloneOf(request))
	return &planclient.Answer{Plan: creatingTwo()}, nil
}

func (s *service) Report(_ context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	if s.report != nil {
		if err := s.report(); err != nil {
			return nil, err
		}
	}
	requeue := nodewisev1.Requeue_REQUEUE_NONE
	for _, outcome := range report.GetOutcomes() {
		if outcome.GetResult() == nodewisev1.Result_RESULT_FAILED {
			requeue = nodewisev1.Requeue_REQUEUE_BACKOFF
		}
	}
	return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: requeue}, nil
}

func (s *service) requests() []*nodewisev1.PlanRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// creatingTwo is a plan for ns/agent that creates a pod on each of two nodes, and expects them.
func creatingTwo() *nodewisev1.Plan {
	plan := &nodewisev1.Plan{
		PlanId:   "plan-7",
		Verdict:  nodewisev1.Verdict_VERDICT_APPLY,
		Workload: &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: "ns", Name: "agent", Uid: "d1"},
		PodManifest: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"agent","controller-revision-hash":"h1"},"ownerReferences":[{"apiVersion":"apps/v1",
			"kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]},"spec":{"containers":[{"name":"a","image":"agent:1"}],"affinity":{
			"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
			{"matchFields":[{"key":"metadata.name","operator":"In","values":[""]}]}]}}}}}`),
		NodeNamePointers: []string{
			"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
		},
		State: &nodewisev1.ReconcileState{Expectations: &nodewisev1.Expectations{SetAt: timestamppb.Now()}},
	}
	batch := &nodewisev1.Batch{}
	for id, name := range []string{"agent-bbbbbbbbbb", "agent-cccccccccc"} {
		node := fmt.Sprintf("n%d", id+1)
		create := &nodewisev1.CreatePod{PodName: name, NodeName: node}
		batch.Actions = append(batch.Actions, &nodewisev1.Action{
			Id: uint32(id + 1), Reason: nodewisev1.Reason_REASON_NODE_WITHOUT_POD, Message: "node " + node + " has no pod",
			Kind: &nodewisev1.Action_CreatePod{CreatePod: create},
		})
		plan.State.Expectations.Creates = append(plan.State.Expectations.Creates,
			&nodewisev1.ExpectedCreate{PodName: create.GetPodName(), NodeName: node})
	}
	plan.Phases = []*nodewisev1.Phase{{Kind: nodewisev1.PhaseKind_PHASE_KIND_CREATES, Batches: []*nodewisev1.Batch{batch}, AbortsOnFailure: true}}
	return plan
}

// queue records which workloads were added.
type queue struct {
	mu    sync.Mutex
	added map[types.NamespacedName]bool
}

func (q *queue) Add(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.added[key] = true
}

func (q *queue) AddAfter(key types.NamespacedName, _ time.Duration) { q.Add(key) }

// take reports whether a workload was added since the last call.
func (q *queue) take(key types.NamespacedName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	added := q.added[key]
	delete(q.added, key)
	return added
}

// started is a Reconciler with filled caches, on a cluster with the nodes and the revision of [creatingTwo], and its queue.
func started(
	t *testing.T, cluster *testkit.Cluster, planner nodewise.Planner, options ...nodewise.Option,
) (*nodewise.Reconciler, *queue) {
	t.Helper()
	for _, node := range []string{"n1", "n2"} {
		cluster.Put(t, "nodes", fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q}}`, node, node))
	}
	cluster.Put(t, "controllerrevisions", `{"metadata":{"namespace":"ns","name":"agent-h1","uid":"r1","labels":{"controller-revision-hash":"h1"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]},"revision":1}`)
	r, err := nodewise.New(cluster.Config(), planner, options...)
	if err != nil {
		t.Fatal(err)
	}
	queue := &queue{added: map[types.NamespacedName]bool{}}
	if err := r.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, queue
}
