// Package convert turns Kubernetes objects into what the protocol carries: projections of nodes and pods, DaemonSets and
// ControllerRevisions as JSON, and the buckets that nodes and pods travel in.
//
// Nothing is decided here, with one exception that the protocol asks for: the node that an unbound pod is meant for.
package convert

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldError says what is wrong with which field of which object.
type FieldError struct {
	// Kind of the object, for example Pod.
	Kind string
	// Namespace of the object; empty for a Node.
	Namespace string
	// Name of the object; empty when that is what is missing.
	Name string
	// Path of the field, for example metadata.uid.
	Path string
	// Reason, for people.
	Reason string
}

// Error names the object, the field and what is wrong with it.
func (e *FieldError) Error() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q: %s: %s", e.Kind, name, e.Path, e.Reason)
}

func missing(kind string, meta *metav1.ObjectMeta, path string) error {
	return &FieldError{Kind: kind, Namespace: meta.Namespace, Name: meta.Name, Path: path, Reason: "is missing"}
}
