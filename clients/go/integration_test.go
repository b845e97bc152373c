package nodewise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// The whole executor with the real service: from a DaemonSet to all its pods, a rollout within its budget, and nothing to do afterwards.
func TestRollsOutWithTheService(t *testing.T) {
	planner, err := planclient.New(t.Context(), []string{"http://" + testkit.StartServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	r := newRig(t, planner)
	const count = 300
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("node-%03d", i))
	}
	r.addNodes(names...)
	r.apply("agent:1")
	r.settle()
	if images := r.podImages(); len(images) != count || images["node-007"][0] != "agent:1" {
		t.Fatalf("%d of %d nodes have pods", len(images), count)
	}
	r.cluster.fewest = count
	r.apply("agent:2")
	r.settle()
	for node, images := range r.podImages() {
		if len(images) != 1 || images[0] != "agent:2" {
			t.Errorf("%s runs %v", node, images)
		}
	}
	if r.cluster.fewest != count-2 {
		t.Errorf("there were %d pods at some time: maxUnavailable is 2 of %d", r.cluster.fewest, count)
	}
	if created, deleted := r.cluster.count("create pods"), r.cluster.count("delete pods"); created != 2*count || deleted != count {
		t.Errorf("%d pods were created and %d deleted", created, deleted)
	}
	// An orphan is adopted and not created again, a new node gets its pod, and then there is nothing to do.
	r.addOrphan("orphan", "node-007", "node-orphan")
	r.addNodes("node-orphan", "node-new")
	r.settle()
	var adopted []string
	for _, pod := range r.cluster.pods() {
		if pod.Spec.NodeName == "node-orphan" && metav1.GetControllerOf(pod) != nil {
			adopted = append(adopted, pod.Name)
		}
	}
	if created := r.cluster.count("create pods"); !slices.Equal(adopted, []string{"orphan"}) || created != 2*count+1 {
		t.Errorf("%v are on the orphan's node, and %d pods were created", adopted, created)
	}
	writes := len(r.cluster.writes)
	r.queue.Add(key)
	r.settle()
	if len(r.cluster.writes) != writes || len(r.podImages()["node-new"]) != 1 {
		t.Errorf("something was written that need not: %v", r.cluster.writes[writes:])
	}
}

// The service explains one node, and all nodes, of a cluster.
func TestExplainsWithTheService(t *testing.T) {
	planner, err := planclient.New(t.Context(), []string{"http://" + testkit.StartServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	cluster := testkit.NewCluster(t)
	cluster.Put(t, "nodes", `{"metadata":{"name":"n1","uid":"n1"}}`)
	cluster.Put(t, "nodes", `{"metadata":{"name":"n2","uid":"n2"},"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]}}`)
	cluster.Put(t, "daemonsets", `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"ns","name":"agent","uid":"d1"},"spec":{
		"selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"a"}]}}}}`)
	n1 := "n1 NODE_STATE_MISSING RULE_ELIGIBLE"
	n2 := "n2 NODE_STATE_MUST_NOT_RUN RULE_TAINT_NO_SCHEDULE"
	for node, want := range map[string][]string{"": {n1, n2}, "n2": {n2}} {
		explained, err := ExplainOnce(t.Context(), cluster.Config(), planner, "ns", "agent", node)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, on := range explained.GetNodes() {
			got = append(got, fmt.Sprint(on.GetNodeName(), " ", on.GetState(), " ", on.GetRule()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("node %q: got %q", node, got)
		}
	}
	if _, err := ExplainOnce(t.Context(), cluster.Config(), planner, "ns", "another", ""); err == nil || !strings.Contains(err.Error(), "DaemonSet ns/another") {
		t.Errorf("got %v", err)
	}
}

// The server answers each request with exactly the response of the vector.
func TestServiceVectors(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///"+testkit.StartServer(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := nodewisev1.NewReconcileServiceClient(conn)
	t.Run("plans", func(t *testing.T) { requireAnswers(t, "plans", client.Plan) })
	t.Run("reports", func(t *testing.T) { requireAnswers(t, "reports", client.Report) })
}

// A play has steps and then an end. The error of a wrong request names the field, and an error of the caller ends the play.
func TestSimulatesWithTheService(t *testing.T) {
	planner, err := planclient.New(t.Context(), []string{"http://" + testkit.StartServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	file := slices.IndexFunc(testkit.VectorFiles(t, "plans"), func(file string) bool { return filepath.Base(file) == "rollout.json" })
	vector := testkit.Vectors[serviceVector](t, testkit.VectorFiles(t, "plans")[file])
	plan := &nodewisev1.PlanRequest{}
	if err := protojson.Unmarshal(vector.Request, plan); err != nil {
		t.Fatal(err)
	}
	request := &nodewisev1.SimulateRequest{Snapshot: plan.GetSnapshot(), Assumptions: &nodewisev1.SimulationAssumptions{}}
	build := func(planclient.Receiver) (*nodewisev1.SimulateRequest, error) { return request, nil }
	var responses []*nodewisev1.SimulateResponse
	err = planner.Simulate(t.Context(), "u1", build, func(response *nodewisev1.SimulateResponse) error {
		responses = append(responses, response)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last := responses[len(responses)-1].GetEnd()
	if last == nil || int(last.GetSteps()) != len(responses)-1 {
		t.Fatalf("%d responses, and the last one is %v", len(responses), last)
	}
	seen := errors.New("seen enough")
	if err := planner.Simulate(t.Context(), "u1", build, func(*nodewisev1.SimulateResponse) error { return seen }); !errors.Is(err, seen) {
		t.Errorf("got %v", err)
	}
	request.Assumptions.FailingShare = 2
	err = planner.Simulate(t.Context(), "u1", build, func(*nodewisev1.SimulateResponse) error { return nil })
	var refused *planclient.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "assumptions.failing_share: is 2; must be from 0 to 1") {
		t.Errorf("got %v", err)
	}
}

// message is a pointer to a generated message of type M.
type message[M any] interface {
	*M
	proto.Message
}

func requireAnswers[Q, A any, PQ message[Q], PA message[A]](
	t *testing.T, folder string, call func(context.Context, PQ, ...grpc.CallOption) (PA, error),
) {
	t.Helper()
	for _, file := range testkit.VectorFiles(t, folder) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			vector := testkit.Vectors[serviceVector](t, file)
			request := PQ(new(Q))
			if err := protojson.Unmarshal(vector.Request, request); err != nil {
				t.Fatal(err)
			}
			got, err := call(t.Context(), request, grpc.WaitForReady(true))
			if vector.Refusal != nil {
				vector.requireRefusal(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := PA(new(A))
			if err := protojson.Unmarshal(vector.Response, want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type serviceVector struct {
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
	Refusal  *struct {
		Code   uint32   `json:"code"`
		Fields []string `json:"fields"`
	} `json:"refusal"`
}

func (v *serviceVector) requireRefusal(t *testing.T, err error) {
	t.Helper()
	said := status.Convert(err)
	fields := []string{}
	for _, detail := range said.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, violation := range bad.GetFieldViolations() {
				fields = append(fields, violation.GetField())
			}
		}
	}
	if uint32(said.Code()) != v.Refusal.Code || !cmp.Equal(fields, v.Refusal.Fields) {
		t.Errorf("got %v of %v, want code %d of %v", said, fields, v.Refusal.Code, v.Refusal.Fields)
	}
}
