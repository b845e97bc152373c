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
	// credentials are none until all options are known, and then those that secure nothing where none are given.
	credentials credentials.TransportCredentials
	// plaintext is whether somebody said that plain text may be spoken off loopback.
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

// WithTimeout sets the longest wait for a plan, whoever is asked in that time: 30 seconds if not set. Each attempt has a share
// of it, which the service is told: it abandons a plan whose deadline has passed.
func WithTimeout(timeout time.Duration) Option {
	return func(c *config) { c.timeout = timeout }
}

// WithHedging asks one more replica when a plan has not come after this time, and takes the first that comes. Not done if not
// set. A plan changes nothing, so that it may be asked for twice.
func WithHedging(after time.Duration) Option {
	return func(c *config) { c.hedgeAfter = after }
}

// WithMaxMessageBytes sets the largest answer that is taken: 64 MiB if not set.
func WithMaxMessageBytes(size int) Option {
	return func(c *config) { c.maxMessage = size }
}

// WithMaxPieceBytes sets the longest request that is sent in one message whatever the replica lacks: 32 MiB if not set. The buckets of a
// longer one are sent in several calls.
func WithMaxPieceBytes(size int) Option {
	return func(c *config) { c.maxPiece = size }
}

// WithMinAttempts sets the fewest attempts before a call fails: 3 if not set. There is at least one for each replica.
func WithMinAttempts(attempts int) Option {
	return func(c *config) { c.minAttempts = attempts }
}

// WithPauses sets the pause after every replica was tried once, which doubles with each further round, and the longest pause:
// 100 milliseconds and 2 seconds if not set.
func WithPauses(base, longest time.Duration) Option {
	return func(c *config) { c.basePause, c.maxPause = base, longest }
}

// WithLookupPeriod sets how often a name is looked up: every 10 seconds if not set, and besides whenever a replica fails.
func WithLookupPeriod(period time.Duration) Option {
	return func(c *config) { c.lookupPeriod = period }
}

// WithLookup sets how the addresses of a host are found; the system's resolver if not set.
func WithLookup(find func(ctx context.Context, host string) ([]netip.Addr, error)) Option {
	return func(c *config) { c.lookup = find }
}

// WithTransportCredentials sets how connections are secured, with credentials.NewTLS for example: not at all if not set, and then only
// servers on loopback are taken. Servers are written https://HOST:PORT or dns:///HOST:PORT with them, and have to prove that they are
// HOST, at whatever address the name is found, unless the credentials name another server.
func WithTransportCredentials(credentials credentials.TransportCredentials) Option {
	return func(c *config) { c.credentials = credentials }
}

// WithPlaintext speaks plain text also to servers that are not on loopback: where something else, such as a service mesh, protects the
// connections. Whoever stands in between could answer with a plan of his own otherwise.
func WithPlaintext() Option {
	return func(c *config) { c.plaintext = true }
}

// WithDialOptions adds options of gRPC to every connection. Credentials of the transport are not among them, but given with
// [WithTransportCredentials].
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, options...) }
}

// WithTracerProvider makes the spans of calls with this provider: with the global one if not set.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.tracers = provider }
}

// settle decides how connections are secured when all options are known.
func (c *config) settle() error {
	switch {
	case c.lookup == nil:
		return errors.New("WithLookup was given nil: leave the option out for the system's resolver")
	case c.tracers == nil:
		return errors.New("WithTracerProvider was given nil: leave the option out for the global provider")
	case c.credentials == nil:
		c.credentials = insecure.NewCredentials()
	case !c.isSecure():
		// Who gives credentials that secure nothing means plain text.
		c.plaintext = true
	case c.plaintext:
		return errors.New("WithPlaintext means no TLS, and there are transport credentials: leave one of them out")
	}
	return nil
}

// isSecure tells whether the credentials secure anything.
func (c *config) isSecure() bool {
	return c.credentials.Info().SecurityProtocol != insecure.NewCredentials().Info().SecurityProtocol
}
