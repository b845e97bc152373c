package nodewise

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"nodewise.dev/clients/go/nodewisev1"
)

// Option changes how a [Reconciler] works.
type Option func(*config)

type config struct {
	name      string
	namespace string
	// selection is all of what a DaemonSet must be selected by to be owned.
	selection    []selects
	workers      int
	buckets      uint32
	options      *nodewisev1.PlanOptions
	concurrency  int
	callTimeout  time.Duration
	rest         time.Duration
	unreachable  time.Duration
	resync       time.Duration
	drainTimeout time.Duration
	manager      string
	observe      bool
	recorder     record.EventRecorder
	limiter      workqueue.TypedRateLimiter[types.NamespacedName]
	pods, nodes  cache.SharedIndexInformer
	clock        func() time.Time

	tracers        trace.TracerProvider
	maxTracedCalls int
	annotatesPods  bool
	// mistakes are what is wrong with the options.
	mistakes []error
}

// configured is what these options make of the defaults.
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
	if config.limiter == nil {
		config.limiter = newLimiter(maxBackoff(config.options))
	}
	return config, errors.Join(config.mistakes...)
}

// maxBackoff is how long a workload that failed waits at most for its next try. Upstream waits for up to 1,000 s: long after a quota was
// raised or a webhook mended, nothing happens. A minute is enough to spare an apiserver.
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
		workers:     2,
		buckets:     64,
		options:     &nodewisev1.PlanOptions{},
		concurrency: 250,
		callTimeout: 30 * time.Second,
		rest:        20 * time.Millisecond,
		unreachable: 5 * time.Second,
		// Upstream's 12 to 24 hours, at random so that several controllers do not do it together (D-107).
		resync:       resyncPeriod(),
		drainTimeout: 10 * time.Second,
		manager:      "nodewise-go",
		clock:        time.Now,

		tracers:        otel.GetTracerProvider(),
		maxTracedCalls: 32,
	}
}

// WithName sets the name of the controller, in metrics and logs: nodewise if not set. Reconcilers of one program need different names,
// and must not own the same DaemonSets: see [WithNamespace], [WithSelector] and [WithPredicate].
func WithName(name string) Option {
	return func(c *config) { c.name = name }
}

// WithNamespace owns the DaemonSets of one namespace only. Those of all namespaces are owned if it is not set.
func WithNamespace(namespace string) Option {
	return func(c *config) { c.namespace = namespace }
}

// WithWorkers sets how many workloads [Reconciler.Run] reconciles at the same time: 2 if not set. Besides these there is one worker
// for what is urgent, so that a new node gets its pods though every other worker is in the middle of a rollout.
func WithWorkers(workers int) Option {
	return func(c *config) { c.workers = max(workers, 1) }
}

// WithBuckets sets how many buckets nodes and pods are sent in: 64 if not set. At most what the service accepts.
func WithBuckets(buckets uint32) Option {
	return func(c *config) { c.buckets = max(buckets, 1) }
}

// WithPlanOptions sets how to plan: the default profile, with upstream's burst, if not set.
func WithPlanOptions(options *nodewisev1.PlanOptions) Option {
	return func(c *config) { c.options = options }
}

// WithConcurrency sets the most calls to the apiserver at a time, for one plan: 250, which is a burst, if not set.
func WithConcurrency(calls int) Option {
	return func(c *config) { c.concurrency = max(calls, 1) }
}

// WithCallTimeout sets the longest wait for one answer of the apiserver: 30 seconds if not set.
func WithCallTimeout(timeout time.Duration) Option {
	return func(c *config) { c.callTimeout = timeout }
}

// WithRest sets how long a workload is left alone after each look at it, so that a burst of events makes one call: 20 milliseconds
// if not set. The first event after a quiet time is heeded at once, and retries come when they are due.
func WithRest(rest time.Duration) Option {
	return func(c *config) { c.rest = rest }
}

// WithUnreachableDelay sets when a workload is tried again after the service could not be reached: after 5 seconds if not set.
func WithUnreachableDelay(delay time.Duration) Option {
	return func(c *config) { c.unreachable = delay }
}

// WithResync sets after which time every workload is looked at though nothing happened: 12 to 24 hours, at random, if not set; 0 is
// never.
func WithResync(period time.Duration) Option {
	return func(c *config) { c.resync = period }
}

