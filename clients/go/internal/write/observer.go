package write

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// Observer logs every write, and reports success without writing.
type Observer struct {
	reader Writer
}

// NewObserver makes an Observer that reads with reader, and uses none of its other methods. It logs to the logger of each context.
func NewObserver(reader Writer) *Observer {
	return &Observer{reader: reader}
}

// Writes implements [Writer].
func (*Observer) Writes() bool { return false }

// Create implements [Writer].
func (*Observer) Create(ctx context.Context, resource cluster.Resource, namespace string, manifest []byte) (Written, error) {
	object, err := metadataOf(manifest)
	if err != nil {
		return Written{}, Unclear("reading a manifest: %w", err)
	}
	name := cmp.Or(object.Name, object.GenerateName)
	klog.FromContext(ctx).Info("Would create", "resource", resource, "namespace", namespace, "name", name)
	return Written{Name: name}, nil
}

// Patch implements [Writer].
func (*Observer) Patch(ctx context.Context, key Key, subresource string, _ types.PatchType, patch []byte) (Written, error) {
	klog.FromContext(ctx).Info("Would patch", "object", key.String(), "subresource", subresource, "patch", string(patch))
	return Written{Name: key.Name}, nil
}

// Delete implements [Writer].
func (*Observer) Delete(ctx context.Context, key Key, preconditions Preconditions) error {
	klog.FromContext(ctx).Info("Would delete", "object", key.String(), "uid", preconditions.UID)
	return nil
}

// Evict implements [Writer].
func (*Observer) Evict(ctx context.Context, key Key, uid types.UID) (*Blocked, error) {
	klog.FromContext(ctx).Info("Would evict", "object", key.String(), "uid", uid)
	return nil, nil
}

// ReplaceStatus implements [Writer].
func (*Observer) ReplaceStatus(ctx context.Context, key Key, _ []byte) (Written, error) {
	klog.FromContext(ctx).Info("Would write the status", "object", key.String())
	return Written{Name: key.Name}, nil
}

// Read implements [Writer].
func (o *Observer) Read(ctx context.Context, key Key) ([]byte, error) { return o.reader.Read(ctx, key) }

// EachRevision implements [Writer].
func (o *Observer) EachRevision(ctx context.Context, namespace string, take func(*served.Object)) error {
	return o.reader.EachRevision(ctx, namespace, take)
}

// Emit implements [Writer].
func (*Observer) Emit(ctx context.Context, event Event) {
	klog.FromContext(ctx).V(1).Info("Would emit an event", "workload", event.Workload.GetName(), "type", event.Type,
		"reason", event.Reason, "message", event.Message)
}
