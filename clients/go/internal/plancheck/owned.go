package plancheck

import (
	"reflect"
	"slices"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// owned returns the objects that the workload controls, or that these actions adopt, as the caches show them.
func (c *Checked) owned(actions []*nodewisev1.Action) []*cluster.Workload {
	adopted := adoptedIn(actions)
	return slices.DeleteFunc(c.caches.Claimable(), func(object *cluster.Workload) bool {
		return object.Controller == nil && !adopted[identity{object.Key.Name, string(object.UID)}]
	})
}

// hasTemplate reports whether an object has a template, which [withoutHash] has returned. It also returns the whole object.
func hasTemplate(object *cluster.Workload, template object) (whole any, has bool) {
	whole, err := rawjson.Parse(object.JSON)
	return whole, err == nil && reflect.DeepEqual(withoutHash(rawjson.At(whole, "spec", "template")), template)
}

// lastChange returns the number of the last change of any of these objects, or of the last change that removed an object of their resource.
func (c *Checked) lastChange(objects []*cluster.Workload) uint64 {
	resource := c.asked.controls().Resource
	changed := c.caches.Changed(resource, "")
	for _, object := range objects {
		changed = max(changed, c.caches.Changed(resource, object.Key.Name))
	}
	return changed
}
