package nodewise

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// mostFirstInARow is how many keys of the first class may be taken in a row while others wait: those are never left standing.
const mostFirstInARow = 8

// lanes is the order in which a work queue gives out keys: first those that are not to wait behind others, each class in order of
// arrival.
type lanes struct {
	mu sync.Mutex
	// marked are keys that are to be in the first class when they are pushed.
	marked map[types.NamespacedName]bool
	// urgent are keys in work that were of the first class.
	urgent        map[types.NamespacedName]bool
	first, inTurn []types.NamespacedName
	firstInARow   int
}

var _ workqueue.Queue[types.NamespacedName] = (*lanes)(nil)

func newLanes() *lanes {
	return &lanes{marked: map[types.NamespacedName]bool{}, urgent: map[types.NamespacedName]bool{}}
}

// mark lets a key be in the first class.
func (l *lanes) mark(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked[key] = true
}

// owe lets the next turn of a key in work be of the first class if this one is: it has come to nothing.
func (l *lanes) owe(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.urgent[key] {
		l.marked[key] = true
	}
}

// Touch implements [workqueue.Queue]: a key that waits is added again.
func (l *lanes) Touch(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	place := slices.Index(l.inTurn, key)
	if l.marked[key] && place >= 0 {
		l.inTurn = slices.Delete(l.inTurn, place, place+1)
		l.first = append(l.first, key)
	}
}

// Push implements [workqueue.Queue].
func (l *lanes) Push(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marked[key] {
		l.first = append(l.first, key)
	} else {
		l.inTurn = append(l.inTurn, key)
	}
}

// Len implements [workqueue.Queue].
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.first) + len(l.inTurn)
}

// Pop implements [workqueue.Queue].
func (l *lanes) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := &l.first
	yields := l.firstInARow >= mostFirstInARow && len(l.inTurn) > 0
	if len(l.first) == 0 || yields {
		from, l.firstInARow = &l.inTurn, 0
	} else {
		l.firstInARow++
	}
	key := (*from)[0]
	*from = (*from)[1:]
	if l.marked[key] {
		l.urgent[key] = true
	} else {
		delete(l.urgent, key)
	}
	delete(l.marked, key)
	return key
}

// workQueue is a work queue of client-go with two classes.
type workQueue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	lanes *lanes
}

func newWorkQueue(limiter workqueue.TypedRateLimiter[types.NamespacedName]) *workQueue {
	lanes := newLanes()
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: "nodewise", Queue: lanes}),
	})
	return &workQueue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "nodewise", DelayingQueue: delaying}),
		lanes: lanes,
	}
}

// AddFirst adds a key that is not to wait behind others.
func (q *workQueue) AddFirst(key types.NamespacedName) {
	q.lanes.mark(key)
	q.Add(key)
}
