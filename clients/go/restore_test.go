package nodewise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/served"
)

// D-112: after etcd was restored from a backup, the watches may never reach the versions of earlier writes.
func TestAListThatIsOlderThanTheCacheLetsNobodyWaitForOwnWrites(t *testing.T) {
	for version, isLetGo := range map[string]bool{"500": true, "999": true, "1000": false, "1001": false, "odd": true} {
		r := newRig(t, &scripted{plan: noop})
		r.apply("agent:1")
		if err := r.feed(pods).Bookmark("1000"); err != nil {
			t.Fatal(err)
		}
		r.state.mu.Lock()
		r.state.gate.Record(key, "d1", cluster.Pods, "2000")
		r.state.gate.Record(key, "d1", cluster.DaemonSets, "1")
		r.state.mu.Unlock()
		if err := r.Reconcile(t.Context(), key); !errors.Is(err, errBehind) {
			t.Fatalf("it does not wait: %v", err)
		}
		r.queue.take()
		if err := r.feed(pods).Replace(nil, version); err != nil {
			t.Fatal(err)
		}
		if version == "500" || version == "999" {
			r.relistTheOthers(t)
		}
		if woken := r.queue.take(); woken != isLetGo {
			t.Errorf("a list at %s: woken: %t", version, woken)
		}
		if err := r.Reconcile(t.Context(), key); errors.Is(err, errBehind) == isLetGo {
			t.Errorf("a list at %s: %v", version, err)
		}
	}
}

// relistTheOthers lists all resources again but pods, of which a list was older than what the watch had reached. Nothing is planned until
// every list is complete.
func (r *rig) relistTheOthers(t *testing.T) {
	t.Helper()
	// Events of the other watches are from before the restore, and do not replace a list.
	if err := r.feed(nodes).Bookmark("1001"); err != nil {
		t.Fatal(err)
	}
	r.state.mu.Lock()
	daemonSet, err := served.Parse(r.state.store.Workload(cluster.DaemonSet, key).JSON)
	r.state.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		cache   resourceCache
		objects []any
	}{{workloadCaches[cluster.DaemonSets], []any{daemonSet}}, {revisions, nil}, {policies, nil}, {nodes, nil}} {
		r.queue.take()
		if err := r.Reconcile(t.Context(), key); !errors.Is(err, errBehind) {
			t.Errorf("before the list of %s: %v", list.cache.resource, err)
		}
		if err := r.feed(list.cache).Replace(list.objects, "500"); err != nil {
			t.Fatal(err)
		}
	}
}

// D-112: an object that was read or marked before the restore may have another content at the same version.
func TestNothingIsKeptByVersionsThatHaveBegunAnew(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	r.apply("agent:1")
	s := r.state
	revision := &cluster.Revision{Namespace: "ns", Name: "r", ResourceVersion: "7"}
	s.mu.Lock()
	s.store.PutRevision(revision)
	s.store.Seal(cluster.Revisions, "ns", "r")
	s.keepLive(key, "d1", &liveObjects{revisions: []*cluster.Revision{revision}})
	if s.listed(cluster.Revisions, "120") || !s.store.IsSealed(revision) {
		t.Error("versions have only grown")
	}
	if !s.listed(cluster.Revisions, "15") || !s.takeLive(key, "d1").isEmpty() || s.store.IsSealed(revision) {
		t.Error("what was read live is kept, or the seal")
	}
	s.mu.Unlock()
	r = newRig(t, &scripted{plan: noop})
	r.apply("agent:1")
	s = r.state
	// The same version of a pod with another content.
	before, after := podAt("p", "11", "DaemonSet"), podAt("p", "11", "")
	for _, step := range []struct {
		pod     *corev1.Pod
		version string
		owned   bool
	}{{&before, "120", true}, {&after, "121", true}, {&after, "20", false}} {
		if err := r.feed(pods).Replace([]any{step.pod}, step.version); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		owned := s.store.ControlsPod("ns", "d1", "p")
		s.mu.Unlock()
		if owned != step.owned {
			t.Errorf("the list at %s: owned: %t", step.version, owned)
		}
	}
}

// at is an apiserver at a version, whose watches show nothing and end when the test says so.
type at struct {
	mu      sync.Mutex
	version string
	asked   []string
	watches []*watch.FakeWatcher
}

