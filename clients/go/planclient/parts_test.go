package planclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"nodewise.dev/clients/go/nodewisev1"
)

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:7443":        "http://127.0.0.1:7443",
		"http://planner.example:7443/": "http://planner.example:7443",
		"http://[::1]:7443":            "http://[::1]:7443",
		"http://planner.example":       "http://planner.example:80",
		"https://planner.example":      "https://planner.example:443",
		"https://[::1]:7443/":          "https://[::1]:7443",
		"dns:///planner.example:7443":  "dns:///planner.example:7443",
		"dns:planner.example:7443":     "dns:///planner.example:7443",
		"dns:///[::1]:7443":            "dns:///[::1]:7443",
	} {
		if got, err := parseTarget(text); err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "127.0.0.1:7443", "ftp://host:1", "http://", "http://user@host:7443", "http://host:port", "http://host:7443/path",
		"http://host:7443?query", "dns:///planner.example", "dns:///:7443", "dns:///planner.example:grpc",
		"dns:///planner.example:0", "dns:///planner.example/x:7443", "dns://8.8.8.8/planner.example:7443",
	} {
		if got, err := parseTarget(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// A replica that goes away moves only its own workloads, and each replica has a fair share.
func TestOnlyTheWorkloadsOfWhoGoesMove(t *testing.T) {
	all := []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"}
	homeOf := func(uid string, among []string) string {
		return slices.MinFunc(among, func(a, b string) int { return compareWeights(uid, a, b) })
	}
	moved := 0
	for i := range 400 {
		uid := fmt.Sprintf("uid-%d", i)
		before, after := homeOf(uid, all), homeOf(uid, all[1:])
		if before == all[0] {
			moved++
		} else if before != after {
			t.Errorf("%s moved from %s to %s", uid, before, after)
		}
	}
	// 100 on average, by a binomial distribution: six standard deviations.
	if moved < 48 || moved > 152 {
		t.Errorf("%d of 400 belonged to one of four", moved)
	}
}

func fakes(count int) []*replica {
	var replicas []*replica
	for i := range count {
		replicas = append(replicas, &replica{endpoint: endpoint{address: strconv.Itoa(i)}, evictedByCall: make(chan struct{}, 1)})
	}
	return replicas
}

func TestAttemptsShareTheTimeOfTheCall(t *testing.T) {
	for count, want := range map[int][]int{1: {10, 10, 10}, 3: {10, 10, 10}, 6: {10, 6, 4, 2, 2, 2}} {
		synctest.Test(t, func(t *testing.T) {
			config, order := defaults(), fakes(count)
			attempts := newAttempts(&config, config.minAttempts, time.Now().Add(30*time.Second))
			var shares []int
			for attempt := attempts.next(order); attempt != nil; attempt = attempts.next(order) {
				shares = append(shares, int(time.Until(attempt.until).Seconds()))
				// In the synctest bubble this advances the fake clock.
				time.Sleep(time.Until(attempt.until))
			}
			if !slices.Equal(shares, want) {
				t.Errorf("%d replicas: got %v, want %v", count, shares, want)
			}
		})
	}
}

func TestEachIsAskedBeforeAnybodyIsAskedAgain(t *testing.T) {
	config, order := defaults(), fakes(2)
	attempts := newAttempts(&config, config.minAttempts, time.Now().Add(time.Minute))
	first := attempts.next(order)
	if first.replica != order[0] || first.spare != order[1] {
		t.Fatalf("got %+v", first)
	}
	if pause, more := attempts.pause(order, time.Hour); pause != 0 || !more {
		t.Errorf("another may answer at once, got %s", pause)
	}
	if second := attempts.next(order); second.replica != order[1] || second.spare != nil {
		t.Errorf("got %+v", second)
	}
	// Now every replica was asked, so the requested delay counts, up to the longest pause.
	if pause, more := attempts.pause(order, time.Hour); pause != config.maxPause || !more {
		t.Errorf("got %s, %t", pause, more)
	}
	order[1].failed("it failed")
	if third := attempts.next(order); third.replica != order[0] || third.spare != nil {
		t.Errorf("no spare has failed, got %+v", third)
	}
	if attempts.next(order) != nil || newAttempts(&config, 3, time.Now().Add(time.Minute)).next(nil) != nil {
		t.Error("there were more attempts than three, or one without a replica")
	}
}

// The slower replica of a hedged call may answer after the call. No request is built any more then, so nothing is written that the caller
// reads.
func TestNothingIsBuiltWhenTheCallIsOver(t *testing.T) {
	one := fakes(1)[0]
	built, building := 0, make(chan struct{})
	asking := &builder[*nodewisev1.PlanRequest]{build: func(Receiver) (*nodewisev1.PlanRequest, error) {
		if built++; built == 1 {
			close(building)
		}
		return &nodewisev1.PlanRequest{}, nil
	}}
	late := make(chan error, 1)
	go func() {
		var err error
		for deadline := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(deadline); {
			_, _, err = asking.buildFor(one, false, one.sharedLabels())
		}
		late <- err
	}()
	<-building
	asking.end()
	// The race detector fails if this is not after the last request.
	if before := built; !errors.Is(<-late, errEnded) || built != before {
		t.Errorf("built %d times, %d of them afterwards", built, built-before)
	}
}

// A successful probe is no answered call: a replica that fails each call is evicted for longer each time.
func TestCallsThatFailAgainAndAgainEvictForLonger(t *testing.T) {
	one := fakes(1)[0]
	var pauses []float64
	for range 9 {
		if !one.failed("no answer") || one.failed("no answer") {
			t.Fatal("one failure evicts, others add nothing")
		}
		pauses = append(pauses, one.probeDelay().Seconds())
		one.serves(one.beginProbe())
	}
	if want := []float64{0.5, 1, 2, 4, 8, 16, 30, 30, 30}; !slices.Equal(pauses, want) {
		t.Errorf("got %v", pauses)
	}
	if one.answered(); one.probeDelay() != 0 {
		t.Error("an answered call ends it")
	}
}

func TestOneThatDrainsFinishesItsCalls(t *testing.T) {
	one := fakes(1)[0]
	one.drains()
	one.answered()
	if one.failed("refused") || one.isEligible() {
		t.Error("it drains no more")
	}
	if one.serves(one.beginProbe()); !one.isEligible() {
		t.Error("it serves again")
	}
}

func TestBucketsInUseAreNotForgotten(t *testing.T) {
	digest := func(number int) (digest Digest) {
		binary.LittleEndian.PutUint64(digest[:], uint64(number))
		return digest
	}
	among := func(from, to int) (list []Digest) {
		for number := from; number < to; number++ {
			list = append(list, digest(number))
		}
		return list
	}
	known := digests{recent: map[Digest]struct{}{}}
	for next := 1_000; next < 401_000; next += 10_000 {
		known.use(among(0, 1_000))
		known.use(among(next, next+10_000))
		if i := slices.IndexFunc(among(0, 1_000), func(d Digest) bool { return !known.contains(d) }); i >= 0 {
			t.Fatalf("%d is forgotten after %d", i, next)
		}
	}
	if len(known.recent)+len(known.older) > 3*generation || known.contains(digest(1_000)) {
		t.Errorf("%d are remembered", len(known.recent)+len(known.older))
	}
}
