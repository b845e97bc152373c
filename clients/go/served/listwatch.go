package served

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Client reads objects as they are served.
type Client struct {
	rest *rest.RESTClient
}

// NewClient makes a client of the apiserver of a configuration, with an HTTP client made from the same configuration.
func NewClient(config *rest.Config, client *http.Client) (*Client, error) {
	if config == nil || client == nil {
		return nil, errors.New("served.NewClient needs a *rest.Config and the HTTP client that rest.HTTPClientFor makes of it")
	}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = newSerializer()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	made, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	return &Client{rest: made}, nil
}

// Get reads one object.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName) (*Object, error) {
	object, err := c.request(resource, key.Namespace).Name(key.Name).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	read, isObject := object.(*Object)
	if !isObject {
		return nil, fmt.Errorf("the apiserver served a %T", object)
	}
	return read, nil
}

// List reads all objects of a resource in one namespace, or in all if the namespace is empty.
func (c *Client) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) (*List, error) {
	list := &List{}
	meta, err := c.lister(resource, namespace).all(ctx, metav1.ListOptions{}, func(object *Object) {
		list.Items = append(list.Items, *object)
	})
	if err != nil {
		return nil, err
	}
	list.ListMeta = meta
	return list, nil
}

// Each reads the same objects, and calls take with one after the other, so that not all of them must fit into memory. The timeout is for each
// page of the list.
func (c *Client) Each(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, timeout time.Duration, take func(*Object),
) error {
	lister := c.lister(resource, namespace)
	lister.timeout = timeout
	_, err := lister.all(ctx, metav1.ListOptions{}, take)
	return err
}

// IsNotFound reports whether an apiserver answered with the status 404. The code alone counts: where a resource is not served, the body need not
// be a Status.
func IsNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusNotFound
}

func (c *Client) request(resource schema.GroupVersionResource, namespace string) *rest.Request {
	return c.rest.Get().
		AbsPath("/apis", resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource)
}

// ListWatch lists and watches a resource in one namespace, or in all if the namespace is empty. Lists and events have [*Object], so make
// informers and reflectors with &served.Object{} as the example object.
//
// A list is read in pages. The function reduce is called with each object as it is read, and its result is in the list; nil keeps objects as they
// are. An informer's transform is called only when the whole list has been read. Give the same function to the informer as a transform, for the
// events of the watch.
//
// All lists are most-recent reads, unlike the first list of a reflector, which may come from an apiserver's cache. So a controller that was
// restarted does not see less than it has written.
func (c *Client) ListWatch(
	resource schema.GroupVersionResource, namespace string, reduce func(*Object) runtime.Object,
) cache.ListerWatcher {
	lister := c.lister(resource, namespace)
	if reduce == nil {
		reduce = func(object *Object) runtime.Object { return object }
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &metainternalversion.List{}
			read := lister.all
			if options.Limit > 0 {
				read = lister.page
			}
			meta, err := read(ctx, options, func(object *Object) { list.Items = append(list.Items, reduce(object)) })
			if err != nil {
				return nil, err
			}
			list.ListMeta = meta
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			stream, err := c.request(resource, namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
			if err != nil {
				return nil, err
			}
			return newWatch(klog.FromContext(ctx), stream), nil
		},
	}
}

// MostRecent makes the first list of a reflector or informer a most-recent read.
func MostRecent(listWatch *cache.ListWatch) cache.ListerWatcher {
	list := listWatch.ListWithContextFunc
	listWatch.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.ResourceVersion == "0" {
			options.ResourceVersion = ""
		}
		return list(ctx, options)
	}
	return listWatch
}
