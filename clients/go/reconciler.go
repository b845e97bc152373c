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

// component is who events about DaemonSets come from: the name that people and tools look for.
const component = "daemonset-controller"

// Planner plans. [*planclient.Client] is one. A Planner that wraps another one gives on its errors, wrapped at most: an
// [*planclient.UnreachableError] is no failure of the workload, and what building the request ended with goes back as it is. It may be a
// [HealthChecker] besides.
type Planner interface {
	// Plan asks what must happen next for the workload of this uid.
	Plan(ctx context.Context, uid string, build planclient.BuildRequest) (*planclient.Answer, error)
	// Report says what became of a plan.
	Report(ctx context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
}

// HealthChecker is what a [Planner] may be besides, for [Reconciler.Ready], as [*planclient.Client] is. A Planner that wraps another one
// gives on what that says, or leaves the method out: then the outcome of the last call counts.
type HealthChecker interface {
	// Health is why the service cannot be reached, and nil if it can.
	Health() error
}

var _ HealthChecker = (*planclient.Client)(nil)

// Reconciler owns the DaemonSets of a cluster or of a namespace, or those of them that are selected. It is used once: a program that becomes the
// leader again makes a new one, since what the old one remembers is not true any more.
type Reconciler struct {
	config  config
	rest    *rest.Config
	client  *http.Client
	planner Planner
	tracer  trace.Tracer
	waker   *waker
	state   *state
	writer  write.Writer
	// typed reads pods and nodes.
	typed   kubernetes.Interface
	next    nextPlans
	pace    pace
	started atomic.Bool
	watches watches
}

// New makes a Reconciler that works on the cluster of a configuration and asks this planner. It does not call before it is started.
//
// Limits of the configuration on calls per second do not count: a plan says how many pods are created at once, and the apiserver
// has fairness of its own.
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
	waker := newWaker(config.rest, clock.RealClock{})
	made := &Reconciler{
		config:  config,
		rest:    unlimited,
		client:  client,
		planner: planner,
		tracer:  traces.Tracer(config.tracers),
		waker:   waker,
		state:   newState(config.buckets, config.options, waker),
		pace:    pace{tokens: map[types.NamespacedName]tokens{}},
		next:    nextPlans{plans: map[types.NamespacedName]nextPlan{}},
		watches: watches{
			errors: map[cluster.Resource]error{}, outdated: map[cluster.Resource]bool{}, open: map[cluster.Resource]watch.Interface{},
		},
	}
	made.state.restored = made.watches.restored
	return made, nil
}

var errNoPlanner = errors.New("there is no Planner: give the client that planclient.New makes, and look at its error first")

// isNil tells whether there is no Planner, also where it is a pointer to nothing: so is the client where the error was not looked at.
func isNil(planner Planner) bool {
	value := reflect.ValueOf(planner)
	return planner == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

// Name is the name of the controller, see [WithName].
func (r *Reconciler) Name() string { return r.config.name }

// MaxBackoff is how long a workload that failed waits at most for its next try: a minute, or 1,000 seconds with PROFILE_UPSTREAM_STRICT, as
// upstream. It is for a queue of the program's own; with [WithRateLimiter] the limiter decides.
func (r *Reconciler) MaxBackoff() time.Duration { return maxBackoff(r.config.options) }

// Synced tells whether every cache has been filled: only then may [Reconciler.Reconcile] be called.
func (r *Reconciler) Synced() bool {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.store.Synced()
}

// makeWriter makes what writes, and lets it emit events until the context ends.
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
