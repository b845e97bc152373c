package nodewise

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// A workload that fails all the time takes the tokens that all workloads share. Others wait no longer than the longest back-off, and not at
// all after that time.
func TestWhoFailsOftenHoldsUpOthersForABoundedTime(t *testing.T) {
	for profile, most := range map[nodewisev1.Profile]time.Duration{
		nodewisev1.Profile_PROFILE_UNSPECIFIED:     time.Minute,
		nodewisev1.Profile_PROFILE_UPSTREAM_STRICT: 1000 * time.Second,
	} {
		t.Run(profile.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, err := configured([]Option{WithPlanOptions(&nodewisev1.PlanOptions{Profile: profile})})
				if err != nil {
					t.Fatal(err)
				}
				limiter := config.rateLimiter()
				when := func(name string) time.Duration { return limiter.When(types.NamespacedName{Name: name}) }
				if first := when("often"); first != 5*time.Millisecond {
					t.Errorf("the first retry comes after %s", first)
				}
				for range 100_000 {
					when("often")
				}
				if during := when("other"); during > most || during < most-time.Second {
					t.Errorf("meanwhile another waits for %s", during)
				}
				// In the synctest bubble this advances the fake clock.
				time.Sleep(most)
				if after := when("third"); after > 200*time.Millisecond {
					t.Errorf("after that another waits for %s", after)
				}
			})
		})
	}
}
