package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// applyPatch returns the patched object, as an apiserver would compute it.
func applyPatch(contentType string, patch []byte, resource string, object apiObject) (apiObject, error) {
	original, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding what is patched: %w", err)
	}
	patched, err := mergePatch(types.PatchType(contentType), patch, original, object)
	if err != nil {
		return nil, err
	}
	decode, ok := decoders[resource]
	if !ok {
		return nil, fmt.Errorf("%s cannot be patched", resource)
	}
	return decode("the patched object", patched)
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
