package main

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
)

// trial is one sync: a controller with its own caches and API.
type trial struct {
	cluster      *cluster
	api          *api
	backoff      *flowcontrol.Backoff
	recorder     *recorder
	queue        *queue
	expectations controller.ControllerExpectationsInterface
	sync         func(ctx context.Context, key string) error
	// key is the key of the DaemonSet in queues and expectations.
	key string
}

// newTrial creates upstream's controller for a case with these caches. Its goroutines end with `ctx`.
func newTrial(ctx context.Context, client kubernetes.Interface, c *cluster, caches *caches) (*trial, error) {
	t := &trial{
		cluster:  c,
		api:      newAPI(c),
		backoff:  newBackoff(c),
		recorder: &recorder{},
		key:      cache.MetaObjectToName(c.subject()).String(),
	}
	if c.Echo {
		t.api.onPod = func(pod *core.Pod) { _ = caches.pods.indexer.Update(pod) }
	}
	dsc, err := daemon.NewDaemonSetsController(
		ctx,
		daemonSetInformer{caches.daemonSets},
		revisionInformer{caches.revisions},
		podInformer{caches.pods},
		nodeInformer{caches.nodes},
		client,
		t.backoff,
	)
	if err != nil {
		return nil, fmt.Errorf("making the controller: %w", err)
	}
	if err := t.take(dsc); err != nil {
		return nil, err
	}
	return t, t.expect()
}

// take replaces the controller's queue and event recorders, sets its burst, and reads its expectations and sync
// handler.
func (t *trial) take(dsc *daemon.DaemonSetsController) error {
	type queues = workqueue.TypedRateLimitingInterface[string]
	own, err := field[queues](dsc, "queue")
	if err != nil {
		return err
	}
	nodes, err := field[queues](dsc, "nodeUpdateQueue")
	if err != nil {
		return err
	}
	// The queues have goroutines.
	(*own).ShutDown()
	(*nodes).ShutDown()
	t.queue = &queue{TypedRateLimitingInterface: *own}
	*own = t.queue

	if err := setField[record.EventRecorder](dsc, "eventRecorder", t.recorder); err != nil {
		return err
	}
	podControl, err := field[controller.PodControlInterface](dsc, "podControl")
	if err != nil {
		return err
	}
	control, ok := (*podControl).(controller.RealPodControl)
	if !ok {
		return fmt.Errorf("upstream has changed: podControl is a %T", *podControl)
	}
	control.Recorder = t.recorder
	*podControl = control

	if err := setField(dsc, "burstReplicas", t.cluster.Burst); err != nil {
		return err
	}
	expectations, err := field[controller.ControllerExpectationsInterface](dsc, "expectations")
	if err != nil {
		return err
	}
	t.expectations = *expectations
	handler, err := field[func(ctx context.Context, key string) error](dsc, "syncHandler")
	if err != nil {
		return err
	}
	t.sync = *handler
	return nil
}

// expect sets the case's expectations with the age in the case. Upstream computes their age with the real clock.
func (t *trial) expect() error {
	want := t.cluster.Expectations
	if want == nil {
		return nil
	}
	logger := klog.Background()
	if err := t.expectations.SetExpectations(logger, t.key, want.Adds, want.Dels); err != nil {
		return fmt.Errorf("setting expectations: %w", err)
	}
	set, exists, err := t.expectations.GetExpectations(t.key)
	if err != nil || !exists {
		return fmt.Errorf("expectations that were just set: present %t, error %w", exists, err)
	}
	return setField(set, "timestamp", time.Now().Add(-time.Duration(want.AgeSeconds)*time.Second))
}

// do syncs once and returns the outcome.
func (t *trial) do(ctx context.Context) (*outcome, error) {
	o := &outcome{}
	if err := t.attempt(withAPI(ctx, t.api), o); err != nil {
		o.Error = told(err)
	}
	o.Calls = append([]recordedCall{}, t.api.calls...)
	o.Sequence = sequence(t.api.calls)
	o.Events = append([]recordedEvent{}, t.recorder.events...)
	o.Requeue = append([]float64{}, t.queue.requeue...)
	if left, exists, err := t.expectations.GetExpectations(t.key); err != nil {
		return nil, fmt.Errorf("reading expectations: %w", err)
	} else if exists {
		adds, dels := left.GetExpectations()
		o.Expectations = &outstanding{Adds: adds, Dels: dels}
	}
	var err error
	o.Backoff, err = readBackoff(t.backoff, t.cluster.subject())
	return o.sorted(), err
}

// attempt syncs once. A panic is part of the outcome and does not end the program.
func (t *trial) attempt(ctx context.Context, o *outcome) error {
	defer func() {
		if panicked := recover(); panicked != nil {
			o.Panic = fmt.Sprint(panicked)
		}
	}()
	return t.sync(ctx, t.key)
}
