package planclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// trusting returns the credentials of a server with a certificate for example.com and 127.0.0.1, and of clients that trust it and expect this
// server name, if there is one.
func trusting(t *testing.T, name string) (server, client credentials.TransportCredentials) {
	t.Helper()
	issued := httptest.NewTLSServer(nil)
	defer issued.Close()
	roots := x509.NewCertPool()
	roots.AddCert(issued.Certificate())
	return credentials.NewServerTLSFromCert(&issued.TLS.Certificates[0]), credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: name})
}

// A server over TLS needs a certificate for its host, also if its name has many addresses.
func TestServersOverTLSProveWhoTheyAre(t *testing.T) {
	ofServer, ofClient := trusting(t, "")
	_, named := trusting(t, "example.com")
	replica := startReplica(t, "127.0.0.2:0", grpc.Creds(ofServer))
	_, port, err := net.SplitHostPort(replica.address)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
	}
	stranger := credentials.NewTLS(&tls.Config{RootCAs: x509.NewCertPool()})
	for _, test := range []struct {
		server      string
		credentials credentials.TransportCredentials
		proves      bool
	}{
		{"dns:///example.com:" + port, ofClient, true},
		{"dns:///other.test:" + port, ofClient, false},
		{"https://127.0.0.2:" + port, ofClient, false},
		{"https://127.0.0.2:" + port, named, true},
		{"dns:///example.com:" + port, stranger, false},
	} {
		client, err := New(t.Context(), []string{test.server}, WithLookup(lookup), WithTransportCredentials(test.credentials))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ask(t, client, "a")
		_ = client.Close()
		if (err == nil) != test.proves || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: got %v", test.server, err)
		}
	}
}

// Each kind of server without credentials, with WithPlaintext, and with secure and insecure credentials.
func TestPlainTextIsSpokenOnLoopbackOrWhenAskedFor(t *testing.T) {
	_, ofClient := trusting(t, "")
	for _, test := range []struct {
		server     string
		isLoopback bool
	}{
		{"http://127.0.0.1:7443", true},
		{"http://127.8.9.1:7443", true},
		{"http://[::1]:7443", true},
		{"http://localhost:7443", true},
		{"http://LocalHost", true},
		{"dns:///127.0.0.1:7443", true},
		{"dns:///[::1]:7443", true},
		{"dns:localhost:7443", true},
		{"http://10.0.0.1:7443", false},
		{"http://0.0.0.0:7443", false},
		{"http://[fd00::1]:7443", false},
		{"http://[::ffff:127.0.0.1]:7443", false},
		{"http://planner:7443", false},
		{"http://localhost.example:7443", false},
		{"http://127.0.0.1.example:7443", false},
		{"dns:///10.0.0.1:7443", false},
		{"dns:///planner.tools.svc:7443", false},
	} {
		plain := insecure.NewCredentials()
		for _, options := range [][]Option{{WithPlaintext()}, {WithTransportCredentials(plain)}, {WithPlaintext(), WithTransportCredentials(plain)}} {
			if err := made(t, options, test.server); err != nil {
				t.Errorf("%s: got %v", test.server, err)
			}
		}
		err := made(t, nil, "http://127.0.0.1:1", test.server)
		if (err == nil) != test.isLoopback {
			t.Errorf("%s: got %v", test.server, err)
		}
		err = made(t, []Option{WithTransportCredentials(ofClient), WithPlaintext()}, test.server)
		if err == nil || !strings.Contains(err.Error(), "WithPlaintext means no TLS") {
			t.Errorf("%s with both: got %v", test.server, err)
		}
	}
	if err := made(t, []Option{WithTransportCredentials(ofClient)}, "dns:///planner.tools.svc:7443"); err != nil {
		t.Error(err)
	}
}

// Options that are not set have defaults, and options that were given nil are named in the error.
func TestOptionsOfNothing(t *testing.T) {
	const server = "http://127.0.0.1:1"
	if err := made(t, []Option{nil}, server); err != nil {
		t.Error(err)
	}
	for want, option := range map[string]Option{
		"WithLookup was given nil": WithLookup(nil), "WithTracerProvider was given nil": WithTracerProvider(nil),
	} {
		if err := made(t, []Option{option}, server); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The error names the server, what is wrong with it, and what to write.
func TestWhatIsRefusedIsSaidInFull(t *testing.T) {
	for server, want := range map[string]string{
		"http://planner:7443": "http://planner:7443 is not on loopback, and would be asked in plain text: write https://planner:7443 and " +
			"give credentials with WithTransportCredentials, or WithPlaintext where something else protects it",
		"dns:///planner.tools.svc:7443": "dns:///planner.tools.svc:7443 is not on loopback, and would be asked in plain text: " +
			"give credentials with WithTransportCredentials, or WithPlaintext where something else protects it",
	} {
		if err := made(t, nil, server); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// made returns the error of making a client.
func made(t *testing.T, options []Option, servers ...string) error {
	t.Helper()
	nobody := func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	client, err := New(t.Context(), servers, append([]Option{WithLookup(nobody)}, options...)...)
	if err != nil {
		return err
	}
	return client.Close()
}

// A server that is written https is never called in plain text, whatever the options.
func TestHTTPSIsNeverPlainText(t *testing.T) {
	_, ofClient := trusting(t, "")
	plain := insecure.NewCredentials()
	for _, test := range []struct {
		server  string
		options []Option
		wrong   string
	}{
		{"https://planner.example:7443", nil, "https://planner.example:7443 asks for TLS"},
		{"https://planner.example:7443", []Option{WithTransportCredentials(plain)}, "http://planner.example:7443 for plain text"},
		{"https://planner.example:7443", []Option{WithDialOptions(grpc.WithTransportCredentials(ofClient))}, "WithTransportCredentials"},
		{"http://planner.example:7443", []Option{WithTransportCredentials(ofClient)}, "https://planner.example:7443 for TLS"},
		{"https://planner.example:7443", []Option{WithTransportCredentials(ofClient)}, ""},
		{"http://planner.example:7443", []Option{WithTransportCredentials(plain)}, ""},
	} {
		client, err := New(t.Context(), []string{test.server}, test.options...)
		switch {
		case err == nil:
			_ = client.Close()
			if test.wrong != "" {
				t.Errorf("%s: it was taken", test.server)
			}
		case test.wrong == "" || !strings.Contains(err.Error(), test.wrong):
			t.Errorf("%s: got %v", test.server, err)
		}
	}
	// A dial option must not make the client call a replica over TLS in plain text.
	ofServer, ofClient := trusting(t, "")
	replica := startReplica(t, "127.0.0.1:0", grpc.Creds(ofServer))
	client, err := New(t.Context(), []string{"https://" + replica.address}, WithTransportCredentials(ofClient),
		WithDialOptions(grpc.WithTransportCredentials(plain)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if _, err := ask(t, client, "a"); err != nil {
		t.Error(err)
	}
}
