package main

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
)

// The delays after failed pods in kube-controller-manager.
const (
	firstDelay = time.Second
	lastDelay  = 15 * time.Minute
)

// backoffEntry is the back-off of the first DaemonSet's failed pods on a node.
type backoffEntry struct {
	ObservedGeneration int64     `json:"observedGeneration"`
	Node               string    `json:"node"`
	DelaySeconds       int64     `json:"delaySeconds"`
	Last               time.Time `json:"last"`
}

func (e backoffEntry) compare(other backoffEntry) int {
	return cmp.Or(
		cmp.Compare(e.ObservedGeneration, other.ObservedGeneration),
		cmp.Compare(e.Node, other.Node),
		cmp.Compare(e.DelaySeconds, other.DelaySeconds),
		e.Last.Compare(other.Last),
	)
}

// key returns the key that the controller uses.
func (e backoffEntry) key(ds apiObject) string {
	return fmt.Sprintf("%s/%d/%s", ds.GetUID(), e.ObservedGeneration, e.Node)
}

// steps returns how many failures in a row lead to this delay, or 0 if none do.
func (e backoffEntry) steps() int {
	want, delay := time.Duration(e.DelaySeconds)*time.Second, firstDelay
	for step := 1; ; step++ {
		if delay == want {
			return step
		}
		if delay == lastDelay {
			return 0
		}
		delay = min(2*delay, lastDelay)
	}
}

// newBackoff returns the controller's back-off with the entries and the clock of the case.
func newBackoff(c *cluster) *flowcontrol.Backoff {
	clock := clocktesting.NewFakeClock(c.Now)
	backoff := flowcontrol.NewFakeBackOff(firstDelay, lastDelay, clock)
	for _, entry := range c.Backoff {
		clock.SetTime(entry.Last)
		for range entry.steps() {
			backoff.Next(entry.key(c.subject()), entry.Last)
		}
	}
	clock.SetTime(c.Now)
	return backoff
}

// readBackoff returns the back-off entries of a DaemonSet, or none if the controller has no back-off.
func readBackoff(backoff *flowcontrol.Backoff, ds apiObject) ([]backoffEntry, error) {
	entries := []backoffEntry{}
	if backoff == nil {
		return entries, nil
	}
	// The type of the entries is not exported, so `field` cannot read them.
	items := reflect.ValueOf(backoff).Elem().FieldByName("perItemBackoff")
	if items.Kind() != reflect.Map {
		return nil, fmt.Errorf("upstream has changed: %T has no map %q", backoff, "perItemBackoff")
	}
	for item := items.MapRange(); item.Next(); {
		key := item.Key().String()
		parts := strings.SplitN(key, "/", 3)
		if len(parts) != 3 || parts[0] != string(ds.GetUID()) {
			continue
		}
		generation, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("upstream has changed: its back-off has the key %q", key)
		}
		last := item.Value().Elem().FieldByName("lastUpdate")
		if !last.IsValid() || last.Type() != reflect.TypeFor[time.Time]() {
			return nil, fmt.Errorf("upstream has changed: entries of %T have no time %q", backoff, "lastUpdate")
		}
		entries = append(entries, backoffEntry{
			ObservedGeneration: generation,
			Node:               parts[2],
			DelaySeconds:       int64(backoff.Get(key) / time.Second),
			Last:               *(*time.Time)(unsafe.Pointer(last.UnsafeAddr())),
		})
	}
	return entries, nil
}
