package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// applyPatch returns the patched object, as an apiserver would compute it.
func applyPatch(contentType string, patch []byte, object apiObject) (apiObject, error) {
	original, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding what is patched: %w", err)
	}
	patched, err := mergePatch(types.PatchType(contentType), patch, original, object)
	if err != nil {
		return nil, err
	}
	switch object.(type) {
	case *core.Pod:
		return decode[core.Pod]("the patched pod", patched)
	case *apps.ControllerRevision:
		return decode[apps.ControllerRevision]("the patched revision", patched)
	default:
		return nil, fmt.Errorf("a %T cannot be patched", object)
	}
}

func mergePatch(patchType types.PatchType, patch, original []byte, object apiObject) ([]byte, error) {
	switch patchType {
	case types.StrategicMergePatchType:
		return strategicpatch.StrategicMergePatch(original, patch, object)
	case types.MergePatchType:
		return jsonpatch.MergePatch(original, patch)
	default:
		return nil, fmt.Errorf("patches of type %s are not applied", patchType)
	}
}
