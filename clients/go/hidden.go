package nodewise

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// hiddenSample is how many pods are read from the apiserver to find one that an informer hides.
	hiddenSample = 50
	// hiddenDelay is when a workload is reconciled again whose new pods an informer has not shown. By then a bookmark has advanced the
	// informer to the version at which the pods were created: the apiserver sends one each minute.
	hiddenDelay = 75 * time.Second
)

// requireShown returns an error if the informer of [WithPodInformer] hides an existing pod of the workload, because the informer is filtered.
// The plan would create a second pod on the node. It looks for such pods only if the plan creates pods, or expects created pods.
func (r *controller) requireShown(ctx context.Context, planned *planned) error {
	if r.config.pods == nil || !awaitsPods(planned.plan) {
		return nil
	}
	hidden, err := r.findHidden(ctx, planned.workload)
	if err != nil {
		// This check is only a safeguard, so the plan is applied without it.
		klog.FromContext(ctx).V(1).Info("Could not look for pods that the informer does not show", "reason", brief.Text(err.Error()))
		return nil
	}
	if hidden == nil {
		return nil
	}
	return &failure{reason: fmt.Errorf("the informer of WithPodInformer does not show the pod %s/%s, which exists: it must show all pods; "+
		"give one without a label or field selector, or leave the option out", hidden.Namespace, hidden.Name)}
}

// awaitsPods reports whether a plan creates pods, or expects pods that were created before.
func awaitsPods(plan *nodewisev1.Plan) bool {
	if len(plan.GetState().GetExpectations().GetCreates()) > 0 {
		return true
	}
	return slices.ContainsFunc(plancheck.ActionsOf(plan), func(action *nodewisev1.Action) bool { return action.GetCreatePod() != nil })
}

// findHidden returns an existing pod of a workload that the informer does not show; nil if there is none among the first [hiddenSample].
func (r *controller) findHidden(ctx context.Context, workload *cluster.Workload) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.callTimeout)
	defer cancel()
	if _, selects := workload.Selector.Requirements(); !selects {
		return nil, nil
	}
	live, store := r.typed.CoreV1().Pods(workload.Key.Namespace), r.config.pods.GetStore()
	listed, err := live.List(ctx, metav1.ListOptions{LabelSelector: workload.Selector.String(), Limit: hiddenSample})
	if err != nil {
		return nil, err
	}
	for i := range listed.Items {
		pod := &listed.Items[i]
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller == nil || controller.UID != workload.UID {
			continue
		}
		// The version is read before the object, so the store is at least as new as the version.
		order, ok := gate.Compare(pod.ResourceVersion, store.LastStoreSyncResourceVersion())
		if !ok || order > 0 {
			continue
		}
		if _, shown, err := store.GetByKey(cache.NewObjectName(pod.Namespace, pod.Name).String()); shown || err != nil {
			continue
		}
		// The pod may have been deleted since the list. If it is still the same, it existed all the time.
		now, err := live.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.UID == pod.UID && now.ResourceVersion == pod.ResourceVersion {
			return pod, nil
		}
	}
	return nil, nil
}
