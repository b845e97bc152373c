// Package plancheck checks whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor has the rights in the cluster,
// so it checks the whole plan before the first write.
//
// The check reads only the plan, the request and the caches. It returns the objects that the caches do not show with the planned uid: they may
// have been deleted since the snapshot, or belong to another workload. The caller reads these from the apiserver. If an action is wrong about
// an object or a node that has changed since the snapshot, only this action is left out.
package plancheck

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// MaxUnseen is how many objects of one plan are read from the apiserver at most. If more are not in the caches, the snapshot is too old.
const MaxUnseen = 100

// Asked is the request that a plan answers.
type Asked struct {
	// Workload is the workload in the snapshot.
	Workload *cluster.Workload
	// Scope is the requested scope.
	Scope nodewisev1.Scope
	// Live are the revisions of the snapshot that were read from the apiserver.
	Live []*cluster.Revision
	// Policies are the RolloutPolicies of the snapshot.
	Policies []*cluster.Policy
	// AsOf is the number of the last cache change that the snapshot includes.
	AsOf uint64
	// Sent is the state in the snapshot.
	Sent *nodewisev1.ReconcileState
	// DeletesWithUID is true if, by the requested options, every delete of a pod has the pod's uid as a precondition.
	DeletesWithUID bool
	// Burst is how many pods the plan may create, and how many it may delete.
	Burst int
	// DecidesAfterCut is true if, by the requested options, later plans decide about failed pods beyond the burst. The plan emits no Events for
	// these then.
	DecidesAfterCut bool
}

// Caches are what the caches show of nodes and of the workload's namespace.
type Caches interface {
	// Object returns the pod, revision or workload of this name; nil if there is none.
	Object(resource cluster.Resource, name string) *cluster.Identity
	// HasNode reports whether there is a node of this name.
	HasNode(name string) bool
	// Changed returns the number of the last change of a pod, revision or workload. For a node, and for an object that the caches do not show, it returns
	// the number of the last change that removed any object of the resource.
	Changed(resource cluster.Resource, name string) uint64
	// OwnRevisions returns the revisions that the workload controls, as JSON.
	OwnRevisions() [][]byte
	// Claimable returns the workloads of the kind that the workload controls: those that it controls, and those without a controller.
	Claimable() []*cluster.Workload
	// HasHash reports whether a revision that a snapshot would have has this hash label. A revision without the label has an empty hash.
	HasHash(hash string) bool
	// RevisionsChanged returns the number of the last change of any revision of the namespace, or of the last change that removed any revision.
	RevisionsChanged() uint64
	// LivePods returns, for each of these nodes that exists, the pods of the workload on the node or meant for it, without those that have
	// finished or are being deleted.
	LivePods(nodes []string) map[string]cluster.LivePods
	// LivePodsBeyond returns the live pods of the workload if it has more than most pods in any state.
	LivePodsBeyond(most int) (cluster.LivePods, bool)
	// UnseenCreates returns the names of the pods that were created for the workload and that the caches do not show yet.
	UnseenCreates() []string
}

// Violation says why a plan must not be applied.
type Violation struct {
	// Action is the wrong action; nil if the plan as a whole is wrong.
	Action *nodewisev1.Action
	// What says what is wrong.
	What string
}

// violationOf makes the violation of an action, or of the plan as a whole if the action is nil. The text is shortened, because the names in a
// plan may be of any length.
func violationOf(action *nodewisev1.Action, format string, arguments ...any) *Violation {
	return &Violation{Action: action, What: brief.Text(fmt.Sprintf(format, arguments...))}
}

func (v *Violation) Error() string {
	const refused = "the plan is refused and nothing of it is written: "
	if v.Action == nil {
		return refused + v.What
	}
	return fmt.Sprintf("%saction %d (%s): %s", refused, v.Action.GetId(), kindName(v.Action), v.What)
}

func kindName(action *nodewisev1.Action) string {
	if kind := KindOf(action); kind != nil {
		return string(kind.Message().Name())
	}
	return "unknown"
}

// orphan is what an action may do to an object without a controller.
type orphan int

const (
	// orphanRefused: nothing.
	orphanRefused orphan = iota
	// orphanIfSelected: if the selector matches, adopt it, and anything after its adoption by this plan.
	orphanIfSelected
	// orphanAccepted: release it again. An earlier plan may have released it since the snapshot.
	orphanAccepted
)

