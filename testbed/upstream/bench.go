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

// bench answers each number on a line of its input: it syncs the case in a file so many times, and tells how many nanoseconds
// each sync took. It keeps to one thread, the garbage collector's work included, with the collector as Go sets it.
func bench(file string, in io.Reader, out io.Writer) error {
	silence()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	trial, err := resting(ctx, file)
	if err != nil {
		return err
	}
	// What was read is no garbage of any sync.
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

// resting makes one controller over the case in a file, for any number of syncs, with caches as a real one has them.
func resting(ctx context.Context, file string) (*trial, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the case: %w", err)
	}
	_, c, err := readRequest(slices.Concat([]byte(`{"case":`), text, []byte("}")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// A sync would end before it has begun.
	if c.subject().DeletionTimestamp != nil {
		return nil, fmt.Errorf("%s: daemonSets[0] is being deleted", file)
	}
	if c.Expectations != nil {
		return nil, fmt.Errorf("%s: expectations: the controller of a cluster at rest has none", file)
	}
	if len(c.FeatureGates) > 0 {
		return nil, fmt.Errorf("%s: featureGates: gates are as by default here", file)
	}
	// The text of the objects, which no controller keeps.
	c.DaemonSets, c.Nodes, c.Pods, c.Revisions = nil, nil, nil, nil
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	return newTrial(ctx, client, c, newPlainCaches(c))
}

// time is how long a sync takes that finds nothing to do. One that does anything is an error.
func (t *trial) time(ctx context.Context) (time.Duration, error) {
	ctx = withAPI(ctx, t.api)
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
