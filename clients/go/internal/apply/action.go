package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// run is the application of one plan.
type run struct {
	writer   write.Writer
	workload *nodewisev1.WorkloadReference
	// kind is the kind of the workload.
	kind     *cluster.Kind
	settings Settings
	// parent is the trace context for the annotation of pods that the current batch creates; empty for none.
	parent string
	// object is the workload in the snapshot.
	object []byte
	// manifest is the manifest of the plan's pods. manifestError says why it cannot be read.
	manifest      *Manifest
	manifestError error
}

func newRun(writer write.Writer, plan *nodewisev1.Plan, kind *cluster.Kind, object []byte, settings Settings) *run {
	manifest, err := ParseManifest(plan)
	return &run{
		writer: writer, workload: plan.GetWorkload(), kind: kind, settings: settings, object: object, manifest: manifest, manifestError: err,
	}
}

// action executes one action, and emits the Events that follow it. The argument failure is the first error of the plan so far.
func (r *run) action(ctx context.Context, action *nodewisev1.Action, failure string) *done {
	done := r.execute(ctx, action, failure)
	switch result := done.outcome.GetResult(); {
	case result == nodewisev1.Result_RESULT_SUCCEEDED:
		objects := []*nodewisev1.WorkloadReference{r.workload}
		if policy := r.patchedPolicy(action); policy != nil {
			objects = append(objects, policy)
		}
		for _, event := range action.GetSuccessEvents() {
			for _, object := range objects {
				r.writer.Emit(ctx, write.Event{
					Workload: object, Type: event.GetType(), Reason: event.GetReason(), Message: event.GetMessage(),
				})
			}
		}
	// An action that ends the plan says nothing about the object, and the next plan decides anew.
	case IsFailure(result) && !done.endsPlan && action.GetFailureEvent() != nil:
		event := action.GetFailureEvent()
		r.emit(ctx, event.GetType(), event.GetReason(), event.GetMessage()+": "+done.outcome.GetMessage())
	default:
	}
	return done
}

func (r *run) execute(ctx context.Context, action *nodewisev1.Action, failure string) *done {
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_CreateRevision:
		return r.createRevision(ctx, action, kind.CreateRevision)
	case *nodewisev1.Action_DeleteRevision:
		return r.deleteRevision(ctx, action, kind.DeleteRevision)
	case *nodewisev1.Action_CreatePod:
		return r.createPod(ctx, action, kind.CreatePod)
	case *nodewisev1.Action_DeletePod:
		return r.deletePod(ctx, action, kind.DeletePod)
	case *nodewisev1.Action_EvictPod:
		return r.evictPod(ctx, action, kind.EvictPod)
	case *nodewisev1.Action_Measure:
		if r.writer.Writes() && r.settings.Measure != nil {
			r.settings.Measure(kind.Measure)
		}
		return succeeded(action)
	case *nodewisev1.Action_UpdateStatus:
		return r.updateStatus(ctx, action, kind.UpdateStatus)
	case *nodewisev1.Action_EmitEvent:
		r.emit(ctx, kind.EmitEvent.GetType(), kind.EmitEvent.GetReason(), kind.EmitEvent.GetMessage())
		return succeeded(action)
	case *nodewisev1.Action_CreateObject:
		return r.createObject(ctx, action, kind.CreateObject)
	case *nodewisev1.Action_PatchObject:
		return r.patchObject(ctx, action, kind.PatchObject, failure)
	case *nodewisev1.Action_DeleteObject:
		return r.deleteObject(ctx, action, kind.DeleteObject)
	default:
		if patch, isPatch := patchOf(action); isPatch {
			return r.patch(ctx, action, patch)
		}
		return failed(action, write.Unclear("this executor does not know this kind of action"))
	}
}

func (r *run) key(resource cluster.Resource, name string) write.Key {
	return write.Key{Resource: resource, Namespace: r.workload.GetNamespace(), Name: name}
}

// workloadKey is the key of the workload.
func (r *run) workloadKey() (write.Key, *write.Error) {
	if r.workload.GetKind() != r.kind.Name {
		return write.Key{}, write.Unclear("the plan is for a workload of kind %q, and not for a %s", r.workload.GetKind(), r.kind.Name)
	}
	return r.key(r.kind.Resource, r.workload.GetName()), nil
}

// readWorkload reads the workload from the apiserver. It returns an error if that is another object than the one that was planned for: an
// object that was created again under the same name must not get the status or the pods of its predecessor.
func (r *run) readWorkload(ctx context.Context) ([]byte, *served.Object, *write.Error) {
	key, wrong := r.workloadKey()
	if wrong != nil {
		return nil, nil, wrong
	}
	live, err := r.writer.Read(ctx, key)
	if err != nil {
		return nil, nil, write.AsError(err)
	}
	object, err := served.Parse(live)
	if err != nil {
		return nil, nil, write.Unclear("reading %s: %w", key, err)
	}
	if string(object.UID) != r.workload.GetUid() {
		return nil, nil, write.Unclear("%s is another object now: planned for uid %s, found %s",
			key, r.workload.GetUid(), object.UID)
	}
	return live, object, nil
}

