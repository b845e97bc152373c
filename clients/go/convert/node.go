package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/nodewisev1"
)

// Node projects a Node. The error is a [FieldError].
func Node(node *corev1.Node) (*nodewisev1.Node, error) {
	if node.Name == "" {
		return nil, missing("Node", &node.ObjectMeta, "metadata.name")
	}
	projection := &nodewisev1.Node{
		Name:          node.Name,
		Uid:           string(node.UID),
		Labels:        Labels(node.Labels),
		Unschedulable: node.Spec.Unschedulable,
	}
	for i, taint := range node.Spec.Taints {
		if taint.Key == "" {
			path := fmt.Sprintf("spec.taints[%d]", i)
			return nil, &FieldError{Kind: "Node", Name: node.Name, Path: path, Reason: "it has no key"}
		}
		projection.Taints = append(projection.Taints, &nodewisev1.Taint{
			Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect),
		})
	}
	if ready := nodeCondition(node, corev1.NodeReady); ready != nil {
		projection.Ready = conditionStatus(ready.Status)
		projection.ReadyTransitionTime = Timestamp(ready.LastTransitionTime)
	}
	if maintenance := nodeCondition(node, maintenanceInProgress); maintenance != nil {
		projection.MaintenanceInProgress = maintenance.Status == corev1.ConditionTrue
	}
	return projection, nil
}

// maintenanceInProgress is the type of the condition of a node that is in maintenance.
const maintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"

// nodeCondition returns the first condition of a type, or nil.
func nodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == conditionType {
			return condition
		}
	}
	return nil
}

// SlimNode is a cache.TransformFunc that keeps of a Node its identity and the fields that [Node] reads.
func SlimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	slim := &corev1.Node{
		ObjectMeta: slimMeta(&node.ObjectMeta),
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
	}
	for _, conditionType := range []corev1.NodeConditionType{corev1.NodeReady, maintenanceInProgress} {
		if condition := nodeCondition(node, conditionType); condition != nil {
			// Without the heartbeat, which changes all the time.
			slim.Status.Conditions = append(slim.Status.Conditions, corev1.NodeCondition{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			})
		}
	}
	return slim, nil
}

func slimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         meta.Namespace,
		Name:              meta.Name,
		UID:               meta.UID,
		ResourceVersion:   meta.ResourceVersion,
		Labels:            meta.Labels,
		OwnerReferences:   meta.OwnerReferences,
		Finalizers:        meta.Finalizers,
		CreationTimestamp: meta.CreationTimestamp,
		DeletionTimestamp: meta.DeletionTimestamp,
	}
}

func conditionStatus(status corev1.ConditionStatus) nodewisev1.ConditionStatus {
	switch status {
	case corev1.ConditionTrue:
		return nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE
	case corev1.ConditionFalse:
		return nodewisev1.ConditionStatus_CONDITION_STATUS_FALSE
	default:
		return nodewisev1.ConditionStatus_CONDITION_STATUS_UNKNOWN
	}
}
