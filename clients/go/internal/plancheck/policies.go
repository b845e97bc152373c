package plancheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// A policy is written by whoever owns a namespace, and the executor writes and calls with its own rights. So a plan may write only the status of a
// policy that was sent, in the version that was sent, and may ask only those whom such a policy names.

// checkConfirmation checks that a plan heeds the policies that were sent. An older service does not know policies, and would roll out without
// them.
func checkConfirmation(plan *nodewisev1.Plan, asked *Asked) error {
	isConfirmed := slices.EqualFunc(plan.GetRolloutPolicyUids(), asked.Policies, func(uid string, policy *cluster.Policy) bool {
		return uid == string(policy.UID)
	})
	switch {
	case isConfirmed:
		return nil
	case len(asked.Policies) == 0:
		return violationOf(nil, "it heeds RolloutPolicies, and none was sent")
	}
	names := make([]string, len(asked.Policies))
	for i, policy := range asked.Policies {
		names[i] = policy.Key.Name
	}
	return violationOf(nil, "it does not confirm each RolloutPolicy that was sent (%s): a service that is too old for policies ignores them, and "+
		"nothing is rolled out without them", strings.Join(names, ", "))
}

// beforePolicies are the phases that may come before that of the policies.
var beforePolicies = []nodewisev1.PhaseKind{
	nodewisev1.PhaseKind_PHASE_KIND_REVISIONS, nodewisev1.PhaseKind_PHASE_KIND_CLAIMS, nodewisev1.PhaseKind_PHASE_KIND_EVENTS,
}

// checkPhases checks that statuses of policies are written before what depends on them, and that measurements come last.
func checkPhases(plan *nodewisev1.Plan, asked *Asked) error {
	const ofPolicies, ofAnalysis = nodewisev1.PhaseKind_PHASE_KIND_ROLLOUT_POLICIES, nodewisev1.PhaseKind_PHASE_KIND_ANALYSIS
	phases := plan.GetPhases()
	for i, phase := range phases {
		kind := phase.GetKind()
		isSpecial := kind == ofPolicies || kind == ofAnalysis
		name := strings.TrimPrefix(kind.String(), "PHASE_KIND_")
		if isSpecial && !asked.rules().hasPolicies {
			return violationOf(nil, "a plan for a %s has no phase %s", asked.Workload.Kind.Name, name)
		}
		isEarly := !slices.ContainsFunc(phases[:i], func(before *nodewisev1.Phase) bool {
			return !slices.Contains(beforePolicies, before.GetKind())
		})
		if kind == ofPolicies && !isEarly || kind == ofAnalysis && i < len(phases)-1 {
			return violationOf(nil, "its phase %s is not in its place", name)
		}
		for _, batch := range phase.GetBatches() {
			for _, action := range batch.GetActions() {
				belongs := kind
				switch {
				case action.GetPatchObject() != nil && isOfPolicy(action.GetPatchObject()):
					belongs = ofPolicies
				case action.GetMeasure() != nil:
					belongs = ofAnalysis
				case isSpecial:
					belongs = nodewisev1.PhaseKind_PHASE_KIND_UNSPECIFIED
				}
				if kind != belongs {
					return violationOf(action, "it does not belong in the phase %s", name)
				}
			}
		}
	}
	return nil
}

// isOfPolicy reports whether a patch is of a RolloutPolicy.
func isOfPolicy(patch *nodewisev1.PatchObject) bool {
	return cluster.RolloutPolicies.IsNamed(patch.GetResource())
}

