package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates
)

// driver syncs cases.
type driver struct {
	client kubernetes.Interface
}

func newDriver() (*driver, error) {
	client, err := newClient()
	return &driver{client: client}, err
}

// outcomes returns the distinct outcomes of a request, in the order of their first occurrence.
func (d *driver) outcomes(line []byte) ([]json.RawMessage, error) {
	asked, cluster, err := readRequest(line)
	if err != nil {
		return nil, err
	}
	defaults, err := setGates(cluster.FeatureGates, cluster.FeatureGatesOff)
	if err != nil {
		return nil, err
	}
	defer defaults()
	var distinct []json.RawMessage
	seen := map[string]bool{}
	for number := range asked.Runs {
		var chance *rand.Rand
		if asked.Order == orderShuffled {
			chance = rand.New(rand.NewPCG(cluster.Seed, uint64(number)))
		}
		outcome, err := d.sync(cluster, chance)
		if err != nil {
			return nil, err
		}
		key, text, err := encode(outcome, cluster.hash)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			seen[key] = true
			distinct = append(distinct, text)
		}
	}
	return distinct, nil
}

// sync syncs at the time of the case.
func (d *driver) sync(c *cluster, chance *rand.Rand) (o *outcome, err error) {
	at := atTime(c.Now, func() {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var trial *trial
		if trial, err = newTrial(ctx, d.client, c, newCaches(c, chance)); err == nil {
			// Only with several refusals does the result of a sync depend on the order.
			if chance != nil && len(c.Faults) > 1 {
				trial.api.turns = newTurns(ctx, rand.New(rand.NewPCG(chance.Uint64(), chance.Uint64())))
			}
			o, err = trial.do(ctx)
		}
	})
	return o, errors.Join(at, err)
}

// encode returns the JSON of an outcome, and a key that identifies it. Several errors are joined in the random order in
// which they occurred, so the key does not depend on the order of an error's words.
func encode(o *outcome, hash string) (key string, text json.RawMessage, err error) {
	text, err = encodeRaw(o, hash)
	if err != nil || o.Error == "" {
		return string(text), text, err
	}
	words := strings.FieldsFunc(o.Error, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })
	slices.Sort(words)
	same := *o
	same.Error = strings.Join(words, " ")
	sorted, err := encodeRaw(&same, hash)
	return string(sorted), text, err
}

func encodeRaw(o *outcome, hash string) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil {
		return nil, fmt.Errorf("encoding an outcome: %w", err)
	}
	encoded := bytes.TrimSpace(text.Bytes())
	if hash != "" {
		encoded = bytes.ReplaceAll(encoded, []byte(hash), []byte(hashMark))
	}
	return encoded, nil
}

// addresses matches memory addresses. Upstream prints some by mistake: the pointers in objects, and the addresses of
// two collision counts instead of the counts.
var addresses = regexp.MustCompile(`0x[0-9a-f]{6,}|stale collision count \([0-9]+, expected [0-9]+\)`)

// told returns the text of an error without addresses.
func told(err error) string {
	return addresses.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if strings.HasPrefix(found, "0x") {
			return "0x…"
		}
		return "stale collision count (…, expected …)"
	})
}

// setGates turns feature gates on and off, and returns a function that resets all of them.
func setGates(on, off []string) (back func(), err error) {
	if len(on)+len(off) == 0 {
		return func() {}, nil
	}
	gates := utilfeature.DefaultMutableFeatureGate
	before, after := map[string]bool{}, map[string]bool{}
	known := gates.GetAll()
	for member, names := range map[string][]string{"featureGates": on, "featureGatesOff": off} {
		for _, name := range names {
			if _, ok := known[featuregate.Feature(name)]; !ok {
				return nil, fmt.Errorf("%s: there is no %q", member, name)
			}
			before[name], after[name] = gates.Enabled(featuregate.Feature(name)), member == "featureGates"
		}
	}
	if err := gates.SetFromMap(after); err != nil {
		return nil, fmt.Errorf("featureGates: %w", err)
	}
	return func() {
		if err := gates.SetFromMap(before); err != nil {
			panic(fmt.Sprintf("turning feature gates back: %v", err))
		}
	}, nil
}
