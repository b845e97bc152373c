package nodewise

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
)

// maxTriggers is how many events the span of a reconcile has, the first ones, and to how many traces of such events it is linked.
const maxTriggers = 8

// trigger is a watch event that enqueued a workload.
type trigger struct {
	resource cluster.Resource
	object   types.NamespacedName
	// seen is when the watch showed the event.
	seen time.Time
	// traceparent is the trace context that the object carries; empty for none.
	traceparent string
}

// name is the name of the object, with its namespace if it has one.
func (t *trigger) name() string {
	if t.object.Namespace == "" {
		return t.object.Name
	}
	return t.object.String()
}

// triggerOf describes a transition. The trace context is that of a pod only: every reconcile is linked to that of its workload anyway.
func triggerOf(transition *cluster.Transition, seen time.Time) trigger {
	made := trigger{seen: seen}
	switch {
	case transition.Workload != nil:
		made.resource, made.object = latest(transition.Workload).Kind.Resource, latest(transition.Workload).Key
	case transition.Pod != nil:
		pod := latest(transition.Pod)
		made.resource, made.traceparent = cluster.Pods, pod.Traceparent
		made.object = types.NamespacedName{Namespace: pod.Namespace, Name: pod.GetName()}
	case transition.Node != nil:
		made.resource, made.object = cluster.Nodes, types.NamespacedName{Name: latest(transition.Node).GetName()}
	case transition.Revision != nil:
		revision := latest(transition.Revision)
		made.resource = cluster.Revisions
		made.object = types.NamespacedName{Namespace: revision.Namespace, Name: revision.Name}
	case transition.Policy != nil:
		made.resource, made.object = cluster.RolloutPolicies, latest(transition.Policy).Key
	}
	return made
}

// latest is the last known state of an object.
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
	// ready is since when the workload can be taken from the queue; zero if it cannot.
	ready time.Time
	// delayed is when the workload will be ready; zero if it was added without a delay. Of several delays the queue keeps the shortest.
	delayed time.Time
}

func (c *causes) add(trigger trigger) {
	if len(c.triggers) < maxTriggers {
		c.triggers = append(c.triggers, trigger)
	}
}

// due records that the workload is added to the queue with a delay.
func (c *causes) due(now time.Time, delay time.Duration) {
	c.arrive(now)
	at := now.Add(delay)
	if delay == 0 {
		c.ready = earlier(c.ready, at)
	} else {
		c.delayed = earlier(c.delayed, at)
	}
}

// arrive makes the workload ready if the delay is over.
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

// reasons are why a workload was taken from the queue.
type reasons struct {
	triggers []trigger
	// waited is how long the workload was ready; nil if the program put it into the queue by itself.
	waited *time.Duration
}

// addTrigger records an event that is about to enqueue a workload.
func (e *enqueuer) addTrigger(key types.NamespacedName, trigger trigger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.causesOf(key).add(trigger)
}

// takeReasons returns why a workload was enqueued since the last call.
func (e *enqueuer) takeReasons(key types.NamespacedName) reasons {
	e.mu.Lock()
	defer e.mu.Unlock()
	causes := e.causes[key]
	if causes == nil {
		return reasons{}
	}
	now := e.clock.Now()
	causes.arrive(now)
	taken := reasons{triggers: causes.triggers}
	if !causes.ready.IsZero() {
		waited := now.Sub(causes.ready)
		taken.waited = &waited
	}
	causes.triggers, causes.ready = nil, time.Time{}
	if causes.delayed.IsZero() {
		delete(e.causes, key)
	}
	return taken
}

// causesOf is called with the lock held.
func (e *enqueuer) causesOf(key types.NamespacedName) *causes {
	known := e.causes[key]
	if known == nil {
		known = &causes{}
		e.causes[key] = known
	}
	return known
}
