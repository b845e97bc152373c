// Package write writes to the apiserver. Objects are raw JSON, so that no field is lost because a library is older than the apiserver. Package
// apply decides what a refused write means for a plan.
package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

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

// Preconditions are what an object must have to be deleted. An empty member is no precondition.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Written is the result of a successful write.
type Written struct {
	// Name is the name of the object, which the apiserver may have generated.
	Name string
	// ResourceVersion is the version after the write; empty if nothing was written.
	ResourceVersion string
}

// Event is a Kubernetes Event about a workload, or about a RolloutPolicy.
type Event struct {
	// Workload is the object. Its kind decides the version of the API.
	Workload              *nodewisev1.WorkloadReference
	Type, Reason, Message string
}

// Blocked is an eviction that a PodDisruptionBudget does not allow now. The pod stays.
type Blocked struct {
	// Message is the apiserver's message, which names the budget, shortened by package brief.
	Message string
	// RetryAfter is when to ask again; 0 if the apiserver does not say so.
	RetryAfter time.Duration
}

// Writer has the calls that applying a plan needs. Implementations do not retry, and every call has a timeout. Errors are [*Error].
type Writer interface {
	// Writes is false if writes have no effect. Then no watch will show what a plan expects.
	Writes() bool
	// Create creates an object.
	Create(ctx context.Context, resource cluster.Resource, namespace string, manifest []byte) (Written, error)
	// Patch patches an object, or one of its subresources.
	Patch(ctx context.Context, key Key, subresource string, kind types.PatchType, patch []byte) (Written, error)
	// Delete deletes an object gracefully, if it meets the preconditions.
	Delete(ctx context.Context, key Key, preconditions Preconditions) error
	// Evict deletes a pod of this uid, if no PodDisruptionBudget forbids that. If one does, the result is not nil, and there is no error.
	Evict(ctx context.Context, key Key, uid types.UID) (*Blocked, error)
	// ReplaceStatus replaces the status subresource. The object has a resourceVersion, so that the apiserver refuses an outdated one.
	ReplaceStatus(ctx context.Context, key Key, object []byte) (Written, error)
	// Read reads an object from the apiserver.
	Read(ctx context.Context, key Key) ([]byte, error)
	// EachRevision lists the ControllerRevisions of a namespace, and calls take with each.
	EachRevision(ctx context.Context, namespace string, take func(*served.Object)) error
	// Emit emits an Event. It does not block and returns no error. The Event may be dropped.
	Emit(ctx context.Context, event Event)
}

// Refusal is why the apiserver refused a write, as far as a plan depends on it.
type Refusal int

const (
	// Other is anything else, including timeouts and broken connections, after which the write may have succeeded.
	Other Refusal = iota
	// AlreadyExists is a 409 with the reason AlreadyExists.
	AlreadyExists
	// Conflict is any other 409: a precondition failed.
	Conflict
	// NotFound is a 404.
	NotFound
	// Invalid is a 422.
	Invalid
	// NamespaceTerminating is any status with the cause NamespaceTerminating.
	NamespaceTerminating
)

// Error is the error of a call.
type Error struct {
	Refusal Refusal
	// Status is the HTTP status of the response; 0 without a response.
	Status int
	// Message is the apiserver's message, or the error of the connection, shortened by package brief.
	Message string
	cause   error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of client-go; nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// IsUnclear reports whether the write may have succeeded despite the error: there was no response, or a response with a status of 500 or above.
func (e *Error) IsUnclear() bool { return e.Status == 0 || e.Status >= http.StatusInternalServerError }

// Unclear makes an error without a response of an apiserver.
func Unclear(format string, arguments ...any) *Error {
	cause := fmt.Errorf(format, arguments...)
	return &Error{Message: brief.Text(cause.Error()), cause: cause}
}

// AsError converts an error of client-go.
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
