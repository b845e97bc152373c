package nodewise

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
)

// maxTriggers is how many events a reconcile tells of, the first ones, and how many of the traces that they come from.
const maxTriggers = 8

// trigger is an event that woke a workload.
type trigger struct {
	resource cluster.Resource
	object   types.NamespacedName
	// seen is when it was seen.
	seen time.Time
	// traceparent is the trace context that the object carries; empty for none.
	traceparent string
}

// name is that of the object, with its namespace if it has one.
func (t *trigger) name() string {
	if t.object.Namespace == "" {
		return t.object.Name
	}
	return t.object.String()
}

// triggerOf is what a transition has to tell, with the traces of pods: that of the DaemonSet itself is told of every reconcile.
func triggerOf(transition *cluster.Transition, seen time.Time) trigger {
	told := trigger{seen: seen}
	switch {
	case transition.DaemonSet != nil:
		told.resource, told.object = cluster.DaemonSets, latest(transition.DaemonSet).Key
	case transition.Pod != nil:
		pod := latest(transition.Pod)
		told.resource, told.traceparent = cluster.Pods, pod.Traceparent
		told.object = types.NamespacedName{Namespace: pod.Namespace, Name: pod.GetName()}
	case transition.Node != nil:
		told.resource, told.object = cluster.Nodes, types.NamespacedName{Name: latest(transition.Node).GetName()}
	case transition.Revision != nil:
		revision := latest(transition.Revision)
		told.resource = cluster.Revisions
		told.object = types.NamespacedName{Namespace: revision.Namespace, Name: revision.Name}
	}
	return told
}

// latest is the last that is known of an object.
func latest[T any](change *cluster.Change[T]) *T {
	if change.New != nil {
		return change.New
	}
	return change.Old
}

// causes are why a workload is in the queue, and since when.
type causes struct {
	// triggers are at most maxTriggers.
	triggers []trigger
	// ready is since when it waits to be taken, and delayed when it is to be put in; zero for none. Of several delays a queue keeps the
	// one that is over first.
	ready, delayed time.Time
}

func (c *causes) note(trigger trigger) {
	if len(c.triggers) < maxTriggers {
		c.triggers = append(c.triggers, trigger)
	}
}

// due notes that it is added to the queue after a delay.
func (c *causes) due(now time.Time, delay time.Duration) {
	c.arrive(now)
	at := now.Add(delay)
	if delay == 0 {
		c.ready = earlier(c.ready, at)
	} else {
		c.delayed = earlier(c.delayed, at)
	}
}

// arrive lets it wait to be taken if the delay is over.
func (c *causes) arrive(now time.Time) {
	if !c.delayed.IsZero() && !c.delayed.After(now) {
		c.ready, c.delayed = earlier(c.ready, c.delayed), time.Time{}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// woken is what woke a workload that is taken out of the queue.
type woken struct {
	triggers []trigger
	// waited is how long it could have been taken; nil if it was put into the queue by somebody else.
	waited *time.Duration
}

// note notes an event that is about to wake a workload.
func (w *waker) note(key types.NamespacedName, trigger trigger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.causesOf(key).note(trigger)
}

// take is what has woken a workload since it was taken last.
func (w *waker) take(key types.NamespacedName) woken {
	w.mu.Lock()
	defer w.mu.Unlock()
	causes := w.causes[key]
	if causes == nil {
		return woken{}
	}
	now := w.clock.Now()
	causes.arrive(now)
	taken := woken{triggers: causes.triggers}
	if !causes.ready.IsZero() {
		waited := now.Sub(causes.ready)
		taken.waited = &waited
	}
	causes.triggers, causes.ready = nil, time.Time{}
	if causes.delayed.IsZero() {
		delete(w.causes, key)
	}
	return taken
}

// causesOf is called with the lock held.
func (w *waker) causesOf(key types.NamespacedName) *causes {
	known := w.causes[key]
	if known == nil {
		known = &causes{}
		w.causes[key] = known
	}
	return known
}
