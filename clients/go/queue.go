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
	// mostFirstInARow is how many keys of the first class may be taken in a row while others wait: those are never left standing.
	mostFirstInARow = 8
	// longTurn is how long work on a key may take before the next on it is not of the first class for the workers' sake: else a
	// few that take long each time would hold up the others.
	longTurn = time.Second
)

// nudge is a key that wakes a worker. There is nothing to be done for it: a client-go queue wakes one only for keys that come, and
// not for one that waits already and has become urgent.
var nudge = types.NamespacedName{}

// lanes is the order in which a work queue gives out keys: first those that are not to wait behind others, each class in order of
// arrival. The others never take up all workers, so that a new node gets its pods though every other worker is in the middle of a
// rollout.
type lanes struct {
	clock clock.PassiveClock
	// most is how many keys may be in work at a time that are not of the first class, or take long.
	most int

	mu sync.Mutex
	// marked are keys that are to be in the first class when they are pushed.
	marked        map[types.NamespacedName]bool
	first, inTurn []types.NamespacedName
	firstInARow   int
	nudged        bool
	// inWork tells of keys in work since when, and whether they count to the most.
	inWork map[types.NamespacedName]taken
	// long are keys whose last turn was a long one.
	long map[types.NamespacedName]bool
}

type taken struct {
	since  time.Time
	counts bool
}

var _ workqueue.Queue[types.NamespacedName] = (*lanes)(nil)

func newLanes(most int, clock clock.PassiveClock) *lanes {
	return &lanes{
		clock:  clock,
		most:   most,
		marked: map[types.NamespacedName]bool{},
		inWork: map[types.NamespacedName]taken{},
		long:   map[types.NamespacedName]bool{},
	}
}

// mark lets a key be in the first class from now on; it answers whether it waited in the other until now.
func (l *lanes) mark(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked[key] = true
	place := slices.Index(l.inTurn, key)
	if place < 0 {
		return false
	}
	l.inTurn = slices.Delete(l.inTurn, place, place+1)
	l.first = append(l.first, key)
	return true
}

// Touch implements [workqueue.Queue]: a key that waits is added again.
func (l *lanes) Touch(types.NamespacedName) {}

// Push implements [workqueue.Queue].
func (l *lanes) Push(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case key == nudge:
		l.nudged = true
	case l.marked[key]:
		l.first = append(l.first, key)
	default:
		l.inTurn = append(l.inTurn, key)
	}
}

// next is where the next key is; nil if none can be taken now.
func (l *lanes) next() (lane *[]types.NamespacedName, place int) {
	counting := 0
	for _, taken := range l.inWork {
		if taken.counts {
			counting++
		}
	}
	hasRoom := counting < l.most
	if hasRoom && len(l.inTurn) > 0 && (len(l.first) == 0 || l.firstInARow >= mostFirstInARow) {
		return &l.inTurn, 0
	}
	place = slices.IndexFunc(l.first, func(key types.NamespacedName) bool { return hasRoom || !l.long[key] })
	if place < 0 {
		return nil, 0
	}
	return &l.first, place
}

// Len implements [workqueue.Queue]: 0 if no key can be taken now. Whoever makes room takes the next one.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane, _ := l.next(); lane == nil && !l.nudged {
		return 0
	}
	return max(len(l.first)+len(l.inTurn), 1)
}

// Pop implements [workqueue.Queue].
func (l *lanes) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nudged {
		l.nudged = false
		return nudge
	}
	lane, place := l.next()
	key, isFirst := (*lane)[place], lane == &l.first
	*lane = slices.Delete(*lane, place, place+1)
	l.firstInARow++
	if !isFirst {
		l.firstInARow = 0
	}
	delete(l.marked, key)
	l.inWork[key] = taken{since: l.clock.Now(), counts: !isFirst || l.long[key]}
	return key
}

// done notes that work on a key has ended.
func (l *lanes) done(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.long, key)
	if l.clock.Since(l.inWork[key].since) > longTurn {
		l.long[key] = true
	}
	delete(l.inWork, key)
}

// workQueue is a work queue of client-go with two classes.
type workQueue struct {
	workqueue.TypedDelayingInterface[types.NamespacedName]
	lanes *lanes
}

// newWorkQueue makes a queue for so many workers, and one more for what is not to wait.
func newWorkQueue(name string, workers int) *workQueue {
	lanes := newLanes(workers, clock.RealClock{})
	return &workQueue{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: name, Queue: lanes}),
		}),
		lanes: lanes,
	}
}

// AddFirst adds a key that is not to wait behind others, after a delay.
func (q *workQueue) AddFirst(key types.NamespacedName, delay time.Duration) {
	switch {
	case q.lanes.mark(key):
		q.Add(nudge)
	case delay > 0:
		q.AddAfter(key, delay)
	default:
		q.Add(key)
	}
}

// Get waits for the next key; false when there is none any more.
func (q *workQueue) Get() (key types.NamespacedName, ended bool) {
	for {
		key, ended = q.TypedDelayingInterface.Get()
		if ended || key != nudge {
			return key, ended
		}
		q.TypedDelayingInterface.Done(key)
	}
}

// Done ends work on a key.
func (q *workQueue) Done(key types.NamespacedName) {
	q.lanes.done(key)
	q.TypedDelayingInterface.Done(key)
}
