package plancheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// ownAnnotations is the start of the annotations that a plan may set besides those of the workload.
const ownAnnotations = "deployment.kubernetes.io/"

// checkObjectPatch checks the patch of an object of any resource: of one that the workload controls, or of the workload itself.
func checkObjectPatch(write objectWrite, patch *nodewisev1.PatchObject, workload any, asked *Asked) error {
	if patch.GetObject() == nil {
		return errors.New("it names no object")
	}
	body, err := parsePatch(patch.GetPatch(), patch.GetObject())
	if err != nil {
		return err
	}
	if version, sets := rawjson.Object(body, "metadata")["resourceVersion"]; sets {
		if _, isString := version.(string); !isString {
			return errors.New("its patch sets metadata.resourceVersion to what is no string")
		}
	}
	if nodewisev1.Claim_name[int32(patch.GetClaim())] == "" {
		return fmt.Errorf("its claim %d is unknown", patch.GetClaim())
	}
	claims := patch.GetClaim() != nodewisev1.Claim_CLAIM_UNSPECIFIED
	isClaim := write == patchObject && claims
	expected := nodewisev1.PatchType_PATCH_TYPE_MERGE
	if isClaim {
		expected = nodewisev1.PatchType_PATCH_TYPE_STRATEGIC_MERGE
	}
	if patch.GetPatchType() != expected {
		return fmt.Errorf("its patch_type is %s, where %s belongs", patch.GetPatchType(), expected)
	}
	if claims && !isClaim {
		return errors.New("it claims the workload itself")
	}
	if err := checkFailurePointer(write, patch.GetFailurePointer(), body); err != nil {
		return err
	}
	switch {
	case write == patchStatus:
		return checkStatusPatch(body, asked)
	case write == rollBack:
		return checkRollbackPatch(body, workload, asked)
	case isClaim:
		return checkClaim(patch.GetClaim(), body, asked)
	default:
		return checkSize(body, workload)
	}
}

// checkFailurePointer checks that the error of another action may be written into a status only.
func checkFailurePointer(write objectWrite, pointer string, body object) error {
	inner, isInStatus := strings.CutPrefix(pointer, "/status")
	if pointer == "" {
		return nil
	}
	if write == patchStatus && isInStatus {
		if _, isString := pointed(body["status"], inner).(string); isString {
			return nil
		}
	}
	return fmt.Errorf("its failure_pointer %q leads to no string of a status", pointer)
}

// pointed returns the value at a JSON pointer (RFC 6901); nil if there is none.
func pointed(value any, pointer string) any {
	if pointer == "" {
		return value
	}
	tokens := strings.Split(pointer, "/")
	if tokens[0] != "" {
		return nil
	}
	for _, token := range tokens[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch parent := value.(type) {
		case object:
			value = parent[token]
		case []any:
			value = nil
			for i, item := range parent {
				if strconv.Itoa(i) == token {
					value = item
				}
			}
		default:
			return nil
		}
	}
	return value
}

func checkClaim(claim nodewisev1.Claim, body object, asked *Asked) error {
	if other := otherThan(body, "metadata"); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	metadata := object{}
	for member, value := range rawjson.Object(body, "metadata") {
		if member != "resourceVersion" {
			metadata[member] = value
		}
	}
	if claim == nodewisev1.Claim_CLAIM_ADOPT {
		return checkAdoption(metadata, asked.Workload)
	}
	return checkRelease(metadata, asked.Workload)
}

// checkSize checks a change of the size of an object, or of what else follows the workload.
func checkSize(body object, workload any) error {
	if other := otherThan(body, "metadata", "spec"); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	metadata := rawjson.Object(body, "metadata")
	if other := otherThan(metadata, "uid", "resourceVersion", "annotations"); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	if err := checkAnnotations(metadata, workload, "its patch"); err != nil {
		return err
	}
	if err := areObjects(body); err != nil {
		return err
	}
	spec := rawjson.Object(body, "spec")
	if other := otherThan(spec, "replicas", "minReadySeconds"); other != "" {
		return fmt.Errorf("its patch changes spec.%s", other)
	}
	if replicas, sets := spec["replicas"]; sets {
		if err := checkReplicas(replicas, "its patch"); err != nil {
			return err
		}
	}
	if seconds, sets := spec["minReadySeconds"]; sets {
		return checkMinReadySeconds(seconds, workload, "its patch")
	}
	return nil
}

func checkStatusPatch(body object, asked *Asked) error {
	if other := otherThan(body, "metadata", "status"); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	metadata := rawjson.Object(body, "metadata")
	if other := otherThan(metadata, asked.rules().statusMetadata...); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	if err := checkAnnotations(metadata, nil, "its patch"); err != nil {
		return err
	}
	return areObjects(body)
}

// checkAnnotations checks the annotations in metadata: some of the workload's, and such as only its controller sets.
func checkAnnotations(metadata object, workload any, what string) error {
	value, sets := metadata["annotations"]
	if !sets {
		return nil
	}
	// A null in a patch would remove all annotations.
	annotations, isObject := value.(object)
	if !isObject {
		return fmt.Errorf("%s has annotations that are no object", what)
	}
	own := rawjson.Object(workload, "metadata", "annotations")
	for _, key := range sortedKeys(annotations) {
		value := annotations[key]
		_, isString := value.(string)
		isOwn := strings.HasPrefix(key, ownAnnotations) || isString && own[key] == value
		if !isString || !isOwn {
			return fmt.Errorf("%s sets annotation %s to %s, which the workload has not", what, key, text(value))
		}
	}
	return nil
}

// checkReplicas checks a number of pods.
func checkReplicas(value any, what string) error {
	if count, is := integer(value); is && count >= 0 && count <= math.MaxInt32 {
		return nil
	}
	return fmt.Errorf("%s sets spec.replicas to %s", what, text(value))
}

// checkMinReadySeconds checks that minReadySeconds is the workload's. An absent value is 0.
func checkMinReadySeconds(seconds, workload any, what string) error {
	orZero := func(value any) any {
		if value == nil {
			return json.Number("0")
		}
		return value
	}
	if reflect.DeepEqual(orZero(seconds), orZero(rawjson.At(workload, "spec", "minReadySeconds"))) {
		return nil
	}
	return fmt.Errorf("%s sets spec.minReadySeconds to %s, which is not the workload's", what, text(seconds))
}

// areObjects checks that a patch removes no member as a whole, as a null in a merge patch does.
func areObjects(body object) error {
	for _, member := range sortedKeys(body) {
		if _, isObject := body[member].(object); !isObject {
			return fmt.Errorf("its patch sets %s to what is no object", member)
		}
	}
	return nil
}

func sortedKeys(members object) []string {
	keys := make([]string, 0, len(members))
	for key := range members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
