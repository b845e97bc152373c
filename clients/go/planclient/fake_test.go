package planclient

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// fakeReplica is a replica of the service with scripted answers.
type fakeReplica struct {
	nodewisev1.UnimplementedReconcileServiceServer
	address string
	health  *health.Server
	server  *grpc.Server

	mu       sync.Mutex
	plan     func(ctx context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error)
	report   func(ctx context.Context, request *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
	requests []*nodewisev1.PlanRequest
	// explained are the requests for explanations. Their snapshots are also in requests.
	explained []*nodewisev1.ExplainRequest
	reports   int
	// kinds are the kinds that it plans for, features are what it knows besides, and kindsAsked is how often it was asked for them.
	kinds, features   []string
	kindsAsked        int
	hidesCapabilities bool
	// evaluate answers EvaluateNodes; nil for an older version.
	evaluate func(ctx context.Context, request *nodewisev1.EvaluateNodesRequest) (*nodewisev1.EvaluateNodesResponse, error)
}

func (f *fakeReplica) setEvaluate(
	evaluate func(ctx context.Context, request *nodewisev1.EvaluateNodesRequest) (*nodewisev1.EvaluateNodesResponse, error),
) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evaluate = evaluate
}

func (f *fakeReplica) EvaluateNodes(
	ctx context.Context, request *nodewisev1.EvaluateNodesRequest,
) (*nodewisev1.EvaluateNodesResponse, error) {
	f.mu.Lock()
	evaluate := f.evaluate
	f.mu.Unlock()
	if evaluate == nil {
		return f.UnimplementedReconcileServiceServer.EvaluateNodes(ctx, request)
	}
	return evaluate(ctx, request)
}

func (f *fakeReplica) setKinds(kinds ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds = kinds
}

func (f *fakeReplica) setFeatures(features ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds, f.features = []string{"DaemonSet"}, features
}

// hideCapabilities makes the replica refuse the question what it knows.
func (f *fakeReplica) hideCapabilities() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hidesCapabilities = true
}

func (f *fakeReplica) askedForKinds() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kindsAsked
}

func startReplica(t *testing.T, address string, options ...grpc.ServerOption) *fakeReplica {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	replica := &fakeReplica{address: listener.Addr().String(), health: health.NewServer(), server: grpc.NewServer(options...)}
	nodewisev1.RegisterReconcileServiceServer(replica.server, replica)
	grpc_health_v1.RegisterHealthServer(replica.server, replica.health)
	replica.serves(grpc_health_v1.HealthCheckResponse_SERVING)
	go func() { _ = replica.server.Serve(listener) }()
	t.Cleanup(replica.server.Stop)
	return replica
}

func (f *fakeReplica) serves(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	f.health.SetServingStatus(nodewisev1.ReconcileService_ServiceDesc.ServiceName, status)
}

// answers sets how the replica answers from now on.
func (f *fakeReplica) answers(plan func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

func (f *fakeReplica) Plan(ctx context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	f.mu.Lock()
	f.requests = append(f.requests, request)
	plan := f.plan
	f.mu.Unlock()
	if plan != nil {
		return plan(ctx, request)
	}
	return planned(f.address), nil
}

// Explain runs the script of Plan with the same snapshot. It answers with one node, which has the name of the plan.
func (f *fakeReplica) Explain(ctx context.Context, request *nodewisev1.ExplainRequest) (*nodewisev1.ExplainResponse, error) {
	f.mu.Lock()
	f.explained = append(f.explained, request)
	f.mu.Unlock()
	response, err := f.Plan(ctx, &nodewisev1.PlanRequest{Snapshot: request.GetSnapshot()})
	if err != nil {
		return nil, err
	}
	return &nodewisev1.ExplainResponse{Nodes: []*nodewisev1.NodeExplanation{{NodeName: response.GetPlan().GetPlanId()}}}, nil
}

// GetCapabilities answers with the kinds, if they are set. Otherwise it runs the script of Plan. It answers with a version that has the name of the plan.
func (f *fakeReplica) GetCapabilities(
	ctx context.Context, _ *nodewisev1.GetCapabilitiesRequest,
) (*nodewisev1.GetCapabilitiesResponse, error) {
	f.mu.Lock()
	kinds, features, isHidden := f.kinds, f.features, f.hidesCapabilities
	f.kindsAsked++
	f.mu.Unlock()
	if isHidden {
		return nil, status.Error(codes.PermissionDenied, "as a gateway that lets only some methods pass")
	}
	if kinds != nil {
		return &nodewisev1.GetCapabilitiesResponse{EngineVersion: "0.9.0", WorkloadKinds: kinds, Features: features}, nil
	}
	response, err := f.Plan(ctx, &nodewisev1.PlanRequest{})
	if err != nil {
		return nil, err
	}
	return &nodewisev1.GetCapabilitiesResponse{EngineVersion: response.GetPlan().GetPlanId()}, nil
}

func (f *fakeReplica) Report(ctx context.Context, request *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	f.mu.Lock()
	f.reports++
	report := f.report
	f.mu.Unlock()
	if report != nil {
		return report(ctx, request)
	}
	return &nodewisev1.ReportResponse{Message: f.address}, nil
}

func (f *fakeReplica) asked() []*nodewisev1.PlanRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*nodewisev1.PlanRequest(nil), f.requests...)
}

// planned is a plan with the name of its replica.
func planned(by string) *nodewisev1.PlanResponse {
	return &nodewisev1.PlanResponse{Plan: &nodewisev1.Plan{PlanId: by}}
}

func refuses(code codes.Code) func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	return func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		return nil, status.Error(code, "as told")
	}
}

func hangs(ctx context.Context, _ *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

func newClient(t *testing.T, replicas []*fakeReplica, options ...Option) *Client {
	t.Helper()
	var servers []string
	for _, replica := range replicas {
		servers = append(servers, "http://"+replica.address)
	}
	client, err := New(t.Context(), servers, append([]Option{WithPauses(time.Millisecond, 10*time.Millisecond)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// home is the replica that the workload u1 belongs to, and the others.
func home(replicas []*fakeReplica) (first *fakeReplica, others []*fakeReplica) {
	for _, replica := range replicas {
		if first == nil || compareWeights("u1", replica.address, first.address) < 0 {
			first = replica
		}
	}
	for _, replica := range replicas {
		if replica != first {
			others = append(others, replica)
		}
	}
	return first, others
}

// ask asks with a request of these buckets.
func ask(t *testing.T, client *Client, buckets ...string) (*Answer, error) {
	t.Helper()
	return client.Plan(t.Context(), "u1", request(buckets...))
}