// confirmWorkload returns an error if the workload is gone or being deleted. It is called before adoptions (D-27) and creates.
func (r *run) confirmWorkload(ctx context.Context) *write.Error {
	_, live, err := r.readWorkload(ctx)
	if err != nil {
		return err
	}
	if live.DeletionTimestamp != nil {
		return write.Unclear("%s %s/%s is being deleted since %s", r.workload.GetKind(), r.workload.GetNamespace(),
			r.workload.GetName(), live.DeletionTimestamp.Format(time.RFC3339))
	}
	return nil
}

func (r *run) createRevision(ctx context.Context, action *nodewisev1.Action, create *nodewisev1.CreateRevision) *done {
	_, err := r.writer.Create(ctx, cluster.Revisions, r.workload.GetNamespace(), create.GetManifest())
	if err == nil {
		done := succeeded(action)
		done.created = create.GetName()
		return done
	}
	refusal := write.AsError(err)
	done := failed(action, refusal)
	if refusal.Refusal == write.AlreadyExists {
		// The next plan needs the existing object. If it cannot be read now, the retry finds it again.
		done.colliding = r.colliding(ctx, cluster.Revisions, create.GetName())
	}
	return done
}

// colliding returns the existing object that has the name of a new one; nil if it cannot be read.
func (r *run) colliding(ctx context.Context, resource cluster.Resource, name string) *Colliding {
	live, err := r.writer.Read(ctx, r.key(resource, name))
	if err != nil {
		return nil
	}
	return &Colliding{Resource: resource, Object: live}
}

// deleteRevision deletes a revision. If the revision is gone already, the cache is behind and the plan may be wrong: the action fails, as
// upstream's sync does (D-56, D-63).
func (r *run) deleteRevision(ctx context.Context, action *nodewisev1.Action, remove *nodewisev1.DeleteRevision) *done {
	done := r.delete(ctx, action, cluster.Revisions, remove.GetRevision(), byUID(remove.GetRevision()))
	if done.outcome.GetResult() == nodewisev1.Result_RESULT_NOT_FOUND {
		done.outcome.Result = nodewisev1.Result_RESULT_FAILED
	}
	return done
}

func (r *run) deletePod(ctx context.Context, action *nodewisev1.Action, remove *nodewisev1.DeletePod) *done {
	var preconditions write.Preconditions
	if remove.GetUidPrecondition() {
		preconditions = byUID(remove.GetPod())
	}
	done := r.delete(ctx, action, cluster.Pods, remove.GetPod(), preconditions)
	r.emitRemoved(ctx, done, "Deleted pod: "+remove.GetPod().GetName(), "Error deleting: ")
	return done
}

// evictPod evicts a pod with its uid as a precondition. A pod that a PodDisruptionBudget protects stays.
func (r *run) evictPod(ctx context.Context, action *nodewisev1.Action, evict *nodewisev1.EvictPod) *done {
	pod := evict.GetPod()
	if pod == nil {
		return failed(action, write.Unclear("the action names no object"))
	}
	key := r.key(cluster.Pods, pod.GetName())
	why, err := r.writer.Evict(ctx, key, types.UID(pod.GetUid()))
	done := succeeded(action)
	switch {
	case err != nil:
		done = r.notDeleted(ctx, action, key, types.UID(pod.GetUid()), write.AsError(err))
	case why != nil:
		klog.FromContext(ctx).Info("A pod is not evicted now", "pod", pod.GetName(), "node", evict.GetNodeName(), "reason", why.Message)
		return notAllowed(action, pod, why)
	}
	r.emitRemoved(ctx, done, "Evicted pod: "+pod.GetName(), "Error evicting: ")
	return done
}

// emitRemoved emits the Event about a pod that was deleted, or that could not be deleted.
func (r *run) emitRemoved(ctx context.Context, done *done, removed, failed string) {
	switch done.outcome.GetResult() {
	case nodewisev1.Result_RESULT_SUCCEEDED:
		r.emit(ctx, "Normal", "SuccessfulDelete", removed)
	case nodewisev1.Result_RESULT_FAILED:
		r.emit(ctx, "Warning", "FailedDelete", failed+done.outcome.GetMessage())
	default:
	}
}

// patchedPolicy returns the RolloutPolicy that an action patches; nil if there is none.
func (r *run) patchedPolicy(action *nodewisev1.Action) *nodewisev1.WorkloadReference {
	patch := action.GetPatchObject()
	if patch == nil || !cluster.RolloutPolicies.IsNamed(patch.GetResource()) {
		return nil
	}
	return &nodewisev1.WorkloadReference{
		Kind: cluster.PolicyKind, Namespace: r.workload.GetNamespace(),
		Name: patch.GetObject().GetName(), Uid: patch.GetObject().GetUid(),
	}
}

