package write

import (
	"context"
	"encoding/json"

	"github.com/go-logr/logr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
)

// Observer says every write that it is asked for, and lets it succeed without effect.
type Observer struct {
	reader Writer
	logger logr.Logger
}

// NewObserver reads through reader, of which no other verb is ever used.
func NewObserver(reader Writer, logger logr.Logger) *Observer {
	return &Observer{reader: reader, logger: logger}
}

// Writes implements [Writer].
func (o *Observer) Writes() bool { return false }

// Create implements [Writer].
func (o *Observer) Create(_ context.Context, resource cluster.Resource, namespace string, manifest []byte) (Written, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest, &object); err != nil {
		return Written{}, Unclear("reading a manifest: %w", err)
	}
	name := object.Name
	if name == "" {
		name = object.GenerateName
	}
	o.logger.Info("Would create", "resource", resource, "namespace", namespace, "name", name)
	return Written{Name: name}, nil
}

// Patch implements [Writer].
func (o *Observer) Patch(_ context.Context, key Key, _ types.PatchType, patch []byte) (Written, error) {
	o.logger.Info("Would patch", "object", key.String(), "patch", string(patch))
	return Written{Name: key.Name}, nil
}

// Delete implements [Writer].
func (o *Observer) Delete(_ context.Context, key Key, uid types.UID) error {
	o.logger.Info("Would delete", "object", key.String(), "uid", uid)
	return nil
}

// ReplaceStatus implements [Writer].
func (o *Observer) ReplaceStatus(_ context.Context, key Key, _ []byte) (Written, error) {
	o.logger.Info("Would write the status", "object", key.String())
	return Written{Name: key.Name}, nil
}

// Read implements [Writer].
func (o *Observer) Read(ctx context.Context, key Key) ([]byte, error) { return o.reader.Read(ctx, key) }

// Emit implements [Writer].
func (o *Observer) Emit(event Event) {
	o.logger.V(1).Info("Would emit an event", "workload", event.Workload.GetName(), "type", event.Type,
		"reason", event.Reason, "message", event.Message)
}
