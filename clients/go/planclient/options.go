package planclient

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Option changes how a client works.
type Option func(*config)

type config struct {
	timeout      time.Duration
	hedgeAfter   time.Duration
	maxMessage   int
	maxPiece     int
	minAttempts  int
	basePause    time.Duration
	maxPause     time.Duration
	lookupPeriod time.Duration
	lookup       lookup
	// credentials are nil if none are given. [config.settle] then sets those of plain text.
	credentials credentials.TransportCredentials
	// plaintext allows plain text to servers that are not on loopback.
	plaintext bool
	dial      []grpc.DialOption
	tracers   trace.TracerProvider
}

// lookup finds the addresses of a host.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func defaults() config {
	return config{
		timeout:      30 * time.Second,
		maxMessage:   64 << 20,
		maxPiece:     32 << 20,
		minAttempts:  3,
		basePause:    100 * time.Millisecond,
		maxPause:     2 * time.Second,
		lookupPeriod: 10 * time.Second,
		lookup:       systemLookup,
		tracers:      otel.GetTracerProvider(),
	}
}

// WithTimeout sets the longest time of a call, over all attempts: 30 seconds if not set. Each attempt gets a share of it as its gRPC
// deadline. The service abandons a plan whose deadline has passed.
func WithTimeout(timeout time.Duration) Option {
	return func(c *config) { c.timeout = timeout }
}

// WithHedging asks one more replica when a plan or an explanation has not come after this time, and takes the first answer. Without the
// option the client does not hedge. A plan changes nothing, so asking twice is safe.
func WithHedging(after time.Duration) Option {
	return func(c *config) { c.hedgeAfter = after }
}

// WithMaxMessageBytes sets the largest response that the client accepts: 64 MiB if not set.
func WithMaxMessageBytes(size int) Option {
	return func(c *config) { c.maxMessage = size }
}

// WithMaxPieceBytes sets the largest request that is sent in one message: 32 MiB if not set. The buckets of a larger request are sent in
// several calls.
func WithMaxPieceBytes(size int) Option {
	return func(c *config) { c.maxPiece = size }
}

// WithMinAttempts sets the fewest attempts before a call fails: 3 if not set. Each replica gets at least one attempt.
func WithMinAttempts(attempts int) Option {
	return func(c *config) { c.minAttempts = attempts }
}

// WithPauses sets the pause after every replica was asked once, and the longest pause: 100 milliseconds and 2 seconds if not set. The pause
// doubles with each further round.
func WithPauses(base, longest time.Duration) Option {
	return func(c *config) { c.basePause, c.maxPause = base, longest }
}

// WithLookupPeriod sets how often a name is looked up: every 10 seconds if not set. It is also looked up whenever a replica fails.
func WithLookupPeriod(period time.Duration) Option {
	return func(c *config) { c.lookupPeriod = period }
}

// WithLookup sets how the addresses of a host are found; the system's resolver if not set.
func WithLookup(find func(ctx context.Context, host string) ([]netip.Addr, error)) Option {
	return func(c *config) { c.lookup = find }
}

// WithTransportCredentials sets how connections are secured, for example with credentials.NewTLS. Without the option connections are plain
// text, and only servers on loopback are accepted. With it, servers are written https://HOST:PORT or dns:///HOST:PORT. The certificate of
// each replica must be one for HOST, unless the credentials name another server.
func WithTransportCredentials(credentials credentials.TransportCredentials) Option {
	return func(c *config) { c.credentials = credentials }
}

// WithPlaintext allows plain text to servers that are not on loopback. Use it where something else, such as a service mesh, protects the
// connections: on an unprotected connection an attacker on the network could answer with a plan of their own.
func WithPlaintext() Option {
	return func(c *config) { c.plaintext = true }
}

// WithDialOptions adds gRPC dial options to every connection. Transport credentials are ignored here: give them with
// [WithTransportCredentials].
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, options...) }
}

// WithTracerProvider sets the provider of the spans of calls: the global one if not set.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.tracers = provider }
}

// settle checks the options, and decides how connections are secured.
func (c *config) settle() error {
	switch {
	case c.lookup == nil:
		return errors.New("WithLookup was given nil: leave the option out for the system's resolver")
	case c.tracers == nil:
		return errors.New("WithTracerProvider was given nil: leave the option out for the global provider")
	case c.credentials == nil:
		c.credentials = insecure.NewCredentials()
	case !c.isSecure():
		// Insecure credentials mean plain text.
		c.plaintext = true
	case c.plaintext:
		return errors.New("WithPlaintext means no TLS, and there are transport credentials: leave one of them out")
	}
	return nil
}

// isSecure reports whether the credentials secure connections.
func (c *config) isSecure() bool {
	return c.credentials.Info().SecurityProtocol != insecure.NewCredentials().Info().SecurityProtocol
}
