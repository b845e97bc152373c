// Command upstream runs Kubernetes' own, unmodified controllers of DaemonSets, ReplicaSets and Deployments on the caches
// and the API of a case, one sync at a time, and reports every call that they make. It reads a request per line from
// standard input and writes a response per line to standard output; README.md describes both. `upstream bench` measures
// the duration of syncs instead.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 0:
		return serve(in, out)
	case len(args) == 3 && args[0] == "coverage":
		return coverage(args[1], args[2], out)
	case len(args) == 2 && args[0] == "bench":
		return bench(args[1], in, out)
	default:
		return errors.New("usage: upstream < REQUESTS, or upstream bench FILE < NUMBERS, or upstream coverage DIR KIND")
	}
}

// garbage is the percentage for GOGC. It is high because a case is small, and the next case shares nothing with it.
const garbage = 400

// serve answers requests until the input ends.
func serve(in io.Reader, out io.Writer) error {
	silence()
	debug.SetGCPercent(garbage)
	driver, err := newDriver()
	if err != nil {
		return err
	}
	requests, answers := bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<20)
	for {
		line, err := requests.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := reply(driver, line, answers); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
	}
}

// silence turns off upstream's logging, because the outcome has all information.
func silence() {
	klog.SetLogger(logr.Discard())
	// The default handlers also sleep, to slow down a controller that fails in a loop.
	utilruntime.ErrorHandlers = nil
	utilruntime.ReallyCrash = false
}

// answer is the response to a request: outcomes, or the reason of a rejection.
type answer struct {
	Outcomes []json.RawMessage `json:"outcomes,omitempty"`
	Refused  string            `json:"refused,omitempty"`
}

func reply(driver *driver, line []byte, out *bufio.Writer) error {
	var answer answer
	if outcomes, err := driver.outcomes(line); err != nil {
		answer.Refused = err.Error()
	} else {
		answer.Outcomes = outcomes
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	return out.Flush()
}
