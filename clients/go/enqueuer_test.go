package nodewise

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// recorded is a queue that records the calls.
type recorded []string

func (r *recorded) Add(types.NamespacedName) { *r = append(*r, "add") }
func (r *recorded) AddAfter(_ types.NamespacedName, delay time.Duration) {
	*r = append(*r, "after "+delay.String())
}
func (r *recorded) AddFirst(_ types.NamespacedName, delay time.Duration) {
	*r = append(*r, "first "+delay.String())
}

// A burst of events leads to one reconcile, and the first event after the cooldown enqueues at once. An urgent workload stays urgent during
// the reconcile and the cooldown, and after a failed reconcile.
func TestWorkloadsRest(t *testing.T) {
	clock, queue := clocktesting.NewFakePassiveClock(time.Unix(100, 0)), &recorded{}
	w := newEnqueuer(20*time.Millisecond, clock)
	expect := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(*queue, want) {
			t.Errorf("%s: got %v, want %v", when, *queue, want)
		}
		*queue = nil
	}
	step := func(by time.Duration) { clock.SetTime(clock.Now().Add(by)) }
	w.enqueue(key)
	w.start(queue)
	expect("woken before the start", "add")
	w.begin(key)
	w.enqueue(key)
	w.enqueue(key)
	expect("woken in the middle of its work")
	w.end(key, result{})
	expect("after the work", "after 20ms")
	step(15 * time.Millisecond)
	w.enqueue(key)
	expect("at rest", "after 5ms")
	w.enqueueFirst(key)
	expect("urgent at rest", "first 5ms")
	w.begin(key)
	w.enqueueFirst(key)
	w.enqueue(key)
	w.end(key, result{})
	expect("urgent in the middle of its work", "first 20ms")
	step(20 * time.Millisecond)
	w.begin(key)
	w.end(key, result{failed: true})
	w.enqueueAfter(key, time.Second)
	expect("an urgent look came to nothing", "first 1s")
	w.begin(key)
	w.end(key, result{})
	w.enqueueAfter(key, time.Second)
	step(20 * time.Millisecond)
	w.enqueue(key)
	expect("an urgent look came to something", "after 1s", "add")
	w.begin(key)
	w.end(key, result{failed: true})
	step(20 * time.Millisecond)
	w.enqueue(key)
	expect("another look came to nothing", "add")
}

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// Urgent keys come first, and never starve the others.
func TestUrgentWorkloadsComeFirst(t *testing.T) {
	queue := newWorkQueue("test", 10)
	defer queue.ShutDown()
	take := func(want string) {
		t.Helper()
		if got, _ := queue.Get(); got.Name != want {
			t.Fatalf("got %s, want %s", got.Name, want)
		}
		queue.Done(named(want))
	}
	queue.Add(named("a"))
	queue.Add(named("b"))
	queue.AddFirst(named("b"), 0)
	queue.AddFirst(named("c"), 0)
	take("b")
	take("c")
	take("a")
	// A key that is to be urgent after a delay is urgent at once if it is added before.
	queue.AddFirst(named("c"), time.Hour)
	queue.Add(named("d"))
	queue.Add(named("c"))
	take("c")
	queue.Add(named("c"))
	take("d")
	take("c")
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		queue.AddFirst(named(name), 0)
	}
	queue.Add(named("e"))
	for range maxFirstInARow {
		if got, _ := queue.Get(); got.Name == "e" {
			t.Fatal("it came before its turn")
		}
	}
	take("e")
}

// However many workers are busy, one is left for urgent keys, also for one that was waiting as a normal key. It takes no other keys.
func TestAWorkerIsKeptForWhatIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, taken := newWorkQueue("test", 2), make(chan string, 10)
		work := func() {
			if got, ended := queue.Get(); !ended {
				taken <- got.Name
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			queue.Add(named(name))
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(taken) > 0 {
				got = append(got, <-taken)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("took %v, want %v", got, want)
			}
		}
		for range 3 {
			go work()
		}
		expect("a", "b")
		queue.AddFirst(named("d"), 0)
		expect("d")
		// The work on it took long, so it may not take the spare worker.
		// In the synctest bubble this advances the fake clock.
		time.Sleep(longWork + time.Millisecond)
		queue.Done(named("d"))
		queue.AddFirst(named("d"), 0)
		go work()
		expect()
		queue.AddFirst(named("e"), 0)
		expect("e")
		queue.Done(named("a"))
		go work()
		expect("d")
		go work()
		expect()
		queue.AddFirst(named("f"), 0)
		expect("f")
		queue.Done(named("d"))
		go work()
		expect("c")
		queue.ShutDown()
	})
}

// With a period every workload is enqueued that often, and without one never.
func TestResyncs(t *testing.T) {
	for period, want := range map[time.Duration]int{0: 0, 12 * time.Hour: 4} {
		synctest.Test(t, func(t *testing.T) {
			queue := &recorded{}
			r := newRig(t, &scripted{plan: noop}, WithResync(period))
			r.apply("agent:1")
			r.enqueuer.start(queue)
			ctx, stop := context.WithCancel(t.Context())
			go r.resync(ctx)
			// In the synctest bubble this advances the fake clock.
			time.Sleep(47 * time.Hour)
			stop()
			synctest.Wait()
			if len(*queue) != want {
				t.Errorf("every %s: woken %d times in 47 hours", period, len(*queue))
			}
		})
	}
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
