package nodewise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// component is the source of Events about DaemonSets. It is the same as upstream's, because people and tools look for that name.
const component = "daemonset-controller"

// Planner plans. [*planclient.Client] is one.
//
// A Planner that wraps another one must return that one's errors, which it may wrap: a [*planclient.UnreachableError] does not count as
// a failure of the workload. It must return an error of the build function unchanged. It may also implement [HealthChecker].
type Planner interface {
	// Plan asks what must happen next for the workload of this uid.
	Plan(ctx context.Context, uid string, build planclient.BuildRequest) (*planclient.Answer, error)
	// Report sends the outcomes of a plan.
	Report(ctx context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
}

// HealthChecker may be implemented by a [Planner], for [Reconciler.Ready]. [*planclient.Client] implements it. A Planner that wraps another
// one should return that one's health. Without the method, [Reconciler.Ready] uses the result of the last call of Plan.
type HealthChecker interface {
	// Health returns nil if the service can be reached, and otherwise why not.
	Health() error
}

var _ HealthChecker = (*planclient.Client)(nil)

// Reconciler owns the DaemonSets of a cluster or of a namespace, or those of them that are selected. It can be started once: a program that
// becomes the leader again makes a new one, because the state of the old one is outdated.
type Reconciler struct {
	config   config
	rest     *rest.Config
	client   *http.Client
	planner  Planner
	tracer   trace.Tracer
	enqueuer *enqueuer
	state    *state
	writer   write.Writer
	// typed reads pods and nodes.
	typed      kubernetes.Interface
	prefetched prefetchedPlans
	requeues   requeueTokens
	started    atomic.Bool
	watches    watches
}

// New makes a Reconciler for the cluster of a configuration. It makes no calls before it is started.
//
// The QPS limit and the rate limiter of the configuration are ignored: a plan limits how many pods are created at once, and the apiserver
// has API priority and fairness.
func New(kube *rest.Config, planner Planner, options ...Option) (*Reconciler, error) {
	switch {
	case kube == nil:
		return nil, errors.New("there is no configuration of the cluster: give a *rest.Config to nodewise.New, such as mgr.GetConfig()")
	case isNil(planner):
		return nil, errNoPlanner
	}
	config, err := configured(options)
	if err != nil {
		return nil, err
	}
	unlimited := rest.CopyConfig(kube)
	unlimited.QPS, unlimited.RateLimiter = -1, nil
	client, err := rest.HTTPClientFor(unlimited)
	if err != nil {
		return nil, fmt.Errorf("making an HTTP client for %s: %w", kube.Host, err)
	}
	enqueuer := newEnqueuer(config.cooldown, clock.RealClock{})
	made := &Reconciler{
		config:     config,
		rest:       unlimited,
		client:     client,
		planner:    planner,
		tracer:     traces.Tracer(config.tracers),
		enqueuer:   enqueuer,
		state:      newState(config.buckets, config.options, enqueuer),
		requeues:   requeueTokens{tokens: map[types.NamespacedName]tokens{}},
		prefetched: prefetchedPlans{plans: map[types.NamespacedName]prefetchedPlan{}},
		watches: watches{
			errors: map[cluster.Resource]error{}, outdated: map[cluster.Resource]bool{}, open: map[cluster.Resource]watch.Interface{},
		},
	}
	made.state.restored = made.watches.restored
	return made, nil
}

var errNoPlanner = errors.New("there is no Planner: give the client that planclient.New makes, and look at its error first")

// isNil reports whether an interface value is nil or holds a nil pointer, as it does when the error of planclient.New was ignored.
func isNil(value any) bool {
	reflected := reflect.ValueOf(value)
	return value == nil || reflected.Kind() == reflect.Pointer && reflected.IsNil()
}

// Name is the name of the controller, see [WithName].
func (r *Reconciler) Name() string { return r.config.name }

// MaxBackoff is the longest back-off of a workload that failed: a minute, or 1,000 seconds with PROFILE_UPSTREAM_STRICT, as upstream. It is
// meant for programs with a work queue of their own. [Reconciler.Run] uses it, too, unless [WithRateLimiter] is given.
func (r *Reconciler) MaxBackoff() time.Duration { return maxBackoff(r.config.options) }

// Synced reports whether every cache has been filled. [Reconciler.Reconcile] must not be called before.
func (r *Reconciler) Synced() bool {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.store.Synced()
}

// makeWriter makes the writer. It emits Events until the context ends.
func (r *Reconciler) makeWriter(ctx context.Context) error {
	recorder := r.config.recorder
	if recorder == nil {
		clients, err := kubernetes.NewForConfigAndClient(r.rest, r.client)
		if err != nil {
			return fmt.Errorf("making a client of %s: %w", r.rest.Host, err)
		}
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events(corev1.NamespaceAll)})
		recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	}
	kube, err := write.NewKube(r.rest, r.client, r.config.manager, r.config.callTimeout, recorder)
	if err != nil {
		return err
	}
	r.writer = kube
	if r.config.observe {
		r.writer = write.NewObserver(kube)
	}
	return nil
}

func revisionKey(namespace, name string) write.Key {
	return write.Key{Resource: cluster.Revisions, Namespace: namespace, Name: name}
}

// resyncPeriod is 12 to 24 hours.
func resyncPeriod() time.Duration {
	return 12*time.Hour + rand.N(12*time.Hour)
}
