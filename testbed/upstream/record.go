package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// outcome is the outcome of one sync.
type outcome struct {
	Panic        string          `json:"panic,omitempty"`
	Error        string          `json:"error,omitempty"`
	Calls        []recordedCall  `json:"calls"`
	Sequence     []string        `json:"sequence"`
	Events       []recordedEvent `json:"events"`
	Requeue      []float64       `json:"requeue"`
	Queue        []string        `json:"queue,omitempty"`
	Stored       []storedObject  `json:"stored,omitempty"`
	Expectations *outstanding    `json:"expectations"`
	Backoff      []backoffEntry  `json:"backoff"`
}

// sequence returns the order of the kinds of writes, with one word for consecutive calls of one kind. Many goroutines
// create and delete pods concurrently, so these count as one kind.
func sequence(calls []recordedCall) []string {
	words := []string{}
	for _, call := range calls {
		word := call.Op
		if word == "create-pod" || word == "delete-pod" {
			word = "pods"
		}
		words = append(words, word)
	}
	return slices.Compact(words)
}

// recordedEvent is an event in an outcome.
type recordedEvent struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (a recordedEvent) compare(b recordedEvent) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
}

// storedObject is what the sync changed of an object that it wrote: a JSON merge patch from the object before the sync to
// the object after it. An object that was not there before is whole, one that is no longer there is null.
type storedObject struct {
	Resource string          `json:"resource"`
	Name     string          `json:"name"`
	Changes  json.RawMessage `json:"changes"`
}

func (a storedObject) compare(b storedObject) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
}

// outstanding are the creates and deletes that the controller still expects. Its counters may be negative.
type outstanding struct {
	Adds int64 `json:"adds"`
	Dels int64 `json:"dels"`
}

// recorder is the controller's event recorder. A real one sends events later, from its own goroutine.
type recorder struct {
	mutex  sync.Mutex
	events []recordedEvent
}

var _ record.EventRecorder = &recorder{}

func (r *recorder) Event(_ runtime.Object, eventType, reason, message string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.events = append(r.events, recordedEvent{Type: eventType, Reason: reason, Message: message})
}

func (r *recorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	r.Eventf(object, eventType, reason, format, args...)
}

// The calls of a controller on its queue that are in outcomes besides those with a delay.
const (
	queueForget      = "forget"
	queueRateLimited = "rate limited"
)

// queue is the controller's queue. It records what the controller asks of it, and hands out one key, once.
type queue struct {
	// The controller's original queue, shut down.
	workqueue.TypedRateLimitingInterface[string]
	key     string
	retries int
	requeue []float64
	asked   []string
}

func (q *queue) Get() (key string, shutdown bool) { return q.key, false }

func (q *queue) Done(string) {}

func (q *queue) AddAfter(_ string, after time.Duration) {
	q.requeue = append(q.requeue, after.Seconds())
}

func (q *queue) AddRateLimited(string) { q.asked = append(q.asked, queueRateLimited) }

func (q *queue) Forget(string) { q.asked = append(q.asked, queueForget) }

// NumRequeues is how often the key failed before.
func (q *queue) NumRequeues(string) int { return q.retries }

// sorted sorts the parts of an outcome that have no order; `calls` is whether the calls have none.
func (o *outcome) sorted(calls bool) *outcome {
	if calls {
		slices.SortFunc(o.Calls, recordedCall.compare)
	}
	slices.SortFunc(o.Stored, storedObject.compare)
	slices.SortFunc(o.Events, recordedEvent.compare)
	slices.SortFunc(o.Backoff, backoffEntry.compare)
	slices.Sort(o.Requeue)
	return o
}
