// Package plancheck tells whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor holds the rights in the
// cluster, so it checks everything that the service says before the first write.
//
// The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or do not show
// with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live read tells which. Where an
// action is wrong about an object or a node that has changed since the snapshot, this action alone is left out.
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

// MaxUnseen is the most objects of one plan that are read live. When more of them are gone, the snapshot is too old to act on.
const MaxUnseen = 100

// Asked is what the plan has to answer.
type Asked struct {
	// Workload is the workload as the snapshot had it.
	Workload *cluster.DaemonSet
	// Scope is what was to be decided of the workload.
	Scope nodewisev1.Scope
	// Live are revisions of the snapshot that were read live.
	Live []*cluster.Revision
	// AsOf is the number of the last change that the snapshot shows.
	AsOf uint64
	// Sent is the state that the snapshot had.
	Sent *nodewisev1.ReconcileState
	// DeletesWithUID: every delete of a pod carries the pod's uid as a precondition, as the options say that were sent.
	DeletesWithUID bool
	// Burst is the most creates of pods, and the most deletes.
	Burst int
	// DecidesAfterCut: failed pods beyond the burst are left to later plans, so that no Events are due for them, as the options say that were
	// sent.
	DecidesAfterCut bool
}

// Caches are what the caches show of nodes and of the workload's namespace.
type Caches interface {
	// Object is the pod or revision of this name; nil if there is none.
	Object(resource cluster.Resource, name string) *cluster.Identity
	// HasNode tells whether there is a node of this name.
	HasNode(name string) bool
	// Changed is the number of the last change of a pod or revision. Of what the caches do not show, and of nodes, it is that of the last
	// change that took any object of the resource out.
	Changed(resource cluster.Resource, name string) uint64
	// OwnRevisions are the revisions that the workload controls, as JSON.
	OwnRevisions() [][]byte
	// HasHash tells whether a revision that a snapshot would show has this hash label; of none it is empty.
	HasHash(hash string) bool
	// RevisionsChanged is the number of the last change of any revision of the namespace, or that took any revision out.
	RevisionsChanged() uint64
	// LivePods are the pods of the workload on each of these nodes or meant for it, without those that have finished or are being deleted. It
	// has no entry where there is no such node.
	LivePods(nodes []string) map[string]cluster.LivePods
}

// Violation says why a plan must not be applied.
type Violation struct {
	// Action is the action that is wrong; nil when the plan as a whole is.
	Action *nodewisev1.Action
	// What is wrong.
	What string
}

// violationOf is the violation of an action; of nil, that of the plan as a whole. What a plan names may be of any length.
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
	// orphanIfSelected: adopt it, where the selector matches; or whatever this plan does to it after its adoption.
	orphanIfSelected
	// orphanAccepted: release it once more, since an earlier plan has released it since the snapshot.
	orphanAccepted
)

// Named is an object that an action is about.
type Named struct {
	action *nodewisev1.Action
	// Resource is pods or revisions.
	Resource cluster.Resource
	// Reference is its name and uid.
	Reference *nodewisev1.ObjectReference
	orphan    orphan
}

func (n *Named) String() string {
	kind := "ControllerRevision"
	if n.Resource == cluster.Pods {
		kind = "pod"
	}
	return kind + " " + n.Reference.GetName()
}