func byUID(object *nodewisev1.ObjectReference) write.Preconditions {
	return write.Preconditions{UID: types.UID(object.GetUid())}
}

func (r *run) delete(
	ctx context.Context, action *nodewisev1.Action, resource cluster.Resource, object *nodewisev1.ObjectReference,
	preconditions write.Preconditions,
) *done {
	if object == nil {
		return failed(action, write.Unclear("the action names no object"))
	}
	key := r.key(resource, object.GetName())
	err := r.writer.Delete(ctx, key, preconditions)
	if err == nil {
		return succeeded(action)
	}
	return r.notDeleted(ctx, action, key, preconditions.UID, write.AsError(err))
}

// notDeleted interprets the error of a delete of an object with this uid.
func (r *run) notDeleted(
	ctx context.Context, action *nodewisev1.Action, key write.Key, uid types.UID, refusal *write.Error,
) *done {
	switch {
	case refusal.Refusal == write.NotFound:
		return refused(action, nodewisev1.Result_RESULT_NOT_FOUND, refusal)
	case refusal.Refusal == write.Conflict || refusal.IsUnclear():
		return r.confirmDelete(ctx, action, key, uid, refusal)
	default:
		return failed(action, refusal)
	}
}

// confirmDelete reads an object to find out whether its deletion was accepted, after an unclear response. A delete that was accepted must not
// be reported as failed: then its expectation would be dropped, and the next plan could delete one pod too many.
func (r *run) confirmDelete(
	ctx context.Context, action *nodewisev1.Action, key write.Key, uid types.UID, refusal *write.Error,
) *done {
	live, err := r.writer.Read(ctx, key)
	if err != nil {
		if write.AsError(err).Refusal == write.NotFound {
			return refused(action, nodewisev1.Result_RESULT_NOT_FOUND, refusal)
		}
		return failed(action, refusal)
	}
	// served.Parse does not look into the data of a revision, which may be anything.
	object, err := served.Parse(live)
	switch {
	case err != nil:
		return failed(action, refusal)
	case uid != "" && object.UID != uid:
		return refused(action, nodewisev1.Result_RESULT_NOT_FOUND, refusal)
	case object.DeletionTimestamp != nil:
		return succeeded(action)
	default:
		return failed(action, refusal)
	}
}

func (r *run) createPod(ctx context.Context, action *nodewisev1.Action, create *nodewisev1.CreatePod) *done {
	if r.manifestError != nil {
		return failed(action, write.Unclear("%w", r.manifestError))
	}
	body, err := r.manifest.Render(create, r.parent)
	if err != nil {
		return failed(action, write.Unclear("%w", err))
	}
	written, err := r.writer.Create(ctx, cluster.Pods, r.workload.GetNamespace(), body)
	if err == nil {
		r.emit(ctx, "Normal", "SuccessfulCreate", "Created pod: "+written.Name)
		return recorded(action, cluster.Pods, written)
	}
	refusal := write.AsError(err)
	if refusal.Refusal == write.NamespaceTerminating {
		return refused(action, nodewisev1.Result_RESULT_NAMESPACE_TERMINATING, refusal)
	}
	if refusal.Refusal == write.AlreadyExists && create.GetPodName() != "" {
		logger := klog.FromContext(ctx).WithValues("pod", create.GetPodName(), "node", create.GetNodeName())
		isOurs, err := r.isOurs(ctx, create)
		switch {
		case err != nil:
			logger.Error(err, "Could not read the pod that has the name of a new pod")
		case isOurs:
			return refused(action, nodewisev1.Result_RESULT_ALREADY_EXISTS, refusal)
		default:
			logger.V(4).Info("The name of a new pod is taken")
			return refused(action, nodewisev1.Result_RESULT_NAME_TAKEN, refusal)
		}
	}
	r.emit(ctx, "Warning", "FailedCreate", "Error creating: "+refusal.Message)
	return failed(action, refusal)
}

// isOurs reports whether the existing pod of this name is the one that the create would have made. If the pod cannot be read, it may be ours,
// so the create must not be repeated with another name: that could make a second pod.
func (r *run) isOurs(ctx context.Context, create *nodewisev1.CreatePod) (bool, error) {
	live, err := r.writer.Read(ctx, r.key(cluster.Pods, create.GetPodName()))
	if err != nil {
		return false, fmt.Errorf("getting it: %w", err)
	}
	return r.manifest.isSamePod(live, r.workload, create.GetNodeName())
}

func (r *run) emit(ctx context.Context, kind, reason, message string) {
	r.writer.Emit(ctx, write.Event{Workload: r.workload, Type: kind, Reason: reason, Message: message})
}
