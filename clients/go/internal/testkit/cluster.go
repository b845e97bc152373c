package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Cluster is an apiserver in memory that is called over HTTP. It supports get, list, watch, create, and replacing a status.
type Cluster struct {
	// Refuses reports which requests are refused. It may be nil, and must be set before the first call.
	Refuses func(*http.Request) bool
	config  *rest.Config

	mu      sync.Mutex
	changed *sync.Cond
	version int
	objects map[string]map[string]any
	events  []clusterEvent
	writes  []string
	ended   bool
	// installed is the version of the custom resource, empty while it is not installed, and removals is how often it was removed.
	installed string
	removals  int
}

type clusterEvent struct {
	version        int
	resource, kind string
	object         map[string]any
}

// ListKinds are the kinds of lists, by resource.
var ListKinds = map[string]string{
	"daemonsets": "DaemonSetList", "replicasets": "ReplicaSetList", "deployments": "DeploymentList", "controllerrevisions": "ControllerRevisionList", "pods": "PodList", "nodes": "NodeList",
	customResource: "RolloutPolicyList",
}

// NewCluster starts an empty Cluster. It ends with the test.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	cluster := &Cluster{version: 100, objects: map[string]map[string]any{}}
	cluster.changed = sync.NewCond(&cluster.mu)
	server := httptest.NewServer(cluster)
	t.Cleanup(func() {
		cluster.mu.Lock()
		cluster.ended = true
		cluster.changed.Broadcast()
		cluster.mu.Unlock()
		server.CloseClientConnections()
		server.Close()
	})
	cluster.config = &rest.Config{Host: server.URL}
	return cluster
}

// Config is the configuration of a client of the Cluster.
func (c *Cluster) Config() *rest.Config { return c.config }

// Put creates or replaces an object, given as JSON.
func (c *Cluster) Put(t testing.TB, resource, text string) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(resource, object)
}

// Written are the writes over HTTP so far, such as "POST pods", in order and without Events.
func (c *Cluster) Written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

func (c *Cluster) keep(resource string, object map[string]any) {
	c.version++
	meta, _ := object["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(c.version)
	key := fmt.Sprint(resource, "/", meta["namespace"], "/", meta["name"])
	kind := "ADDED"
	if c.objects[key] != nil {
		kind = "MODIFIED"
	}
	c.objects[key] = object
	// A copy, since the object may change before a watch sends it.
	c.events = append(c.events, clusterEvent{c.version, resource, kind, runtime.DeepCopyJSON(object)})
	c.changed.Broadcast()
}

// ServeHTTP implements [http.Handler].
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	if custom, isCustom := strings.CutPrefix(path, customGroup); isCustom {
		rest, isOpen := c.servesCustom(w, custom)
		if !isOpen {
			return
		}
		path = rest
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/apis/apps/v1/"), "/api/v1/"), "/")
	namespace := ""
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	query := r.URL.Query()
	switch {
	case c.Refuses != nil && c.Refuses(r):
		Refuse(w, http.StatusForbidden, "Forbidden", "not yours")
	case r.Method != http.MethodGet:
		c.write(w, r, namespace, parts)
	case len(parts) > 1:
		c.mu.Lock()
		defer c.mu.Unlock()
		object := c.objects[fmt.Sprint(parts[0], "/", namespace, "/", parts[1])]
		if object == nil {
			Refuse(w, http.StatusNotFound, "NotFound", "no such object")
			return
		}
		_ = json.NewEncoder(w).Encode(object)
	case query.Get("sendInitialEvents") != "":
		Refuse(w, http.StatusUnprocessableEntity, "Invalid", "not known")
	case query.Get("watch") != "":
		c.watch(w, r, parts[0])
	default:
		c.list(w, r, parts[0])
	}
}

// isAskedFor reports whether the selector of a request matches.
func isAskedFor(r *http.Request, object map[string]any) bool {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	set := labels.Set{}
	meta, _ := object["metadata"].(map[string]any)
	own, _ := meta["labels"].(map[string]any)
	for name, value := range own {
		set[name] = fmt.Sprint(value)
	}
	return err == nil && selector.Matches(set)
}

func (c *Cluster) list(w http.ResponseWriter, r *http.Request, resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		if strings.HasPrefix(key, resource+"/") && isAskedFor(r, c.objects[key]) {
			items = append(items, c.objects[key])
		}
	}
	version := "v1"
	if rest, isGroup := strings.CutPrefix(r.URL.Path, "/apis/"); isGroup {
		version = strings.Join(strings.SplitN(rest, "/", 3)[:2], "/")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": ListKinds[resource], "apiVersion": version, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(c.version)},
	})
}

func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, resource string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	gone := r.Context().Done()
	go func() {
		<-gone
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	if resource == customResource && c.installed != customVersion {
		// It was removed since the request came.
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	removals := c.removals
	for at := 0; !c.ended && r.Context().Err() == nil && (resource != customResource || c.removals == removals); {
		for ; at < len(c.events); at++ {
			event := c.events[at]
			if event.resource != resource || event.version <= from {
				continue
			}
			kind, object := event.kind, event.object
			if !isAskedFor(r, object) {
				// As with bookmarks, which come from time to time.
				kind, object = "BOOKMARK", map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(event.version)}}
			}
			object = runtime.DeepCopyJSON(object)
			object["kind"], object["apiVersion"] = strings.TrimSuffix(ListKinds[resource], "List"), "v1"
			_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		}
		w.(http.Flusher).Flush()
		c.changed.Wait()
	}
}

func (c *Cluster) write(w http.ResponseWriter, r *http.Request, namespace string, parts []string) {
	var object map[string]any
	_ = json.NewDecoder(r.Body).Decode(&object)
	c.mu.Lock()
	defer c.mu.Unlock()
	if parts[0] == "events" {
		_, _ = fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}}`)
		return
	}
	meta, isObject := object["metadata"].(map[string]any)
	if !isObject || r.Method != http.MethodPost && r.Method != http.MethodPut {
		Refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "this apiserver creates objects and replaces statuses")
		return
	}
	c.writes = append(c.writes, r.Method+" "+strings.Join(parts, "/"))
	meta["namespace"] = namespace
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprint("uid-", c.version)
	}
	c.keep(parts[0], object)
	_ = json.NewEncoder(w).Encode(object)
}
