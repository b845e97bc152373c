package convert

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/nodewisev1"
)

// DaemonSet converts a typed DaemonSet for a snapshot.
//
// A typed object has lost every field that is newer than the k8s.io/api that decoded it. A template that has lost a field is another template: the
// plan would create a revision for it and replace all pods. Use this function for objects that you have just made, or that no newer
// apiserver has served. A controller should use [ServedDaemonSet] with objects of [nodewise.dev/clients/go/served].
func DaemonSet(daemonSet *appsv1.DaemonSet) (*nodewisev1.DaemonSet, error) {
	text, err := marshal("DaemonSet", daemonSet.DeepCopy())
	if err != nil {
		return nil, err
	}
	return ServedDaemonSet(text), nil
}

// ServedDaemonSet wraps the JSON of a DaemonSet as an apiserver served it.
func ServedDaemonSet(object []byte) *nodewisev1.DaemonSet {
	return &nodewisev1.DaemonSet{Object: object}
}

// ServedRolloutPolicy wraps the JSON of a RolloutPolicy as an apiserver served it.
func ServedRolloutPolicy(object []byte) *nodewisev1.RolloutPolicy {
	return &nodewisev1.RolloutPolicy{Object: object}
}

// ControllerRevision converts a typed ControllerRevision for a snapshot.
//
// The bytes of the data may change: if the object was read as Protobuf, if the data has blanks, or if it has characters that encoding/json
// escapes. The bytes decide whether a revision is the one of a template, so prefer [ServedControllerRevision].
func ControllerRevision(revision *appsv1.ControllerRevision) (*nodewisev1.ControllerRevision, error) {
	text, err := marshal("ControllerRevision", revision.DeepCopy())
	if err != nil {
		return nil, err
	}
	return ServedControllerRevision(text), nil
}

// ServedControllerRevision wraps the JSON of a ControllerRevision as an apiserver served it.
func ServedControllerRevision(object []byte) *nodewisev1.ControllerRevision {
	return &nodewisev1.ControllerRevision{Object: object}
}

// marshal removes the managed fields of an object, and encodes it as JSON.
func marshal(kind string, object metav1.Object) ([]byte, error) {
	object.SetManagedFields(nil)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s/%s as JSON: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return text, nil
}
