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
	var head struct {
		metav1.TypeMeta
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, nil, fmt.Errorf("reading what the apiserver served: %w", err)
	}
	kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
	object, err := decode(head.Kind, text)
	return object, &kind, err
}

func decode(kind string, text []byte) (runtime.Object, error) {
	switch {
	case kind == "Status":
		status := new(metav1.Status)
		return status, json.Unmarshal(text, status)
	case strings.HasSuffix(kind, "List"):
		return decodeList(text)
	default:
		return Parse(text)
	}
}

func decodeList(text []byte) (*List, error) {
	var raw struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	list := &List{TypeMeta: raw.TypeMeta, ListMeta: raw.Metadata, Items: make([]Object, 0, len(raw.Items))}
	for _, item := range raw.Items {
		object, err := Parse(item)
		if err != nil {
			// The others must not suffer for one that cannot be read.
			klog.Background().Error(err, "Passed over an object of a list", "list", raw.Kind)
			continue
		}
		list.Items = append(list.Items, *object)
	}
	return list, nil
}
