package apply_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"nodewise.dev/clients/go/internal/write"
)

// apiserver answers each call as scripted, by "VERB path", and records the calls.
type apiserver struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	bodies map[string]string
	says   map[string][]answer
	events chan string
}

type answer struct {
	code int
	body any
}

func ok(name, version string) answer {
	return answer{200, map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
		"metadata": map[string]any{"name": name, "resourceVersion": version},
	}}
}

func refusal(code int, reason, message string, causes ...string) answer {
	details := &metav1.StatusDetails{}
	for _, cause := range causes {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseType(cause)})
	}
	return answer{code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
		Code: int32(code), Reason: metav1.StatusReason(reason), Message: message, Details: details,
	}}
}

func start(t *testing.T, says map[string][]answer) (*apiserver, *write.Kube) {
	t.Helper()
	server := &apiserver{says: says, bodies: map[string]string{}}
	server.Server = httptest.NewServer(http.HandlerFunc(server.serve))
	t.Cleanup(server.Close)
	recorder := record.NewFakeRecorder(100)
	server.events = recorder.Events
	config := &rest.Config{Host: server.URL, QPS: -1}
	kube, err := write.NewKube(config, server.Client(), "tester", 20*time.Second, recorder)
	if err != nil {
		t.Fatal(err)
	}
	return server, kube
}

func (s *apiserver) serve(w http.ResponseWriter, r *http.Request) {
	line := r.Method + " " + r.URL.Path
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, line)
	s.bodies[line] = string(body)
	said := answer{404, refusal(404, "NotFound", "nothing is said of "+line).body}
	if answers := s.says[line]; len(answers) > 0 {
		said = answers[0]
		if len(answers) > 1 {
			s.says[line] = answers[1:]
		}
	}
	s.mu.Unlock()
	if said.code == 0 {
		panic(http.ErrAbortHandler) // The connection breaks.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(said.code)
	_ = json.NewEncoder(w).Encode(said.body)
}

// lines are the calls so far.
func (s *apiserver) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// body is the body of the last call.
func (s *apiserver) body(line string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[line]
}

func (s *apiserver) said() []string {
	close(s.events)
	var events []string
	for event := range s.events {
		events = append(events, event)
	}
	return events
}
