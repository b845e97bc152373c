package plancheck

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxUntold is how many plans in a row the executor may drop for this reason without telling anybody. A wrong service could name another object
// in each plan.
const maxUntold = 3

// Contradicted are the objects and nodes for whose sake the last plans for each workload were not applied, since the last one that was. By
// what is known now a plan may be wrong that was right by the snapshot: labels and owners change, and nodes get pods.
type Contradicted map[types.NamespacedName]sets.Set[contradiction]

type contradiction struct{ of, what string }

// IsFirst tells whether this violation may be of the snapshot's age only. The next snapshot shows the object or node as it is: a
// plan that is wrong for the same one and the same reason again was not made from it.
func (c Contradicted) IsFirst(key types.NamespacedName, violation *Violation) bool {
	seen := contradiction{violation.Contradicts, violation.What}
	if violation.Contradicts == "" || len(c[key]) >= maxUntold || c[key].Has(seen) {
		return false
	}
	if c[key] == nil {
		c[key] = sets.New[contradiction]()
	}
	c[key].Insert(seen)
	return true
}
