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
)

// serializer negotiates JSON and reads it with [decoder]; everything else is as client-go has it.
type serializer struct {
	runtime.NegotiatedSerializer
}

func newSerializer() serializer {
	return serializer{scheme.Codecs.WithoutConversion()}
}

// SupportedMediaTypes is JSON alone: other forms do not keep the bytes.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(s.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return []runtime.SerializerInfo{info}
}

// DecoderToVersion reads objects as they are served, whatever the version.
func (serializer) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder {
	return decoder{}
}

// decoder reads objects and statuses.
type decoder struct{}

// Decode implements [runtime.Decoder].
func (decoder) Decode(text []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var meta metav1.TypeMeta
	err := members(text, func(name string, value []byte) error {
		switch name {
		case "kind":
			return json.Unmarshal(value, &meta.Kind)
		case "apiVersion":
			return json.Unmarshal(value, &meta.APIVersion)
		}
		return nil
	})
	if err != nil {
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

// readable is an object among others; nil if it cannot be read.
func readable(text []byte) *Object {
	object, err := Parse(text)
	if err != nil {
		klog.Background().Error(brief.Error(err), "Passed over an object that cannot be read")
		return nil
	}
	return object
}
