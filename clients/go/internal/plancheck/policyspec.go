package plancheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// stage is what is read of a stage of a RolloutPolicy.
type stage struct {
	name string
	// hasWaves is true if the stage has a wave for each value of a label.
	hasWaves bool
	checks   []check
}

// check is a check of a stage.
type check struct {
	name string
	// asks says who is asked: only its provider and its credential are set.
	asks *nodewisev1.Measure
}

// maxWaveValue is the longest value in the name of a wave: that of a label.
const maxWaveValue = 63

// checkOf returns the check of a measurement; nil if there is none.
func checkOf(stages []stage, id *nodewisev1.MeasurementId) *check {
	for _, stage := range stages {
		wave, isWave := strings.CutPrefix(id.GetStage(), stage.name+"/")
		if id.GetStage() != stage.name && (!isWave || !stage.hasWaves || len(wave) > maxWaveValue) {
			continue
		}
		if i := slices.IndexFunc(stage.checks, func(check check) bool { return check.name == id.GetCheck() }); i >= 0 {
			return &stage.checks[i]
		}
	}
	return nil
}

// words are the members of the spec that have one of a few values. A policy with another value is of a newer version, and must not be followed in
// part.
var words = []struct {
	path   []string
	values []string
}{
	{[]string{"unadmitted"}, []string{"Stable", "Update"}},
	{[]string{"order"}, []string{"Name", "OldestPod"}},
	{[]string{"disruption"}, []string{"Delete", "Evict"}},
	{[]string{"onFailure"}, []string{"Rollback", "Pause"}},
	{[]string{"nodes", "notReady"}, []string{"Exempt", "Count"}},
	{[]string{"nodes", "inMaintenance"}, []string{"Exempt", "First", "Count"}},
}

// stagesOf reads the stages of a RolloutPolicy. What they mean is the service's to say; here only whom a check asks matters.
func stagesOf(policy []byte) ([]stage, error) {
	parsed, err := parse(policy, "it")
	if err != nil {
		return nil, err
	}
	spec := rawjson.At(parsed, "spec")
	if _, isObject := spec.(object); !isObject {
		return nil, errors.New("it is no object")
	}
	for _, word := range words {
		if err := isOneOf(spec, word.path, word.values); err != nil {
			return nil, err
		}
	}
	listed, err := listAt(spec, "stages")
	if err != nil {
		return nil, err
	}
	stages := make([]stage, 0, len(listed))
	for _, entry := range listed {
		read, err := stageOf(entry)
		if err != nil {
			return nil, err
		}
		stages = append(stages, read)
	}
	return stages, nil
}

func stageOf(entry any) (read stage, err error) {
	if read.name, err = textAt(entry, "name"); err != nil {
		return stage{}, err
	}
	if err := isOneOf(entry, []string{"approval"}, []string{"Required"}); err != nil {
		return stage{}, err
	}
	read.hasWaves = rawjson.At(entry, "groupBy") != nil
	checks, err := listAt(entry, "analysis")
	if err != nil {
		return stage{}, err
	}
	for _, entry := range checks {
		check, err := readCheck(entry)
		if err != nil {
			return stage{}, err
		}
		read.checks = append(read.checks, check)
	}
	return read, nil
}

func readCheck(entry any) (read check, err error) {
	if read.name, err = textAt(entry, "name"); err != nil {
		return check{}, err
	}
	if err := isOneOf(entry, []string{"when"}, []string{"WhileSoaking", "BeforeStage"}); err != nil {
		return check{}, err
	}
	read.asks = &nodewisev1.Measure{}
	if rawjson.At(entry, "credential") != nil {
		if read.asks.Credential, err = textAt(entry, "credential"); err != nil {
			return check{}, err
		}
	}
	prometheus, webhook, verdict := rawjson.At(entry, "prometheus"), rawjson.At(entry, "webhook"), rawjson.At(entry, "grpc")
	switch {
	case prometheus != nil && webhook == nil && verdict == nil:
		query := &nodewisev1.PrometheusQuery{}
		if query.Address, err = textAt(prometheus, "address"); err == nil {
			query.Query, err = textAt(prometheus, "query")
		}
		read.asks.Provider = &nodewisev1.Measure_Prometheus{Prometheus: query}
	case prometheus == nil && webhook != nil && verdict == nil:
		call := &nodewisev1.WebhookCall{}
		call.Url, err = textAt(webhook, "url")
		read.asks.Provider = &nodewisev1.Measure_Webhook{Webhook: call}
	case prometheus == nil && webhook == nil && verdict != nil:
		call := &nodewisev1.VerdictCall{Tls: true}
		if tls := rawjson.At(verdict, "tls"); tls != nil {
			var isFlag bool
			if call.Tls, isFlag = tls.(bool); !isFlag {
				return check{}, errors.New("tls is neither true nor false")
			}
		}
		call.Address, err = textAt(verdict, "address")
		read.asks.Provider = &nodewisev1.Measure_VerdictService{VerdictService: call}
	}
	return read, err
}

func textAt(value any, member string) (string, error) {
	read, isText := rawjson.At(value, member).(string)
	if !isText {
		return "", fmt.Errorf("%s is no text", member)
	}
	return read, nil
}

func listAt(value any, member string) ([]any, error) {
	found := rawjson.At(value, member)
	list, isList := found.([]any)
	if found != nil && !isList {
		return nil, fmt.Errorf("%s is no list", member)
	}
	return list, nil
}

// isOneOf returns an error if there is a value at a path that is none of these.
func isOneOf(value any, path, values []string) error {
	found := rawjson.At(value, path...)
	if word, isText := found.(string); found == nil || isText && slices.Contains(values, word) {
		return nil
	}
	return fmt.Errorf("%s is %s, where one of %s belongs", strings.Join(path, "."), text(found), strings.Join(values, ", "))
}