// Named is an object that an action is about.
type Named struct {
	action *nodewisev1.Action
	// Resource is pods, revisions, or that of the workloads that the workload controls.
	Resource cluster.Resource
	// Reference is the name and uid of the object.
	Reference *nodewisev1.ObjectReference
	orphan    orphan
}

func (n *Named) String() string {
	kind := "ControllerRevision"
	if n.Resource == cluster.Pods {
		kind = "pod"
	}
	for _, workload := range cluster.Kinds {
		if workload.Resource == n.Resource {
			kind = workload.Name
		}
	}
	return kind + " " + n.Reference.GetName()
}

// Checked is a plan that breaks no rule as far as the caches show.
type Checked struct {
	// Unseen are the objects that the caller must read from the apiserver, and check with [Checked.Read], before it applies the plan.
	Unseen []*Named

	plan    *nodewisev1.Plan
	asked   *Asked
	caches  Caches
	leftOut map[uint32]string
}

// Check checks a plan. The error is a [*Violation].
func Check(plan *nodewisev1.Plan, asked *Asked, caches Caches) (*Checked, error) {
	if what := checkWorkload(plan.GetWorkload(), asked.Workload); what != "" {
		return nil, violationOf(nil, "%s", what)
	}
	actions := ActionsOf(plan)
	if violation := checkVerdict(plan.GetVerdict(), actions); violation != nil {
		return nil, violation
	}
	if !isInScope(plan, actions, asked.Scope) {
		return nil, violationOf(nil, "the service planned for the whole workload, and was asked for its rollout alone: "+
			"it is too old for --mode companion")
	}
	if violation := checkConfirmation(plan, asked); violation != nil {
		return nil, violation
	}
	if violation := checkKinds(actions, asked); violation != nil {
		return nil, violation
	}
	if violation := checkPhases(plan, asked); violation != nil {
		return nil, violation
	}
	if violation := checkBounds(plan, actions, asked); violation != nil {
		return nil, violation
	}
	if violation := checkRemembered(plan.GetState(), asked, caches); violation != nil {
		return nil, violation
	}
	if violation := checkManifests(plan, actions, asked, caches); violation != nil {
		return nil, violation
	}
	if violation := checkObjects(actions, asked); violation != nil {
		return nil, violation
	}
	if violation := checkMeasurements(actions, asked); violation != nil {
		return nil, violation
	}
	all, violation := namedIn(actions, asked)
	if violation != nil {
		return nil, violation
	}
	// Checks that may only leave an action out come last, so that they do not hide a violation.
	checked := &Checked{plan: plan, asked: asked, caches: caches, leftOut: map[uint32]string{}}
	for _, named := range all {
		known := caches.Object(named.Resource, named.Reference.GetName())
		if known == nil || known.UID != named.Reference.GetUid() {
			checked.Unseen = append(checked.Unseen, named)
		} else if err := checked.checkController(named, known); err != nil {
			return nil, err
		}
	}
	if asked.rules().hasNodes {
		if err := checked.checkNodes(actions); err != nil {
			return nil, err
		}
		if err := checked.checkHash(plan, actions); err != nil {
			return nil, err
		}
	} else if err := checked.checkReplicas(actions); err != nil {
		return nil, err
	}
	if err := checked.checkRollbacks(actions); err != nil {
		return nil, err
	}
	if err := checked.checkTotals(actions); err != nil {
		return nil, err
	}
	return checked, nil
}

// identity is the name and the uid of an object. A service could send the uid of one object with the name of another, or of none. Such an action
// does nothing to the first one.
type identity struct{ name, uid string }

func identityOf(reference *nodewisev1.ObjectReference) identity {
	return identity{reference.GetName(), reference.GetUid()}
}

// adoptedIn returns the objects that a plan adopts.
func adoptedIn(actions []*nodewisev1.Action) map[identity]bool {
	adopted := map[identity]bool{}
	for _, action := range actions {
		for _, reference := range []*nodewisev1.ObjectReference{action.GetAdoptPod().GetPod(), action.GetAdoptRevision().GetRevision()} {
			if reference != nil {
				adopted[identityOf(reference)] = true
			}
		}
		if patch := action.GetPatchObject(); patch.GetClaim() == nodewisev1.Claim_CLAIM_ADOPT {
			adopted[identityOf(patch.GetObject())] = true
		}
	}
	return adopted
}

