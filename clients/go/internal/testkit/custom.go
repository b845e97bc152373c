package testkit

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

const (
	// customGroup is the path of the API group of the custom resource, customVersion the version that clients know, and customResource its name.
	customGroup, customVersion = "/apis/nodewise.dev", "v1alpha1"
	customResource             = "rolloutpolicies"
)

// Install installs or removes the custom resource RolloutPolicy. Its objects are gone when it is removed, and its watches end.
func (c *Cluster) Install(t testing.TB, isInstalled bool) {
	t.Helper()
	c.InstallAs(t, map[bool]string{true: customVersion}[isInstalled])
}

// InstallAs is Install for a version of the custom resource, or for none if the version is empty.
func (c *Cluster) InstallAs(t testing.TB, version string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installed = version
	if version != customVersion {
		c.removals++
		maps.DeleteFunc(c.objects, func(key string, _ map[string]any) bool { return strings.HasPrefix(key, customResource+"/") })
		c.changed.Broadcast()
	}
}

// servesCustom answers a request for the API group of the custom resource. It reports whether the request is about objects and still has no answer,
// and returns what the path has after the version. An API that is not installed is answered as an apiserver does: with the code 404 and a text.
func (c *Cluster) servesCustom(w http.ResponseWriter, path string) (rest string, isOpen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest, isServed := strings.CutPrefix(path, "/"+c.installed)
	switch {
	case c.installed != "" && path == "":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "APIGroup", "apiVersion": "v1", "name": "nodewise.dev",
			"versions": []any{map[string]any{"groupVersion": "nodewise.dev/" + c.installed, "version": c.installed}},
		})
		return "", false
	case c.installed == "" || !isServed:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, "404 page not found", http.StatusNotFound)
		return "", false
	case rest == "":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "nodewise.dev/" + c.installed,
			"resources": []any{map[string]any{"name": customResource, "kind": "RolloutPolicy", "namespaced": true}},
		})
		return "", false
	default:
		return strings.TrimPrefix(rest, "/"), true
	}
}
