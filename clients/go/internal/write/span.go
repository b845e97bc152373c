package write

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
)

// What error.type says of a call without an answer.
const (
	errorTimeout    = "timeout"
	errorCancelled  = "cancelled"
	errorConnection = "connection"
)

// call is a call to the apiserver, and what its span tells of it.
type call struct {
	request *rest.Request
	method  string
	// about is whom the call is about. Without a name it is about the collection.
	about Key
	// subresource is empty for the object itself.
	subresource string
	// manifest is the object that is created, if one is.
	manifest []byte
}

// template is the call's path with placeholders.
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

// start begins the span of the call, by the conventions for HTTP clients, if there is one that it belongs to.
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
	c.tellPod(span, c.manifest)
	return ctx, span
}

// end tells what became of the call: the status of the answer, 0 without one.
func (c *call) end(span trace.Span, status int, answer []byte, err error) {
	if !span.IsRecording() {
		return
	}
	if status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	if err == nil {
		c.tellPod(span, answer)
		return
	}
	kind := strconv.Itoa(status)
	if status < http.StatusBadRequest {
		kind = breakage(err)
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, err.Error())
}

// tellPod tells the name of the pod, if the call is about one: for a new one that of its manifest, or else the one that the apiserver
// made and answers with.
func (c *call) tellPod(span trace.Span, object []byte) {
	if c.about.Resource != cluster.Pods {
		return
	}
	name := c.about.Name
	if name == "" {
		name = nameOf(object)
	}
	if name != "" {
		span.SetAttributes(semconv.K8SPodName(name))
	}
}

// breakage is what kind of error kept an answer away.
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

// nameOf is the name in an object's metadata; empty if it has none.
func nameOf(object []byte) string {
	var read metav1.PartialObjectMetadata
	if json.Unmarshal(object, &read) != nil {
		return ""
	}
	return read.Name
}
