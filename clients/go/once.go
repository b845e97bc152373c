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

// Explainer explains why a workload runs, or does not run, on nodes. [*planclient.Client] is one.
type Explainer interface {
	// Explain asks whether the workload of this uid runs on each node, or on one, and which rule decides that.
	Explain(ctx context.Context, uid string, build planclient.BuildExplainRequest) (*nodewisev1.ExplainResponse, error)
}

var _ Explainer = (*planclient.Client)(nil)

var errNoExplainer = errors.New("there is no Explainer: give the client that planclient.New makes, and look at its error first")

// PlanOnce asks what would happen next for one DaemonSet, as the cluster is now. It changes nothing. It uses only the options
// [WithPlanOptions] and [WithClock], so it also plans for a DaemonSet that a [Reconciler] with the same options would not select.
func PlanOnce(
	ctx context.Context, cluster *rest.Config, planner Planner, namespace, name string, options ...Option,
) (*nodewisev1.Plan, error) {
	switch {
	case cluster == nil:
		return nil, errors.New("there is no configuration of the cluster: give a *rest.Config to nodewise.PlanOnce")
	case isNil(planner):
		return nil, errNoPlanner
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	taken, err := snapshotOnce(ctx, cluster, key, options)
	if err != nil {
		return nil, err
	}
	sent := len(taken.snapshot.GetWorkload().GetDaemonSet().GetRolloutPolicies())
	answer, err := planner.Plan(ctx, taken.uid, func(planclient.Receiver) (*nodewisev1.PlanRequest, error) {
		return &nodewisev1.PlanRequest{Snapshot: taken.snapshot, Options: taken.options}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("planning DaemonSet %s: %w", key, err)
	}
	if len(answer.Plan.GetRolloutPolicyUids()) != sent {
		return nil, fmt.Errorf("planning DaemonSet %s: it has a RolloutPolicy, and the service is too old to heed it", key)
	}
	return answer.Plan, nil
}

// ExplainOnce asks, for one node, whether one DaemonSet runs there as the cluster is now, and which rule decides that. With an empty
// node name it asks for every node. It changes nothing, and uses the same options as [PlanOnce].
func ExplainOnce(
	ctx context.Context, cluster *rest.Config, explainer Explainer, namespace, name, node string, options ...Option,
) (*nodewisev1.ExplainResponse, error) {
	switch {
	case cluster == nil:
		return nil, errors.New("there is no configuration of the cluster: give a *rest.Config to nodewise.ExplainOnce")
	case isNil(explainer):
		return nil, errNoExplainer
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	taken, err := snapshotOnce(ctx, cluster, key, options)
	if err != nil {
		return nil, err
	}
	answer, err := explainer.Explain(ctx, taken.uid, func(planclient.Receiver) (*nodewisev1.ExplainRequest, error) {
		return &nodewisev1.ExplainRequest{Snapshot: taken.snapshot, Options: taken.options, NodeName: node}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("explaining DaemonSet %s: %w", key, err)
	}
	return answer, nil
}

// Simulator plays the rollout of a workload. [*planclient.Client] is one.
type Simulator interface {
	// Simulate plays the rollout of the workload of this uid to its end, and calls each with every step and with the end.
	Simulate(
		ctx context.Context, uid string, build planclient.BuildSimulateRequest, each func(*nodewisev1.SimulateResponse) error,
	) error
}

var _ Simulator = (*planclient.Client)(nil)

var errNoSimulator = errors.New("there is no Simulator: give the client that planclient.New makes, and look at its error first")

// SimulateOnce plays the rollout of one DaemonSet to its end, from the cluster as it is now, and calls each with every step as it comes,
// and at last with the end. It changes nothing, and uses the same options as [PlanOnce]. An error of each ends the play. Without
// assumptions, those of the service apply.
func SimulateOnce(
	ctx context.Context, cluster *rest.Config, simulator Simulator, namespace, name string,
	assumptions *nodewisev1.SimulationAssumptions, each func(*nodewisev1.SimulateResponse) error, options ...Option,
) error {
	switch {
	case cluster == nil:
		return errors.New("there is no configuration of the cluster: give a *rest.Config to nodewise.SimulateOnce")
	case isNil(simulator):
		return errNoSimulator
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	taken, err := snapshotOnce(ctx, cluster, key, options)
	if err != nil {
		return err
	}
	build := func(planclient.Receiver) (*nodewisev1.SimulateRequest, error) {
		return &nodewisev1.SimulateRequest{Snapshot: taken.snapshot, Options: taken.options, Assumptions: assumptions}, nil
	}
	if err := simulator.Simulate(ctx, taken.uid, build, each); err != nil {
		return fmt.Errorf("simulating DaemonSet %s: %w", key, err)
	}
	return nil
}

// takenSnapshot is what a request about one DaemonSet needs.
type takenSnapshot struct {
	snapshot *nodewisev1.Snapshot
	uid      string
	options  *nodewisev1.PlanOptions
}

// snapshotOnce takes a snapshot from the apiserver, not from caches.
func snapshotOnce(
	ctx context.Context, cluster *rest.Config, key types.NamespacedName, options []Option,
) (takenSnapshot, error) {
	config, err := configured(options)
	if err != nil {
		return takenSnapshot{}, err
	}
	snapshot, uid, err := readOnce(ctx, cluster, key, config.callTimeout)
	if err != nil {
		return takenSnapshot{}, fmt.Errorf("taking a snapshot of DaemonSet %s: %w", key, err)
	}
	snapshot.Now = timestamppb.New(config.clock())
	if daemonSet := snapshot.GetWorkload().GetDaemonSet(); len(daemonSet.GetRolloutPolicies()) > 0 {
		daemonSet.AnalysisHosts = config.measurer.Hosts()
	}
	return takenSnapshot{snapshot: snapshot, uid: string(uid), options: config.options}, nil
}

// readOnce reads all objects of a snapshot once. All nodes are in one bucket and all pods in another, inline.
func readOnce(
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
	policies, err := policiesOnce(ctx, raw, daemonSet, callTimeout)
	if err != nil {
		return nil, "", err
	}
	nodeReads := []convert.Reads{reads}
	for _, policy := range policies {
		sent := convert.ServedRolloutPolicy(policy.JSON)
		snapshot.GetWorkload().GetDaemonSet().RolloutPolicies = append(snapshot.GetWorkload().GetDaemonSet().RolloutPolicies, sent)
		nodeReads = append(nodeReads, convert.ReadsOfRolloutPolicy(policy.JSON))
	}
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
		convert.ReduceNode(node, convert.NodeKeys(nodeReads...))
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
