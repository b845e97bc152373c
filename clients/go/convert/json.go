package convert

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// NodeJSON projects a Node in JSON, for example from a dynamic client. The error is a [FieldError].
func NodeJSON(text []byte) (*nodewisev1.Node, error) {
	var read struct {
		objectJSON
		Spec struct {
			Unschedulable bool           `json:"unschedulable"`
			Taints        []corev1.Taint `json:"taints"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, read.wrong("Node", err)
	}
	meta, err := read.meta("Node")
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: meta}
	node.Spec.Unschedulable, node.Spec.Taints = read.Spec.Unschedulable, read.Spec.Taints
	for _, condition := range read.Status.Conditions {
		at, err := read.time("Node", "status.conditions.lastTransitionTime", condition.LastTransitionTime)
		if err != nil {
			return nil, err
		}
		made := corev1.NodeCondition{Type: corev1.NodeConditionType(condition.Type), Status: condition.Status}
		if at != nil {
			made.LastTransitionTime = *at
		}
		node.Status.Conditions = append(node.Status.Conditions, made)
	}
	return Node(node)
}

// PodJSON projects a Pod in JSON, for example from a dynamic client. The error is a [FieldError].
//
// PodJSON accepts every time that an apiserver stores. A time with a year of five digits cannot be decoded from JSON into a typed object: one
// such pod makes a typed list fail. From Protobuf it can be decoded.
func PodJSON(text []byte) (*nodewisev1.Pod, error) {
	var read struct {
		objectJSON
		Spec struct {
			NodeName       string           `json:"nodeName"`
			Affinity       *corev1.Affinity `json:"affinity"`
			InitContainers []struct {
				Name          string                         `json:"name"`
				RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
			} `json:"initContainers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, read.wrong("Pod", err)
	}
	meta, err := read.meta("Pod")
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: read.Spec.NodeName, Affinity: read.Spec.Affinity}}
	for _, container := range read.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: container.Name, RestartPolicy: container.RestartPolicy})
	}
	pod.Status.Phase = read.Status.Phase
	pod.Status.ContainerStatuses = read.Status.ContainerStatuses.typed()
	pod.Status.InitContainerStatuses = read.Status.InitContainerStatuses.typed()
	for _, condition := range read.Status.Conditions {
		at, err := read.time("Pod", "status.conditions.lastTransitionTime", condition.LastTransitionTime)
		if err != nil {
			return nil, err
		}
		made := corev1.PodCondition{Type: corev1.PodConditionType(condition.Type), Status: condition.Status}
		if at != nil {
			made.LastTransitionTime = *at
		}
		pod.Status.Conditions = append(pod.Status.Conditions, made)
	}
	return Pod(pod)
}

// objectJSON are the fields that are read of both nodes and pods. Times are strings, see [objectJSON.time].
type objectJSON struct {
	Metadata struct {
		Name              string                  `json:"name"`
		Namespace         string                  `json:"namespace"`
		UID               types.UID               `json:"uid"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		Finalizers        []string                `json:"finalizers"`
		CreationTimestamp *string                 `json:"creationTimestamp"`
		DeletionTimestamp *string                 `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase"`
		Conditions []struct {
			Type               string                 `json:"type"`
			Status             corev1.ConditionStatus `json:"status"`
			LastTransitionTime *string                `json:"lastTransitionTime"`
		} `json:"conditions"`
		ContainerStatuses     containersJSON `json:"containerStatuses"`
		InitContainerStatuses containersJSON `json:"initContainerStatuses"`
	} `json:"status"`
}

// containersJSON are the fields that are read of the statuses of containers.
type containersJSON []struct {
	Name         string `json:"name"`
	RestartCount int32  `json:"restartCount"`
}

func (c containersJSON) typed() []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range c {
		statuses = append(statuses, corev1.ContainerStatus{Name: container.Name, RestartCount: container.RestartCount})
	}
	return statuses
}

func (o *objectJSON) meta(kind string) (metav1.ObjectMeta, error) {
	read := &o.Metadata
	meta := metav1.ObjectMeta{
		Name: read.Name, Namespace: read.Namespace, UID: read.UID, Labels: read.Labels, Annotations: read.Annotations,
		OwnerReferences: read.OwnerReferences, Finalizers: read.Finalizers,
	}
	created, err := o.time(kind, "metadata.creationTimestamp", read.CreationTimestamp)
	if err != nil {
		return meta, err
	}
	if created != nil {
		meta.CreationTimestamp = *created
	}
	meta.DeletionTimestamp, err = o.time(kind, "metadata.deletionTimestamp", read.DeletionTimestamp)
	return meta, err
}

func (o *objectJSON) time(kind, path string, text *string) (*metav1.Time, error) {
	if text == nil {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, *text); err == nil {
		return &metav1.Time{Time: at}, nil
	}
	at, isBeyond := beyond(*text)
	if !isBeyond {
		return nil, o.at(kind, path, "not a time: "+*text)
	}
	return &metav1.Time{Time: at}, nil
}

// beyond reads a time whose year has a sign or more than four digits. It returns a time before the first or after the last one that the protocol
// allows.
func beyond(text string) (time.Time, bool) {
	digits, isNegative := strings.CutPrefix(text, "-")
	year, rest, _ := strings.Cut(digits, "-")
	isYear := strings.Trim(year, "0123456789") == "" && (len(year) > 4 || len(year) == 4 && isNegative)
	// The rest is checked as a time in the year 2000, which has a 29 February.
	if _, err := time.Parse(time.RFC3339, "2000-"+rest); err != nil || !isYear {
		return time.Time{}, false
	}
	if isNegative {
		return firstMoment.Add(-time.Second), true
	}
	return lastMoment.Add(time.Second), true
}

// wrong converts an error of encoding/json to a [FieldError].
func (o *objectJSON) wrong(kind string, err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		path := strings.TrimPrefix(mistyped.Field, "objectJSON.")
		return o.at(kind, path, "a JSON "+mistyped.Value+" does not fit")
	}
	return o.at(kind, ".", err.Error())
}

func (o *objectJSON) at(kind, path, reason string) error {
	return &FieldError{Kind: kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Path: path, Reason: reason}
}
