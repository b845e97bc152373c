// Package convert converts Kubernetes objects to messages of the protocol: projections of nodes and pods, DaemonSets and ControllerRevisions as
// JSON, and buckets of nodes and pods.
//
// It makes no decisions, with one exception that the protocol requires: it finds the node that an unbound pod is meant for.
package convert

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldError says that a field of an object is wrong.
type FieldError struct {
	// Kind is the kind of the object, for example Pod.
	Kind string
	// Namespace is the namespace of the object; empty for a Node.
	Namespace string
	// Name is the name of the object; empty if the name is missing.
	Name string
	// Path is the path of the field, for example metadata.uid.
	Path string
	// Reason says what is wrong, for people.
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
