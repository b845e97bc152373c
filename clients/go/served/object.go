// Package served reads Kubernetes objects and keeps them as the JSON that the apiserver served. Only the metadata is decoded.
//
// A typed object loses the fields that are newer than its library. An unstructured object loses the order of members, and how numbers and
// strings are written. A plan depends on all of that: the data of a ControllerRevision is compared byte by byte, and a template that has lost a
// field is another template, whose rollout replaces every pod. So DaemonSets and ControllerRevisions are listed and watched with this package.
package served

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/rawjson"
)

// Object is a Kubernetes object as it was served. It can be stored in any cache of client-go.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Revision is the number of a ControllerRevision; 0 if there is none that can be read.
	Revision int64 `json:"-"`

	// JSON is the object as it was served, without metadata.managedFields: these are not needed, and may be larger than all the rest. Invalid
	// UTF-8, which the data of a revision may have, is replaced. The bytes must not be changed.
	JSON []byte `json:"-"`
}

// List is a list of objects as they were served.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Object `json:"items"`
}

// Parse reads the JSON of one object. Of the metadata it decodes name, namespace, uid, resourceVersion, labels, annotations, owner references
// and deletionTimestamp. Of the other fields it decodes kind, apiVersion, and the number of a ControllerRevision.
func Parse(text []byte) (*Object, error) {
	if !utf8.Valid(text) {
		text = []byte(string([]rune(string(text))))
	}
	parsed := &Object{}
	var meta struct {
		Name              string                  `json:"name"`
		Namespace         string                  `json:"namespace"`
		UID               string                  `json:"uid"`
		ResourceVersion   string                  `json:"resourceVersion"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	}
	var revision []byte
	err := rawjson.Fields(text, map[string]any{
		"kind": &parsed.Kind, "apiVersion": &parsed.APIVersion, "metadata": &meta, "revision": &revision,
	})
	// The number only ranks revisions. An object is not rejected because its number cannot be read.
	if json.Unmarshal(revision, &parsed.Revision) != nil {
		parsed.Revision = 0
	}
	kept, unkept := withoutManagedFields(text)
	if err := cmp.Or(err, unkept); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", cmp.Or(parsed.Kind, "an object"), meta.Namespace, meta.Name, err)
	}
	parsed.JSON = kept
	parsed.Name, parsed.Namespace, parsed.ResourceVersion = meta.Name, meta.Namespace, meta.ResourceVersion
	parsed.UID = types.UID(meta.UID)
	parsed.Labels, parsed.Annotations = meta.Labels, meta.Annotations
	parsed.OwnerReferences, parsed.DeletionTimestamp = meta.OwnerReferences, meta.DeletionTimestamp
	return parsed, nil
}

// DeepCopyObject implements [runtime.Object]. Both objects share the JSON.
func (o *Object) DeepCopyObject() runtime.Object {
	if o == nil {
		return nil
	}
	clone := &Object{TypeMeta: o.TypeMeta, Revision: o.Revision, JSON: o.JSON}
	o.ObjectMeta.DeepCopyInto(&clone.ObjectMeta)
	return clone
}

// DeepCopyObject implements [runtime.Object].
func (l *List) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	clone := &List{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&clone.ListMeta)
	for i := range clone.Items {
		l.Items[i].ObjectMeta.DeepCopyInto(&clone.Items[i].ObjectMeta)
	}
	return clone
}

// withoutManagedFields removes metadata.managedFields, and keeps everything else as it is written.
func withoutManagedFields(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(`"managedFields"`)) {
		return slices.Clone(text), nil
	}
	return rawjson.Rewrite(text, func(name string, value []byte) ([]byte, error) {
		if name != "metadata" || value[0] != '{' {
			return value, nil
		}
		return rawjson.Rewrite(value, func(name string, value []byte) ([]byte, error) {
			if name == "managedFields" {
				return nil, nil
			}
			return value, nil
		})
	})
}
