package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// resourceOf returns the resource that an action names: that of the workload, of the workloads that it controls, or RolloutPolicies.
func (r *run) resourceOf(named *nodewisev1.GroupVersionResource) (cluster.Resource, *write.Error) {
	// Which plans may write a policy is checked before.
	known := []cluster.Resource{r.kind.Resource, cluster.RolloutPolicies}
	if r.kind.Controls != nil {
		known = append(known, r.kind.Controls.Resource)
	}
	for _, resource := range known {
		if resource.IsNamed(named) {
			return resource, nil
		}
	}
	return "", write.Unclear("this executor does not know the resource %q of %s/%s",
		named.GetResource(), named.GetGroup(), named.GetVersion())
}

// createObject creates an object. A taken name and a terminating namespace end the plan (P-27, P-28): its other actions depend on the new object.
func (r *run) createObject(ctx context.Context, action *nodewisev1.Action, create *nodewisev1.CreateObject) *done {
	resource, unknown := r.resourceOf(create.GetResource())
	if unknown != nil {
		return failed(action, unknown)
	}
	written, err := r.writer.Create(ctx, resource, r.workload.GetNamespace(), create.GetManifest())
	if err == nil {
		return recorded(action, resource, written)
	}
	refusal := write.AsError(err)
	switch refusal.Refusal {
	case write.AlreadyExists:
		colliding := r.colliding(ctx, resource, create.GetName())
		if colliding == nil {
			// The next plan needs the object that has the name.
			return failed(action, refusal).ending()
		}
		done := refused(action, nodewisev1.Result_RESULT_NAME_TAKEN, refusal).ending()
		done.colliding = colliding
		return done
	case write.NamespaceTerminating:
		return refused(action, nodewisev1.Result_RESULT_NAMESPACE_TERMINATING, refusal).ending()
	default:
		return failed(action, refusal)
	}
}

// patchObject patches an object once. A conflict is a failure: the plan after the next event decides anew.
func (r *run) patchObject(ctx context.Context, action *nodewisev1.Action, of *nodewisev1.PatchObject, failure string) *done {
	resource, wrong := r.resourceOf(of.GetResource())
	if wrong != nil {
		return failed(action, wrong)
	}
	patch := patching{resource: resource, object: of.GetObject(), subresource: of.GetSubresource(), isRecorded: true}
	if patch.patch, wrong = withFailure(of.GetPatch(), of.GetFailurePointer(), failure); wrong != nil {
		return failed(action, wrong)
	}
	if patch.subresource != "" && patch.subresource != "status" {
		return failed(action, write.Unclear("this executor does not know the subresource %q", patch.subresource))
	}
	switch of.GetPatchType() {
	case nodewisev1.PatchType_PATCH_TYPE_MERGE:
		patch.kind = types.MergePatchType
	case nodewisev1.PatchType_PATCH_TYPE_STRATEGIC_MERGE:
		patch.kind = types.StrategicMergePatchType
	default:
		return failed(action, write.Unclear("this executor does not know the patch_type %d", of.GetPatchType()))
	}
	switch of.GetClaim() {
	case nodewisev1.Claim_CLAIM_ADOPT:
		patch.gone = adoptGone
	case nodewisev1.Claim_CLAIM_RELEASE:
		patch.gone = releaseGone
	default:
	}
	return r.patch(ctx, action, patch)
}

// deleteObject deletes an object with its uid as a precondition.
func (r *run) deleteObject(ctx context.Context, action *nodewisev1.Action, remove *nodewisev1.DeleteObject) *done {
	resource, unknown := r.resourceOf(remove.GetResource())
	if unknown != nil {
		return failed(action, unknown)
	}
	preconditions := byUID(remove.GetObject())
	preconditions.ResourceVersion = remove.GetResourceVersion()
	return r.delete(ctx, action, resource, remove.GetObject(), preconditions)
}

// withFailure appends an error to the string at a JSON pointer in a patch. With an empty pointer the patch stays as it is.
func withFailure(patch []byte, pointer, failure string) ([]byte, *write.Error) {
	if pointer == "" {
		return patch, nil
	}
	parsed, err := rawjson.Parse(patch)
	if err != nil {
		return nil, write.Unclear("the action's patch cannot be read: %w", err)
	}
	at, set, err := stringAt(rawjson.Object(parsed), pointer)
	if err != nil {
		return nil, write.Unclear("the action's patch has no string at failure_pointer %q", pointer)
	}
	set(at + failure)
	written, err := json.Marshal(parsed)
	if err != nil {
		return nil, write.Unclear("writing the action's patch: %w", err)
	}
	return written, nil
}
