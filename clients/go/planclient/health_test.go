package planclient

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// scriptedHealth is a health service whose responses the test sends, probe by probe.
type scriptedHealth struct {
	grpc_health_v1.UnimplementedHealthServer
	// probes are the probes under way. Each waits for its response.
	probes chan chan<- error
}

func (h *scriptedHealth) Watch(_ *grpc_health_v1.HealthCheckRequest, watch grpc_health_v1.Health_WatchServer) error {
	answer := make(chan error, 1)
	select {
	case h.probes <- answer:
	case <-watch.Context().Done():
		return nil
	}
	select {
	case err := <-answer:
		if err != nil {
			return err
		}
	case <-watch.Context().Done():
		return nil
	}
	if err := watch.Send(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}); err != nil {
		return err
	}
	<-watch.Context().Done()
	return nil
}

// next returns the next probe.
func (h *scriptedHealth) next(t *testing.T) chan<- error {
	t.Helper()
	select {
	case probe := <-h.probes:
		return probe
	case <-time.After(20 * time.Second):
		t.Fatal("it is not probed")
		return nil
	}
}

// If a call fails while a probe is under way, the response to the probe may be older than the failure: another probe decides.
func TestAProbeFromBeforeACallFailedDoesNotReadmit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	health := &scriptedHealth{probes: make(chan chan<- error)}
	fake := &fakeReplica{address: listener.Addr().String(), server: grpc.NewServer()}
	fake.answers(refuses(codes.Unavailable))
	nodewisev1.RegisterReconcileServiceServer(fake.server, fake)
	grpc_health_v1.RegisterHealthServer(fake.server, health)
	go func() { _ = fake.server.Serve(listener) }()
	t.Cleanup(fake.server.Stop)
	client := newClient(t, []*fakeReplica{fake}, WithMinAttempts(1))
	members, _ := client.replicas.now()
	own := members[0]

	// A probe evicts the replica, and a call fails while the next probe is under way.
	health.next(t) <- status.Error(codes.Unavailable, "not yet")
	second := health.next(t)
	if _, err := ask(t, client, "a"); err == nil {
		t.Fatal("it answered")
	}
	second <- nil
	third := health.next(t)
	if own.isEligible() {
		t.Error("it was readmitted by what it said before the call failed")
	}
	third <- nil
	testkit.Eventually(t, "it is back", own.isEligible)
}
