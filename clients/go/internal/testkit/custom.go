package testkit

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

const (
	// customAPI is the path of the API of the custom resource, and customResource its name.
	customAPI      = "/apis/nodewise.dev/v1alpha1"
	customResource = "rolloutpolicies"
)

// Install installs or removes the custom resource RolloutPolicy. Its objects are gone when it is removed, and its watches end.
func (c *Cluster) Install(t testing.TB, isInstalled bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installed = isInstalled
	if !isInstalled {
		c.removals++
		maps.DeleteFunc(c.objects, func(key string, _ map[string]any) bool { return strings.HasPrefix(key, customResource+"/") })
		c.changed.Broadcast()
	}
}

// servesCustom answers a request for the API of the custom resource, and reports whether it is about objects and still has no answer. An API that
// is not installed is answered as an apiserver does: with the code 404 and a text.
func (c *Cluster) servesCustom(w http.ResponseWriter, rest string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.installed:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, "404 page not found", http.StatusNotFound)
		return false
	case rest == "":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "nodewise.dev/v1alpha1",
			"resources": []any{map[string]any{"name": customResource, "kind": "RolloutPolicy", "namespaced": true}},
		})
		return false
	default:
		return true
	}
}