func isAdoption(action *nodewisev1.Action) bool {
	return action.GetAdoptPod() != nil || action.GetAdoptRevision() != nil || action.GetPatchObject().GetClaim() == nodewisev1.Claim_CLAIM_ADOPT
}

// namedIn checks each action by itself, and returns the objects that the actions are about.
func namedIn(actions []*nodewisev1.Action, asked *Asked) ([]*Named, error) {
	adopted := adoptedIn(actions)
	var all []*Named
	for _, action := range actions {
		if err := checkEvents(action); err != nil {
			return nil, violationOf(action, "%v", err)
		}
		named, violation := nameOf(action, adopted, asked)
		if violation != nil {
			return nil, violation
		}
		if named == nil {
			continue
		}
		if err := checkPatch(action, named.Reference, asked.Workload); err != nil {
			return nil, violationOf(action, "%v", err)
		}
		all = append(all, named)
	}
	return all, nil
}

// Read checks an object of [Checked.Unseen] that was read from the apiserver. An object that is gone or was replaced is no violation: the
// apiserver refuses the write because of the uid.
func (c *Checked) Read(named *Named, object []byte) error {
	known, err := read(named.Resource, object)
	if err != nil {
		return violationOf(named.action, "%s cannot be read: %v", named, err)
	}
	if known.UID == named.Reference.GetUid() {
		// The caches do not show whether all objects together may get larger.
		if err := c.checkController(named, known); err != nil || c.isLeftOut(named.action) || !grows(named.action, known) {
			return err
		}
		c.leftOut[named.action.GetId()] = brief.Text(fmt.Sprintf("%s grows, and the caches do not show it yet", named))
		return nil
	}
	if remove := named.action.GetDeletePod(); remove != nil && !remove.GetUidPrecondition() {
		// Without a precondition the delete would delete the other object.
		return c.leaveOutNamed(named, "has the uid %s by now, and the delete carries none", known.UID)
	}
	return nil
}

// leaveOut leaves a wrong action out if its object has changed since the snapshot. If it has not, the action is a violation: the plan was not
// made from the snapshot. The argument changed is the number of the object's last change.
func (c *Checked) leaveOut(action *nodewisev1.Action, changed uint64, format string, arguments ...any) error {
	if changed <= c.asked.AsOf {
		return violationOf(action, format, arguments...)
	}
	c.leftOut[action.GetId()] = brief.Text(fmt.Sprintf(format, arguments...) + "; that has changed since the snapshot")
	return nil
}

func (c *Checked) leaveOutNamed(named *Named, format string, arguments ...any) error {
	changed := c.caches.Changed(named.Resource, named.Reference.GetName())
	return c.leaveOut(named.action, changed, "%s %s", named, fmt.Sprintf(format, arguments...))
}

func (c *Checked) isLeftOut(action *nodewisev1.Action) bool {
	_, isLeftOut := c.leftOut[action.GetId()]
	return isLeftOut
}

// LeftOut returns the actions that must not be executed, by their ids, and why. If an adoption is left out, all deletes and relabels are left
// out, too: they may depend on the adopted object.
func (c *Checked) LeftOut() map[uint32]string {
	actions := ActionsOf(c.plan)
	leavesAdoptionOut := slices.ContainsFunc(actions, func(action *nodewisev1.Action) bool {
		return c.isLeftOut(action) && isAdoption(action)
	})
	for _, action := range actions {
		if leavesAdoptionOut && mayRestOnAdoption(action) && !c.isLeftOut(action) {
			c.leftOut[action.GetId()] = "an adoption that it may rest on is left out"
		}
	}
	return c.leftOut
}

// mayRestOnAdoption reports whether a plan may have decided an action because it adopts an object: deletes, relabels, and changes of objects that
// the workload controls.
func mayRestOnAdoption(action *nodewisev1.Action) bool {
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_DeletePod, *nodewisev1.Action_EvictPod, *nodewisev1.Action_DeleteRevision, *nodewisev1.Action_RelabelPod,
		*nodewisev1.Action_CreateObject, *nodewisev1.Action_DeleteObject:
		return true
	case *nodewisev1.Action_PatchObject:
		return kind.PatchObject.GetClaim() == nodewisev1.Claim_CLAIM_UNSPECIFIED && kind.PatchObject.GetSubresource() == ""
	default:
		return false
	}
}

