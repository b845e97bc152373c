package convert

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/nodewisev1"
)

// DaemonSet turns a typed DaemonSet into what a snapshot carries.
//
// A typed object has lost every field that is newer than the k8s.io/api that read it, and a template that lost one is another
// template: the plan would make a revision of it and replace all pods. Use this for objects that you have just made, or
// that no newer apiserver served. A controller sends what was served, see [nodewise.dev/clients/go/served]; [ServedDaemonSet]
// takes that.
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

// ControllerRevision turns a typed ControllerRevision into what a snapshot carries.
//
// Its data keeps its bytes in a typed object, unless it came by Protobuf or was written with blanks or with characters that
// encoding/json writes as escapes. Which data a revision has decides whether it is the one of a template: prefer
// [ServedControllerRevision].
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

// marshal writes an object, which it changes, as an apiserver would have served it.
func marshal(kind string, object metav1.Object) ([]byte, error) {
	object.SetManagedFields(nil)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s/%s as JSON: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return text, nil
}