// Checked is a plan that breaks no rule by what the caches show.
type Checked struct {
	// Unseen are objects that have to be read live before the plan may be applied.
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
	if !isInScope(plan, actions, asked.Scope) {
		return nil, violationOf(nil, "the service planned for the whole workload, and was asked for its rollout alone: "+
			"it is too old for --mode companion")
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
	all, violation := namedIn(actions, asked)
	if violation != nil {
		return nil, violation
	}
	// What may have changed since the snapshot comes last: it must not hide what is wrong in any case.
	checked := &Checked{plan: plan, asked: asked, caches: caches, leftOut: map[uint32]string{}}
	for _, named := range all {
		known := caches.Object(named.Resource, named.Reference.GetName())
		if known == nil || known.UID != named.Reference.GetUid() {
			checked.Unseen = append(checked.Unseen, named)
		} else if err := checked.checkController(named, known); err != nil {
			return nil, err
		}
	}
	if err := checked.checkNodes(actions); err != nil {
		return nil, err
	}
	if err := checked.checkHash(plan, actions); err != nil {
		return nil, err
	}
	return checked, nil
}

// namedIn are the objects that actions are about, after what can be checked of an action alone.
func namedIn(actions []*nodewisev1.Action, asked *Asked) ([]*Named, error) {
	adopted := map[string]bool{}
	for _, action := range actions {
		for _, reference := range []*nodewisev1.ObjectReference{action.GetAdoptPod().GetPod(), action.GetAdoptRevision().GetRevision()} {
			if reference != nil {
				adopted[reference.GetUid()] = true
			}
		}
	}
	var all []*Named
	for _, action := range actions {
		if event := action.GetEmitEvent(); event != nil {
			if err := checkEvent(event); err != nil {
				return nil, violationOf(action, "%v", err)
			}
		}
		named, violation := nameOf(action, adopted, asked.DeletesWithUID)
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

// Read checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is no violation:
// the write finds that out by the uid.
func (c *Checked) Read(named *Named, object []byte) error {
	known, err := read(named.Resource, object)
	if err != nil {
		return violationOf(named.action, "%s cannot be read: %v", named, err)
	}
	if known.UID == named.Reference.GetUid() {
		return c.checkController(named, known)
	}
	if remove := named.action.GetDeletePod(); remove != nil && !remove.GetUidPrecondition() {
		// Without a precondition the delete would take the other object.
		return c.leaveOutNamed(named, "has the uid %s by now, and the delete carries none", known.UID)
	}
	return nil
}

// leaveOut leaves an action out if what it is wrong about has changed since the snapshot. If it has not, the plan was not made from the
// snapshot.
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

// LeftOut is why actions are not to be carried out, by their ids. What an adoption makes superfluous stays while it is left out: no pod and no
// revision is deleted in favour of what is not adopted, and no pod gets its hash.
func (c *Checked) LeftOut() map[uint32]string {
	actions := ActionsOf(c.plan)
	leavesAdoptionOut := slices.ContainsFunc(actions, func(action *nodewisev1.Action) bool {
		return c.isLeftOut(action) && (action.GetAdoptPod() != nil || action.GetAdoptRevision() != nil)
	})
	for _, action := range actions {
		mayRestOnIt := action.GetDeletePod() != nil || action.GetDeleteRevision() != nil || action.GetRelabelPod() != nil
		if leavesAdoptionOut && mayRestOnIt && !c.isLeftOut(action) {
			c.leftOut[action.GetId()] = "an adoption that it may rest on is left out"
		}
	}
	return c.leftOut
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
	return &cluster.Identity{
		UID:        string(parsed.UID),
		Controller: convert.Controller(parsed.OwnerReferences),
		Labels:     labels.Set(parsed.Labels),
	}, nil
}

// ActionsOf are the actions of a plan, in order.
func ActionsOf(plan *nodewisev1.Plan) []*nodewisev1.Action {
	var actions []*nodewisev1.Action
	for _, phase := range plan.GetPhases() {
		for _, batch := range phase.GetBatches() {
			actions = append(actions, batch.GetActions()...)
		}
	}
	return actions
}

// KindOf is the field of an action that says what is to be done; nil for a kind that is not known here.
func KindOf(action *nodewisev1.Action) protoreflect.FieldDescriptor {
	message := action.ProtoReflect()
	return message.WhichOneof(message.Descriptor().Oneofs().ByName("kind"))
}

func checkWorkload(planned *nodewisev1.WorkloadReference, asked *cluster.DaemonSet) string {
	if planned == nil {
		return "it names no workload"
	}
	if planned.GetKind() == cluster.Kind && planned.GetNamespace() == asked.Key.Namespace &&
		planned.GetName() == asked.Key.Name && planned.GetUid() == string(asked.UID) {
		return ""
	}
	return fmt.Sprintf("it is for %s %s/%s with uid %q, and was asked for %s %s with uid %q",
		planned.GetKind(), planned.GetNamespace(), planned.GetName(), planned.GetUid(), cluster.Kind, asked.Key, asked.UID)
}

// isInScope: a service that does not know of scopes plans for whole workloads.
func isInScope(plan *nodewisev1.Plan, actions []*nodewisev1.Action, scope nodewisev1.Scope) bool {
	const rollouts = nodewisev1.Scope_SCOPE_ROLLOUTS
	if scope != rollouts {
		return true
	}
	for _, action := range actions {
		if action.GetDeletePod() == nil && action.GetEmitEvent() == nil {
			return false
		}
	}
	return plan.GetScope() == rollouts
}

// objectOf is the object that exists already which an action is about. What an action of an unknown kind would write is not known; it is not
// carried out.
func objectOf(action *nodewisev1.Action) (resource cluster.Resource, reference *nodewisev1.ObjectReference, names bool) {
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
	default:
		return "", nil, false
	}
}

func isRelease(action *nodewisev1.Action) bool {
	return action.GetReleasePod() != nil || action.GetReleaseRevision() != nil
}

// nameOf is the object that exists already which an action is about; nil when there is none.
func nameOf(action *nodewisev1.Action, adopted map[string]bool, deletesWithUID bool) (*Named, error) {
	resource, reference, names := objectOf(action)
	if !names {
		return nil, nil
	}
	named := &Named{action: action, Resource: resource, Reference: reference}
	switch {
	case named.Reference.GetName() == "":
		return nil, violationOf(action, "it names no object")
	case len(validation.IsDNS1123Subdomain(named.Reference.GetName())) > 0:
		// Another name would lead to other paths of the apiserver.
		return nil, violationOf(action, "it names %q, and no object can be called so", named.Reference.GetName())
	case named.Reference.GetUid() == "":
		return nil, violationOf(action, "it names %s without a uid", named.Reference.GetName())
	case deletesWithUID && action.GetDeletePod() != nil && !action.GetDeletePod().GetUidPrecondition():
		return nil, violationOf(action, "it deletes %s without its uid as a precondition", named.Reference.GetName())
	case isRelease(action):
		named.orphan = orphanAccepted
	case adopted[named.Reference.GetUid()]:
		named.orphan = orphanIfSelected
	}
	return named, nil
}

// checkController: the object is the workload's, or it is an orphan and may be. Only what the workload does not select is released.
func (c *Checked) checkController(named *Named, known *cluster.Identity) error {
	workload := c.asked.Workload
	controller, isSelected := known.Controller, workload.Selector.Matches(known.Labels)
	switch {
	case controller != nil && controller.GetUid() == string(workload.UID):
		if isRelease(named.action) && isSelected {
			return c.leaveOutNamed(named, "is selected by the workload, and the plan releases it")
		}
		return nil
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
		return nil
	}
}
