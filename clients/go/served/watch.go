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

	"nodewise.dev/clients/go/internal/rawjson"
)

// events reads the events of a watch. Each event is one line.
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

// Decode implements [watch.Decoder]. It skips an object that cannot be read: an error would end the watch, and the next watch from the same
// version would have the same event.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	for {
		line, err := e.lines.ReadBytes('\n')
		if err != nil {
			// An incomplete event is dropped: the next watch begins with it.
			return "", nil, err
		}
		var kind watch.EventType
		var object []byte
		err = rawjson.Fields(line, map[string]any{"type": &kind, "object": &object})
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
