package analysis

import (
	"context"
	"strconv"
	"testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// take takes a turn if there is one at once; nil if it would have to wait.
func take(t *turns, namespace, policy string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// Of a free slot and an ended context either may be chosen.
	for range 200 {
		end, err := t.take(ctx, namespace, &nodewisev1.MeasurementId{PolicyUid: policy, Check: "errors"})
		if err == nil {
			return end
		}
	}
	return nil
}

func TestACheckHasOneCallAndANamespaceFew(t *testing.T) {
	all := newTurns()
	first := take(all, "a", "p0")
	if first == nil {
		t.Fatal("there is no turn")
	}
	if take(all, "a", "p0") != nil {
		t.Error("a check has two calls")
	}
	ends := []func(){}
	for policy := 1; policy < maxNamespaceCalls; policy++ {
		end := take(all, "a", strconv.Itoa(policy))
		if end == nil {
			t.Fatal("another check has no turn")
		}
		ends = append(ends, end)
	}
	if take(all, "a", "p99") != nil {
		t.Error("a namespace has too many calls")
	}
	other := take(all, "b", "p99")
	if other == nil {
		t.Fatal("another namespace has to wait")
	}
	first()
	if first = take(all, "a", "p0"); first == nil {
		t.Fatal("a turn was not given back")
	}
	for _, end := range append(ends, first, other) {
		end()
	}
	if len(all.all) > 0 || len(all.namespaces.inUse) > 0 || len(all.checks.inUse) > 0 {
		t.Errorf("%d turns, %v and %v are left", len(all.all), all.namespaces.inUse, all.checks.inUse)
	}
}

func TestAllTogetherHaveFewCalls(t *testing.T) {
	all := newTurns()
	ends := []func(){}
	for namespace := range maxCalls {
		end := take(all, strconv.Itoa(namespace), strconv.Itoa(namespace))
		if end == nil {
			t.Fatalf("only %d calls at once", namespace)
		}
		ends = append(ends, end)
	}
	if take(all, "z", "z") != nil {
		t.Error("there is one more")
	}
	ends[0]()
	end := take(all, "z", "z")
	if end == nil {
		t.Fatal("a turn was not given back")
	}
	end()
}
