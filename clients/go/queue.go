package nodewise

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// maxFirstInARow is how many keys of the first class may be taken in a row while other keys wait, so that these are never starved.
	maxFirstInARow = 8
	// longWork is how long work on a key may take. After longer work the key may not take the spare worker the next time: a few such
	// keys would keep that worker busy.
	longWork = time.Second
)

// wakeWorker is a key that only wakes a worker. A queue of client-go wakes a worker only when a key is added, and not when a waiting key
// becomes urgent.
var wakeWorker = types.NamespacedName{}

// classQueue is the order in which a work queue gives out keys. Keys of the first class come before normal keys, and each class is in order of
// arrival. Normal keys never occupy all workers: one worker is left for the first class, so that a new node gets its pods while every other
// worker is busy with a rollout.
type classQueue struct {
	clock clock.PassiveClock
	// most is how many normal or long-running keys may be in work at the same time.
	most int

	mu sync.Mutex
	// marked are keys that join the first class when they are pushed.
	marked        map[types.NamespacedName]bool
	first, normal []types.NamespacedName
	firstInARow   int
	// wakes is true if [wakeWorker] was pushed.
	wakes bool
	// inWork are the keys in work.
	inWork map[types.NamespacedName]inWork
	// long are keys whose last work took longer than [longWork].
	long map[types.NamespacedName]bool
}

// inWork is since when a key is in work, and whether it counts towards [classQueue.most].
type inWork struct {
	since  time.Time
	counts bool
}

var _ workqueue.Queue[types.NamespacedName] = (*classQueue)(nil)

func newClassQueue(most int, clock clock.PassiveClock) *classQueue {
	return &classQueue{
		clock:  clock,
		most:   most,
		marked: map[types.NamespacedName]bool{},
		inWork: map[types.NamespacedName]inWork{},
		long:   map[types.NamespacedName]bool{},
	}
}

// mark moves a key to the first class. It reports whether the key was waiting among the normal keys.
func (q *classQueue) mark(key types.NamespacedName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.marked[key] = true
	index := slices.Index(q.normal, key)
	if index < 0 {
		return false
	}
	q.normal = slices.Delete(q.normal, index, index+1)
	q.first = append(q.first, key)
	return true
}

// Touch implements [workqueue.Queue]. It is called when a waiting key is added again.
func (q *classQueue) Touch(types.NamespacedName) {}

// Push implements [workqueue.Queue].
func (q *classQueue) Push(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case key == wakeWorker:
		q.wakes = true
	case q.marked[key]:
		q.first = append(q.first, key)
	default:
		q.normal = append(q.normal, key)
	}
}

// next returns the class of the next key, and the index of the key in it; nil if no key can be taken now.
func (q *classQueue) next() (class *[]types.NamespacedName, index int) {
	counting := 0
	for _, work := range q.inWork {
		if work.counts {
			counting++
		}
	}
	hasRoom := counting < q.most
	if hasRoom && len(q.normal) > 0 && (len(q.first) == 0 || q.firstInARow >= maxFirstInARow) {
		return &q.normal, 0
	}
	index = slices.IndexFunc(q.first, func(key types.NamespacedName) bool { return hasRoom || !q.long[key] })
	if index < 0 {
		return nil, 0
	}
	return &q.first, index
}

// Len implements [workqueue.Queue]. It is 0 if no key can be taken now. A worker that ends its work takes the next one.
func (q *classQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if class, _ := q.next(); class == nil && !q.wakes {
		return 0
	}
	return max(len(q.first)+len(q.normal), 1)
}

// Pop implements [workqueue.Queue].
func (q *classQueue) Pop() types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wakes {
		q.wakes = false
		return wakeWorker
	}
	class, index := q.next()
	key, isFirst := (*class)[index], class == &q.first
	*class = slices.Delete(*class, index, index+1)
	q.firstInARow++
	if !isFirst {
		q.firstInARow = 0
	}
	delete(q.marked, key)
	q.inWork[key] = inWork{since: q.clock.Now(), counts: !isFirst || q.long[key]}
	return key
}

// done records that work on a key has ended.
func (q *classQueue) done(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.long, key)
	if q.clock.Since(q.inWork[key].since) > longWork {
		q.long[key] = true
	}
	delete(q.inWork, key)
}

// workQueue is a work queue of client-go with two classes.
type workQueue struct {
	workqueue.TypedDelayingInterface[types.NamespacedName]
	classes *classQueue
}

// newWorkQueue makes a queue for this many workers, and one more for the first class.
func newWorkQueue(name string, workers int) *workQueue {
	classes := newClassQueue(workers, clock.RealClock{})
	return &workQueue{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: name, Queue: classes}),
		}),
		classes: classes,
	}
}

// AddFirst adds a key to the first class after a delay.
func (q *workQueue) AddFirst(key types.NamespacedName, delay time.Duration) {
	switch {
	case q.classes.mark(key):
		q.Add(wakeWorker)
	case delay > 0:
		q.AddAfter(key, delay)
	default:
		q.Add(key)
	}
}

// Get waits for the next key. It returns true if the queue has ended.
func (q *workQueue) Get() (key types.NamespacedName, ended bool) {
	for {
		key, ended = q.TypedDelayingInterface.Get()
		if ended || key != wakeWorker {
			return key, ended
		}
		q.TypedDelayingInterface.Done(key)
	}
}

// Done ends work on a key.
func (q *workQueue) Done(key types.NamespacedName) {
	q.classes.done(key)
	q.TypedDelayingInterface.Done(key)
}
