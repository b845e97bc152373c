package planclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// serving starts a gRPC server, and returns its address.
func serving(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// refusing is a service that refuses every plan with this error.
type refusing struct {
	nodewisev1.UnimplementedReconcileServiceServer
	err error
}

func (r refusing) Plan(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	return nil, r.err
}

func healthy(server *grpc.Server) {
	told := health.NewServer()
	told.SetServingStatus(nodewisev1.ReconcileService_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, told)
}

func nothing(*grpc.Server) {}

func build(planclient.Receiver) (*nodewisev1.PlanRequest, error) {
	return &nodewisev1.PlanRequest{}, nil
}

func dial(t *testing.T, server string, options ...planclient.Option) *planclient.Client {
	t.Helper()
	client, err := planclient.New(t.Context(), []string{server}, append(options, planclient.WithPauses(time.Millisecond, time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// When a client reaches another server than a planning service, one sentence says what to change. It is in the error of a call and, if there
// is no health service, in that of Health.
func TestMistakesInTheAddressAreSaidInFull(t *testing.T) {
	issued := httptest.NewTLSServer(nil)
	t.Cleanup(issued.Close)
	overTLS := serving(t, nothing, grpc.Creds(credentials.NewServerTLSFromCert(&issued.TLS.Certificates[0])))
	plain, hasHealthOnly := serving(t, nothing), serving(t, healthy)
	anyTLS := planclient.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))
	nobody := planclient.WithDialOptions(grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		return nil, errors.New("nobody listens")
	}))
	for _, test := range []struct {
		name, server string
		options      []planclient.Option
		want         string
		isServing    bool
	}{
		{
			name: "plain text at a TLS port", server: "http://" + overTLS,
			want: "does not speak gRPC in plain text: check the port, and if it speaks TLS, write https://" + overTLS +
				" and give credentials with WithTransportCredentials",
		},
		{
			name: "plain text at a TLS port that a name leads to", server: "dns:///" + overTLS,
			want: "does not speak gRPC in plain text: check the port, and if it speaks TLS, give credentials with WithTransportCredentials",
		},
		{
			name: "TLS at a port of plain text", server: "https://" + plain, options: []planclient.Option{anyTLS},
			want: "does not speak TLS: check the port, and if it speaks plain text, write http://" + plain + " and leave WithTransportCredentials out",
		},
		{
			name: "another gRPC server", server: "http://" + plain,
			want: "Unimplemented: unknown service nodewise.v1.ReconcileService; what listens there is no nodewise-server, or one of another " +
				"version: check the address, and the version of the server",
		},
		{
			name: "a server that has health and no plans", server: "http://" + hasHealthOnly, isServing: true,
			want: "is no nodewise-server, or one of another version",
		},
		{
			name: "no port", server: "http://localhost", options: []planclient.Option{nobody},
			want: "no port was written, so this was 80: write that of the planning service, which is 7443 where nothing else was set",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := dial(t, test.server, test.options...)
			_, err := client.Plan(t.Context(), "u", build)
			var away *planclient.UnreachableError
			if !errors.As(err, &away) || !strings.Contains(err.Error(), test.want) || status.Code(err) == codes.Unknown {
				t.Errorf("got %v", err)
			}
			if !test.isServing {
				// The health check of another gRPC server names the missing health service instead.
				want := strings.TrimPrefix(test.want, "Unimplemented: unknown service nodewise.v1.ReconcileService; ")
				testkit.Eventually(t, "Health says so", func() bool { err := client.Health(); return err != nil && strings.Contains(err.Error(), want) })
			}
		})
	}
}

// The error of an invalid address says what to write.
func TestAddressesWithoutAPortAreRefusedWithWhatToWrite(t *testing.T) {
	for server, want := range map[string]string{
		"dns:///planner.tools.svc": "the port is missing: write dns:///planner.tools.svc:7443, or another port",
		"planner:7443":             "must be http://HOST:PORT, https://HOST:PORT or dns:///HOST:PORT",
		"planner":                  "a nodewise-server listens on port 7443 where nothing else was set",
	} {
		if _, err := planclient.New(t.Context(), []string{server}, planclient.WithPlaintext()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", server, err)
		}
	}
}

// Messages have no duplicate parts, whatever proxies and gRPC wrap around them.
func TestMessagesSayThingsOnce(t *testing.T) {
	proxied := status.Error(codes.Unavailable, status.Error(codes.Unavailable, "the backend is gone").Error())
	unknown := planclient.WithLookup(func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") })
	for server, want := range map[string]string{
		testkit.Serve(t, refusing{err: proxied}): "Unavailable: the backend is gone",
		"http://127.0.0.1:1":                     "Unavailable: transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused",
		"dns:///planner.tools.svc:7443":          "no replica of the planning service answered: no such host",
	} {
		client := dial(t, server, planclient.WithPlaintext(), planclient.WithTimeout(time.Second), unknown)
		_, err := client.Plan(t.Context(), "u", build)
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "desc =") ||
			strings.Count(err.Error(), "no replica of the planning service") != 1 {
			t.Errorf("%s: got %v", server, err)
		}
	}
}

// Messages of a server may be of any content and length.
func TestMessagesAreOnOneLineAndCut(t *testing.T) {
	said, err := status.New(codes.InvalidArgument, "one\ntwo"+strings.Repeat("x", 5000)).WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "f", Description: "three\n" + strings.Repeat("y", 5000)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dial(t, testkit.Serve(t, refusing{err: said.Err()})).Plan(t.Context(), "u", build)
	if err == nil || !strings.Contains(err.Error(), `one\ntwoxxx`) || !strings.Contains(err.Error(), `three\nyyy`) || len(err.Error()) > 2200 {
		t.Errorf("got %v", err)
	}
}

// The error of a call wraps its gRPC status and the error of the context.
func TestErrorsCanBeTold(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.Unavailable, codes.PermissionDenied} {
		client := dial(t, testkit.Serve(t, refusing{err: status.Error(code, "as told")}))
		if _, err := client.Plan(t.Context(), "u", build); status.Code(err) != code {
			t.Errorf("got %v, want the code %s", err, code)
		}
	}
	client := dial(t, "http://127.0.0.1:1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Plan(ctx, "u", build); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAClientMayBeClosedTwice(t *testing.T) {
	client := dial(t, "http://127.0.0.1:1")
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
