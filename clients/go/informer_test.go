package nodewise

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// watched is a shared informer of pods on a watch that the test controls.
type watched struct {
	cache.SharedIndexInformer
	events *watch.FakeWatcher
}

func watchPods(t *testing.T, first ...corev1.Pod) *watched {
	t.Helper()
	events := watch.NewFakeWithChanSize(100, false)
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: first}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				for i := range first {
					events.Add(&first[i])
				}
				end := &corev1.Pod{}
				end.ResourceVersion, end.Annotations = "10", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				events.Action(watch.Bookmark, end)
			}
			return events, nil
		},
	}
	informer := cache.NewSharedIndexInformer(listWatch, &corev1.Pod{}, 0, nil)
	if err := informer.SetTransform(convert.SlimPod); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	return &watched{informer, events}
}

func podAt(name, version, owner string) corev1.Pod {
	yes := true
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version, Labels: map[string]string{"app": "agent"},
	}}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "agent", UID: "d1", Controller: &yes}}
	}
	return pod
}

func (r *rig) reached() string {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.store.Reached(cluster.Pods)
}

// Pods of an informer of the program enqueue workloads and meet expectations like those of the Reconciler's own watch.
func TestPodsMayComeFromAnInformer(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	r.apply("agent:1")
	informer := watchPods(t, podAt("first", "7", "DaemonSet"), podAt("foreign", "8", "ReplicaSet"))
	go r.followInformer(pods, informer, func(_ cluster.Resource, err error) { t.Error(err) })(t.Context())
	known := func(name string) func() bool {
		return func() bool {
			r.state.mu.Lock()
			defer r.state.mu.Unlock()
			return r.state.store.ControlsPod("ns", "d1", name)
		}
	}
	testkit.Eventually(t, "the first list", known("first"))
	testkit.Eventually(t, "its version", func() bool { return r.reached() == "10" })
	r.state.mu.Lock()
	r.state.holdings.Replace(key, "d1", creating("second").GetState(), &nodewisev1.ReconcileState{}, r.state.podView("ns", "d1"))
	r.state.mu.Unlock()
	r.queue.take()
	second := podAt("second", "11", "DaemonSet")
	informer.events.Add(&second)
	testkit.Eventually(t, "the second pod", known("second"))
	if creates, _ := r.state.holdings.Outstanding(key); creates != 0 || !r.queue.take() {
		t.Errorf("%d creates are expected", creates)
	}
	informer.events.Delete(&second)
	testkit.Eventually(t, "it is gone", func() bool { return !known("second")() })
}

// A workload that waits for a version without an event is enqueued when the informer's store has the version and everything has arrived.
func TestAnInformersVersionOpensTheGate(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	r.apply("agent:1")
	informer := watchPods(t, podAt("first", "7", "DaemonSet"))
	go r.followInformer(pods, informer, func(_ cluster.Resource, err error) { t.Error(err) })(t.Context())
	testkit.Eventually(t, "the first list", func() bool { return r.reached() == "10" })
	// This version is older than what the rig has shown before.
	r.relistTheOthers(t)
	r.state.mu.Lock()
	r.state.gate.Record(key, "d1", cluster.Pods, "20")
	r.state.mu.Unlock()
	r.queue.take()
	if err := r.Reconcile(t.Context(), key); !errors.Is(err, errBehind) || r.queue.take() {
		t.Fatalf("it does not wait: %v", err)
	}
	bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "21"}}
	informer.events.Action(watch.Bookmark, bookmark)
	testkit.Eventually(t, "it is woken", r.queue.take)
	if r.reached() != "21" {
		t.Errorf("reached %s", r.reached())
	}
}

// A version is not reached before everything has arrived. Later changes do not delay that, however many they are.
func TestAnInformerThatIsAheadIsWaitedFor(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	feed, store := r.feed(pods), cache.NewStore(cache.MetaNamespaceKeyFunc)
	put := func(pod corev1.Pod) {
		t.Helper()
		if err := store.Update(&pod); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(pod corev1.Pod) { feed.handle(&pod, feed.putReadable) }
	var awaited *sample
	expect := func(what string, want bool) {
		t.Helper()
		before := r.reached()
		if awaited == nil {
			var err error
			if awaited, err = feed.sample(store); err != nil {
				t.Fatal(err)
			}
		}
		got, version := feed.hasArrived(awaited), awaited.version
		if got {
			awaited = nil
		}
		if reached := r.reached(); got != want || got && reached != version || !got && reached != before {
			t.Fatalf("%s: all has arrived: %t, and %s is reached", what, got, reached)
		}
	}
	put(podAt("a", "11", "DaemonSet"))
	expect("one that comes", false)
	hear(podAt("a", "11", "DaemonSet"))
	expect("it has come", true)
	put(podAt("a", "12", "DaemonSet"))
	expect("one that changes", false)
	put(podAt("a", "13", "DaemonSet"))
	put(podAt("b", "14", ""))
	expect("more has changed", false)
	hear(podAt("a", "12", "DaemonSet"))
	expect("what there was then has come", true)
	hear(podAt("a", "13", "DaemonSet"))
	expect("another has not", false)
	put(podAt("b", "15", ""))
	hear(podAt("b", "15", ""))
	expect("it has come, and is newer by now", true)
	put(podAt("foreign", "16", "ReplicaSet"))
	if next, err := feed.sample(store); err != nil || len(next.missing) > 0 {
		t.Errorf("it is waited for what nobody here is concerned with: %v, %v", next, err)
	}
	expect("one that nobody here is concerned with", true)
	put(podAt("b", "17", "ReplicaSet"))
	expect("one that is no concern any more", false)
	hear(podAt("b", "17", "ReplicaSet"))
	expect("it is known", true)
	gone := podAt("a", "18", "DaemonSet")
	if err := store.Delete(&gone); err != nil {
		t.Fatal(err)
	}
	expect("one that is gone", false)
	gone.ResourceVersion = "1"
	feed.handle(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: &gone}, feed.remove)
	expect("it is known to be gone", true)
	put(podAt("c", "19", "DaemonSet"))
	expect("one that comes and goes", false)
	gone = podAt("c", "20", "DaemonSet")
	if err := store.Delete(&gone); err != nil {
		t.Fatal(err)
	}
	expect("it has gone", true)
}

// An informer without a version never reaches one: the gate stays closed, and Ready says why.
func TestAnInformerWithoutAVersionKeepsTheGateClosed(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.AtomicFIFO, false)
	r := newRig(t, &scripted{plan: noop})
	r.apply("agent:1")
	r.started.Store(true)
	go r.followInformer(pods, watchPods(t), func(_ cluster.Resource, err error) { t.Error(err) })(t.Context())
	testkit.Eventually(t, "readiness says why", func() bool {
		err := r.Ready(nil)
		return errors.Is(err, errNoVersion) && strings.Contains(err.Error(), "watching pods")
	})
	r.state.mu.Lock()
	r.state.gate.Record(key, "d1", cluster.Pods, "200")
	r.state.mu.Unlock()
	if err := r.Reconcile(t.Context(), key); !errors.Is(err, errBehind) {
		t.Errorf("it does not wait: %v", err)
	}
}
