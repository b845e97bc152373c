package nodewise

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// identify returns the key and the resource version of an object.
func identify(object any) (key types.NamespacedName, version string, err error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}, "", fmt.Errorf("a watch returned a %T, which is not a Kubernetes object: %w", object, err)
	}
	key = types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	return key, accessor.GetResourceVersion(), nil
}
