package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
)

// trial is one sync: a controller with its own caches and API.
type trial struct {
	cluster  *cluster
	api      *api
	recorder *recorder
	queue    *queue
	// backoff is nil if the controller has none.
	backoff *flowcontrol.Backoff
	// expectations is nil if the controller has none.
	expectations controller.ControllerExpectationsInterface
	sync         func(ctx context.Context, key string) error
	// key is the key of the workload in queues and expectations.
	key string
}

// queues is the type of a controller's queue.
type queues = workqueue.TypedRateLimitingInterface[string]

// newTrial creates upstream's controller for a case with these caches. Its goroutines end with `ctx`.
func newTrial(ctx context.Context, client kubernetes.Interface, c *cluster, caches *caches) (*trial, error) {
	t := &trial{
		cluster:  c,
		api:      newAPI(c),
		recorder: &recorder{},
		key:      cache.MetaObjectToName(c.subject()).String(),
	}
	if c.Echo {
		t.api.onPatch = func(resource string, object apiObject) {
			if informer, ok := caches.of(resource); ok {
				_ = informer.indexer.Update(object)
			}
		}
	}
	if err := c.kind.start(ctx, t, client, caches); err != nil {
		return nil, err
	}
	return t, t.expect()
}

// takeQueue replaces the controller's queue.
func (t *trial) takeQueue(of any, name string) error {
	own, err := field[queues](of, name)
	if err != nil {
		return err
	}
	// The queue has goroutines.
	(*own).ShutDown()
	t.queue = &queue{TypedRateLimitingInterface: *own, key: t.key, retries: t.cluster.Retries}
	*own = t.queue
	return nil
}

// takePodControl replaces the event recorder of what writes pods.
func (t *trial) takePodControl(of any) error {
	podControl, err := field[controller.PodControlInterface](of, "podControl")
	if err != nil {
		return err
	}
	control, ok := (*podControl).(controller.RealPodControl)
	if !ok {
		return fmt.Errorf("upstream has changed: podControl is a %T", *podControl)
	}
	control.Recorder = t.recorder
	*podControl = control
	return nil
}

// takeSync makes a sync of the whole step that a worker makes with a key: it also decides what becomes of the key.
func (t *trial) takeSync(of any, step func(ctx context.Context)) error {
	handler, err := field[func(ctx context.Context, key string) error](of, "syncHandler")
	if err != nil {
		return err
	}
	own, result := *handler, error(nil)
	*handler = func(ctx context.Context, key string) error {
		result = own(ctx, key)
		return result
	}
	t.sync = func(ctx context.Context, _ string) error {
		result = nil
		step(ctx)
		return result
	}
	return nil
}

// expect sets the case's expectations with the age in the case.
func (t *trial) expect() error {
	want := t.cluster.Expectations
	if want == nil || t.expectations == nil {
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
	inUse.Store(t.api)
	if err := t.attempt(ctx, o); err != nil {
		o.Error = told(err)
	}
	o.Calls = append([]recordedCall{}, t.api.calls...)
	o.Sequence = sequence(t.api.calls)
	o.Events = append([]recordedEvent{}, t.recorder.events...)
	o.Requeue = append([]float64{}, t.queue.requeue...)
	o.Queue = t.queue.asked
	var err error
	if o.Stored, err = t.api.stored(); err != nil {
		return nil, err
	}
	if o.Expectations, err = t.outstanding(); err != nil {
		return nil, err
	}
	if o.Backoff, err = readBackoff(t.backoff, t.cluster.subject()); err != nil {
		return nil, err
	}
	return o.sorted(!t.cluster.kind.inOrder), nil
}

// outstanding returns the expectations.
func (t *trial) outstanding() (*outstanding, error) {
	if t.expectations == nil {
		return nil, nil
	}
	left, exists, err := t.expectations.GetExpectations(t.key)
	if err != nil {
		return nil, fmt.Errorf("reading expectations: %w", err)
	}
	if !exists {
		return nil, nil
	}
	adds, dels := left.GetExpectations()
	return &outstanding{Adds: adds, Dels: dels}, nil
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
