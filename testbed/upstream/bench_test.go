package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// atRest is a cluster in which nothing is left to do.
func atRest(t testing.TB) fixture {
	t.Helper()
	ds := newDaemonSet(func(ds *apps.DaemonSet) {
		ds.Status = apps.DaemonSetStatus{
			ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2,
			UpdatedNumberScheduled: 2,
		}
	})
	return fixture{
		ds:     ds,
		nodes:  []*core.Node{newNode("a"), newNode("b")},
		pods:   []*core.Pod{newPod("a1", "a"), newPod("b1", "b")},
		change: func(s *spec) { s.Revisions = []revisionSpec{newRevision(t, ds, "logs-"+hashMark, 1)} },
	}
}

// benched returns the bench's output for a fixture's case and these input lines.
func benched(t testing.TB, f fixture, lines string) (string, error) {
	t.Helper()
	var asked struct {
		Case json.RawMessage `json:"case"`
	}
	if err := json.Unmarshal(f.request(t, 1, orderGiven), &asked); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(file, asked.Case, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run([]string{"bench", file}, strings.NewReader(lines), &out)
	return out.String(), err
}

func TestBenchTellsTheTimeOfEachSync(t *testing.T) {
	out, err := benched(t, atRest(t), "3\n2\n")
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(strings.NewReader(out))
	for _, want := range []int{3, 2} {
		var times []int64
		if err := answers.Decode(&times); err != nil {
			t.Fatal(err)
		}
		if len(times) != want {
			t.Errorf("%d times of %d syncs", len(times), want)
		}
		for _, took := range times {
			if took <= 0 {
				t.Errorf("a sync took %d ns", took)
			}
		}
	}
	if answers.More() {
		t.Errorf("more answers than questions: %s", out)
	}
}

func TestBenchTakesOnlyAClusterAtRest(t *testing.T) {
	changed := func(change func(*fixture)) fixture {
		f := atRest(t)
		change(&f)
		return f
	}
	also := func(change func(*spec)) fixture {
		return changed(func(f *fixture) {
			before := f.change
			f.change = func(s *spec) { before(s); change(s) }
		})
	}
	for name, test := range map[string]struct {
		f     fixture
		lines string
		want  string
	}{
		"a node without a pod":    {changed(func(f *fixture) { f.pods = f.pods[:1] }), "1", "create-pod b"},
		"a pod that is not ready": {changed(func(f *fixture) { f.pods[0].Status.Conditions = nil }), "1", "update-status logs"},
		"no revision":             {changed(func(f *fixture) { f.change = nil }), "1", "create-revision"},
		"an empty selector": {
			changed(func(f *fixture) { f.ds.Spec.Selector = &meta.LabelSelector{} }), "1", "SelectingAll",
		},
		"a pod that is not available yet": {
			changed(func(f *fixture) {
				f.ds.Spec.MinReadySeconds, f.ds.Status.NumberAvailable, f.ds.Status.NumberUnavailable = 90, 0, 2
			}), "1", "wants to look again",
		},
		"a DaemonSet that goes": {
			changed(func(f *fixture) { f.ds.DeletionTimestamp = &meta.Time{Time: now} }), "1", "is being deleted",
		},
		"expectations":  {also(func(s *spec) { s.Expectations = &expectationsSpec{Adds: 1} }), "1", "expectations: "},
		"feature gates": {also(func(s *spec) { s.FeatureGates = []string{"X"} }), "1", "featureGates: "},
		"no number":     {atRest(t), "many", `"many" is no number of syncs`},
		"no sync":       {atRest(t), "0", `"0" is no number of syncs`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := benched(t, test.f, test.lines)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
			if out != "" {
				t.Errorf("it told %s", out)
			}
		})
	}
	if err := run([]string{"bench", filepath.Join(t.TempDir(), "none")}, strings.NewReader(""), &strings.Builder{}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// The caches of a bench do not sort, because sorting would add to the measured time.
func TestPlainCachesArePlain(t *testing.T) {
	caches := newPlainCaches(&cluster{pods: []*core.Pod{newPod("a1", "a")}})
	for name, informer := range map[string]informer{
		"daemonSets": caches.daemonSets, "nodes": caches.nodes, "pods": caches.pods, "revisions": caches.revisions,
	} {
		if _, ordered := informer.indexer.(*orderedIndexer); ordered {
			t.Errorf("the cache of %s is ordered", name)
		}
	}
	if got := caches.pods.indexer.ListKeys(); len(got) != 1 || got[0] != "default/a1" {
		t.Errorf("the cache of pods holds %q", got)
	}
}
