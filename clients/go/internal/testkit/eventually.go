package testkit

import (
	"testing"
	"time"
)

// Eventually waits until holds returns true, and fails the test if that takes longer than 20 seconds. The argument what names the condition.
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
