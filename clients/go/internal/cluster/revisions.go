package cluster

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// Anyone who may create ControllerRevisions may create any number of them, of more than a megabyte each, and with as many labels. Of one
// that no DaemonSet controls or selects the metadata is kept, and so it is of those that would be too many for what is sent about the
// DaemonSets of the namespace. Of many labels those are kept that DaemonSets of the namespace name. What is to be sent, or decided
// about, without being kept is read live.

const (
	// MaxRevisionBytes is how much one snapshot carries of revisions. Anyone who may create revisions in the namespace may make orphans that
	// the selector matches, and all together must leave room for the rest of the request.
	MaxRevisionBytes = 16 << 20
	// maxRevisionLabels is the most labels of a revision that are kept whoever reads them.
	maxRevisionLabels = 64
)

// revisions are those of one namespace.
type revisions struct {
	names map[string]*Revision
	// bytes are those of the revisions that are kept whole.
	bytes int
}

func (r *revisions) put(revision *Revision) {
	r.remove(revision.Name)
	r.names[revision.Name] = revision
	r.bytes += len(revision.JSON)
}

func (r *revisions) remove(name string) *Revision {
	old := r.names[name]
	if old != nil {
		delete(r.names, name)
		r.bytes -= len(old.JSON)
	}
	return old
}

// IsWhole tells whether the object is kept, and not only its metadata.
func (r *Revision) IsWhole() bool { return r.JSON != nil }

// IsDecided tells whether those of its labels are known that the selector of a workload names.
func (r *Revision) IsDecided(workload *DaemonSet) bool {
	return r.Controller != nil || r.known == nil || r.known.Labels.IsSuperset(workload.Reads.PodLabels)
}

// concerns tells whether the service decides about it when it plans for a workload: the workload controls it, or nobody does and the
// selector matches (D-4).
func (r *Revision) concerns(workload *DaemonSet) bool {
	if r.Controller != nil {
		return r.Controller.GetUid() == string(workload.UID)
	}
	return r.IsDecided(workload) && workload.Reads.Selector.Matches(r.Labels)
}

func (r *Revision) withoutData() *Revision {
	reduced := *r
	reduced.JSON = nil
	return &reduced
}

// Revisions are those that concern a workload, ordered by name. Not all are whole.
func (s *Store) Revisions(workload *DaemonSet) []*Revision {
	return s.revisionsWhere(workload.Key.Namespace, func(revision *Revision) bool { return revision.concerns(workload) })
}

// Undecided are those of which it is not known whether a workload selects them, ordered by name.
func (s *Store) Undecided(workload *DaemonSet) []*Revision {
	return s.revisionsWhere(workload.Key.Namespace, func(revision *Revision) bool { return !revision.IsDecided(workload) })
}

func (s *Store) revisionsWhere(namespace string, concerns func(*Revision) bool) []*Revision {
	kept := s.namespaces[namespace]
	if kept == nil {
		return nil
	}
	var found []*Revision
	for _, revision := range kept.revisions.names {
		if concerns(revision) {
			found = append(found, revision)
		}
	}
	slices.SortFunc(found, func(a, b *Revision) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Revision is the revision of this name, if a DaemonSet controls it or it is an orphan; nil if there is none.
func (s *Store) Revision(key types.NamespacedName) *Revision {
	kept := s.namespaces[key.Namespace]
	if kept == nil {
		return nil
	}
	return kept.revisions.names[key.Name]
}

// RevisionBytes are those of the revisions that are kept whole, also of a list that is not complete.
func (s *Store) RevisionBytes() int {
	bytes := 0
	for _, kept := range s.namespaces {
		bytes += kept.revisions.bytes
	}
	for _, staged := range s.staged {
		bytes += staged
	}
	return bytes
}

// StageRevision leaves of a revision of a list that is not complete what will be kept.
func (s *Store) StageRevision(revision *Revision) {
	s.cutLabels(revision)
	if IsForeign(revision.Controller) {
		// It is not kept, and this much tells that.
		revision.Labels, revision.Controller = nil, &nodewisev1.ControllerReference{}
	}
	if !s.keepsWhole(revision, s.staged[revision.Namespace]) {
		revision.JSON = nil
	}
	s.staged[revision.Namespace] += len(revision.JSON)
}

// ForgetStaged is told that a list begins, or is complete.
func (s *Store) ForgetStaged() { clear(s.staged) }

// cutLabels leaves of very many labels those that DaemonSets of the namespace name.
func (s *Store) cutLabels(revision *Revision) {
	if len(revision.Labels) <= maxRevisionLabels {
		return
	}
	known := s.keysOfPods(revision.Namespace)
	kept := maps.Clone(revision.Labels)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !known.Labels.Has(key) })
	revision.Labels, revision.known = kept, known
}

