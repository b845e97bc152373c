package served

import (
	"encoding/json"
	"fmt"

	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/rawjson"
)

// serializer negotiates JSON and decodes it with [decoder]. Everything else is client-go's.
type serializer struct {
	runtime.NegotiatedSerializer
}

func newSerializer() serializer {
	return serializer{scheme.Codecs.WithoutConversion()}
}

// SupportedMediaTypes is JSON only, because no other media type keeps the bytes.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(s.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return []runtime.SerializerInfo{info}
}

// DecoderToVersion returns a decoder without conversion.
func (serializer) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder {
	return decoder{}
}

// decoder reads objects and statuses.
type decoder struct{}

// Decode implements [runtime.Decoder].
func (decoder) Decode(text []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var meta metav1.TypeMeta
	if err := rawjson.Fields(text, map[string]any{"kind": &meta.Kind, "apiVersion": &meta.APIVersion}); err != nil {
		return nil, nil, fmt.Errorf("reading what the apiserver served: %w", err)
	}
	kind := meta.GroupVersionKind()
	if kind.Kind == "Status" {
		status := new(metav1.Status)
		return status, &kind, json.Unmarshal(text, status)
	}
	object, err := Parse(text)
	return object, &kind, err
}

// readable reads one object of a list or watch; it logs and returns nil if the object cannot be read.
func readable(text []byte) *Object {
	object, err := Parse(text)
	if err != nil {
		klog.Background().Error(brief.Error(err), "Skipped an object that cannot be read")
		return nil
	}
	return object
}
