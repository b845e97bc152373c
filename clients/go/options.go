package nodewise

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// Option changes how a [Reconciler] works.
type Option func(*config)

type config struct {
	name      string
	namespace string
	// kinds are the owned kinds of workload.
	kinds []*kind
	// selection are the conditions that an owned workload must meet.
	selection    []selects
	workers      int
	buckets      uint32
	options      *nodewisev1.PlanOptions
	concurrency  int
	callTimeout  time.Duration
	cooldown     time.Duration
	unreachable  time.Duration
	resync       time.Duration
	drainTimeout time.Duration
	manager      string
	observe      bool
	recorder     record.EventRecorder
	limiter      workqueue.TypedRateLimiter[types.NamespacedName]
	pods, nodes  cache.SharedIndexInformer
	clock        func() time.Time
	measurer     analysis.Measurer

	tracers        trace.TracerProvider
	maxTracedCalls int
	annotatesPods  bool
	// mistakes are the errors of the options.
	mistakes []error
}

// configured applies options to the defaults.
func configured(options []Option) (config, error) {
	config := defaults()
	for _, option := range options {
		if option != nil {
			option(&config)
		}
	}
	for _, needed := range []struct {
		option string
		isNil  bool
	}{
		{"WithClock", config.clock == nil},
		{"WithTracerProvider", config.tracers == nil},
	} {
		if needed.isNil {
			config.mistakes = append(config.mistakes, fmt.Errorf("%s was given nil: leave the option out for the default", needed.option))
		}
	}
	if config.options.GetScope() == nodewisev1.Scope_SCOPE_ROLLOUTS &&
		slices.ContainsFunc(config.kinds, func(owned *kind) bool { return owned.Kind != cluster.DaemonSet }) {
		config.mistakes = append(config.mistakes, errors.New("SCOPE_ROLLOUTS is a scope of DaemonSets only: "+
			"make another Reconciler for the other kinds"))
	}
	return config, errors.Join(config.mistakes...)
}

// rateLimiter returns the rate limiter of [WithRateLimiter], or makes one.
func (c *config) rateLimiter() workqueue.TypedRateLimiter[types.NamespacedName] {
	if c.limiter != nil {
		return c.limiter
	}
	return newLimiter(maxBackoff(c.options))
}

// maxBackoff is the longest back-off of a workload that failed. Upstream waits for up to 1,000 s, so nothing happens long after a quota was
// raised or a webhook repaired. A minute is long enough to protect an apiserver.
func maxBackoff(options *nodewisev1.PlanOptions) time.Duration {
	if options.GetProfile() == nodewisev1.Profile_PROFILE_UPSTREAM_STRICT {
		return 1000 * time.Second
	}
	return time.Minute
}

func defaults() config {
	return config{
		name:        "nodewise",
		namespace:   corev1.NamespaceAll,
		kinds:       []*kind{kinds[DaemonSets]},
		workers:     2,
		buckets:     64,
		options:     &nodewisev1.PlanOptions{},
		concurrency: 250,
		callTimeout: 30 * time.Second,
		cooldown:    20 * time.Millisecond,
		unreachable: 5 * time.Second,
		// Upstream's 12 to 24 hours, at random so that several controllers do not resync at the same time (D-107).
		resync:       resyncPeriod(),
		drainTimeout: 10 * time.Second,
		manager:      "nodewise-go",
		clock:        time.Now,
		measurer:     noMeasurer{},

		tracers:        otel.GetTracerProvider(),
		maxTracedCalls: 32,
	}
}

// WithName sets the name of the controller, in metrics and logs: nodewise if not set. Reconcilers of one program need different names,
// and must not own the same workloads: see [WithNamespace], [WithSelector] and [WithPredicate].
func WithName(name string) Option {
	return func(c *config) { c.name = name }
}

// WithNamespace owns the workloads of one namespace only: those of all namespaces if not set.
func WithNamespace(namespace string) Option {
	return func(c *config) { c.namespace = namespace }
}

// WithWorkers sets how many workloads [Reconciler.Run] reconciles at the same time: 2 if not set. One more worker takes urgent workloads
// only, so that a new node gets its pods while every other worker is busy with a rollout.
func WithWorkers(workers int) Option {
	return func(c *config) { c.workers = max(workers, 1) }
}

// WithBuckets sets into how many buckets nodes and pods are divided: 64 if not set. The service limits the number.
func WithBuckets(buckets uint32) Option {
	return func(c *config) { c.buckets = max(buckets, 1) }
}

// WithPlanOptions sets the options of each plan: the default profile and upstream's burst if not set.
func WithPlanOptions(options *nodewisev1.PlanOptions) Option {
	return func(c *config) { c.options = options }
}

// WithConcurrency sets how many calls to the apiserver may be under way at the same time, for one plan: 250 if not set, which is the default
// burst.
func WithConcurrency(calls int) Option {
	return func(c *config) { c.concurrency = max(calls, 1) }
}

// WithCallTimeout sets the longest wait for a response of the apiserver: 30 seconds if not set.
func WithCallTimeout(timeout time.Duration) Option {
	return func(c *config) { c.callTimeout = timeout }
}

// WithCooldown sets the shortest time between a reconcile of a workload and the next one that an event causes, so that a burst of events
// leads to one reconcile: 20 milliseconds if not set. The first event after that time enqueues the workload at once. Retries come when they
// are due.
func WithCooldown(cooldown time.Duration) Option {
	return func(c *config) { c.cooldown = cooldown }
}

