package analysis_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// answering is a server that answers each call with this status and body, and records the last one.
type answering struct {
	*httptest.Server
	status int
	body   string
	header http.Header
	asked  *http.Request
	sent   string
}

func serve(t *testing.T) *answering {
	t.Helper()
	made := &answering{status: 200, header: http.Header{}}
	made.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		made.asked, made.sent = r, string(body)
		for name, values := range made.header {
			w.Header()[name] = values
		}
		w.WriteHeader(made.status)
		_, _ = io.WriteString(w, made.body)
	}))
	t.Cleanup(made.Close)
	return made
}

func (a *answering) host() string { return strings.TrimPrefix(a.URL, "http://") }

func calls(t *testing.T, settings analysis.Settings) *analysis.Calls {
	t.Helper()
	made, err := analysis.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func query(address string) *analysis.Request {
	return &analysis.Request{Measure: &nodewisev1.Measure{Provider: &nodewisev1.Measure_Prometheus{
		Prometheus: &nodewisev1.PrometheusQuery{Address: address, Query: "rate(errors[5m]) + 1"},
	}}}
}

func webhook(url string) *analysis.Request {
	return &analysis.Request{Status: []byte(`{"name":"agent"}`), Measure: &nodewisev1.Measure{
		Provider: &nodewisev1.Measure_Webhook{Webhook: &nodewisev1.WebhookCall{Url: url}},
	}}
}

func verdictCall(address string) *analysis.Request {
	return &analysis.Request{Measure: &nodewisev1.Measure{Provider: &nodewisev1.Measure_VerdictService{
		VerdictService: &nodewisev1.VerdictCall{Address: address},
	}}}
}

func requireError(t *testing.T, made *analysis.Calls, request *analysis.Request, part string) {
	t.Helper()
	measured, err := made.Measure(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, %v, want an error with %q", measured, err, part)
	}
}

// L-32: only the very hosts are called that the operator allows.
func TestOnlyAllowedHostsAreCalled(t *testing.T) {
	server := serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{"Prometheus:9090", "checks", "[::1]:80=token", "checks"}})
	if hosts := made.Hosts(); !slices.Equal(hosts, []string{"[::1]:80", "checks", "prometheus:9090"}) {
		t.Errorf("the hosts are %v", hosts)
	}
	for _, request := range []*analysis.Request{
		query(server.URL), webhook(server.URL), verdictCall(server.host()), query("http://prometheus"),
	} {
		requireError(t, made, request, "may not call")
	}
	for text, part := range map[string]string{
		"ftp://checks": "must begin with", "http://u:p@checks": "with a user", "http://": "is no host", "checks": "must begin with",
	} {
		requireError(t, made, webhook(text), part)
	}
	requireError(t, made, verdictCall("checks"), "is not HOST:PORT")
	if server.asked != nil {
		t.Error("the server was called")
	}
	if _, err := analysis.New(analysis.Settings{Hosts: []string{"checks", "http://a"}}); err == nil {
		t.Error("a URL is accepted as a host")
	}
}