// checkPolicyPatch checks the patch of a policy.
func checkPolicyPatch(patch *nodewisev1.PatchObject, asked *Asked) error {
	const merge = nodewisev1.PatchType_PATCH_TYPE_MERGE
	reference := patch.GetObject()
	if reference == nil {
		return errors.New("it names no object")
	}
	policy, err := asked.sent(reference.GetName(), reference.GetUid())
	switch {
	case err != nil:
		return err
	case patch.GetSubresource() != "status":
		return fmt.Errorf("it patches RolloutPolicy %s with the subresource %q, and a plan may patch its status only",
			policy.Key.Name, patch.GetSubresource())
	case patch.GetPatchType() != merge:
		return fmt.Errorf("its patch_type is %s, where %s belongs", patch.GetPatchType(), merge)
	case patch.GetClaim() != nodewisev1.Claim_CLAIM_UNSPECIFIED:
		return fmt.Errorf("it claims RolloutPolicy %s", policy.Key.Name)
	case patch.GetFailurePointer() != "":
		return errors.New("it has a failure_pointer, and the status of a RolloutPolicy has no failure")
	}
	body, err := parsePatch(patch.GetPatch(), reference)
	if err != nil {
		return err
	}
	if other := otherThan(body, "metadata", "status"); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	if err := areObjects(body); err != nil {
		return err
	}
	metadata := rawjson.Object(body, "metadata")
	if other := otherThan(metadata, "uid", "resourceVersion"); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	// Applied to another version, the patch could undo what somebody else has decided.
	if metadata["resourceVersion"] != policy.ResourceVersion {
		return fmt.Errorf("its patch does not carry the resourceVersion %q", policy.ResourceVersion)
	}
	return nil
}

// checkMeasurements checks the measurements that a plan asks for.
func checkMeasurements(actions []*nodewisev1.Action, asked *Asked) error {
	type parts struct {
		policy, revision, stage, check string
		number                         uint32
	}
	all, specs := sets.New[parts](), specs{}
	for _, action := range actions {
		measure := action.GetMeasure()
		if measure == nil {
			continue
		}
		if err := checkMeasure(measure, asked, specs); err != nil {
			return violationOf(action, "%v", err)
		}
		id := measure.GetId()
		of := parts{id.GetPolicyUid(), id.GetRevisionHash(), id.GetStage(), id.GetCheck(), id.GetNumber()}
		if all.Has(of) {
			return violationOf(action, "the plan asks for the measurement twice")
		}
		all.Insert(of)
	}
	return nil
}

// specs are the stages of the policies that a plan asks about, each of which is read once: a plan may ask for many measurements of one.
type specs map[*cluster.Policy][]stage

func (s specs) stagesOf(policy *cluster.Policy) ([]stage, error) {
	if stages, isRead := s[policy]; isRead {
		return stages, nil
	}
	stages, err := stagesOf(policy.JSON)
	if err != nil {
		return nil, err
	}
	s[policy] = stages
	return stages, nil
}

func checkMeasure(measure *nodewisev1.Measure, asked *Asked, specs specs) error {
	id := measure.GetId()
	if id == nil {
		return errors.New("it has no id")
	}
	if hash := id.GetRevisionHash(); hash == "" || len(validation.IsValidLabelValue(hash)) > 0 {
		return fmt.Errorf("it is about the revision %q, and no label has such a value", hash)
	}
	policy, err := asked.sent(measure.GetPolicyName(), id.GetPolicyUid())
	if err != nil {
		return err
	}
	stages, err := specs.stagesOf(policy)
	if err != nil {
		return fmt.Errorf("the spec of RolloutPolicy %s cannot be read: %w", policy.Key.Name, err)
	}
	check := checkOf(stages, id)
	if check == nil {
		return fmt.Errorf("RolloutPolicy %s has no check %q in stage %q", policy.Key.Name, id.GetCheck(), id.GetStage())
	}
	// Of the message only who is asked is compared.
	asks := &nodewisev1.Measure{Credential: measure.GetCredential(), Provider: measure.GetProvider()}
	if !proto.Equal(asks, check.asks) {
		return fmt.Errorf("it asks somebody else than check %s of RolloutPolicy %s", id.GetCheck(), policy.Key.Name)
	}
	return nil
}

// sent returns the policy of this name and uid that was sent.
func (a *Asked) sent(name, uid string) (*cluster.Policy, error) {
	for _, policy := range a.Policies {
		if policy.Key.Name == name && string(policy.UID) == uid {
			return policy, nil
		}
	}
	return nil, fmt.Errorf("it is about RolloutPolicy %q with uid %q, which was not sent", name, uid)
}
