package nodewise

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// identify tells which object it is, and of which version.
func identify(object any) (key types.NamespacedName, version string, err error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}, "", fmt.Errorf("a watch showed what is no object, but a %T: %w", object, err)
	}
	key = types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	return key, accessor.GetResourceVersion(), nil
}
