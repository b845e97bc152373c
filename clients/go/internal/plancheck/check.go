// Package plancheck tells whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor holds the rights in the
// cluster, so it checks everything that the service says before the first write.
//
// The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or do not show
// with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live read tells which.
package plancheck

import (
	"fmt"

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
	// OwnRevisions are the revisions that the workload controls, as JSON.
	OwnRevisions() [][]byte
	// LivePods is how many pods of the workload are on each of these nodes or meant for it, without those that have finished or are being
	// deleted. It has no entry where there is no such node.
	LivePods(nodes []string) map[string]int
}

// Violation says why a plan must not be applied.
type Violation struct {
	// Action is the action that is wrong; nil when the plan as a whole is.
	Action *nodewisev1.Action
	// What is wrong.
	What string
	// Contradicts is what is not as the plan takes it to be, if that is what is wrong: the uid of an object, or "node/" and the name of a
	// node. It may have been so when the snapshot was taken.
	Contradicts string
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

func (n *Named) violation(format string, arguments ...any) error {
	violation := violationOf(n.action, "%s %s", n, fmt.Sprintf(format, arguments...))
	violation.Contradicts = n.Reference.GetUid()
	return violation
}

// Check checks a plan. It answers with the objects that have to be read live before the plan may be applied. The error is a [*Violation].
func Check(plan *nodewisev1.Plan, asked *Asked, caches Caches) ([]*Named, error) {
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
	if violation := checkManifests(plan, actions, asked, caches); violation != nil {
		return nil, violation
	}
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
	// What may have changed since the snapshot comes last: it must not hide what is wrong in any case.
	if err := checkNodes(actions, caches); err != nil {
		return nil, err
	}
	var unseen []*Named
	for _, named := range all {
		known := caches.Object(named.Resource, named.Reference.GetName())
		if known == nil || known.UID != named.Reference.GetUid() {
			unseen = append(unseen, named)
		} else if err := named.checkController(asked, known); err != nil {
			return nil, err
		}
	}
	return unseen, nil
}

// CheckLive checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is no violation:
// the write finds that out by the uid.
func (n *Named) CheckLive(asked *Asked, object []byte) error {
	known, err := read(n.Resource, object)
	if err != nil {
		return violationOf(n.action, "%s cannot be read: %v", n, err)
	}
	if known.UID == n.Reference.GetUid() {
		return n.checkController(asked, known)
	}
	if remove := n.action.GetDeletePod(); remove != nil && !remove.GetUidPrecondition() {
		// Without a precondition the delete would take the other object.
		return n.violation("has the uid %s by now, and the delete carries none", known.UID)
	}
	return nil
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
func (n *Named) checkController(asked *Asked, known *cluster.Identity) error {
	controller, isSelected := known.Controller, asked.Workload.Selector.Matches(known.Labels)
	switch {
	case controller != nil && controller.GetUid() == string(asked.Workload.UID):
		if isRelease(n.action) && isSelected {
			return n.violation("is selected by the workload, and the plan releases it")
		}
		return nil
	case controller != nil:
		return n.violation("is controlled by %s %s with uid %q, not by the workload",
			controller.GetKind(), controller.GetName(), controller.GetUid())
	case n.orphan == orphanAccepted:
		return nil
	case n.orphan == orphanRefused:
		return n.violation("has no controller, and the plan does not adopt it")
	case !isSelected:
		return n.violation("is not selected by the workload")
	default:
		return nil
	}
}