// WithUnreachableDelay sets when a workload is reconciled again after the service could not be reached: after 5 seconds if not set, and at
// least twice the time of the failed reconcile.
func WithUnreachableDelay(delay time.Duration) Option {
	return func(c *config) { c.unreachable = delay }
}

// WithResync sets how often every workload is reconciled although no event occurred: every 12 to 24 hours, at random, if not set. 0 means
// never.
func WithResync(period time.Duration) Option {
	return func(c *config) { c.resync = period }
}

// WithDrainTimeout sets how long reconciles that are under way may go on after the stop: 10 seconds if not set.
func WithDrainTimeout(timeout time.Duration) Option {
	return func(c *config) { c.drainTimeout = timeout }
}

// WithFieldManager sets the field manager of all writes: nodewise-go if not set.
func WithFieldManager(name string) Option {
	return func(c *config) { c.manager = name }
}

// WithObserveOnly writes nothing, and logs what would be written. Use it to run beside the controller that is in charge.
func WithObserveOnly() Option {
	return func(c *config) { c.observe = true }
}

// WithEventRecorder emits Events through this recorder. If not set, [Reconciler.Run] and [Reconciler.Start] make a recorder whose Events have
// the source daemonset-controller, replicaset-controller or deployment-controller, the names that people and tools look for.
func WithEventRecorder(recorder record.EventRecorder) Option {
	return func(c *config) { c.recorder = recorder }
}

// WithRateLimiter sets the back-off of failed workloads in [Reconciler.Run]. With several kinds, workloads of the same name share it. If not set, each workload waits for 5 milliseconds at first, and
// for twice as long after each further failure, up to [Reconciler.MaxBackoff]. All failed workloads together are retried 10 times a
// second.
func WithRateLimiter(limiter workqueue.TypedRateLimiter[types.NamespacedName]) Option {
	return func(c *config) {
		if limiter == nil {
			c.mistakes = append(c.mistakes, errors.New("WithRateLimiter was given nil: leave the option out for the default"))
			return
		}
		c.limiter = limiter
	}
}

// WithPodInformer takes pods from an informer of the program. If not set, the Reconciler watches pods itself, and keeps only projections of
// the pods that it needs. The informer may have any transform that keeps what [nodewise.dev/clients/go/convert.SlimPod] keeps.
//
// The informer must show all pods of the cluster, or of the namespace of [WithNamespace]. It must not have a label or field selector: on a
// node whose pod it hides, a second pod would be created. As a safeguard the Reconciler reads some pods from the apiserver before it creates
// pods, and about two minutes after it has created some. If the informer hides one of them, the reconcile fails and says so.
//
// The first list of the informer must be a most-recent read, see [nodewise.dev/clients/go/served.MostRecent]. Otherwise a controller that is
// restarted may at first see fewer pods than it has created. An informer also notifies its handlers a little later than a watch of the
// Reconciler would. So an orphan that was created just before its DaemonSet may be seen too late: then one pod too many is created and deleted
// again.
//
// The Reconciler waits for its own writes as it does with its own watches: it requests no plan until it has received everything that the
// informer's store had at a version not older than the write. The store reports its version with client-go's feature AtomicFIFO, which is on
// by default. If it is off, no plan is requested, and [Reconciler.Ready] says why.
//
// After etcd was restored from a backup an informer may show nothing new for a long time, unlike the watches of the Reconciler. Restart the
// program then.
func WithPodInformer(informer cache.SharedIndexInformer) Option {
	return func(c *config) { c.pods = informer }
}

// WithNodeInformer takes nodes from an informer of the program; see [WithPodInformer]. The informer must show all nodes: a node that it hides
// gets no pod, and the Reconciler cannot detect that.
func WithNodeInformer(informer cache.SharedIndexInformer) Option {
	return func(c *config) { c.nodes = informer }
}

// WithClock sets the clock for the time of snapshots.
func WithClock(now func() time.Time) Option {
	return func(c *config) { c.clock = now }
}

// WithTracerProvider sets the provider of spans: the global one if not set. Give the same provider to the client of the service, with
// [nodewise.dev/clients/go/planclient.WithTracerProvider].
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.tracers = provider }
}

// WithMaxTracedCalls sets up to how many actions of a batch each call to the apiserver has a span: 32 if not set. A batch with more actions
// has only one span, and its calls are sent as not sampled, so that the apiserver records none. With 0 no call has a span.
func WithMaxTracedCalls(calls int) Option {
	return func(c *config) { c.maxTracedCalls = calls }
}

// WithTraceparentAnnotation adds the annotation [nodewise.dev/clients/go/convert.TraceparentAnnotation] to created pods, with the trace
// context of the batch that creates them. Off if not set.
func WithTraceparentAnnotation() Option {
	return func(c *config) { c.annotatesPods = true }
}

// isEnabled reports whether a deviation that is on by default is on.
func isEnabled(options *nodewisev1.PlanOptions, deviation nodewisev1.Deviation) bool {
	names := func(list []nodewisev1.Deviation) bool {
		for _, named := range list {
			if named == deviation {
				return true
			}
		}
		return false
	}
	if names(options.GetEnabledDeviations()) {
		return true
	}
	return options.GetProfile() != nodewisev1.Profile_PROFILE_UPSTREAM_STRICT && !names(options.GetDisabledDeviations())
}
