package served

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OtherVersionError says that an apiserver serves a resource only in other versions of its API group: it is installed, and its objects cannot be
// read.
type OtherVersionError struct {
	// Resource is the resource in the version that was asked for.
	Resource schema.GroupVersionResource
	// Served are the versions in which it is served.
	Served []string
}

// Error names the versions, and what to do.
func (e *OtherVersionError) Error() string {
	return fmt.Sprintf("%s are not served as %s, but as %s: this program does not know that version; upgrade it, or serve %s as well",
		e.Resource.Resource, e.Resource.GroupVersion(), strings.Join(e.Served, ", "), e.Resource.Version)
}

// IsInstalled reports whether the apiserver serves a resource, such as a custom one. Every authenticated user may ask that. If it serves the resource
// only in other versions, the error is an [*OtherVersionError].
func (c *Client) IsInstalled(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	isServed, err := c.serves(ctx, resource)
	if isServed || err != nil {
		return isServed, err
	}
	var group metav1.APIGroup
	if found, err := c.discover(ctx, &group, "/apis", resource.Group); !found || err != nil {
		return false, err
	}
	var others []string
	for _, version := range group.Versions {
		if version.Version == resource.Version || version.Version == "" {
			continue
		}
		other := resource.GroupResource().WithVersion(version.Version)
		isServed, err := c.serves(ctx, other)
		if err != nil {
			return false, err
		}
		if isServed {
			others = append(others, other.GroupVersion().String())
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return false, &OtherVersionError{Resource: resource, Served: others}
	}
	return false, nil
}

// serves reports whether a version of an API group has a resource.
func (c *Client) serves(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	var found metav1.APIResourceList
	if _, err := c.discover(ctx, &found, "/apis", resource.Group, resource.Version); err != nil {
		return false, err
	}
	return slices.ContainsFunc(found.APIResources, func(of metav1.APIResource) bool { return of.Name == resource.Resource }), nil
}

// discover reads what the apiserver tells of its API at a path. It returns false if there is nothing.
func (c *Client) discover(ctx context.Context, into any, path ...string) (bool, error) {
	text, err := c.rest.Get().AbsPath(path...).Do(ctx).Raw()
	if IsNotFound(err) {
		return false, nil
	}
	what := strings.Join(path, "/")
	if err != nil {
		return false, fmt.Errorf("asking what is installed at %s: %w", what, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("reading what is installed at %s: %w", what, err)
	}
	return true, nil
}