// keepsWhole tells whether a revision is to be kept whole beside so many bytes of its namespace.
func (s *Store) keepsWhole(revision *Revision, others int) bool {
	named := s.podKeys[revision.Namespace]
	return named != nil && others+len(revision.JSON) <= MaxRevisionBytes*named.daemonSets && s.isNeeded(revision)
}

func (s *Store) isNeeded(revision *Revision) bool {
	for key, daemonSet := range s.daemonSets {
		if key.Namespace == revision.Namespace && revision.concerns(daemonSet) {
			return true
		}
	}
	return false
}

// KeepWhole keeps a revision that was read live for a workload, if it is as its watch has shown it.
func (s *Store) KeepWhole(workload *DaemonSet, read *Revision) {
	kept := s.Revision(types.NamespacedName{Namespace: read.Namespace, Name: read.Name})
	if kept == nil || kept.UID != read.UID || kept.ResourceVersion != read.ResourceVersion {
		return
	}
	s.know(workload)
	s.cutLabels(read)
	// What was not known to concern the workload may be too much for what is sent.
	revisions := &s.namespaces[read.Namespace].revisions
	if !kept.concerns(workload) && !s.keepsWhole(read, revisions.bytes-len(kept.JSON)) {
		read = read.withoutData()
	}
	read.changed = kept.changed
	revisions.put(read)
}

// DropData keeps of a revision what is known without its data.
func (s *Store) DropData(revision *Revision) {
	if kept := s.namespaces[revision.Namespace]; kept != nil && kept.revisions.names[revision.Name] == revision {
		kept.revisions.put(revision.withoutData())
	}
}

// dropUnneeded drops the data of what no DaemonSet of a namespace needs any more.
func (s *Store) dropUnneeded(namespace string) {
	for _, revision := range s.revisionsWhere(namespace, (*Revision).IsWhole) {
		if !s.isNeeded(revision) {
			s.DropData(revision)
		}
	}
}

// PutRevision takes in a revision. One that another kind controls is not kept.
func (s *Store) PutRevision(revision *Revision) *Transition {
	kept := s.namespace(revision.Namespace)
	old := kept.revisions.remove(revision.Name)
	isForeign := IsForeign(revision.Controller)
	isSame := old != nil && old.ResourceVersion == revision.ResourceVersion
	if isForeign {
		delete(kept.sealed, revision.Name)
		s.dropIfEmpty(revision.Namespace)
		if old != nil {
			s.changes.removed(Revisions)
		}
	} else {
		// Where versions have begun anew, one stands for two states (D-112).
		if revision.changed = s.changes.next(); isSame && !s.relisting {
			revision.changed = old.changed
		}
		s.cutLabels(revision)
		if !s.keepsWhole(revision, kept.revisions.bytes) {
			revision = revision.withoutData()
		}
		kept.revisions.put(revision)
	}
	if isForeign && old == nil || isSame {
		return nil
	}
	if old != nil && revision.Controller == nil && s.IsSealed(old) {
		// An orphan that could not be changed is tried again. It is as if it came just now.
		old = nil
	}
	return &Transition{Revision: &Change[Revision]{Old: old, New: revision}}
}

// RemoveRevision takes out a revision that is gone.
func (s *Store) RemoveRevision(namespace, name string, last *Revision) *Transition {
	old := s.removeRevision(namespace, name)
	if last != nil {
		old = last
	}
	if old == nil {
		return nil
	}
	return &Transition{Revision: &Change[Revision]{Old: old}}
}

func (s *Store) removeRevision(namespace, name string) *Revision {
	kept := s.namespaces[namespace]
	if kept == nil {
		return nil
	}
	old := kept.revisions.remove(name)
	delete(kept.sealed, name)
	if old != nil {
		s.changes.removed(Revisions)
	}
	s.dropIfEmpty(namespace)
	return old
}
