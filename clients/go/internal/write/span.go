package write

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
)

// Values of error.type for a call without a response.
const (
	errorTimeout    = "timeout"
	errorCancelled  = "cancelled"
	errorConnection = "connection"
)

// call is a call to the apiserver, with the values for its span.
type call struct {
	request *rest.Request
	method  string
	// about is the object of the call. Without a name the call is about the collection.
	about Key
	// subresource is empty for the object itself.
	subresource string
	// manifest is the object to create; nil for other calls.
	manifest []byte
}

// template is the path of the call with placeholders.
func (c *call) template() string {
	path := root(c.about.Resource) + "/namespaces/{namespace}/" + string(c.about.Resource)
	if c.about.Name != "" {
		path += "/{name}"
	}
	if c.subresource != "" {
		path += "/" + c.subresource
	}
	return path
}

// start begins the span of the call, by the semantic conventions for HTTP clients, if the context has a span.
func (c *call) start(ctx context.Context) (context.Context, trace.Span) {
	if !traces.IsOn(ctx) {
		return ctx, trace.SpanFromContext(ctx)
	}
	template := c.template()
	ctx, span := traces.Start(ctx, c.method+" "+template, trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, span
	}
	url := c.request.URL()
	span.SetAttributes(
		semconv.HTTPRequestMethodKey.String(c.method),
		semconv.URLTemplate(template),
		semconv.URLFull(url.Redacted()),
		semconv.ServerAddress(url.Hostname()),
		semconv.K8SNamespaceName(c.about.Namespace),
	)
	port := url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[url.Scheme]
	}
	if number, err := strconv.Atoi(port); err == nil {
		span.SetAttributes(semconv.ServerPort(number))
	}
	c.setPod(span, c.manifest)
	return ctx, span
}

// end sets the result of the call. The status is 0 without a response.
func (c *call) end(span trace.Span, status int, answer []byte, err error) {
	if !span.IsRecording() {
		return
	}
	if status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	if err == nil {
		c.setPod(span, answer)
		return
	}
	kind := strconv.Itoa(status)
	if status < http.StatusBadRequest {
		kind = breakage(err)
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, err.Error())
}

// setPod sets the name of the pod, if the call is about one. The name of a new pod is read from the manifest, or from the response if the
// apiserver has generated it.
func (c *call) setPod(span trace.Span, object []byte) {
	if c.about.Resource != cluster.Pods {
		return
	}
	name := c.about.Name
	if name == "" {
		// If the name cannot be read, the span has none.
		read, _ := metadataOf(object)
		name = read.Name
	}
	if name != "" {
		span.SetAttributes(semconv.K8SPodName(name))
	}
}

// breakage returns the error.type of a call without a response.
func breakage(err error) string {
	var wire net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return errorCancelled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &wire) && wire.Timeout():
		return errorTimeout
	default:
		return errorConnection
	}
}
