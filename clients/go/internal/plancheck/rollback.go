package plancheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// rollbackRequest is the annotation by which a user asks for an earlier template. A plan removes it in any case (P-50).
const rollbackRequest = appsv1.DeprecatedRollbackTo

// checkRollbackPatch checks that a user has asked for a patch of the workload itself, and the form of the patch.
func checkRollbackPatch(body object, workload any, asked *Asked) error {
	if _, isAsked := rawjson.Object(workload, "metadata", "annotations")[rollbackRequest]; !isAsked {
		return fmt.Errorf("it patches the workload, which has no annotation %s", rollbackRequest)
	}
	if other := otherThan(body, "metadata", "spec"); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	if err := areObjects(body); err != nil {
		return err
	}
	metadata, spec := rawjson.Object(body, "metadata"), rawjson.Object(body, "spec")
	if other := otherThan(metadata, "uid", "resourceVersion", "annotations"); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	if other := otherThan(spec, "template"); other != "" {
		return fmt.Errorf("its patch changes spec.%s", other)
	}
	// Applied to another version, the patch could result in another template.
	if metadata["resourceVersion"] != asked.Workload.ResourceVersion {
		return fmt.Errorf("its patch does not carry the resourceVersion %q", asked.Workload.ResourceVersion)
	}
	value, sets := metadata["annotations"]
	annotations, isObject := value.(object)
	if sets && !isObject {
		return errors.New("its patch sets metadata.annotations to what is no object")
	}
	for _, key := range sortedKeys(annotations) {
		if len(spec) == 0 && (key != rollbackRequest || annotations[key] != nil) {
			return fmt.Errorf("its patch restores no template, and changes annotation %s", key)
		}
	}
	return nil
}

// checkRollbacks checks that a restored template is that of an object that the workload controls, or that the plan adopts. Such an object may
// have changed since the snapshot.
func (c *Checked) checkRollbacks(actions []*nodewisev1.Action) error {
	for _, action := range actions {
		if write, err := writeOf(action, c.asked); err != nil || write != rollBack {
			continue
		}
		patch, err := parse(action.GetPatchObject().GetPatch(), "its patch")
		if err != nil {
			return violationOf(action, "%v", err)
		}
		if rawjson.At(patch, "spec") == nil {
			continue
		}
		workload, err := parse(c.asked.Workload.JSON, "the workload")
		if err != nil {
			return violationOf(action, "%v", err)
		}
		if isRestored, changed := c.isRestored(merged(workload, patch), patch, actions); !isRestored {
			err := c.leaveOut(action, changed, "it restores a template and annotations that no %s of the workload has", c.asked.controls().Name)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// isRestored reports whether an object of the workload has the restored template and annotations. It also returns the number of the last change
// of any of these objects.
func (c *Checked) isRestored(restored, patch any, actions []*nodewisev1.Action) (isRestored bool, changed uint64) {
	restoredTemplate, owned := rawjson.At(restored, "spec", "template"), c.owned(actions)
	_, hasHash := rawjson.Object(restoredTemplate, "metadata", "labels")[appsv1.DefaultDeploymentUniqueLabelKey]
	template := withoutHash(restoredTemplate)
	isRestored = !hasHash && slices.ContainsFunc(owned, func(object *cluster.Workload) bool {
		whole, has := hasTemplate(object, template)
		return has && areOf(rawjson.Object(patch, "metadata", "annotations"), rawjson.Object(whole, "metadata", "annotations"))
	})
	return isRestored, c.lastChange(owned)
}

// areOf reports whether every annotation that a patch sets is one of these.
func areOf(set, annotations object) bool {
	for key, value := range set {
		if own, has := annotations[key]; value != nil && (!has || own != value) {
			return false
		}
	}
	return true
}

// merged returns a value after a JSON merge patch (RFC 7386).
func merged(value, patch any) any {
	changes, isObject := patch.(object)
	if !isObject {
		return patch
	}
	members, isObject := value.(object)
	if !isObject {
		members = object{}
	}
	members = maps.Clone(members)
	for key, change := range changes {
		if change == nil {
			delete(members, key)
		} else {
			members[key] = merged(members[key], change)
		}
	}
	return members
}

// replicasOf is spec.replicas of a workload, or its default.
func replicasOf(workload []byte) (replicas int64, err error) {
	var parsed struct {
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(workload, &parsed); err != nil {
		return 0, err
	}
	if parsed.Spec.Replicas == nil {
		return defaultReplicas, nil
	}
	return *parsed.Spec.Replicas, nil
}
