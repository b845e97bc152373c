package convert

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/nodewisev1"
)

// TraceparentAnnotation is the annotation of a pod or DaemonSet with the W3C traceparent of the operation that created or changed it.
const TraceparentAnnotation = "nodewise.dev/traceparent"

// Pod projects a Pod. The error is a [FieldError].
func Pod(pod *corev1.Pod) (*nodewisev1.Pod, error) {
	switch {
	case pod.Name == "":
		return nil, missing("Pod", &pod.ObjectMeta, "metadata.name")
	case pod.UID == "":
		return nil, missing("Pod", &pod.ObjectMeta, "metadata.uid")
	}
	projection := &nodewisev1.Pod{
		Name:          pod.Name,
		Uid:           string(pod.UID),
		Labels:        Labels(pod.Labels),
		Controller:    Controller(pod.OwnerReferences),
		NodeName:      pod.Spec.NodeName,
		Phase:         podPhase(pod.Status.Phase),
		CreationTime:  Timestamp(pod.CreationTimestamp),
		DeletionTime:  optionalTimestamp(pod.DeletionTimestamp),
		HasFinalizers: len(pod.Finalizers) > 0,
	}
	switch {
	case mayBeOfReplicaSet(pod):
		projection.DeletionCost = deletionCost(pod)
		projection.Restarts, projection.SidecarRestarts = restarts(pod)
	case isOfDaemonSet(pod):
		projection.Restarts = mostRestarts(pod.Status.ContainerStatuses)
	}
	if pod.Spec.NodeName == "" {
		projection.TargetNodeName = targetNodeName(pod.Spec.Affinity)
	}
	if ready := readyCondition(pod); ready != nil {
		projection.Ready = conditionStatus(ready.Status)
		projection.ReadyTransitionTime = Timestamp(ready.LastTransitionTime)
	}
	return projection, nil
}

// mayBeOfReplicaSet reports whether a plan for a ReplicaSet may read a pod: a ReplicaSet controls it, or nobody does. Only of these pods the fields
// are projected that say which pod a ReplicaSet deletes first, so that a restart of a container changes nothing for other kinds.
func mayBeOfReplicaSet(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller == nil || controller.Kind == "ReplicaSet"
}

// isOfDaemonSet reports whether a DaemonSet controls a pod. RolloutPolicies read how often the containers of such pods have restarted.
func isOfDaemonSet(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && controller.Kind == "DaemonSet"
}

// maxDeletionCost is the longest text of a deletion cost that is sent. It is an integer of 32 bits, so a longer one is not valid, and counts as 0
// like an absent one. A client may write an annotation of any size.
const maxDeletionCost = 64

func deletionCost(pod *corev1.Pod) string {
	if cost := text(pod.Annotations[corev1.PodDeletionCost]); len(cost) <= maxDeletionCost {
		return cost
	}
	return ""
}

// restarts returns how often the container was restarted that was restarted most often, and the same of sidecars.
func restarts(pod *corev1.Pod) (regular, sidecars uint32) {
	isSidecar := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			isSidecar[pod.Spec.InitContainers[i].Name] = true
		}
	}
	regular = mostRestarts(pod.Status.ContainerStatuses)
	for i := range pod.Status.InitContainerStatuses {
		if of := &pod.Status.InitContainerStatuses[i]; isSidecar[of.Name] {
			sidecars = max(sidecars, uint32(max(of.RestartCount, 0)))
		}
	}
	return regular, sidecars
}

func mostRestarts(statuses []corev1.ContainerStatus) (most uint32) {
	for i := range statuses {
		most = max(most, uint32(max(statuses[i].RestartCount, 0)))
	}
	return most
}

// slimRestarts keeps of each container what [restarts] reads.
func slimRestarts(slim, pod *corev1.Pod) {
	for i := range pod.Spec.InitContainers {
		if of := &pod.Spec.InitContainers[i]; of.RestartPolicy != nil {
			slim.Spec.InitContainers = append(slim.Spec.InitContainers, corev1.Container{Name: of.Name, RestartPolicy: of.RestartPolicy})
		}
	}
	slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses)
	slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses)
}

func slimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var restarted []corev1.ContainerStatus
	for i := range statuses {
		if statuses[i].RestartCount > 0 {
			restarted = append(restarted, corev1.ContainerStatus{Name: statuses[i].Name, RestartCount: statuses[i].RestartCount})
		}
	}
	return restarted
}

// SlimPod is a cache.TransformFunc that keeps of a Pod its identity, the fields that [Pod] reads, and its [TraceparentAnnotation]. These are a few
// hundred bytes of several thousand.
func SlimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(&pod.ObjectMeta),
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if pod.Spec.NodeName == "" && pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		slim.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required},
		}
	}
	for _, name := range []string{TraceparentAnnotation, corev1.PodDeletionCost} {
		if value := pod.Annotations[name]; value != "" {
			if slim.Annotations == nil {
				slim.Annotations = map[string]string{}
			}
			slim.Annotations[name] = value
		}
	}
	switch {
	case mayBeOfReplicaSet(pod):
		slimRestarts(slim, pod)
	case isOfDaemonSet(pod):
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses)
	}
	if ready := readyCondition(pod); ready != nil {
		slim.Status.Conditions = []corev1.PodCondition{{
			Type: ready.Type, Status: ready.Status, LastTransitionTime: ready.LastTransitionTime,
		}}
	}
	return slim, nil
}

// TargetNode returns the name of the node that a pod is on or is meant for; empty for none (D-24). The hash of the name selects the pod's bucket.
func TargetNode(pod *nodewisev1.Pod) string {
	if pod.GetNodeName() != "" {
		return pod.GetNodeName()
	}
	return pod.GetTargetNodeName()
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodReady {
			return condition
		}
	}
	return nil
}

// targetNodeName returns the node that the required node affinity names (D-24). The first matchFields entry with the key metadata.name and the
// operator In decides, over all terms in order. If that entry does not have exactly one value, there is no target.
func targetNodeName(affinity *corev1.Affinity) string {
	if affinity == nil || affinity.NodeAffinity == nil {
		return ""
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			if len(field.Values) == 1 {
				return field.Values[0]
			}
			return ""
		}
	}
	return ""
}

func podPhase(phase corev1.PodPhase) nodewisev1.PodPhase {
	switch phase {
	case corev1.PodPending:
		return nodewisev1.PodPhase_POD_PHASE_PENDING
	case corev1.PodRunning:
		return nodewisev1.PodPhase_POD_PHASE_RUNNING
	case corev1.PodSucceeded:
		return nodewisev1.PodPhase_POD_PHASE_SUCCEEDED
	case corev1.PodFailed:
		return nodewisev1.PodPhase_POD_PHASE_FAILED
	case corev1.PodUnknown:
		return nodewisev1.PodPhase_POD_PHASE_UNKNOWN
	default:
		return nodewisev1.PodPhase_POD_PHASE_UNSPECIFIED
	}
}
