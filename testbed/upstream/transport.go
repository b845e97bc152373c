package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// newClient returns a real client whose requests go to the API in use. All runs share one client, because creating one
// takes longer than a sync.
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

// inUse is the API of the present run. Runs follow one another. It is not in the context of requests, because upstream
// makes some with a context of its own.
var inUse atomic.Pointer[api]

// transport passes each request to the API in use.
type transport struct{}

func (transport) RoundTrip(request *http.Request) (*http.Response, error) {
	a := inUse.Load()
	if a == nil {
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
