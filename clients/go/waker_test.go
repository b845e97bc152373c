package nodewise

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/nodewisev1"
)

func logger(t *testing.T) logr.Logger {
	t.Helper()
	return testr.New(t)
}

// recorded is a queue that remembers what was asked for.
type recorded struct {
	added, first int
	after        []time.Duration
}

func (r *recorded) Add(types.NamespacedName)      { r.added++ }
func (r *recorded) AddFirst(types.NamespacedName) { r.first++ }
func (r *recorded) AddAfter(_ types.NamespacedName, delay time.Duration) {
	r.after = append(r.after, delay)
}

// A burst of events makes one look; the first event after a quiet time is heeded at once.
func TestWorkloadsRest(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(100, 0))
	w, queue := newWaker(20*time.Millisecond, clock), &recorded{}
	w.wake(key)
	w.start(queue)
	if queue.added != 1 {
		t.Fatal("what was woken before the start was lost")
	}
	w.begin(key)
	w.wake(key)
	w.wake(key)
	if queue.added != 1 || queue.after != nil {
		t.Fatalf("woken in the middle of its work: %+v", queue)
	}
	w.end(key, false)
	if len(queue.after) != 1 || queue.after[0] != 20*time.Millisecond {
		t.Fatalf("got %+v", queue)
	}
	clock.Step(15 * time.Millisecond)
	w.wake(key)
	if len(queue.after) != 2 || queue.after[1] != 5*time.Millisecond {
		t.Fatalf("got %+v", queue)
	}
	clock.Step(5 * time.Millisecond)
	w.wake(key)
	w.wakeFirst(key)
	if queue.added != 2 || queue.first != 1 {
		t.Errorf("got %+v", queue)
	}
}

// Those that are not to wait come first, and never leave the others standing.
func TestUrgentWorkloadsComeFirst(t *testing.T) {
	queue := newWorkQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	defer queue.ShutDown()
	named := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	take := func(want string) {
		t.Helper()
		if got, _ := queue.Get(); got.Name != want {
			t.Fatalf("got %s, want %s", got.Name, want)
		}
	}
	queue.Add(named("a"))
	queue.Add(named("b"))
	queue.AddFirst(named("b"))
	queue.AddFirst(named("c"))
	take("b")
	take("c")
	take("a")
	// A turn that came to nothing is followed by one of the same class.
	queue.Add(named("d"))
	queue.lanes.owe(named("c"))
	queue.Add(named("c"))
	queue.Done(named("c"))
	take("c")
	queue.Done(named("c"))
	queue.Add(named("c"))
	take("d")
	take("c")
	queue.Done(named("c"))
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		queue.AddFirst(named(name))
	}
	queue.Add(named("e"))
	for range mostFirstInARow {
		if got, _ := queue.Get(); got.Name == "e" {
			t.Fatal("it came before its turn")
		}
	}
	take("e")
}

func TestDeviationsFollowTheProfile(t *testing.T) {
	const deviation = nodewisev1.Deviation_DEVIATION_DELETIONS_BY_UID
	list := []nodewisev1.Deviation{deviation}
	strict := nodewisev1.Profile_PROFILE_UPSTREAM_STRICT
	for _, test := range []struct {
		options *nodewisev1.PlanOptions
		want    bool
	}{
		{&nodewisev1.PlanOptions{}, true},
		{&nodewisev1.PlanOptions{DisabledDeviations: list}, false},
		{&nodewisev1.PlanOptions{Profile: strict}, false},
		{&nodewisev1.PlanOptions{Profile: strict, EnabledDeviations: list}, true},
	} {
		if got := isEnabled(test.options, deviation); got != test.want {
			t.Errorf("%v: got %t", test.options, got)
		}
	}
}
