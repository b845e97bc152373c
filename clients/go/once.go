package nodewise

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
	"nodewise.dev/clients/go/served"
)

// PlanOnce asks what would happen next for one DaemonSet, as the cluster is now, and changes nothing. Of the options those count that say
// how to plan, [WithPlanOptions], and at which time, [WithClock]: it is asked about this DaemonSet whether it is selected or not.
func PlanOnce(
	ctx context.Context, cluster *rest.Config, planner Planner, namespace, name string, options ...Option,
) (*nodewisev1.Plan, error) {
	switch {
	case cluster == nil:
		return nil, errors.New("there is no configuration of the cluster: give a *rest.Config to nodewise.PlanOnce")
	case isNil(planner):
		return nil, errNoPlanner
	}
	config, err := configured(options)
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	snapshot, uid, err := snapshotOnce(ctx, cluster, key, config.callTimeout)
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot of DaemonSet %s: %w", key, err)
	}
	snapshot.Now = timestamppb.New(config.clock())
	answer, err := planner.Plan(ctx, string(uid), func(func(planclient.Digest) bool) (*nodewisev1.PlanRequest, error) {
		return &nodewisev1.PlanRequest{Snapshot: snapshot, Options: config.options}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("planning DaemonSet %s: %w", key, err)
	}
	return answer.Plan, nil
}

// snapshotOnce reads everything once: all in one bucket, inline, as the simplest client does.
func snapshotOnce(
	ctx context.Context, cluster *rest.Config, key types.NamespacedName, callTimeout time.Duration,
) (*nodewisev1.Snapshot, types.UID, error) {
	client, err := rest.HTTPClientFor(cluster)
	if err != nil {
		return nil, "", err
	}
	raw, err := served.NewClient(cluster, client)
	if err != nil {
		return nil, "", err
	}
	typed, err := kubernetes.NewForConfigAndClient(cluster, client)
	if err != nil {
		return nil, "", err
	}
	apps := appsv1.SchemeGroupVersion
	daemonSet, err := raw.Get(ctx, apps.WithResource("daemonsets"), key)
	if err != nil {
		return nil, "", err
	}
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	pods, err := typed.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	snapshot := &nodewisev1.Snapshot{
		Workload: &nodewisev1.Workload{
			Kind: &nodewisev1.Workload_DaemonSet{DaemonSet: convert.ServedDaemonSet(daemonSet.JSON)},
		},
		CachesSynced: true,
		BucketCount:  1,
	}
	reads := convert.ReadsOf(daemonSet.JSON)
	concerns := func(object metav1.ObjectMeta) bool {
		if controller := convert.Controller(object.OwnerReferences); controller != nil {
			return controller.GetUid() == string(daemonSet.UID)
		}
		return reads.Selector.Matches(labels.Set(object.Labels))
	}
	err = raw.Each(ctx, apps.WithResource("controllerrevisions"), key.Namespace, callTimeout, func(revision *served.Object) {
		if concerns(revision.ObjectMeta) {
			snapshot.Revisions = append(snapshot.Revisions, convert.ServedControllerRevision(revision.JSON))
		}
	})
	if err != nil {
		return nil, "", err
	}
	var projectedNodes []*nodewisev1.Node
	for i := range nodes.Items {
		node, err := convert.Node(&nodes.Items[i])
		if err != nil {
			return nil, "", err
		}
		convert.ReduceNode(node, convert.NodeKeys(reads))
		projectedNodes = append(projectedNodes, node)
	}
	var projectedPods []*nodewisev1.Pod
	for i := range pods.Items {
		if !concerns(pods.Items[i].ObjectMeta) {
			continue
		}
		pod, err := convert.Pod(&pods.Items[i])
		if err != nil {
			return nil, "", err
		}
		convert.ReducePod(pod, convert.PodKeys(reads))
		projectedPods = append(projectedPods, pod)
	}
	if snapshot.NodeBuckets, err = convert.NodeBuckets(projectedNodes, 1); err != nil {
		return nil, "", err
	}
	if snapshot.PodBuckets, err = convert.PodBuckets(projectedPods, 1); err != nil {
		return nil, "", err
	}
	snapshot.DigestFunction = nodewisev1.DigestFunction_DIGEST_FUNCTION_SHA256
	return snapshot, daemonSet.UID, nil
}
