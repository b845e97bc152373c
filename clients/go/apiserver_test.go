package nodewise

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/internal/testkit"
)

// apiserver is an apiserver with one DaemonSet, its revision and some nodes. Its watches show nothing. The test decides what happens to
// creates.
type apiserver struct {
	// creates answers each request to create a pod.
	creates http.HandlerFunc
	// nodes are the names of its nodes.
	nodes []string
	// refuses reports which requests are refused; nil for none.
	refuses func(*http.Request) bool
}

func (a *apiserver) start(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL}
}

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// Read the whole request: only then the server notices that the client closes the connection.
	_, _ = io.Copy(io.Discard, r.Body)
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	query := r.URL.Query()
	switch {
	case a.refuses != nil && a.refuses(r):
		testkit.Refuse(w, http.StatusForbidden, "Forbidden", "not yours")
	case r.Method == http.MethodPost && resource == "pods":
		a.creates(w, r)
	case r.Method != http.MethodGet:
		_, _ = fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}}`)
	case query.Get("sendInitialEvents") != "":
		testkit.Refuse(w, http.StatusUnprocessableEntity, "Invalid", "not known")
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		items, version := "", "v1"
		switch resource {
		case "nodes":
			nodes := make([]string, len(a.nodes))
			for i, name := range a.nodes {
				nodes[i] = fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q,"resourceVersion":"1"}}`, name, name)
			}
			items = strings.Join(nodes, ",")
		case "controllerrevisions":
			items = `{"metadata":{"namespace":"ns","name":"agent-h1","uid":"r1","resourceVersion":"5","labels":{"controller-revision-hash":"h1"},
				"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]},"revision":1}`
		case "daemonsets":
			items = `{"metadata":{"namespace":"ns","name":"agent","uid":"d1","resourceVersion":"5"},"spec":{"template":
				{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"a","image":"agent:1"}]}}}}`
		}
		if strings.Contains(r.URL.Path, "/pods/") {
			_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":%q,"uid":"u","ownerReferences":
				[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]}}`, resource)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/apis/nodewise.dev/") {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/apis/") {
			version = "apps/v1"
		}
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"9"},"items":[%s]}`,
			testkit.ListKinds[resource], version, items)
	}
}
