package planclient

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// request builds a request of node buckets with these bytes.
func request(buckets ...string) BuildRequest {
	return func(receiver Receiver) (*nodewisev1.PlanRequest, error) {
		snapshot := &nodewisev1.Snapshot{}
		for _, bucket := range buckets {
			digest := sha256.Sum256([]byte(bucket))
			sent := &nodewisev1.Bucket{Digest: digest[:]}
			if !receiver.Has(digest) {
				sent.Data = []byte(bucket)
			}
			snapshot.NodeBuckets = append(snapshot.NodeBuckets, sent)
		}
		return &nodewisev1.PlanRequest{Snapshot: snapshot}, nil
	}
}

// inline are the bytes that were sent of each bucket; - stands for a digest alone.
func inline(request *nodewisev1.PlanRequest) string {
	var sent []string
	for _, bucket := range request.GetSnapshot().GetNodeBuckets() {
		if bucket.Data == nil {
			sent = append(sent, "-")
		} else {
			sent = append(sent, string(bucket.GetData()))
		}
	}
	return strings.Join(sent, " ")
}

func three(t *testing.T) []*fakeReplica {
	t.Helper()
	return []*fakeReplica{startReplica(t, "127.0.0.1:0"), startReplica(t, "127.0.0.1:0"), startReplica(t, "127.0.0.1:0")}
}

func TestAWorkloadAsksItsOwnReplica(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas)
	first, others := home(replicas)
	for range 5 {
		answer, err := ask(t, client, "a")
		if err != nil || answer.Plan.GetPlanId() != first.address {
			t.Fatalf("got %v, %v", answer, err)
		}
	}
	if len(others[0].asked())+len(others[1].asked()) > 0 {
		t.Error("others were asked, too")
	}
}

func TestWhatAReplicaHasGoesByDigest(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica})
	for _, buckets := range [][]string{{"a", "b"}, {"a", "c"}} {
		if _, err := ask(t, client, buckets...); err != nil {
			t.Fatal(err)
		}
	}
	asked := replica.asked()
	if inline(asked[0]) != "a b" || inline(asked[1]) != "- c" {
		t.Errorf("sent %q and %q", inline(asked[0]), inline(asked[1]))
	}
}

func TestMissingBucketsAreSentInTheSameCall(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica})
	if _, err := ask(t, client, "a", "b"); err != nil {
		t.Fatal(err)
	}
	// The replica has lost the second bucket.
	replica.answers(func(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		if request.GetSnapshot().GetNodeBuckets()[1].Data != nil {
			return planned("again"), nil
		}
		return nil, lacks(t, 1)
	})
	answer, err := ask(t, client, "a", "b")
	if err != nil || answer.Plan.GetPlanId() != "again" || answer.Request != 1 {
		t.Fatalf("got %v, %v", answer, err)
	}
	if asked := replica.asked(); inline(asked[1]) != "- -" || inline(asked[2]) != "- b" {
		t.Errorf("sent %q and %q", inline(asked[1]), inline(asked[2]))
	}
}

// A replica whose cache keeps nothing gets all buckets in the end, and is not evicted for that.
func TestAReplicaThatForgetsEverythingGetsEverything(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	client := newClient(t, []*fakeReplica{replica})
	if _, err := ask(t, client, "a", "b"); err != nil {
		t.Fatal(err)
	}
	turn := uint32(0)
	replica.answers(func(_ context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		if inline(request) == "a b" {
			return planned("at last"), nil
		}
		turn++
		// The answer to another workload makes the client believe that the replica has both buckets.
		members, _ := client.replicas.now()
		members[0].learn([]Digest{sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))})
		return nil, lacks(t, turn%2)
	})
	if answer, err := ask(t, client, "a", "b"); err != nil || answer.Plan.GetPlanId() != "at last" || turn != maxCorrections {
		t.Fatalf("got %v, %v after %d", answer, err, turn)
	}
}

func lacks(t *testing.T, indices ...uint32) error {
	t.Helper()
	said, err := status.New(codes.FailedPrecondition, "buckets").WithDetails(&nodewisev1.MissingBuckets{NodeBucketIndices: indices})
	if err != nil {
		t.Error(err)
	}
	return said.Err()
}

