package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/nodewisev1"
)

// An executor asks the service over gRPC, and its verdict follows the endpoint.
func TestTheVerdictFollowsTheEndpoint(t *testing.T) {
	var status atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer endpoint.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, endpoint.URL) }()
	calls, err := analysis.New(analysis.Settings{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := &analysis.Request{
		Measure: &nodewisev1.Measure{Provider: &nodewisev1.Measure_VerdictService{
			VerdictService: &nodewisev1.VerdictCall{Address: listener.Addr().String()},
		}},
		Workload: &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: "ns", Name: "agent"},
		Status:   []byte("{}"),
	}
	requireVerdict := func(want nodewisev1.AnalysisVerdict, message string) {
		t.Helper()
		measured, err := calls.Measure(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := measured.GetVerdict(); got.GetVerdict() != want || !strings.Contains(got.GetMessage(), message) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	status.Store(http.StatusNoContent)
	requireVerdict(nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_PASS, "204")
	status.Store(http.StatusServiceUnavailable)
	requireVerdict(nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_FAIL, "503")
	endpoint.Close()
	requireVerdict(nodewisev1.AnalysisVerdict_ANALYSIS_VERDICT_INCONCLUSIVE, "refused")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
