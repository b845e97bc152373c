package nodewise

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/served"
)

// orphans creates orphaned revisions before there is a DaemonSet that selects them. Many of them have very many labels.
func (r *rig) orphans(count int, many bool) (names []string) {
	r.t.Helper()
	for i := range count {
		name := fmt.Sprintf("orphan-%03d", i)
		names = append(names, name)
		object := revisionOf(r.t, name, false, i, 1000)
		var text map[string]any
		if err := json.Unmarshal(object.JSON, &text); err != nil {
			r.t.Fatal(err)
		}
		labels := text["metadata"].(map[string]any)["labels"].(map[string]any)
		for i := range 100 {
			if many {
				labels[fmt.Sprint("label-", i)] = "x"
			}
		}
		r.cluster.mu.Lock()
		r.cluster.keep(r.cluster.revision(name), text)
		r.cluster.mu.Unlock()
	}
	return names
}

func (c *clusterInMemory) revision(name string) write.Key {
	return write.Key{Resource: cluster.Revisions, Namespace: key.Namespace, Name: name}
}

// Revisions that existed before their DaemonSet are read once to be sent, and kept from then on. If there are many, they are read with one
// list.
func TestRevisionsThatAreNotKeptAreReadLive(t *testing.T) {
	for _, test := range []struct{ orphans, lists int }{{1, 0}, {16, 0}, {17, 1}} {
		for _, many := range []bool{false, true} {
			planner := &scripted{plan: noop}
			r := newRig(t, planner)
			want := r.orphans(test.orphans, many)
			if bytes := r.state.store.RevisionBytes(); bytes != 0 {
				t.Errorf("%d bytes are kept", bytes)
			}
			r.apply("agent:1")
			for range 2 {
				if err := r.Reconcile(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			for _, request := range planner.asked {
				if names, _ := sentRevisions(t, request); !slices.Equal(names, want) {
					t.Errorf("sent %v", names)
				}
			}
			if lists, gets := r.cluster.count("list controllerrevisions"), r.cluster.reads; lists != test.lists || lists == 0 && gets != test.orphans {
				t.Errorf("%d lists, %d reads of %d", lists, gets, test.orphans)
			}
		}
	}
}

// A revision that is deleted or changed again and again does not block the workload.
func TestRevisionsThatChangeWhileTheyAreRead(t *testing.T) {
	for _, count := range []int{2, 20} {
		for name, test := range map[string]struct {
			change func(r *rig)
			want   string
		}{
			"it has changed": {func(r *rig) {
				r.cluster.keep(r.cluster.revision("orphan-000"), r.cluster.objects[r.cluster.revision("orphan-000")])
			}, "orphan-000"},
			"it is gone": {func(r *rig) { delete(r.cluster.objects, r.cluster.revision("orphan-000")) }, "orphan-001"},
			"it is another one": {func(r *rig) {
				r.cluster.objects[r.cluster.revision("orphan-000")]["metadata"].(map[string]any)["uid"] = "another"
			}, "orphan-001"},
		} {
			t.Run(name, func(t *testing.T) {
				planner := &scripted{plan: noop}
				r := newRig(t, planner)
				r.orphans(count, false)
				r.apply("agent:1")
				// The watch has not shown it yet.
				r.cluster.mu.Lock()
				r.cluster.unseen = true
				test.change(r)
				r.cluster.mu.Unlock()
				if err := r.Reconcile(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				names, _ := sentRevisions(t, planner.asked[0])
				if want := count; test.want == "orphan-001" {
					want--
					if len(names) != want {
						t.Errorf("sent %v", names)
					}
				} else if len(names) != want {
					t.Errorf("sent %v", names)
				}
				if names[0] != test.want {
					t.Errorf("sent %v", names)
				}
			})
		}
	}
}

// A revision that the workload controls is never left out.
func TestARevisionThatCannotBeReadIsNotLeftOut(t *testing.T) {
	planner := &scripted{plan: noop}
	r := newRig(t, planner)
	// The apiserver has neither this version nor another one.
	own := revisionOf(t, "own", true, 1, 1000)
	if err := r.feed(revisions).Add(own); err != nil {
		t.Fatal(err)
	}
	r.cluster.refuse = func(verb string, _ write.Key) error {
		if verb == "read" {
			return &write.Error{Status: 500, Message: "not now"}
		}
		return nil
	}
	r.apply("agent:1")
	err := r.Reconcile(t.Context(), key)
	if err == nil || !strings.Contains(err.Error(), "reading controllerrevisions ns/own: not now") || len(planner.asked) > 0 {
		t.Errorf("got %v after %d plans", err, len(planner.asked))
	}
	var failed *failure
	if !errors.As(err, &failed) {
		t.Errorf("it does not come back with back-off: %v", err)
	}
}

// A list of revisions keeps the data that a DaemonSet needs, and enqueues the DaemonSets that it concerns.
func TestAListOfRevisionsIsReducedAsItIsRead(t *testing.T) {
	planner := &scripted{plan: noop}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.queue.take()
	own, orphan, foreign := revisionOf(t, "own", true, 1, 1000), revisionOf(t, "orphan", false, 1, 1000), revisionOf(t, "foreign", false, 1, 1000)
	foreign.Labels = nil
	var listed []any
	for _, revision := range []*served.Object{own, orphan, foreign} {
		listed = append(listed, r.state.stage(revision))
	}
	if bytes := r.state.store.RevisionBytes(); bytes != 2000 {
		t.Errorf("%d bytes are kept while the list is read", bytes)
	}
	if err := r.feed(revisions).Replace(listed, "200"); err != nil {
		t.Fatal(err)
	}
	if bytes := r.state.store.RevisionBytes(); bytes != 2000 || !r.queue.take() {
		t.Errorf("%d bytes are kept", bytes)
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if names, _ := sentRevisions(t, planner.asked[0]); !slices.Equal(names, []string{"orphan", "own"}) {
		t.Errorf("sent %v", names)
	}
}

// Left out revisions are logged once a minute.
func TestThatRevisionsAreTooLargeIsToldOnceAMinute(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	now := clocktesting.NewFakeClock(time.Now())
	r.enqueuer.clock = now
	r.apply("agent:1")
	for _, name := range []string{"a", "b", "c"} {
		if err := r.feed(revisions).Add(revisionOf(t, name, true, 1, 6<<20)); err != nil {
			t.Fatal(err)
		}
	}
	said := 0
	logger := funcr.New(func(_, line string) {
		if strings.Contains(line, "too large together") {
			said++
		}
	}, funcr.Options{})
	for i, want := range []int{1, 1, 2} {
		if err := r.Reconcile(klog.NewContext(t.Context(), logger), key); err != nil {
			t.Fatal(err)
		}
		if said != want {
			t.Errorf("after %d reconciles: told %d times", i+1, said)
		}
		now.Step(31 * time.Second)
	}
}