func read(resource cluster.Resource, object []byte) (*cluster.Identity, error) {
	if resource == cluster.Pods {
		pod, err := convert.PodJSON(object)
		if err != nil {
			return nil, err
		}
		return (&cluster.Pod{Pod: pod}).Identity(), nil
	}
	parsed, err := served.Parse(object)
	if err != nil {
		return nil, err
	}
	known := &cluster.Identity{
		UID:        string(parsed.UID),
		Controller: convert.Controller(parsed.OwnerReferences),
		Labels:     labels.Set(parsed.Labels),
	}
	if resource != cluster.Revisions {
		known.Replicas, err = replicasOf(object)
	}
	return known, err
}

// ActionsOf returns the actions of a plan, in order.
func ActionsOf(plan *nodewisev1.Plan) []*nodewisev1.Action {
	var actions []*nodewisev1.Action
	for _, phase := range plan.GetPhases() {
		for _, batch := range phase.GetBatches() {
			actions = append(actions, batch.GetActions()...)
		}
	}
	return actions
}

// RemovedPod returns the pod that an action deletes or evicts; nil for other actions.
func RemovedPod(action *nodewisev1.Action) *nodewisev1.ObjectReference {
	if evict := action.GetEvictPod(); evict != nil {
		return evict.GetPod()
	}
	return action.GetDeletePod().GetPod()
}

// KindOf returns the field of an action's kind; nil for a kind that this executor does not know.
func KindOf(action *nodewisev1.Action) protoreflect.FieldDescriptor {
	message := action.ProtoReflect()
	return message.WhichOneof(message.Descriptor().Oneofs().ByName("kind"))
}

func checkWorkload(planned *nodewisev1.WorkloadReference, asked *cluster.Workload) string {
	if planned == nil {
		return "it names no workload"
	}
	if planned.GetKind() == asked.Kind.Name && planned.GetNamespace() == asked.Key.Namespace &&
		planned.GetName() == asked.Key.Name && planned.GetUid() == string(asked.UID) {
		return ""
	}
	return fmt.Sprintf("it is for %s %s/%s with uid %q, and was asked for %s %s with uid %q",
		planned.GetKind(), planned.GetNamespace(), planned.GetName(), planned.GetUid(), asked.Kind.Name, asked.Key, asked.UID)
}

// checkVerdict checks that a plan does not contain what its verdict rules out.
func checkVerdict(verdict nodewisev1.Verdict, actions []*nodewisev1.Action) error {
	for _, action := range actions {
		switch {
		case verdict == nodewisev1.Verdict_VERDICT_APPLY:
		case verdict == nodewisev1.Verdict_VERDICT_STATUS_ONLY && action.GetCreatePod() == nil &&
			action.GetDeletePod() == nil && action.GetEvictPod() == nil:
		default:
			return violationOf(action, "the verdict of the plan is %s, which rules it out", verdict)
		}
	}
	return nil
}

// isInScope checks that a plan stays within the requested scope. A service that does not know scopes plans for the whole workload.
func isInScope(plan *nodewisev1.Plan, actions []*nodewisev1.Action, scope nodewisev1.Scope) bool {
	const rollouts = nodewisev1.Scope_SCOPE_ROLLOUTS
	if scope != rollouts {
		return true
	}
	for _, action := range actions {
		switch action.GetKind().(type) {
		case *nodewisev1.Action_DeletePod, *nodewisev1.Action_EvictPod, *nodewisev1.Action_EmitEvent:
		case *nodewisev1.Action_PatchObject, *nodewisev1.Action_Measure:
			// What plans write to the statuses of policies is checked elsewhere.
		default:
			return false
		}
	}
	return plan.GetScope() == rollouts
}

