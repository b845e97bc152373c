package nodewise

import (
	"regexp"
	"strings"
	"time"

	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// defaultInterval is the time between two measurements of a check that names none.
const defaultInterval = time.Minute

// intervalSyntax is the syntax of durations in a RolloutPolicy.
var intervalSyntax = regexp.MustCompile(`^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$`)

// intervalFor returns the time between two measurements of the check, as the policy of the snapshot says.
func intervalFor(planned *planned, measure *nodewisev1.Measure) time.Duration {
	for _, policy := range planned.policies {
		if string(policy.UID) == measure.GetId().GetPolicyUid() {
			return intervalOf(policy.JSON, measure.GetId())
		}
	}
	return defaultInterval
}

// intervalOf reads the interval of a check. The name of a wave begins with that of its stage.
func intervalOf(policy []byte, id *nodewisev1.MeasurementId) time.Duration {
	parsed, err := rawjson.Parse(policy)
	if err != nil {
		return defaultInterval
	}
	for _, stage := range rawjson.List(parsed, "spec", "stages") {
		name, _ := rawjson.At(stage, "name").(string)
		if id.GetStage() != name && !strings.HasPrefix(id.GetStage(), name+"/") {
			continue
		}
		for _, check := range rawjson.List(stage, "analysis") {
			text, isText := rawjson.At(check, "interval").(string)
			if rawjson.At(check, "name") != id.GetCheck() || !isText || !intervalSyntax.MatchString(text) {
				continue
			}
			if interval, err := time.ParseDuration(text); err == nil && interval > 0 {
				return interval
			}
		}
	}
	return defaultInterval
}
