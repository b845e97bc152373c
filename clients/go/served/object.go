// Package served reads Kubernetes objects without losing a byte of what matters: of each object the metadata is read, and the
// whole is kept as the JSON that the apiserver served.
//
// Typed objects lose fields that are newer than the library; unstructured ones lose how numbers and strings were written, and
// the order of members. A plan depends on all of that: the data of a ControllerRevision is compared byte by byte, and a
// template that lost a field is another template, whose rollout replaces every pod. So DaemonSets and ControllerRevisions are
// listed and watched with this package.
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
)

// Object is an object of the API as it was served. It can be kept in any cache of client-go.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Revision is the number of a ControllerRevision; 0 where there is none that can be read.
	Revision int64 `json:"-"`

	// JSON is the object as it was served, but for its managedFields, of which nothing is read and which may be larger than
	// all the rest. Bytes that are no UTF-8 are replaced: the data of a revision is what some client wrote, and may have
	// such. It must not be changed.
	JSON []byte `json:"-"`
}

// List is a list of objects as they were served.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Object `json:"items"`
}

// Parse reads the JSON of one object. The metadata has name, namespace, uid, resourceVersion, labels, annotations, owner
// references and deletionTimestamp only. Of the rest, only the number of a ControllerRevision is read.
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
	err := members(text, func(name string, value []byte) error {
		switch name {
		case "kind":
			return json.Unmarshal(value, &parsed.Kind)
		case "apiVersion":
			return json.Unmarshal(value, &parsed.APIVersion)
		case "metadata":
			return json.Unmarshal(value, &meta)
		case "revision":
			// It only ranks revisions, so one that cannot be read must not hide the object.
			if json.Unmarshal(value, &parsed.Revision) != nil {
				parsed.Revision = 0
			}
			return nil
		default:
			return nil
		}
	})
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

// DeepCopyObject implements [runtime.Object]. The bytes are shared, since nobody changes them.
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

// withoutManagedFields leaves metadata.managedFields out, and everything else as it is.
func withoutManagedFields(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(`"managedFields"`)) {
		return slices.Clone(text), nil
	}
	return rewrite(text, func(name string, value []byte) ([]byte, error) {
		if name != "metadata" || value[0] != '{' {
			return value, nil
		}
		return rewrite(value, func(name string, value []byte) ([]byte, error) {
			if name == "managedFields" {
				return nil, nil
			}
			return value, nil
		})
	})
}

// rewrite writes the members of a JSON object again, each with the value that edit gives it, or not at all when that is nil.
func rewrite(object []byte, edit func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	out := append(make([]byte, 0, len(object)), '{')
	err := members(object, func(name string, value []byte) error {
		edited, err := edit(name, value)
		if edited == nil || err != nil {
			return err
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), edited...)
		return nil
	})
	return append(out, '}'), err
}