// Each kind of failure: which replicas are asked, how the call ends, and which replica is evicted.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, other func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error)
		answered     bool
		refused      bool
		isShunned    bool
	}{
		{name: "a wrong request", first: refuses(codes.InvalidArgument), refused: true},
		{name: "too large for one", first: refuses(codes.ResourceExhausted), answered: true},
		{name: "too large for two", first: refuses(codes.OutOfRange), other: refuses(codes.ResourceExhausted), refused: true},
		{name: "saturated", first: busy(t), answered: true},
		{name: "draining", first: refuses(codes.Unavailable), answered: true, isShunned: true},
		{name: "no replica at all", first: refuses(codes.Unimplemented), answered: true, isShunned: true},
		{name: "a defect of one", first: refuses(codes.Internal), answered: true, isShunned: true},
		{name: "a defect of two", first: refuses(codes.Internal), other: refuses(codes.Unknown)},
		{name: "one that hangs", first: hangs, answered: true, isShunned: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			replicas := three(t)
			client := newClient(t, replicas, WithTimeout(9*time.Second))
			first, others := home(replicas)
			testkit.Eventually(t, "all are known to serve", func() bool { return countReady(client) == 3 })
			first.answers(test.first)
			for _, other := range others {
				other.answers(test.other)
			}
			answer, err := ask(t, client, "a")
			var refused *RefusedError
			var unreachable *UnreachableError
			switch {
			case test.answered && (err != nil || answer.Plan.GetPlanId() == first.address):
				t.Errorf("got %v, %v", answer, err)
			case test.refused && !errors.As(err, &refused):
				t.Errorf("got %v, %v", answer, err)
			case !test.answered && !test.refused && !errors.As(err, &unreachable):
				t.Errorf("got %v, %v", answer, err)
			}
			own := replicaOf(client, first)
			// A probe may have made it ready again by now. The evictions are counted until it answers a call.
			if isShunned := own.probeDelay() > 0; isShunned != test.isShunned {
				t.Errorf("shunned: %t", isShunned)
			}
		})
	}
}

// busy answers as a saturated replica does.
func busy(t *testing.T) func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	t.Helper()
	exhausted, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		return nil, exhausted.Err()
	}
}

// replicaOf is the client's view of a replica.
func replicaOf(client *Client, of *fakeReplica) *replica {
	members, _ := client.replicas.now()
	return members[slices.IndexFunc(members, func(r *replica) bool { return r.address == of.address })]
}

func countReady(client *Client) int {
	members, _ := client.replicas.now()
	count := 0
	for _, member := range members {
		if state, _ := member.now(); state == ready {
			count++
		}
	}
	return count
}

// A draining replica says so and is asked last. A replica that is gone becomes ready again by a probe.
func TestHealthIsFollowed(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas)
	first, others := home(replicas)
	testkit.Eventually(t, "all serve", func() bool { return countReady(client) == 3 })
	first.serves(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	testkit.Eventually(t, "one drains", func() bool { return countReady(client) == 2 })
	if answer, err := ask(t, client, "a"); err != nil || answer.Plan.GetPlanId() == first.address {
		t.Fatalf("got %v, %v", answer, err)
	}
	first.server.Stop()
	for _, other := range others {
		other.server.Stop()
	}
	testkit.Eventually(t, "all are gone", func() bool { return countReady(client) == 0 && client.Health() != nil })
	if _, err := ask(t, client, "a"); err == nil {
		t.Fatal("somebody answered")
	}
	startReplica(t, first.address)
	testkit.Eventually(t, "one is back", func() bool { return countReady(client) == 1 && client.Health() == nil })
	if answer, err := ask(t, client, "a"); err != nil || answer.Plan.GetPlanId() != first.address {
		t.Fatalf("got %v, %v", answer, err)
	}
}

