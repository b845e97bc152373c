package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodewise.dev/clients/go/internal/rawjson"
)

const (
	// maxPage is how many objects a page has at most.
	maxPage = 50
	// maxPageBytes is the largest page of several objects that is read. A client may create any number of large objects, and an apiserver may
	// serve in six bytes what it stores in one, such as <.
	maxPageBytes = 32 << 20
)

var errTooLong = errors.New("the answer is too long")

// lister lists a resource page by page. It adapts the number of objects in a page to their size.
type lister struct {
	client    *Client
	resource  schema.GroupVersionResource
	namespace string
	// timeout is the longest time for reading a page; 0 for no limit.
	timeout time.Duration
	size    atomic.Int64
}

func (c *Client) lister(resource schema.GroupVersionResource, namespace string) *lister {
	made := &lister{client: c, resource: resource, namespace: namespace}
	made.size.Store(maxPage)
	return made
}

// all reads all pages.
func (l *lister) all(ctx context.Context, options metav1.ListOptions, take func(*Object)) (first metav1.ListMeta, err error) {
	for isFirst := true; isFirst || options.Continue != ""; isFirst = false {
		meta, err := l.page(ctx, options, take)
		if err != nil {
			return metav1.ListMeta{}, err
		}
		if isFirst {
			first = meta
		}
		options.Continue = meta.Continue
	}
	first.Continue = ""
	return first, nil
}

// page reads one page, with at most as many objects as the options say. If the page is too long, it is requested again with fewer objects. The
// page is always one of a most-recent list: an apiserver may ignore the limit for other lists.
func (l *lister) page(ctx context.Context, options metav1.ListOptions, take func(*Object)) (metav1.ListMeta, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	most := options.Limit
	for {
		options.Limit = l.size.Load()
		if most > 0 {
			options.Limit = min(options.Limit, most)
		}
		text, err := l.read(ctx, options)
		switch {
		case errors.Is(err, errTooLong) && options.Limit > 1:
			l.size.Store(max(options.Limit/4, 1))
			continue
		case err != nil:
			return metav1.ListMeta{}, err
		case len(text) < maxPageBytes/4:
			l.size.Store(min(2*l.size.Load(), maxPage))
		}
		return readList(text, take)
	}
}

func (l *lister) read(ctx context.Context, options metav1.ListOptions) ([]byte, error) {
	if l.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		ctx = limited
	}
	stream, err := l.client.request(l.resource, l.namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(io.LimitReader(stream, maxPageBytes+1))
	if err == nil && len(text) > maxPageBytes {
		err = fmt.Errorf("%w: %d objects take more than %d bytes", errTooLong, options.Limit, maxPageBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a list of %s: %w", l.resource.Resource, err)
	}
	return text, nil
}

// readList reads a list, item by item. It skips items that cannot be read.
func readList(text []byte, take func(*Object)) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	var items []byte
	err := rawjson.Fields(text, map[string]any{"metadata": &meta, "items": &items})
	if err == nil {
		err = rawjson.Elements(items, func(value []byte) error {
			if object := readable(value); object != nil {
				take(object)
			}
			return nil
		})
	}
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("reading a list that the apiserver served: %w", err)
	}
	return meta, nil
}
