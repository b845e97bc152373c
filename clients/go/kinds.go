package nodewise

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// Kind is a kind of workload that a [Reconciler] can own, by its name in the API.
type Kind string

// The kinds of workload, of apps/v1.
const (
	DaemonSets  Kind = "DaemonSet"
	ReplicaSets Kind = "ReplicaSet"
	Deployments Kind = "Deployment"
)

// kind is what differs between the kinds of workload for a controller.
type kind struct {
	*cluster.Kind

	// eventSource is the source of Events. It is the name of the built-in controller, because people and tools look for that name.
	eventSource string
	// logKey is the key of the workload in logs.
	logKey string
	// maxRetries is how many times in a row a failed workload is retried before it waits for the next event; 0 for any number.
	maxRetries int
	// countsDeletions is true if upstream counts the deletions of pods, and does not track them by uid.
	countsDeletions bool
	// named and identified are the attributes of spans with the name and the uid of a workload.
	named, identified func(string) attribute.KeyValue
	// message is the workload in a snapshot, with what only its kind needs.
	message func(store *cluster.Store, workload *cluster.Workload, live *liveObjects) (sent *nodewisev1.Workload, leftOut int)
}

var kinds = map[Kind]*kind{
	DaemonSets: {
		Kind: cluster.DaemonSet, eventSource: "daemonset-controller", logKey: "daemonSet", countsDeletions: true,
		named: semconv.K8SDaemonSetName, identified: semconv.K8SDaemonSetUID,
		message: func(store *cluster.Store, workload *cluster.Workload, _ *liveObjects) (*nodewisev1.Workload, int) {
			daemonSet := convert.ServedDaemonSet(workload.JSON)
			for _, policy := range store.Policies(workload) {
				sent := convert.ServedRolloutPolicy(policy.JSON)
				sent.FormerTargetUids = store.FormerTargets(workload.Kind, policy)
				daemonSet.RolloutPolicies = append(daemonSet.RolloutPolicies, sent)
			}
			return &nodewisev1.Workload{Kind: &nodewisev1.Workload_DaemonSet{DaemonSet: daemonSet}}, 0
		},
	},
	ReplicaSets: {
		Kind: cluster.ReplicaSet, eventSource: "replicaset-controller", logKey: "replicaSet",
		named: semconv.K8SReplicaSetName, identified: semconv.K8SReplicaSetUID,
		message: func(store *cluster.Store, workload *cluster.Workload, _ *liveObjects) (*nodewisev1.Workload, int) {
			replicaSet := &nodewisev1.ReplicaSet{Object: workload.JSON, RelatedPods: store.RelatedPods(workload)}
			return &nodewisev1.Workload{Kind: &nodewisev1.Workload_ReplicaSet{ReplicaSet: replicaSet}}, 0
		},
	},
	Deployments: {
		// P-63.
		Kind: cluster.Deployment, eventSource: "deployment-controller", logKey: "deployment", maxRetries: 15,
		named: semconv.K8SDeploymentName, identified: semconv.K8SDeploymentUID,
		message: func(store *cluster.Store, workload *cluster.Workload, live *liveObjects) (*nodewisev1.Workload, int) {
			replicaSets, leftOut := replicaSetsOf(store, workload, live.workloads)
			deployment := &nodewisev1.Deployment{Object: workload.JSON, ReplicaSets: replicaSets}
			return &nodewisev1.Workload{Kind: &nodewisev1.Workload_Deployment{Deployment: deployment}}, leftOut
		},
	},
}

// reads reports whether plans for the kind are made from a resource.
func (k *kind) reads(resource cluster.Resource) bool { return slices.Contains(k.Inputs, resource) }

// WithKinds owns workloads of these kinds: DaemonSets only if not set. Only what these kinds need is watched. [WithSelector] holds for all of
// them, and [WithPredicate] for DaemonSets.
//
// ReplicaSets and Deployments are independent: a program may own only one of these kinds, if another controller owns the other one.
func WithKinds(owned ...Kind) Option {
	return func(c *config) {
		c.kinds = nil
		if len(owned) == 0 {
			c.mistakes = append(c.mistakes, errors.New("WithKinds was given no kind: leave the option out to own DaemonSets"))
		}
		for _, name := range owned {
			switch found := kinds[name]; {
			case found == nil:
				c.mistakes = append(c.mistakes, fmt.Errorf("WithKinds was given %q, which is no kind that a Reconciler owns: there are %s, %s and %s",
					name, DaemonSets, ReplicaSets, Deployments))
			case !slices.Contains(c.kinds, found):
				c.kinds = append(c.kinds, found)
			}
		}
	}
}

// replicaSetsOf returns the ReplicaSets in the snapshot of a Deployment: those that it controls, those without a controller that it selects, and
// those that were read from the apiserver because their names were taken. The last ones replace the cached ones of their names. If they do not fit
// into a request, orphans and then the oldest empty ones are left out.
func replicaSetsOf(
	store *cluster.Store, deployment *cluster.Workload, live []*cluster.Workload,
) (sent []*nodewisev1.DeploymentReplicaSet, leftOut int) {
	latest := latestOf(live, func(set *cluster.Workload) string { return set.Key.Name })
	names, room := sets.New[string](), cluster.MaxRevisionBytes
	for _, set := range latest {
		names.Insert(set.Key.Name)
		room -= len(set.JSON)
	}
	cached := slices.Concat(store.Controlled(cluster.ReplicaSet, deployment), store.Orphans(cluster.ReplicaSet, deployment))
	cached = slices.DeleteFunc(cached, func(set *cluster.Workload) bool { return names.Has(set.Key.Name) })
	fit := fitting(cached, room, func(set *cluster.Workload) int { return len(set.JSON) }, func(a, b *cluster.Workload) int {
		return cmp.Or(
			compareBools(a.Controller == nil, b.Controller == nil), compareBools(a.Replicas == 0, b.Replicas == 0),
			strings.Compare(b.Created, a.Created))
	})
	for _, set := range fit {
		message := &nodewisev1.DeploymentReplicaSet{Object: set.JSON}
		if deployment.Recreates {
			// Only a plan for this strategy waits for pods to finish.
			message.UnfinishedPods = uint32(min(store.UnfinishedPods(set), math.MaxUint32))
		}
		sent = append(sent, message)
	}
	for _, set := range latest {
		sent = append(sent, &nodewisev1.DeploymentReplicaSet{Object: set.JSON, ReadAfterNameCollision: true})
	}
	return sent, len(cached) - len(fit)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// liveObjects are objects that were read from the apiserver: a plan found their names taken, or the caches need not show them yet. In a snapshot
// they replace the cached objects of their names.
type liveObjects struct {
	revisions []*cluster.Revision
	// workloads are of the kind that the snapshot's workload controls.
	workloads []*cluster.Workload
}

func (l *liveObjects) isEmpty() bool { return len(l.revisions) == 0 && len(l.workloads) == 0 }

func (l *liveObjects) add(other *liveObjects) {
	l.revisions = append(l.revisions, other.revisions...)
	l.workloads = append(l.workloads, other.workloads...)
}

// latestOf returns the last object of each name, in order.
func latestOf[T comparable](objects []T, name func(T) string) []T {
	last := make(map[string]T, len(objects))
	for _, object := range objects {
		last[name(object)] = object
	}
	return slices.DeleteFunc(slices.Clone(objects), func(object T) bool { return last[name(object)] != object })
}