func (a *at) note(format string, values ...any) {
	a.asked = append(a.asked, fmt.Sprintf(format, values...))
}

func (a *at) listWatch() cache.ListerWatcherWithContext {
	return cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.note("list %d", options.Limit)
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: a.version}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, errors.New("not here")
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.note("watch %s", options.ResourceVersion)
			watching := watch.NewFake()
			a.watches = append(a.watches, watching)
			return watching, nil
		},
	})
}

// watching waits for the watch of this number, and ends it if it began at this version.
func (a *at) watching(t *testing.T, number int, version string) *watch.FakeWatcher {
	t.Helper()
	var found *watch.FakeWatcher
	testkit.Eventually(t, fmt.Sprintf("watch %d", number), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.watches) > number {
			found, a.version = a.watches[number], version
		}
		return found != nil
	})
	return found
}

// D-112: after a restore to a lower version the apiserver shows nothing to a watch that is ahead of it.
func TestAnApiserverAtALowerVersionIsListedAgain(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	apiserver := &at{version: "1000"}
	followed := r.watches.track(cluster.Pods, apiserver.listWatch(), r.state.listBegins)
	reflector := cache.NewReflectorWithOptions(followed, &corev1.Pod{}, r.feed(pods), cache.ReflectorOptions{})
	go reflector.RunWithContext(t.Context())
	// A reflector takes a watch that ends at once without events for a failed one, and does not continue it.
	show := func(watching *watch.FakeWatcher, version string) {
		watching.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
		watching.Stop()
	}
	show(apiserver.watching(t, 0, "1002"), "1001")
	show(apiserver.watching(t, 1, "500"), "1002")
	apiserver.watching(t, 2, "500")
	testkit.Eventually(t, "the list", func() bool { return r.reached() == "500" })
	apiserver.mu.Lock()
	defer apiserver.mu.Unlock()
	want := []string{"list 500", "watch 1000", "list 1", "watch 1001", "list 1", "list 0", "watch 500"}
	if !slices.Equal(apiserver.asked, want) {
		t.Errorf("asked %q", apiserver.asked)
	}
}

// D-112: the list of one resource shows the restore for all. A watch whose version the apiserver has passed would not notice it, and neither
// would an open watch.
func TestARestoreThatOneListShowsLetsTheOthersListAgain(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	apiserver := &at{version: "1000"}
	followed := r.watches.track(cluster.Pods, apiserver.listWatch(), r.state.listBegins)
	reflector := cache.NewReflectorWithOptions(followed, &corev1.Pod{}, r.feed(pods), cache.ReflectorOptions{})
	go reflector.RunWithContext(t.Context())
	apiserver.watching(t, 0, "1003")
	if err := r.feed(nodes).Replace(nil, "50"); err != nil {
		t.Fatal(err)
	}
	apiserver.watching(t, 1, "1003")
	testkit.Eventually(t, "the watch after the list", func() bool {
		apiserver.mu.Lock()
		defer apiserver.mu.Unlock()
		return apiserver.asked[len(apiserver.asked)-1] == "watch 1003"
	})
	apiserver.mu.Lock()
	defer apiserver.mu.Unlock()
	if r.reached() != "1003" || apiserver.asked[len(apiserver.asked)-2] == "list 1" {
		t.Errorf("reached %s, asked %q", r.reached(), apiserver.asked)
	}
}

// A wrong service may cause the same revision to be read again and again.
func TestNoMoreIsKeptOfWhatWasReadLiveThanAFew(t *testing.T) {
	s := newRig(t, &scripted{plan: noop}).state
	for index := range maxLive + 2 {
		s.keepLive(key, "d1", &liveObjects{revisions: []*cluster.Revision{{Name: "a"}}})
		s.keepLive(key, "d1", &liveObjects{revisions: []*cluster.Revision{{Name: fmt.Sprint("b", index)}}})
	}
	if kept := s.takeLive(key, "d1"); len(kept.revisions) != maxLive || kept.revisions[maxLive-1].Name != fmt.Sprint("b", maxLive+1) || kept.revisions[maxLive-2].Name != "a" {
		t.Errorf("kept %d", len(kept.revisions))
	}
}
