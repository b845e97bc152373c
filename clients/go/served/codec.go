package served

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
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

// decoder reads objects, lists of them and statuses.
type decoder struct{}

// Decode implements [runtime.Decoder].
func (decoder) Decode(text []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	list := &List{}
	var items []byte
	err := members(text, func(name string, value []byte) error {
		switch name {
		case "kind":
			return json.Unmarshal(value, &list.Kind)
		case "apiVersion":
			return json.Unmarshal(value, &list.APIVersion)
		case "items":
			items = value
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading what the apiserver served: %w", err)
	}
	kind := list.GroupVersionKind()
	switch {
	case kind.Kind == "Status":
		status := new(metav1.Status)
		return status, &kind, json.Unmarshal(text, status)
	case strings.HasSuffix(kind.Kind, "List"):
		return list, &kind, list.read(text, items)
	default:
		object, err := Parse(text)
		return object, &kind, err
	}
}

// read reads a list and its items. The others must not suffer for one that cannot be read.
func (l *List) read(text, items []byte) error {
	err := members(text, func(name string, value []byte) error {
		if name != "metadata" {
			return nil
		}
		return json.Unmarshal(value, &l.ListMeta)
	})
	if err == nil {
		err = elements(items, func(value []byte) error {
			if object := readable(value); object != nil {
				l.Items = append(l.Items, *object)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("reading a %s: %w", l.Kind, err)
	}
	return nil
}

// readable is an object among others; nil if it cannot be read.
func readable(text []byte) *Object {
	object, err := Parse(text)
	if err != nil {
		klog.Background().Error(err, "Passed over an object that cannot be read")
		return nil
	}
	return object
}
