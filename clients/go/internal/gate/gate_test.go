package gate_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/testkit"
)

var key = types.NamespacedName{Namespace: "ns", Name: "foo"}

func at(version string) gate.Reached {
	return func(cluster.Resource) string { return version }
}

// D-111
func TestVersions(t *testing.T) {
	type vector struct {
		A     string `json:"a"`
		B     string `json:"b"`
		Order *int   `json:"order"`
	}
	for _, vector := range testkit.Vectors[[]vector](t, "resource_versions.json") {
		order, ok := gate.Compare(vector.A, vector.B)
		if ok != (vector.Order != nil) || ok && order != *vector.Order {
			t.Errorf("%q and %q: got %d, %t", vector.A, vector.B, order, ok)
		}
	}
}

// D-110: a workload is held back while the cache is behind. After that the record is dropped.
func TestRefusesUntilTheCacheHasReachedOurWrite(t *testing.T) {
	g := gate.New()
	g.Record(key, "u1", cluster.Pods, "10")
	behind := g.Check(key, at("5"))
	if behind == nil || behind.Resource != cluster.Pods || behind.Written != "10" || behind.Reached != "5" {
		t.Fatalf("got %v", behind)
	}
	if g.Check(key, at("10")) != nil || g.Check(key, at("5")) != nil {
		t.Error("it is forgotten once reached")
	}
}

// D-110: a workload that was held back is returned once, as soon as every cache has caught up or its record is gone.
func TestTellsWhoNeedNotWaitAnyMore(t *testing.T) {
	g := gate.New()
	g.Record(key, "u1", cluster.Pods, "10")
	if got := g.Opened(at("10")); got != nil {
		t.Errorf("nobody was refused, got %v", got)
	}
	_ = g.Check(key, at("5"))
	for _, step := range []struct {
		reached string
		want    []types.NamespacedName
	}{{"9", nil}, {"11", []types.NamespacedName{key}}, {"11", nil}} {
		if got := g.Opened(at(step.reached)); !slices.Equal(got, step.want) {
			t.Errorf("at %s: got %v, want %v", step.reached, got, step.want)
		}
	}
	_ = g.Check(key, at("5"))
	g.Clear(key)
	if got := g.Opened(at("5")); !slices.Equal(got, []types.NamespacedName{key}) {
		t.Errorf("got %v", got)
	}
}

// D-109: the highest version of each resource counts, separately for pods and daemonsets.
func TestRemembersTheHighestWriteOfEachResource(t *testing.T) {
	g := gate.New()
	g.Record(key, "u1", cluster.Pods, "10")
	g.Record(key, "u1", cluster.Pods, "9")
	g.Record(key, "u1", cluster.DaemonSets, "7")
	for _, step := range []struct {
		pods, daemonSets string
		passes           bool
	}{{"9", "7", false}, {"10", "6", false}, {"10", "7", true}} {
		reached := func(resource cluster.Resource) string {
			if resource == cluster.Pods {
				return step.pods
			}
			return step.daemonSets
		}
		if passes := g.Check(key, reached) == nil; passes != step.passes {
			t.Errorf("%+v", step)
		}
	}
}

// D-111: a version that cannot be compared does not hold a workload back.
func TestOddVersionsDoNotBlock(t *testing.T) {
	for _, odd := range [][2]string{{"abc", "5"}, {"10", ""}, {"10", "0"}} {
		g := gate.New()
		g.Record(key, "u1", cluster.Pods, odd[0])
		if behind := g.Check(key, at(odd[1])); behind != nil {
			t.Errorf("%v: %v", odd, behind)
		}
	}
}

// D-112
func TestWritesAreForgottenWhenVersionsBeginAnew(t *testing.T) {
	g := gate.New()
	g.Record(key, "u1", cluster.Pods, "1000")
	g.Record(key, "u1", cluster.DaemonSets, "20")
	if g.Check(key, at("10")) == nil {
		t.Fatal("both are behind")
	}
	g.BeginAnew()
	if got := g.Opened(at("10")); !slices.Equal(got, []types.NamespacedName{key}) {
		t.Errorf("got %v", got)
	}
	g.Record(key, "u1", cluster.Pods, "501")
	if g.Check(key, at("500")) == nil {
		t.Error("what is written after that counts")
	}
	if behind := g.Check(key, at("501")); behind != nil {
		t.Errorf("got %v", behind)
	}
}

// D-112
func TestRecordsBelongToAUID(t *testing.T) {
	g := gate.New()
	g.Record(key, "u1", cluster.Pods, "10")
	g.ClearOf(key, "u2")
	if g.Check(key, at("5")) == nil {
		t.Error("a record of another uid is not cleared")
	}
	g.Record(key, "u2", cluster.DaemonSets, "3")
	if behind := g.Check(key, at("3")); behind != nil {
		t.Errorf("the record of the old uid is replaced, got %v", behind)
	}
	g.Record(key, "u2", cluster.Pods, "10")
	g.ClearOf(key, "u2")
	if behind := g.Check(key, at("5")); behind != nil {
		t.Errorf("got %v", behind)
	}
}

// Created pods are unseen until the cache has reached the version that the create returned. No workload waits for them.
func TestCreatedPodsAreUnseenUntilTheCacheHasReachedThem(t *testing.T) {
	g := gate.New()
	expect := func(why string, uid types.UID, reached string, want ...string) {
		t.Helper()
		if got := g.UnseenCreates(key, uid, at(reached)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", why, got, want)
		}
	}
	g.RecordCreate(key, "u1", "a", "10")
	g.RecordCreate(key, "u1", "b", "12")
	if behind := g.Check(key, at("5")); behind != nil {
		t.Errorf("it waits: %v", behind)
	}
	expect("none is reached", "u1", "9", "a", "b")
	expect("of another workload", "u2", "9")
	expect("one is reached", "u1", "10", "b")
	expect("forgotten once reached", "u1", "9", "b")
	g.Record(key, "u1", cluster.DaemonSets, "20")
	if g.Check(key, at("12")) == nil {
		t.Error("it does not wait for the other write")
	}
	expect("forgotten once a plan could have been made", "u1", "9")
	g.RecordCreate(key, "u2", "c", "13")
	g.ClearOf(key, "u1")
	expect("a record of another uid is not cleared", "u2", "9", "c")
	for name, clears := range map[string]func(){
		"of the uid": func() { g.ClearOf(key, "u2") },
		"of any uid": func() { g.Clear(key) },
		"of all":     g.BeginAnew,
	} {
		g.RecordCreate(key, "u2", "d", "14")
		clears()
		expect("cleared "+name, "u2", "9")
	}
	g.RecordCreate(key, "u1", "e", "14")
	g.RecordCreate(key, "u1", "f", "9")
	g.AwaitCreates(key, "u2")
	if behind := g.Check(key, at("8")); behind != nil {
		t.Errorf("another workload was meant: %v", behind)
	}
	g.AwaitCreates(key, "u1")
	if g.Check(key, at("13")) == nil {
		t.Error("it does not wait for all of them")
	}
	if behind := g.Check(key, at("14")); behind != nil {
		t.Errorf("it waits: %v", behind)
	}
	if got := g.Restarts(); got != 1 {
		t.Errorf("the versions restarted %d times", got)
	}
}
