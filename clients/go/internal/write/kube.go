package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/served"
)

// identityOnly is the Accept header that asks for only the metadata of the written object.
const identityOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// Kube writes to an apiserver. Bodies are sent as they are given. Of a response only the name and the version are read.
type Kube struct {
	rest     *rest.RESTClient
	served   *served.Client
	timeout  time.Duration
	manager  string
	recorder record.EventRecorder
}

// WithRecorder returns a writer that emits Events through another recorder.
func (k *Kube) WithRecorder(recorder record.EventRecorder) *Kube {
	other := *k
	other.recorder = recorder
	return &other
}

// NewKube makes a writer for the apiserver of a configuration, with an HTTP client made from the same configuration. The manager is the field
// manager of all writes, and the timeout is for each call.
func NewKube(
	config *rest.Config, client *http.Client, manager string, timeout time.Duration, recorder record.EventRecorder,
) (*Kube, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	made, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	reader, err := served.NewClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Kube{rest: made, served: reader, timeout: timeout, manager: manager, recorder: recorder}, nil
}

// Writes implements [Writer].
func (k *Kube) Writes() bool { return true }

// Create implements [Writer].
func (k *Kube) Create(ctx context.Context, resource cluster.Resource, namespace string, manifest []byte) (Written, error) {
	request := k.rest.Post().AbsPath(root(resource)).Namespace(namespace).Resource(string(resource)).
		Param("fieldManager", k.manager).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", identityOnly).Body(manifest)
	about := Key{Resource: resource, Namespace: namespace}
	return k.write(ctx, &call{request: request, method: http.MethodPost, about: about, manifest: manifest})
}

// Patch implements [Writer].
func (k *Kube) Patch(ctx context.Context, key Key, subresource string, kind types.PatchType, patch []byte) (Written, error) {
	request := object(k.rest.Patch(kind), key)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	request = request.Param("fieldManager", k.manager).SetHeader("Accept", identityOnly).Body(patch)
	return k.write(ctx, &call{request: request, method: http.MethodPatch, about: key, subresource: subresource})
}

// Delete implements [Writer].
func (k *Kube) Delete(ctx context.Context, key Key, preconditions Preconditions) error {
	request := object(k.rest.Delete(), key).SetHeader("Accept", identityOnly)
	if preconditions != (Preconditions{}) {
		required := &metav1.Preconditions{}
		if preconditions.UID != "" {
			required.UID = &preconditions.UID
		}
		if preconditions.ResourceVersion != "" {
			required.ResourceVersion = &preconditions.ResourceVersion
		}
		options := metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: required,
		}
		body, err := json.Marshal(options)
		if err != nil {
			return Unclear("writing the options of a delete: %w", err)
		}
		request = request.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
	}
	_, err := k.call(ctx, &call{request: request, method: http.MethodDelete, about: key})
	return err
}

// Evict implements [Writer]. A 429 is no failure: it says that a budget does not allow the eviction now.
func (k *Kube) Evict(ctx context.Context, key Key, uid types.UID) (*Blocked, error) {
	const eviction = "eviction"
	body, err := json.Marshal(policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	if err != nil {
		return nil, Unclear("writing an eviction: %w", err)
	}
	request := object(k.rest.Post(), key).SubResource(eviction).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(body)
	_, err = k.call(ctx, &call{request: request, method: http.MethodPost, about: key, subresource: eviction})
	if err == nil {
		return nil, nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusTooManyRequests {
		said := status.Status()
		return blocked(&said), nil
	}
	return nil, err
}

// blocked reads the answer to an eviction that was not allowed. The causes name the budget, and say what it needs.
func blocked(status *metav1.Status) *Blocked {
	said := &Blocked{}
	messages := []string{status.Message}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Message != "" {
				messages = append(messages, cause.Message)
			}
		}
		said.RetryAfter = time.Duration(max(status.Details.RetryAfterSeconds, 0)) * time.Second
	}
	said.Message = brief.Text(strings.Join(messages, " "))
	return said
}

// ReplaceStatus implements [Writer].
func (k *Kube) ReplaceStatus(ctx context.Context, key Key, body []byte) (Written, error) {
	request := object(k.rest.Put(), key).SubResource("status").
		Param("fieldManager", k.manager).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", identityOnly).Body(body)
	return k.write(ctx, &call{request: request, method: http.MethodPut, about: key, subresource: "status"})
}

// Read implements [Writer].
func (k *Kube) Read(ctx context.Context, key Key) ([]byte, error) {
	return k.call(ctx, &call{request: object(k.rest.Get(), key), method: http.MethodGet, about: key})
}

// EachRevision implements [Writer].
func (k *Kube) EachRevision(ctx context.Context, namespace string, take func(*served.Object)) error {
	resource := appsv1.SchemeGroupVersion.WithResource(string(cluster.Revisions))
	if err := k.served.Each(ctx, resource, namespace, k.timeout, take); err != nil {
		return AsError(err)
	}
	return nil
}

// Emit implements [Writer].
func (k *Kube) Emit(_ context.Context, event Event) {
	workload := &corev1.ObjectReference{
		APIVersion:      appsv1.SchemeGroupVersion.String(),
		Kind:            event.Workload.GetKind(),
		Namespace:       event.Workload.GetNamespace(),
		Name:            event.Workload.GetName(),
		UID:             types.UID(event.Workload.GetUid()),
		ResourceVersion: event.Workload.GetResourceVersion(),
	}
	if workload.Kind == cluster.PolicyKind {
		workload.APIVersion = cluster.RolloutPolicies.GroupVersion().String()
	}
	k.recorder.Event(workload, event.Type, event.Reason, event.Message)
}

func (k *Kube) write(ctx context.Context, call *call) (Written, error) {
	answer, err := k.call(ctx, call)
	if err != nil {
		return Written{}, err
	}
	written, err := metadataOf(answer)
	if err != nil {
		return Written{}, Unclear("reading the apiserver's answer: %w", err)
	}
	if written.Name == "" {
		return Written{}, Unclear("the apiserver's answer is no object")
	}
	return Written{Name: written.Name, ResourceVersion: written.ResourceVersion}, nil
}

// call makes a call without retries: a create that timed out may have succeeded.
func (k *Kube) call(ctx context.Context, call *call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	ctx, span := call.start(ctx)
	defer span.End()
	for name, values := range traces.Headers(ctx) {
		call.request.SetHeader(name, values...)
	}
	var status int
	result := call.request.MaxRetries(0).Do(ctx).StatusCode(&status)
	body, err := result.Raw()
	if failed := result.Error(); failed != nil {
		err = failed
	}
	if err != nil {
		err = AsError(err)
	}
	call.end(span, status, body, err)
	return body, err
}

func root(resource cluster.Resource) string {
	version := resource.GroupVersion()
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.String()
}

func object(request *rest.Request, key Key) *rest.Request {
	return request.AbsPath(root(key.Resource)).Namespace(key.Namespace).Resource(string(key.Resource)).Name(key.Name)
}
