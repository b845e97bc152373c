package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// atTime calls f at a time. Upstream reads the system's clock in many places. Go's own testing/synctest gives a group of
// goroutines a clock of their own, which stands still while one of them runs. It begins in the year 2000. So neither
// the package nor the time of a sync depends on when this program runs.
//
// All goroutines that f starts must end.
func atTime(now time.Time, f func()) error {
	ahead := now.Sub(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC))
	if ahead < 0 || now.After(latest) {
		return errors.New("now: it is before the year 2000, or after 2250")
	}
	// A test that belongs to no test run is enough, because f reports nothing to it.
	synctest.Test(new(testing.T), func(*testing.T) {
		time.Sleep(ahead)
		f()
	})
	return nil
}

// latest is the last time that a sleep of less than 292 years, the greatest Duration, reaches.
var latest = time.Date(2250, time.January, 1, 0, 0, 0, 0, time.UTC)
