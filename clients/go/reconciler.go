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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

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

// Reconciler owns the DaemonSets of a cluster or of a namespace, or those of them that are selected. With [WithKinds] it owns workloads of other
// kinds. It can be started once: a program that becomes the leader again makes a new one, because the state of the old one is outdated.
type Reconciler struct {
	config  config
	rest    *rest.Config
	client  *http.Client
	planner Planner
	tracer  trace.Tracer
	caches  *caches
	// typed reads pods and nodes.
	typed   kubernetes.Interface
	started atomic.Bool
	watches watches
	// discovery is the time between two looks whether an optional resource is installed by now.
	discovery time.Duration
	// controllers are the controllers of the owned kinds, in the order of [WithKinds].
	controllers []*controller
}

// controller reconciles the workloads of one kind.
type controller struct {
	*Reconciler

	kind     *kind
	enqueuer *enqueuer
	state    *state
	writer   write.Writer
	limiter  workqueue.TypedRateLimiter[types.NamespacedName]
	// failures counts how often in a row each workload has failed. Refusals do not count.
	failures   workqueue.TypedRateLimiter[types.NamespacedName]
	prefetched prefetchedPlans
	requeues   requeueTokens
	// conflicts is the back-off of workloads whose policy was changed by somebody else while a plan was made.
	conflicts    workqueue.TypedRateLimiter[types.NamespacedName]
	measurements *measurements
}

func (r *Reconciler) newController(of *kind) *controller {
	enqueuer := newEnqueuer(r.config.cooldown, clock.RealClock{})
	return &controller{
		Reconciler: r,
		kind:       of,
		enqueuer:   enqueuer,
		state:      r.caches.addState(of, r.config.options, enqueuer),
		limiter:    r.config.rateLimiter(),
		failures:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](0, 0),
		requeues:   requeueTokens{tokens: map[types.NamespacedName]tokens{}},
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](
			5*time.Millisecond, maxBackoff(r.config.options)),
		measurements: newMeasurements(r.config.measurer, enqueuer.enqueue),
		prefetched:   prefetchedPlans{plans: map[types.NamespacedName]prefetchedPlan{}},
	}
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
	made := &Reconciler{
		config:  config,
		rest:    unlimited,
		client:  client,
		planner: planner,
		tracer:  traces.Tracer(config.tracers),
		caches:  newCaches(config.buckets, config.kinds),
		watches: newWatches(),

		discovery: discoveryPeriod,
	}
	made.caches.restored = made.watches.restored
	for _, owned := range config.kinds {
		made.controllers = append(made.controllers, made.newController(owned))
	}
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
	r.caches.mu.Lock()
	defer r.caches.mu.Unlock()
	return r.caches.store.Synced()
}

// Kinds returns the kinds of workload that are owned, see [WithKinds].
func (r *Reconciler) Kinds() []Kind {
	owned := make([]Kind, 0, len(r.controllers))
	for _, controller := range r.controllers {
		owned = append(owned, Kind(controller.kind.Name))
	}
	return owned
}

// controllerOf returns the controller of a kind; nil if the kind is not owned.
func (r *Reconciler) controllerOf(of Kind) *controller {
	for _, controller := range r.controllers {
		if Kind(controller.kind.Name) == of {
			return controller
		}
	}
	return nil
}

// makeWriters makes the writers of all controllers. They emit Events until the context ends.
func (r *Reconciler) makeWriters(ctx context.Context) error {
	recorderOf := func(*kind) record.EventRecorder { return r.config.recorder }
	if r.config.recorder == nil {
		clients, err := kubernetes.NewForConfigAndClient(r.rest, r.client)
		if err != nil {
			return fmt.Errorf("making a client of %s: %w", r.rest.Host, err)
		}
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events(corev1.NamespaceAll)})
		recorderOf = func(of *kind) record.EventRecorder {
			return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: of.eventSource})
		}
	}
	kube, err := write.NewKube(r.rest, r.client, r.config.manager, r.config.callTimeout, nil)
	if err != nil {
		return err
	}
	for _, controller := range r.controllers {
		controller.writer = kube.WithRecorder(recorderOf(controller.kind))
		if r.config.observe {
			controller.writer = write.NewObserver(controller.writer)
		}
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
