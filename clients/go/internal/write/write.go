// Package write is how writes reach a cluster: the verbs of the apiserver over raw JSON, so that no field is lost to an older
// library. It owns no policy: what a refused write means for a plan is decided in package apply.
package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// Key names one object of a cluster.
type Key struct {
	Resource        cluster.Resource
	Namespace, Name string
}

// String is for people.
func (k Key) String() string {
	return fmt.Sprintf("%s %s/%s", k.Resource, k.Namespace, k.Name)
}

// Written is what a successful write left behind.
type Written struct {
	// Name of the object, which the apiserver may have generated.
	Name string
	// ResourceVersion after the write. Empty when nothing was written.
	ResourceVersion string
}

// Event is a Kubernetes Event about a workload.
type Event struct {
	Workload              *nodewisev1.WorkloadReference
	Type, Reason, Message string
}

// Writer has the verbs that applying a plan needs. Implementations do not retry, and bound every call in time. Errors are
// [*Error].
type Writer interface {
	// Writes is false when writes have no effect. Then nothing that a plan expects will ever show up in a watch.
	Writes() bool
	// Create posts a manifest.
	Create(ctx context.Context, resource cluster.Resource, namespace string, manifest []byte) (Written, error)
	// Patch patches an object.
	Patch(ctx context.Context, key Key, kind types.PatchType, patch []byte) (Written, error)
	// Delete deletes an object gracefully; with a uid only that very object.
	Delete(ctx context.Context, key Key, uid types.UID) error
	// ReplaceStatus puts the status subresource. The object carries its resourceVersion, so that a stale one is refused.
	ReplaceStatus(ctx context.Context, key Key, object []byte) (Written, error)
	// Read gets an object as it is now.
	Read(ctx context.Context, key Key) ([]byte, error)
	// EachRevision lists the ControllerRevisions of a namespace as they are now, and gives out one after the other.
	EachRevision(ctx context.Context, namespace string, take func(*served.Object)) error
	// Emit emits an Event: it never blocks and never fails, and may be dropped.
	Emit(ctx context.Context, event Event)
}

// Refusal is why the apiserver refused, as far as it matters to a plan.
type Refusal int

const (
	// Other is anything else, timeouts and broken connections included: the write may have happened.
	Other Refusal = iota
	// AlreadyExists is a 409 with that reason.
	AlreadyExists
	// Conflict is any other 409: a precondition does not hold.
	Conflict
	// NotFound is a 404.
	NotFound
	// Invalid is a 422.
	Invalid
	// NamespaceTerminating is any status with that cause.
	NamespaceTerminating
)

// Error is a call that did not succeed.
type Error struct {
	Refusal Refusal
	// Status is the HTTP status of the answer; 0 when there was none.
	Status int
	// Message is the apiserver's, or what broke the call, on one line and cut: see package brief.
	Message string
	cause   error
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Unwrap is the error of client-go, if there was one.
func (e *Error) Unwrap() error { return e.cause }

// IsUnclear tells whether the write may have been done all the same: there was no answer, or the apiserver gave up on it.
func (e *Error) IsUnclear() bool { return e.Status == 0 || e.Status >= http.StatusInternalServerError }

// Unclear is an error without an answer from an apiserver.
func Unclear(format string, arguments ...any) *Error {
	cause := fmt.Errorf(format, arguments...)
	return &Error{Message: brief.Text(cause.Error()), cause: cause}
}

// AsError finds out what an error of client-go says.
func AsError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return &Error{Message: brief.Text(err.Error()), cause: err}
	}
	said := status.Status()
	return &Error{Refusal: refusal(&said), Status: int(said.Code), Message: brief.Text(said.Message), cause: err}
}

func refusal(status *metav1.Status) Refusal {
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == corev1.NamespaceTerminatingCause {
				return NamespaceTerminating
			}
		}
	}
	switch {
	case status.Code == http.StatusConflict && status.Reason == metav1.StatusReasonAlreadyExists:
		return AlreadyExists
	case status.Code == http.StatusConflict:
		return Conflict
	case status.Code == http.StatusNotFound:
		return NotFound
	case status.Code == http.StatusUnprocessableEntity:
		return Invalid
	default:
		return Other
	}
}
