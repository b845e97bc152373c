package plancheck

import "k8s.io/apimachinery/pkg/types"

// Contradicted are the objects for whose sake the last plans for each workload were not applied, since the last one that was. By what is
// known of an object now a plan may be wrong that was right by the snapshot: labels and owners change.
type Contradicted map[types.NamespacedName]map[contradiction]bool

type contradiction struct{ object, what string }

// IsFirst tells whether this violation may be of the snapshot's age only. The next snapshot shows the object as it is: a plan that is
// wrong for the same object and the same reason again was not made from it.
func (c Contradicted) IsFirst(key types.NamespacedName, violation *Violation) bool {
	if violation.Object == "" {
		return false
	}
	if c[key] == nil {
		c[key] = map[contradiction]bool{}
	}
	seen := contradiction{violation.Object, violation.What}
	isKnown := c[key][seen]
	c[key][seen] = true
	return !isKnown
}