// A new replica of a headless Service is found although no connection breaks, and gets its share of the workloads.
func TestNewReplicasAreDiscovered(t *testing.T) {
	one := startReplica(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(one.address)
	if err != nil {
		t.Fatal(err)
	}
	two := startReplica(t, "127.0.0.2:"+port)
	var second atomic.Bool
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "planner.tools.svc" {
			t.Errorf("looked up %q", host)
		}
		addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		if second.Load() {
			addresses = append(addresses, netip.MustParseAddr("127.0.0.2"))
		}
		return addresses, nil
	}
	var mu sync.Mutex
	var logged []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(line, "have changed") {
			logged = append(logged, line)
		}
	}, funcr.Options{})
	changes := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(logged)
	}
	ctx := klog.NewContext(t.Context(), logger)
	client, err := New(ctx, []string{"dns:///planner.tools.svc:" + port}, WithPlaintext(), WithLookup(lookup),
		WithLookupPeriod(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	uids := []string{"u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"}
	askAll := func() {
		for _, uid := range uids {
			if _, err := client.Plan(t.Context(), uid, request("a")); err != nil {
				t.Fatal(err)
			}
		}
	}
	askAll()
	if len(two.asked()) > 0 {
		t.Fatal("it is not known yet")
	}
	if lines := changes(); len(lines) > 0 {
		t.Errorf("the first replica is no change: %q", lines)
	}
	second.Store(true)
	testkit.Eventually(t, "two are known", func() bool { members, _ := client.replicas.now(); return len(members) == 2 })
	askAll()
	own := slices.DeleteFunc(slices.Clone(uids), func(uid string) bool {
		return compareWeights(uid, two.address, one.address) > 0
	})
	if len(two.asked()) != len(own) {
		t.Errorf("%d of the %d that belong to it ask the new one", len(two.asked()), len(own))
	}
	second.Store(false)
	testkit.Eventually(t, "one is left", func() bool { members, _ := client.replicas.now(); return len(members) == 1 })
	askAll()
	lines := changes()
	if len(lines) != 2 || !strings.Contains(lines[0], `"replicas"=2 "came"=1 "gone"=0`) ||
		!strings.Contains(lines[1], `"replicas"=1 "came"=0 "gone"=1`) {
		t.Errorf("logged %q", lines)
	}
}

// The first answer is used, and the other call is cancelled.
func TestASlowReplicaIsHedged(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas, WithHedging(10*time.Millisecond))
	first, _ := home(replicas)
	first.answers(hangs)
	for range maxLostHedges {
		answer, err := ask(t, client, "a")
		if err != nil || answer.Plan.GetPlanId() == first.address {
			t.Fatalf("got %v, %v", answer, err)
		}
	}
	if replicaOf(client, first).probeDelay() == 0 {
		t.Error("one that hangs is never told from one that is slow")
	}
}

// A report is sent to each replica at most once.
func TestReports(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas)
	first, others := home(replicas)
	report := &nodewisev1.ReportRequest{Workload: &nodewisev1.WorkloadReference{Uid: "u1"}}
	fails := func(context.Context, *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return nil, status.Error(codes.Unavailable, "as told")
	}
	first.report = fails
	response, err := client.Report(t.Context(), report)
	if err != nil || response.GetMessage() == first.address {
		t.Fatalf("got %v, %v", response, err)
	}
	others[0].report, others[1].report = fails, fails
	var unreachable *UnreachableError
	if _, err = client.Report(t.Context(), report); !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
}

// A question for capabilities is sent to each replica at most once, and has a deadline.
func TestCapabilities(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas, WithTimeout(9*time.Second))
	testkit.Eventually(t, "all are known to serve", func() bool { return countReady(client) == 3 })
	ask := func() (*nodewisev1.GetCapabilitiesResponse, error) { return client.Capabilities(t.Context()) }
	for _, replica := range replicas[1:] {
		replica.answers(refuses(codes.Unavailable))
	}
	response, err := ask()
	if err != nil || response.GetEngineVersion() != replicas[0].address {
		t.Fatalf("got %v, %v", response, err)
	}
	replicas[0].answers(refuses(codes.Unavailable))
	var unreachable *UnreachableError
	before := len(replicas[0].asked())
	if _, err = ask(); !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
	if asked := len(replicas[0].asked()) - before; asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for _, replica := range replicas {
		replica.answers(hangs)
	}
	if _, err = ask(); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestCancelledCallsBlameNobody(t *testing.T) {
	replica := startReplica(t, "127.0.0.1:0")
	asked := make(chan struct{})
	replica.answers(func(ctx context.Context, request *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		asked <- struct{}{}
		return hangs(ctx, request)
	})
	client := newClient(t, []*fakeReplica{replica})
	for _, uid := range []string{"u1", "u2"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		if _, err := client.Plan(ctx, uid, request("a")); err == nil {
			t.Fatal("somebody answered")
		}
	}
	if members, _ := client.replicas.now(); members[0].probeDelay() > 0 {
		t.Error("it was evicted")
	}
}

func TestRequestsThatCannotBeBuiltAreNotSent(t *testing.T) {
	client := newClient(t, []*fakeReplica{startReplica(t, "127.0.0.1:0")})
	broken := errors.New("broken")
	_, err := client.Plan(t.Context(), "u1", func(Receiver) (*nodewisev1.PlanRequest, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// Each call carries the trace context.
func TestTracesArePropagated(t *testing.T) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	replica := startReplica(t, "127.0.0.1:0")
	parents := make(chan []string, 1)
	replica.answers(func(ctx context.Context, _ *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		received, _ := metadata.FromIncomingContext(ctx)
		parents <- received.Get("traceparent")
		return planned("x"), nil
	})
	client := newClient(t, []*fakeReplica{replica})
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	if _, err := client.Plan(trace.ContextWithSpanContext(t.Context(), span), "u1", request("a")); err != nil {
		t.Fatal(err)
	}
	if got := <-parents; len(got) != 1 || !strings.Contains(got[0], span.TraceID().String()) {
		t.Errorf("got %v", got)
	}
}