// objectOf returns the existing object, other than the workload and its RolloutPolicies, that an action is about. An action of an unknown kind has none, and is not
// executed.
func objectOf(action *nodewisev1.Action, asked *Asked) (resource cluster.Resource, reference *nodewisev1.ObjectReference, names bool) {
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_UpdateRevision:
		return cluster.Revisions, kind.UpdateRevision.GetRevision(), true
	case *nodewisev1.Action_DeleteRevision:
		return cluster.Revisions, kind.DeleteRevision.GetRevision(), true
	case *nodewisev1.Action_AdoptRevision:
		return cluster.Revisions, kind.AdoptRevision.GetRevision(), true
	case *nodewisev1.Action_ReleaseRevision:
		return cluster.Revisions, kind.ReleaseRevision.GetRevision(), true
	case *nodewisev1.Action_AdoptPod:
		return cluster.Pods, kind.AdoptPod.GetPod(), true
	case *nodewisev1.Action_ReleasePod:
		return cluster.Pods, kind.ReleasePod.GetPod(), true
	case *nodewisev1.Action_RelabelPod:
		return cluster.Pods, kind.RelabelPod.GetPod(), true
	case *nodewisev1.Action_DeletePod:
		return cluster.Pods, kind.DeletePod.GetPod(), true
	case *nodewisev1.Action_EvictPod:
		return cluster.Pods, kind.EvictPod.GetPod(), true
	case *nodewisev1.Action_PatchObject:
		object := kind.PatchObject.GetObject()
		if isOfPolicy(kind.PatchObject) {
			return "", nil, false
		}
		return asked.controls().Resource, object, !asked.isWorkload(object)
	case *nodewisev1.Action_DeleteObject:
		return asked.controls().Resource, kind.DeleteObject.GetObject(), true
	default:
		return "", nil, false
	}
}

func isRelease(action *nodewisev1.Action) bool {
	return action.GetReleasePod() != nil || action.GetReleaseRevision() != nil ||
		action.GetPatchObject().GetClaim() == nodewisev1.Claim_CLAIM_RELEASE
}

// nameOf checks how an action names its existing object, and returns the object; nil if there is none.
func nameOf(action *nodewisev1.Action, adopted map[identity]bool, asked *Asked) (*Named, error) {
	resource, reference, names := objectOf(action, asked)
	if !names {
		return nil, nil
	}
	named := &Named{action: action, Resource: resource, Reference: reference}
	switch {
	case named.Reference.GetName() == "":
		return nil, violationOf(action, "it names no object")
	case len(validation.IsDNS1123Subdomain(named.Reference.GetName())) > 0:
		// Another name could lead to another path of the apiserver.
		return nil, violationOf(action, "it names %q, and no object can be called so", named.Reference.GetName())
	case named.Reference.GetUid() == "":
		return nil, violationOf(action, "it names %s without a uid", named.Reference.GetName())
	case asked.DeletesWithUID && action.GetDeletePod() != nil && !action.GetDeletePod().GetUidPrecondition():
		return nil, violationOf(action, "it deletes %s without its uid as a precondition", named.Reference.GetName())
	case isRelease(action):
		named.orphan = orphanAccepted
	case adopted[identityOf(named.Reference)]:
		named.orphan = orphanIfSelected
	}
	return named, nil
}

// checkController checks that an object belongs to the workload, or is an orphan that the action may change. Only an object that the workload
// does not select may be released.
func (c *Checked) checkController(named *Named, known *cluster.Identity) error {
	workload := c.asked.Workload
	controller, isSelected := known.Controller, workload.Selector.Matches(known.Labels)
	switch {
	case controller != nil && controller.GetUid() == string(workload.UID):
		if isRelease(named.action) && isSelected {
			return c.leaveOutNamed(named, "is selected by the workload, and the plan releases it")
		}
		return c.checkSizeOfDeleted(named, known)
	case controller != nil:
		return c.leaveOutNamed(named, "is controlled by %s %s with uid %q, not by the workload",
			controller.GetKind(), controller.GetName(), controller.GetUid())
	case named.orphan == orphanAccepted:
		return nil
	case named.orphan == orphanRefused:
		return c.leaveOutNamed(named, "has no controller, and the plan does not adopt it")
	case !isSelected:
		return c.leaveOutNamed(named, "is not selected by the workload")
	default:
		return c.checkSizeOfDeleted(named, known)
	}
}

// checkSizeOfDeleted checks that an object which is deleted should have no pods.
func (c *Checked) checkSizeOfDeleted(named *Named, known *cluster.Identity) error {
	if named.action.GetDeleteObject() == nil || known.Replicas == 0 {
		return nil
	}
	return c.leaveOutNamed(named, "has spec.replicas %d", known.Replicas)
}