// L-31: the value is that of the only sample, or the list of the values of several.
func TestPrometheus(t *testing.T) {
	server := serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{server.host()}})
	vector := func(samples ...string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
	}
	sample := func(text string) string { return `{"metric":{"a":"b"},"value":[1435781451.781,"` + text + `"]}` }
	for body, want := range map[string]string{
		vector(sample("0.5")):              "0.5",
		vector(sample("0"), sample("1e3")): "[0,1000]",
		`{"status":"success","warnings":["PromQL info: x"],"data":{"resultType":"scalar","result":[1,"2"]}}`: "2",
	} {
		server.body = body
		measured, err := made.Measure(t.Context(), query(server.URL+"/prometheus/"))
		if err != nil || measured.GetValue() != want {
			t.Errorf("%s: got %v, %v", body, measured, err)
		}
	}
	form, err := url.ParseQuery(server.sent)
	if err != nil || form.Get("query") != "rate(errors[5m]) + 1" || form.Get("timeout") != "10000ms" || server.asked.URL.Path != "/prometheus/api/v1/query" {
		t.Errorf("asked for %s with %s", server.asked.URL, server.sent)
	}
	for body, part := range map[string]string{
		vector():                       "no series matches",
		vector(sample("NaN")):          "is NaN",
		vector(sample("+Inf")):         "is +Inf",
		vector(sample("x")):            "no number",
		vector(`{"metric":{"a":"b"}}`): "is a histogram",
		"<html>":                       "not that of a Prometheus",
		"{}":                           "not that of a Prometheus",
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`:                                     "gives a matrix",
		`{"status":"success","warnings":["store x is gone"],"data":{"resultType":"scalar","result":[1,"2"]}}`: "store x is gone",
	} {
		server.body = body
		requireError(t, made, query(server.URL), part)
	}
	server.status, server.body = 400, `{"status":"error","errorType":"bad_data","error":"parse error at char 3"}`
	requireError(t, made, query(server.URL), "bad_data: parse error at char 3")
	requireError(t, made, query(server.URL+"?a=b"), "has no query")
}

// A webhook gets the policy's status of the workload, and answers with a verdict or a value.
func TestWebhooks(t *testing.T) {
	server := serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{server.host()}})
	for body, want := range map[string]string{
		`{"errors": 0}`: `{"errors": 0}`, "": "null", " 3 ": "3", "ok\n": `"ok"`, `{"verdict": 3}`: `{"verdict": 3}`,
	} {
		server.body = body
		measured, err := made.Measure(t.Context(), webhook(server.URL+"/check?x=1"))
		if err != nil || measured.GetValue() != want || !json.Valid([]byte(measured.GetValue())) {
			t.Errorf("%s: got %v, %v", body, measured, err)
		}
	}
	if server.sent != `{"name":"agent"}` || server.asked.Method != http.MethodPost || server.asked.URL.String() != "/check?x=1" {
		t.Errorf("sent %s to %s", server.sent, server.asked.URL)
	}
	for name, want := range map[string]string{"pass": "PASS", "fail": "FAIL", "inconclusive": "INCONCLUSIVE"} {
		server.body = `{"verdict": "` + name + `", "message": "so it is"}`
		measured, err := made.Measure(t.Context(), webhook(server.URL))
		got := measured.GetVerdict()
		if err != nil || got.GetVerdict().String() != "ANALYSIS_VERDICT_"+want || got.GetMessage() != "so it is" {
			t.Errorf("%s: got %v, %v", name, measured, err)
		}
	}
	server.body = `{"verdict": "maybe"}`
	requireError(t, made, webhook(server.URL), `"maybe"`)
}

// L-32: no redirect is followed, and time and answers are limited.
func TestCallsAreLimited(t *testing.T) {
	other, server := serve(t), serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{"127.0.0.1"}})
	server.status = http.StatusTemporaryRedirect
	server.header.Set("Location", other.URL)
	requireError(t, made, webhook(server.URL), "no redirect is followed")
	if other.asked != nil {
		t.Error("the redirect was followed")
	}
	server.status, server.body = 200, strings.Repeat("1", 1<<20+1)
	requireError(t, made, webhook(server.URL), "longer than 1048576 bytes")
	server.status, server.body = 500, "oops"
	requireError(t, made, webhook(server.URL), "500 Internal Server Error")
	// The kernel takes connections to it, and nobody answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	host := silent.Addr().String()
	brief := calls(t, analysis.Settings{Hosts: []string{"127.0.0.1"}, Timeout: 10 * time.Millisecond})
	requireError(t, brief, webhook("http://"+host+"/secret"), "no answer within 10ms")
	requireError(t, brief, verdictCall(host), "the VerdictService at 127.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := made.Measure(ctx, webhook("http://"+host)); err == nil {
		t.Error("it goes on after the end of the context")
	}
	_ = silent.Close()
	measured, err := made.Measure(t.Context(), webhook("http://"+host+"/secret"))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "the webhook at 127.0.0.1") {
		t.Errorf("got %v, %v", measured, err)
	}
}

// L-32: a credential is a file of the operator, and goes only to the host for which it is allowed.
func TestCredentials(t *testing.T) {
	folder, server := t.TempDir(), serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{server.host() + "=prom", "checks=other"}, Credentials: folder})
	request := webhook(server.URL)
	request.Credential = "prom"
	requireError(t, made, request, "no such file")
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(folder, "prom"), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := made.Measure(t.Context(), request); err != nil || server.asked.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("sent %q: %v", server.asked.Header.Get("Authorization"), err)
		}
	}
	for _, odd := range []string{"", "secret\nsecret", strings.Repeat("secret", 4000)} {
		if err := os.WriteFile(filepath.Join(folder, "prom"), []byte(odd), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := made.Measure(t.Context(), request); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.10q: got %v", odd, err)
		}
	}
	request.Credential = "other"
	requireError(t, made, request, "may not be sent there")
	plain := webhook("http://checks/x")
	plain.Credential = "other"
	requireError(t, made, plain, "not sent in plain text")
	nowhere := calls(t, analysis.Settings{Hosts: []string{server.host() + "=prom"}})
	request.Credential = "prom"
	requireError(t, nowhere, request, "no folder")
}

// hanging is a server that answers under the path /hang only when the test is over, and counts such calls.
func hanging(t *testing.T) (server *httptest.Server, underWay *atomic.Int32) {
	t.Helper()
	underWay, over := &atomic.Int32{}, make(chan struct{})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/hang" {
			underWay.Add(1)
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "1")
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server, underWay
}

// A call that takes longer than the interval of its check is of no use.
func TestTheIntervalOfTheCheckLimitsTheTime(t *testing.T) {
	server, _ := hanging(t)
	made := calls(t, analysis.Settings{Hosts: []string{"127.0.0.1"}, Timeout: time.Minute})
	request := webhook(server.URL + "/hang")
	request.Interval = 20 * time.Millisecond
	requireError(t, made, request, "no answer within 20ms")
	prometheus := serve(t)
	prometheus.body = `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`
	for interval, want := range map[time.Duration]string{0: "60000ms", 5 * time.Second: "5000ms", time.Hour: "60000ms"} {
		request := query(prometheus.URL)
		request.Interval = interval
		if _, err := made.Measure(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if form, err := url.ParseQuery(prometheus.sent); err != nil || form.Get("timeout") != want {
			t.Errorf("%s: sent %s", interval, prometheus.sent)
		}
	}
}

// Slow hosts of one namespace do not stop the measurements of others.
func TestSlowHostsOfANamespaceStopNoOther(t *testing.T) {
	server, underWay := hanging(t)
	made := calls(t, analysis.Settings{Hosts: []string{"127.0.0.1"}, Timeout: time.Minute})
	of := func(namespace, check, path string) *analysis.Request {
		request := webhook(server.URL + path)
		request.Id = &nodewisev1.MeasurementId{PolicyUid: namespace, Check: check}
		request.Workload = &nodewisev1.WorkloadReference{Namespace: namespace}
		return request
	}
	ctx, cancel := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	for number := range 40 {
		slow.Go(func() { _, _ = made.Measure(ctx, of("slow", strconv.Itoa(number), "/hang")) })
	}
	testkit.Eventually(t, "the namespace has its share", func() bool { return underWay.Load() == 4 })
	measured, err := made.Measure(t.Context(), of("other", "c", "/"))
	if err != nil || measured.GetValue() != "1" || underWay.Load() != 4 {
		t.Errorf("got %v, %v beside %d calls", measured, err, underWay.Load())
	}
	cancel()
	slow.Wait()
	if measured, err := made.Measure(t.Context(), of("slow", "0", "/")); err != nil || measured.GetValue() != "1" {
		t.Errorf("the turns were not given back: %v, %v", measured, err)
	}
}

// The service takes values of 64 KiB, whatever is read of an answer.
func TestValuesAreLimited(t *testing.T) {
	server := serve(t)
	made := calls(t, analysis.Settings{Hosts: []string{server.host()}})
	server.body = strings.Repeat("1", 64<<10)
	if measured, err := made.Measure(t.Context(), webhook(server.URL)); err != nil || measured.GetValue() != server.body {
		t.Errorf("a value of 64 KiB: %v", err)
	}
	sample := `{"metric":{},"value":[1,"12345.5"]}`
	for _, body := range []string{
		strings.Repeat("1", 64<<10+1), "\"" + strings.Repeat("x", 64<<10) + "\"", `{"verdict":"pass","message":"` + strings.Repeat("x", 64<<10) + `"}`,
	} {
		server.body = body
		requireError(t, made, webhook(server.URL), "the value has "+strconv.Itoa(len(body))+" bytes, and 65536 are allowed")
	}
	// A character may take more bytes in JSON.
	server.body = strings.Repeat("\n", 10) + "x" + strings.Repeat("\n", 40<<10) + "x"
	requireError(t, made, webhook(server.URL), "bytes, and 65536 are allowed")
	server.body = `{"status":"success","data":{"resultType":"vector","result":[` + sample + strings.Repeat(","+sample, 9_999) + `]}}`
	requireError(t, made, query(server.URL), "the value has 80001 bytes, and 65536 are allowed")
}
