package apply

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// patching is an action that patches an object.
type patching struct {
	resource cluster.Resource
	object   *nodewisev1.ObjectReference
	kind     types.PatchType
	patch    []byte
	// subresource is empty for the object itself.
	subresource string
	// isRecorded is true if the caches must show the write before the next plan.
	isRecorded bool
	// gone are refusals that mean that the planned object does not exist any more. They are no error (D-23).
	gone []write.Refusal
}

var (
	adoptGone = []write.Refusal{write.NotFound}
	// The apiserver refuses a patch with a wrong uid with 422.
	releaseGone = []write.Refusal{write.NotFound, write.Invalid}
)

func patchOf(action *nodewisev1.Action) (patching, bool) {
	const merge, strategic = types.MergePatchType, types.StrategicMergePatchType
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_UpdateRevision:
		a := kind.UpdateRevision
		return patching{resource: cluster.Revisions, object: a.GetRevision(), kind: merge, patch: a.GetPatch()}, true
	case *nodewisev1.Action_AdoptRevision:
		a := kind.AdoptRevision
		return patching{resource: cluster.Revisions, object: a.GetRevision(), kind: strategic, patch: a.GetPatch(), gone: adoptGone}, true
	case *nodewisev1.Action_ReleaseRevision:
		a := kind.ReleaseRevision
		return patching{resource: cluster.Revisions, object: a.GetRevision(), kind: strategic, patch: a.GetPatch(), gone: releaseGone}, true
	case *nodewisev1.Action_AdoptPod:
		a := kind.AdoptPod
		return patching{resource: cluster.Pods, object: a.GetPod(), kind: strategic, patch: a.GetPatch(), gone: adoptGone, isRecorded: true}, true
	case *nodewisev1.Action_ReleasePod:
		a := kind.ReleasePod
		return patching{resource: cluster.Pods, object: a.GetPod(), kind: strategic, patch: a.GetPatch(), gone: releaseGone}, true
	case *nodewisev1.Action_RelabelPod:
		a := kind.RelabelPod
		return patching{resource: cluster.Pods, object: a.GetPod(), kind: merge, patch: a.GetPatch()}, true
	default:
		return patching{}, false
	}
}

func (r *run) patch(ctx context.Context, action *nodewisev1.Action, patch patching) *done {
	if patch.object == nil {
		return failed(action, write.Unclear("the action names no object"))
	}
	key := r.key(patch.resource, patch.object.GetName())
	written, err := r.writer.Patch(ctx, key, patch.subresource, patch.kind, patch.patch)
	if err == nil {
		if patch.isRecorded {
			return recorded(action, patch.resource, written)
		}
		return succeeded(action)
	}
	refusal := write.AsError(err)
	reason, message := sealOf(action, key, refusal)
	switch {
	// First, because a sealed revision is refused as invalid, too, although it is not gone.
	case reason != "":
		klog.FromContext(ctx).Info(message)
		r.emit(ctx, "Warning", reason, message)
		done := refused(action, nodewisev1.Result_RESULT_NOT_FOUND, refusal)
		// A pod that cannot be relabelled does not stop the plan: the next plan uses the label that the pod has.
		if action.GetRelabelPod() == nil {
			done.sealed = &key
		}
		return done
	case slices.Contains(patch.gone, refusal.Refusal):
		done := refused(action, nodewisev1.Result_RESULT_NOT_FOUND, refusal)
		if isAdoption(action) {
			done.vanished = &key
		}
		return done
	default:
		return failed(action, refusal)
	}
}

// sealOf returns the reason and the message of an Event if the apiserver refuses every change of the object; empty if it does not. That is
// checked for revisions, for objects to be adopted, and for pods to be relabelled: a plan is possible without changing these.
func sealOf(action *nodewisev1.Action, key write.Key, refusal *write.Error) (reason, message string) {
	isRevision := key.Resource == cluster.Revisions
	switch {
	case isRevision && isOfAnotherForm(refusal):
		return "SealedRevision", fmt.Sprintf("The API server refuses every change of %s, whose data was written in "+
			"another form than its own; it is left out and can be deleted", key)
	case (isRevision || isAdoption(action)) && isTooLarge(refusal):
		return "ObjectTooLarge", fmt.Sprintf("%s is too large to be changed, and is left out until it is smaller: %s", key, refusal.Message)
	case action.GetRelabelPod() != nil && isTooLarge(refusal):
		return "ObjectTooLarge", fmt.Sprintf("%s is too large to be changed, and keeps its label %s: %s",
			key, apps.ControllerRevisionHashLabelKey, refusal.Message)
	default:
		return "", ""
	}
}

// isTooLarge reports whether a write was refused because the object is too large: by the apiserver, by etcd, or by the apiserver's etcd
// client. The last two have no HTTP status of their own.
func isTooLarge(refusal *write.Error) bool {
	switch refusal.Status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusUnprocessableEntity:
		return strings.Contains(refusal.Message, ": Too long: ")
	case http.StatusInternalServerError:
		return strings.Contains(refusal.Message, "request is too large") ||
			strings.Contains(refusal.Message, "trying to send message larger than max")
	default:
		return false
	}
}

// isOfAnotherForm reports whether a patch of a revision was refused because of the revision's data, which no patch of a plan changes. When
// the apiserver writes an object again, it escapes <, > and & and leaves out blanks. For a strategic merge patch it also rewrites numbers and
// strings. If a client has stored the data in another form, the apiserver takes that for a change of the immutable data.
func isOfAnotherForm(refusal *write.Error) bool {
	if refusal.Refusal != write.Invalid {
		return false
	}
	_, errors, found := strings.Cut(refusal.Message, " is invalid: ")
	return found && (strings.HasPrefix(errors, "data: ") || strings.HasPrefix(errors, "[data: ") ||
		strings.Contains(errors, ", data: "))
}
