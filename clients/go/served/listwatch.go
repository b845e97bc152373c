package served

import (
	"context"
	"errors"
	"fmt"
	"net/http"

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

// NewClient reads from the apiserver of a configuration, with its HTTP client.
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
	return answer[*Object](c.request(resource, key.Namespace).Name(key.Name).Do(ctx))
}

// List reads all objects of a resource, in one namespace or, if that is empty, in all.
func (c *Client) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) (*List, error) {
	return answer[*List](c.request(resource, namespace).Do(ctx))
}

func answer[T runtime.Object](result rest.Result) (T, error) {
	var none T
	object, err := result.Get()
	if err != nil {
		return none, err
	}
	read, isWhatWasAskedFor := object.(T)
	if !isWhatWasAskedFor {
		return none, fmt.Errorf("the apiserver served a %T", object)
	}
	return read, nil
}

func (c *Client) request(resource schema.GroupVersionResource, namespace string) *rest.Request {
	return c.rest.Get().
		AbsPath("/apis", resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource)
}

// ListWatch lists and watches a resource, in one namespace or, if that is empty, in all. It gives out [*List] and [*Object], so
// that informers and reflectors over it are made for &served.Object{}.
//
// First lists are most-recent reads, where a reflector would be content with whatever the apiserver has in its cache: a
// controller that was killed must not see less than it had written.
func (c *Client) ListWatch(resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
	return MostRecent(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.request(resource, namespace).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			stream, err := c.request(resource, namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
			if err != nil {
				return nil, err
			}
			return newWatch(klog.FromContext(ctx), stream), nil
		},
	})
}

// MostRecent makes first lists most-recent reads.
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