// WithDrainTimeout sets how long workers may go on with what they have in hand once they are told to stop: 10 seconds if not
// set.
func WithDrainTimeout(timeout time.Duration) Option {
	return func(c *config) { c.drainTimeout = timeout }
}

// WithFieldManager sets the name under which is written: nodewise-go if not set.
func WithFieldManager(name string) Option {
	return func(c *config) { c.manager = name }
}

// WithObserveOnly writes nothing: what would be written is logged. For running beside the controller that is in charge.
func WithObserveOnly() Option {
	return func(c *config) { c.observe = true }
}

// WithEventRecorder emits Events through this recorder. If it is not set, [Reconciler.Run] and [Reconciler.Start] make one that
// speaks as daemonset-controller, the name that people and tools look for.
func WithEventRecorder(recorder record.EventRecorder) Option {
	return func(c *config) { c.recorder = recorder }
}

// WithRateLimiter sets how [Reconciler.Run] slows failed workloads down. If it is not set, each waits for 5 milliseconds at first, and then for
// twice as long after each failure, up to [Reconciler.MaxBackoff]; all together are tried 10 times a second.
func WithRateLimiter(limiter workqueue.TypedRateLimiter[types.NamespacedName]) Option {
	return func(c *config) {
		if limiter == nil {
			c.mistakes = append(c.mistakes, errors.New("WithRateLimiter was given nil: leave the option out for the default"))
			return
		}
		c.limiter = limiter
	}
}

// WithPodInformer takes pods from an informer that the program has already, which may have any transform that keeps what
// [nodewise.dev/clients/go/convert.SlimPod] does.
//
// It must show all pods of the cluster, or of the namespace of [WithNamespace]: without a label or field selector. For a node whose pod it
// hides another one would be created. Reconciles fail and say so where that is found out, which is before pods are created and, of new ones,
// some two minutes after they were; it is no more than a safeguard, since only some pods are looked at.
//
// Of such an informer's first list more is asked than most give: it must be a
// most-recent read, see [nodewise.dev/clients/go/served.MostRecent]; if it is not, a controller that is started again may for a
// moment see less than it had written before. An informer also tells its handlers of a pod a little later than a watch of the
// Reconciler's own would: of an orphan that was made just before its DaemonSet it may hear too late, so that a pod more is
// made, and taken away again. If it is not set, the Reconciler watches pods itself, and keeps only projections of those that
// concern it.
//
// Own writes are waited for as with watches of the Reconciler's own: no plan is made until everything has arrived here that the
// informer's store had at a version not older than the write. The store tells its version with client-go's feature AtomicFIFO, which
// is on if nobody turned it off; where it is off no plan is made, and [Reconciler.Ready] says why.
//
// After a restore of etcd from a backup an informer may show nothing new for a long time, unlike the watches of the Reconciler:
// start the program again then.
func WithPodInformer(informer cache.SharedIndexInformer) Option {
	return func(c *config) { c.pods = informer }
}

// WithNodeInformer takes nodes from an informer that the program has already; see [WithPodInformer]. It must show all nodes: a node that it
// hides is one that does not exist, and gets no pod. That is not found out.
func WithNodeInformer(informer cache.SharedIndexInformer) Option {
	return func(c *config) { c.nodes = informer }
}

// WithClock sets the clock that snapshots are taken by.
func WithClock(now func() time.Time) Option {
	return func(c *config) { c.clock = now }
}

// WithTracerProvider makes spans with this provider: with the global one if not set. Give the client of the service the same, with
// [nodewise.dev/clients/go/planclient.WithTracerProvider].
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.tracers = provider }
}

// WithMaxTracedCalls sets the most actions of a batch whose calls to the apiserver have a span each: 32 if not set. A batch with more
// has only its own, and the apiserver is told to record nothing. 0 is none, whatever the batch.
func WithMaxTracedCalls(calls int) Option {
	return func(c *config) { c.maxTracedCalls = calls }
}

// WithTraceparentAnnotation lets pods that are created carry the annotation [nodewise.dev/clients/go/convert.TraceparentAnnotation], with
// the trace context of the batch that created them. None do if it is not set.
func WithTraceparentAnnotation() Option {
	return func(c *config) { c.annotatesPods = true }
}

// isEnabled tells whether a deviation that is on by default is on.
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
