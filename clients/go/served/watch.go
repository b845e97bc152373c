package served

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// events reads the events of a watch, each of which is a line.
type events struct {
	stream io.ReadCloser
	lines  *bufio.Reader
}

func newWatch(logger klog.Logger, stream io.ReadCloser) watch.Interface {
	return watch.NewStreamWatcherWithLogger(logger, &events{stream, bufio.NewReader(stream)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding"))
}

// Close implements [watch.Decoder].
func (e *events) Close() { _ = e.stream.Close() }

// Decode implements [watch.Decoder]. An object that cannot be read is passed over: it would come again with every watch from here.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	for {
		line, err := e.lines.ReadBytes('\n')
		if err != nil {
			// With what was cut off the next watch begins.
			return "", nil, err
		}
		var kind watch.EventType
		var object []byte
		err = members(line, func(name string, value []byte) error {
			switch name {
			case "type":
				return json.Unmarshal(value, &kind)
			case "object":
				object = value
			}
			return nil
		})
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("reading an event: %w", err)
		case kind == watch.Error:
			status := new(metav1.Status)
			return kind, status, json.Unmarshal(object, status)
		case kind != watch.Added && kind != watch.Modified && kind != watch.Deleted && kind != watch.Bookmark:
			return "", nil, fmt.Errorf("no event is of the type %q", kind)
		}
		if read := readable(object); read != nil {
			return kind, read, nil
		}
	}
}
