package testkit

import (
	"testing"
	"time"
)

// Eventually waits until it is so, and fails the test when that takes too long. What says for what is waited.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
