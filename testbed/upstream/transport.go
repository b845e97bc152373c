package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// newClient returns a real client whose requests go to the API in their context. All runs share one client, because
// creating one takes longer than a sync.
func newClient() (kubernetes.Interface, error) {
	config := &rest.Config{
		Host: "http://api.invalid",
		// JSON, so that bodies can be read and compared.
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
		// No rate limit.
		QPS: -1,
	}
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: transport{}})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// withAPI makes the requests of a context go to this API.
func withAPI(ctx context.Context, a *api) context.Context {
	return context.WithValue(ctx, apiKey{}, a)
}

// apiKey is the context key of a run's API.
type apiKey struct{}

// transport passes each request to the API of its run.
type transport struct{}

func (transport) RoundTrip(request *http.Request) (*http.Response, error) {
	a, ok := request.Context().Value(apiKey{}).(*api)
	if !ok {
		return nil, errors.New("a request outside of a run")
	}
	var body []byte
	if request.Body != nil {
		defer request.Body.Close()
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, fmt.Errorf("reading the body of a request: %w", err)
		}
	}
	code, answer := a.serve(newCall(request, body))
	return &http.Response{
		StatusCode:    code,
		Status:        strconv.Itoa(code) + " " + http.StatusText(code),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body:          io.NopCloser(bytes.NewReader(answer)),
		ContentLength: int64(len(answer)),
		Request:       request,
	}, nil
}
