package cluster

import (
	"slices"
	"strings"

	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// workloads are the cached workloads of one kind.
type workloads struct {
	// namespaces are the workloads by namespace and name. No namespace is empty.
	namespaces map[string]map[string]*Workload
	// controlled are the workloads that another workload controls, by its uid, and then by their keys.
	controlled map[types.UID]map[types.NamespacedName]*Workload
	// sealed are the orphans that cannot be changed, and the resourceVersions at which that was found.
	sealed map[types.NamespacedName]string
}

func newWorkloads() *workloads {
	return &workloads{
		namespaces: map[string]map[string]*Workload{},
		controlled: map[types.UID]map[types.NamespacedName]*Workload{},
		sealed:     map[types.NamespacedName]string{},
	}
}

func (w *workloads) get(key types.NamespacedName) *Workload {
	if w == nil {
		return nil
	}
	return w.namespaces[key.Namespace][key.Name]
}

func (w *workloads) put(workload *Workload) {
	key := workload.Key
	w.remove(key)
	if w.namespaces[key.Namespace] == nil {
		w.namespaces[key.Namespace] = map[string]*Workload{}
	}
	w.namespaces[key.Namespace][key.Name] = workload
	if owner := workload.controllerUID(); owner != "" {
		if w.controlled[owner] == nil {
			w.controlled[owner] = map[types.NamespacedName]*Workload{}
		}
		w.controlled[owner][key] = workload
	}
}

func (w *workloads) remove(key types.NamespacedName) *Workload {
	old := w.get(key)
	if old == nil {
		return nil
	}
	if delete(w.namespaces[key.Namespace], key.Name); len(w.namespaces[key.Namespace]) == 0 {
		delete(w.namespaces, key.Namespace)
	}
	owner := old.controllerUID()
	if delete(w.controlled[owner], key); len(w.controlled[owner]) == 0 {
		delete(w.controlled, owner)
	}
	return old
}

func (w *workloads) seal(key types.NamespacedName) {
	if workload := w.get(key); workload != nil {
		w.sealed[key] = workload.ResourceVersion
	}
}

func (w *workloads) isSealed(workload *Workload) bool {
	version, isMarked := w.sealed[workload.Key]
	return isMarked && version == workload.ResourceVersion
}

func (w *Workload) controllerUID() types.UID { return types.UID(w.Controller.GetUid()) }

// Workload returns the workload of this kind and key; nil if there is none.
func (s *Store) Workload(kind *Kind, key types.NamespacedName) *Workload {
	return s.workloads[kind].get(key)
}

// Keys returns the keys of all workloads of a kind, in order.
func (s *Store) Keys(kind *Kind) []types.NamespacedName {
	var keys []types.NamespacedName
	for workload := range s.all(kind) {
		keys = append(keys, workload.Key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func (s *Store) all(kind *Kind) func(yield func(*Workload) bool) {
	return func(yield func(*Workload) bool) {
		kept := s.workloads[kind]
		if kept == nil {
			return
		}
		for _, namespace := range kept.namespaces {
			for _, workload := range namespace {
				if !yield(workload) {
					return
				}
			}
		}
	}
}

// in returns the workloads of a kind in a namespace, in no order.
func (s *Store) in(kind *Kind, namespace string) map[string]*Workload {
	if kept := s.workloads[kind]; kept != nil {
		return kept.namespaces[namespace]
	}
	return nil
}

func compareKeys(a, b types.NamespacedName) int {
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

func sorted(found []*Workload) []*Workload {
	slices.SortFunc(found, func(a, b *Workload) int { return compareKeys(a.Key, b.Key) })
	return found
}

// Resolve returns the workload that a controller reference names: the one of that kind with that name and uid in the namespace (D-103); nil if
// there is none.
func (s *Store) Resolve(kind *Kind, namespace string, controller *nodewisev1.ControllerReference) *Workload {
	if controller.GetKind() != kind.Name {
		return nil
	}
	workload := s.Workload(kind, types.NamespacedName{Namespace: namespace, Name: controller.GetName()})
	if workload == nil || string(workload.UID) != controller.GetUid() {
		return nil
	}
	return workload
}

// Matching returns the workloads of a kind and namespace whose selector matches an orphan's labels, ordered by name (D-104).
func (s *Store) Matching(kind *Kind, namespace string, set kubelabels.Set) []*Workload {
	if len(set) == 0 {
		return nil
	}
	var matching []*Workload
	for _, workload := range s.in(kind, namespace) {
		if workload.Selector.Matches(set) {
			matching = append(matching, workload)
		}
	}
	return sorted(matching)
}

// Controlled returns the workloads of a kind that a workload controls, by its uid, ordered by name.
func (s *Store) Controlled(kind *Kind, owner *Workload) []*Workload {
	return s.controlledBy(kind, owner.UID, owner.Key.Namespace)
}

// Siblings returns the workloads of the same kind that have the same controller, this one included; none if it has no controller.
func (s *Store) Siblings(workload *Workload) []*Workload {
	if workload.Controller == nil {
		return nil
	}
	return s.controlledBy(workload.Kind, workload.controllerUID(), workload.Key.Namespace)
}

func (s *Store) controlledBy(kind *Kind, owner types.UID, namespace string) []*Workload {
	kept := s.workloads[kind]
	if kept == nil {
		return nil
	}
	var found []*Workload
	for key, workload := range kept.controlled[owner] {
		if key.Namespace == namespace {
			found = append(found, workload)
		}
	}
	return sorted(found)
}

// Orphans returns the workloads of a kind without a controller that a workload selects, ordered by name. Those that cannot be changed are left
// out.
func (s *Store) Orphans(kind *Kind, by *Workload) []*Workload {
	var found []*Workload
	for _, workload := range s.in(kind, by.Key.Namespace) {
		if workload.Controller == nil && by.Reads.Selector.Matches(workload.Labels) && !s.workloads[kind].isSealed(workload) {
			found = append(found, workload)
		}
	}
	return sorted(found)
}

// Claimable returns the objects of a kind that a workload controls, and those without a controller in its namespace, ordered by name.
func (s *Store) Claimable(kind *Kind, by *Workload) []*Workload {
	var found []*Workload
	for _, workload := range s.in(kind, by.Key.Namespace) {
		if workload.Controller == nil || workload.controllerUID() == by.UID {
			found = append(found, workload)
		}
	}
	return sorted(found)
}
