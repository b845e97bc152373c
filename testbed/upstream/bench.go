package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench reads a number per line, syncs the case in a file that often, and writes the nanoseconds that each sync took.
// It uses one thread, also for the garbage collector, with Go's default settings of the collector.
func bench(file string, in io.Reader, out io.Writer) error {
	silence()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	trial, err := resting(ctx, file)
	if err != nil {
		return err
	}
	// Data from reading the case must not count as garbage of a sync.
	runtime.GC()
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		count, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil || count < 1 {
			return fmt.Errorf("%q is no number of syncs", lines.Text())
		}
		times := make([]int64, count)
		for i := range times {
			took, err := trial.time(ctx)
			if err != nil {
				return fmt.Errorf("%s is no cluster at rest: %w", file, err)
			}
			times[i] = took.Nanoseconds()
		}
		if err := answers.Encode(times); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return lines.Err()
}

// resting returns a controller for the case in a file, for any number of syncs, with caches as in a real controller.
func resting(ctx context.Context, file string) (*trial, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the case: %w", err)
	}
	_, c, err := readRequest(slices.Concat([]byte(`{"case":`), text, []byte("}")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// A sync of such a DaemonSet would return at once.
	if c.subject().GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s: %s[0] is being deleted", file, c.kind.member)
	}
	if c.Expectations != nil {
		return nil, fmt.Errorf("%s: expectations: the controller of a cluster at rest has none", file)
	}
	if len(c.FeatureGates)+len(c.FeatureGatesOff) > 0 {
		return nil, fmt.Errorf("%s: featureGates: gates are as by default here", file)
	}
	// Frees the text of the objects, which a real controller does not have.
	c.DaemonSets, c.ReplicaSets, c.Deployments, c.Nodes, c.Pods, c.Revisions = nil, nil, nil, nil, nil, nil
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	return newTrial(ctx, client, c, newPlainCaches(c))
}

// time returns how long a sync without any effect takes. A sync with an effect is an error.
func (t *trial) time(ctx context.Context) (time.Duration, error) {
	inUse.Store(t.api)
	o := &outcome{}
	begun := time.Now()
	err := t.attempt(ctx, o)
	took := time.Since(begun)
	if o.Panic != "" {
		err = errors.Join(err, fmt.Errorf("it panicked: %s", o.Panic))
	}
	for _, call := range t.api.calls {
		err = errors.Join(err, fmt.Errorf("%s %s", call.Op, call.Name))
	}
	for _, event := range t.recorder.events {
		err = errors.Join(err, fmt.Errorf("%s: %s", event.Reason, event.Message))
	}
	if len(t.queue.requeue) > 0 {
		err = errors.Join(err, fmt.Errorf("the controller wants to look again in %vs", t.queue.requeue[0]))
	}
	return took, err
}
