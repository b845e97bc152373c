package testkit

import (
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"nodewise.dev/clients/go/nodewisev1"
)

// Serve starts a gRPC server for a planning service, with a health service that reports SERVING, and returns its address for clients. It ends with
// the test.
func Serve(t testing.TB, service nodewisev1.ReconcileServiceServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, healthy := grpc.NewServer(), health.NewServer()
	nodewisev1.RegisterReconcileServiceServer(server, service)
	healthy.SetServingStatus(nodewisev1.ReconcileService_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}
