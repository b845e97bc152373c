package cluster

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// A client that may create ControllerRevisions may create any number of them, each of more than a megabyte and with any number of labels. So the
// caches limit what they keep. Of a revision that no DaemonSet controls or selects they keep only the metadata. The same is true of revisions
// beyond what the snapshots of the namespace's DaemonSets can have. Of a revision with many labels they keep only those that DaemonSets of the
// namespace name. The rest is read from the apiserver when a snapshot needs it.

const (
	// MaxRevisionBytes is the size of all revisions in one snapshot. It is limited because a client may create many orphans that the selector
	// matches, and the request must have room for nodes and pods.
	MaxRevisionBytes = 16 << 20
	// maxRevisionLabels is up to how many labels of a revision all of them are kept.
	maxRevisionLabels = 64
)

// revisions are the revisions of one namespace.
type revisions struct {
	names map[string]*Revision
	// bytes is the size of the revisions that are kept with their data.
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

// IsWhole reports whether the whole object is kept, and not only its metadata.
func (r *Revision) IsWhole() bool { return r.JSON != nil }

// IsDecided reports whether it is known whether a workload's selector matches: all labels that the selector names are kept.
func (r *Revision) IsDecided(workload *Workload) bool {
	return r.Controller != nil || r.known == nil || r.known.Labels.IsSuperset(workload.Reads.PodLabels)
}

// concerns reports whether a plan for a workload needs the revision: the workload controls it, or it is an orphan and the selector matches (D-4).
func (r *Revision) concerns(workload *Workload) bool {
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

// Revisions returns the revisions that concern a workload, ordered by name. Some may be without data.
func (s *Store) Revisions(workload *Workload) []*Revision {
	return s.revisionsWhere(workload.Key.Namespace, func(revision *Revision) bool { return revision.concerns(workload) })
}

// Undecided returns the revisions of which it is not known whether a workload selects them, ordered by name.
func (s *Store) Undecided(workload *Workload) []*Revision {
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

// Revision returns the cached revision of this key; nil if there is none.
func (s *Store) Revision(key types.NamespacedName) *Revision {
	kept := s.namespaces[key.Namespace]
	if kept == nil {
		return nil
	}
	return kept.revisions.names[key.Name]
}

// RevisionBytes returns the size of all revisions that are kept with their data, including staged ones.
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

// StageRevision reduces a revision of an incomplete list to what will be kept.
func (s *Store) StageRevision(revision *Revision) {
	s.cutLabels(revision)
	if isForeignRevision(revision.Controller) {
		// The revision will not be kept. This controller is enough to recognize that.
		revision.Labels, revision.Controller = nil, &nodewisev1.ControllerReference{}
	}
	if !s.keepsWhole(revision, s.staged[revision.Namespace]) {
		revision.JSON = nil
	}
	s.staged[revision.Namespace] += len(revision.JSON)
}

// ForgetStaged resets the size of staged revisions, when a list begins or is complete.
func (s *Store) ForgetStaged() { clear(s.staged) }

// cutLabels reduces the labels of a revision with very many to those that DaemonSets of the namespace name.
func (s *Store) cutLabels(revision *Revision) {
	if len(revision.Labels) <= maxRevisionLabels {
		return
	}
	known := s.keysOfPods(revision.Namespace)
	kept := maps.Clone(revision.Labels)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !known.Labels.Has(key) })
	revision.Labels, revision.known = kept, known
}

// keepsWhole reports whether to keep the data of a revision, when the data of the other revisions of its namespace has this size.
func (s *Store) keepsWhole(revision *Revision, others int) bool {
	return others+len(revision.JSON) <= MaxRevisionBytes*len(s.in(DaemonSet, revision.Namespace)) && s.isNeeded(revision)
}

func (s *Store) isNeeded(revision *Revision) bool {
	for _, daemonSet := range s.in(DaemonSet, revision.Namespace) {
		if revision.concerns(daemonSet) {
			return true
		}
	}
	return false
}

// KeepWhole stores the data of a revision that was read from the apiserver for a workload, if it has the version that the watch has shown.
func (s *Store) KeepWhole(workload *Workload, read *Revision) {
	kept := s.Revision(types.NamespacedName{Namespace: read.Namespace, Name: read.Name})
	if kept == nil || kept.UID != read.UID || kept.ResourceVersion != read.ResourceVersion {
		return
	}
	s.know(workload)
	s.cutLabels(read)
	// A revision that was undecided may turn out to be too large, or not to concern the workload.
	revisions := &s.namespaces[read.Namespace].revisions
	if !kept.concerns(workload) && !s.keepsWhole(read, revisions.bytes-len(kept.JSON)) {
		read = read.withoutData()
	}
	read.changed = kept.changed
	revisions.put(read)
}

// DropData drops the data of a revision, and keeps its metadata.
func (s *Store) DropData(revision *Revision) {
	if kept := s.namespaces[revision.Namespace]; kept != nil && kept.revisions.names[revision.Name] == revision {
		kept.revisions.put(revision.withoutData())
	}
}

// dropUnneeded drops the data of revisions that no DaemonSet of the namespace needs any more, after a workload of this kind has changed.
func (s *Store) dropUnneeded(kind *Kind, namespace string) {
	if kind != DaemonSet {
		return
	}
	for _, revision := range s.revisionsWhere(namespace, (*Revision).IsWhole) {
		if !s.isNeeded(revision) {
			s.DropData(revision)
		}
	}
}

// PutRevision stores a revision. A revision that another kind controls is not stored.
func (s *Store) PutRevision(revision *Revision) *Transition {
	kept := s.namespace(revision.Namespace)
	old := kept.revisions.remove(revision.Name)
	isForeign := isForeignRevision(revision.Controller)
	isSame := old != nil && old.ResourceVersion == revision.ResourceVersion
	if isForeign {
		delete(kept.sealed, revision.Name)
		s.dropIfEmpty(revision.Namespace)
		if old != nil {
			s.changes.removed(Revisions)
		}
	} else {
		// After a restore of etcd an object of the same version may have another content (D-112).
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
		// A sealed orphan that has changed is treated as a new one, so that it is tried again.
		old = nil
	}
	return &Transition{Revision: &Change[Revision]{Old: old, New: revision}}
}

// RemoveRevision removes a revision that is gone. The argument last is its last state; nil if that is not known.
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
