package cluster

import (
	"slices"
	"strings"

	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// Store is the caches.
type Store struct {
	bucketCount uint32
	daemonSets  map[types.NamespacedName]*DaemonSet
	nodes       *buckets
	namespaces  map[string]*namespace
	parts       parts
	labels      labels
	nodeKeys    *named
	// podKeys are by namespace, where there are DaemonSets.
	podKeys map[string]*named
	unnamed *convert.KeySet
	cuts    []CutObject
	// reached is the version that each watch has reached; absent until its first list is complete.
	reached map[Resource]string
	changes changes
	// staged are bytes of revisions of a list that is not complete, by namespace.
	staged map[string]int
	// relisting says that versions have begun anew, and that not every resource was listed since then.
	relisting bool
}

type namespace struct {
	pods      pods
	revisions revisions
	// sealed are revisions that cannot be changed, each with the resourceVersion at which that was seen.
	sealed map[string]string
}

// NewStore makes empty caches, whose nodes and pods will be sent in this many buckets.
func NewStore(bucketCount uint32) *Store {
	bucketCount = max(bucketCount, 1)
	return &Store{
		bucketCount: bucketCount,
		daemonSets:  map[types.NamespacedName]*DaemonSet{},
		nodes:       newBuckets(bucketCount),
		namespaces:  map[string]*namespace{},
		parts:       parts{},
		labels:      labels{},
		nodeKeys:    newNamed(false),
		podKeys:     map[string]*named{},
		unnamed:     convert.PodKeys(),
		reached:     map[Resource]string{},
		changes:     changes{removals: map[Resource]uint64{}},
		staged:      map[string]int{},
	}
}

// BucketCount is how many buckets nodes and pods are kept in.
func (s *Store) BucketCount() uint32 { return s.bucketCount }

// Synced tells whether every resource was listed.
func (s *Store) Synced() bool { return len(s.reached) == len(Resources) }

// Unsynced are the resources whose first list is not complete.
func (s *Store) Unsynced() []Resource {
	return slices.DeleteFunc(slices.Clone(Resources[:]), func(resource Resource) bool {
		_, listed := s.reached[resource]
		return listed
	})
}

// Reached is the version that the watch of a resource has reached; empty before its first list.
func (s *Store) Reached(resource Resource) string { return s.reached[resource] }

// Listed notes that a complete list of a resource was taken in, as of this version.
func (s *Store) Listed(resource Resource, version string) {
	s.reached[resource] = version
	s.relisting = s.relisting && !s.Synced()
}

// BeginAnew notes that versions have begun anew (D-112): what was seen at one of them may look different now. What is kept of each
// resource stays until a list has replaced it. Until then the caches are of two histories.
func (s *Store) BeginAnew() {
	s.relisting = true
	clear(s.reached)
	for _, kept := range s.namespaces {
		clear(kept.sealed)
	}
}

// Relisting tells whether versions have begun anew, and not every resource was listed since then.
func (s *Store) Relisting() bool { return s.relisting }

// ForgetVersions forgets the versions of what is kept of a resource: what comes at one of them is no repetition.
func (s *Store) ForgetVersions(resource Resource) {
	if resource != Pods {
		return
	}
	for _, kept := range s.namespaces {
		for _, pod := range kept.pods.names {
			pod.version = ""
		}
	}
}

// Advance notes that the watch of a resource has reached a version. Before the first list that says nothing about what is
// known.
func (s *Store) Advance(resource Resource, version string) {
	if _, listed := s.reached[resource]; listed && version != "" {
		s.reached[resource] = version
	}
}

// DaemonSet is the DaemonSet of this key; nil if there is none.
func (s *Store) DaemonSet(key types.NamespacedName) *DaemonSet { return s.daemonSets[key] }

// Keys are the keys of all DaemonSets, in order.
func (s *Store) Keys() []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(s.daemonSets))
	for key := range s.daemonSets {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b types.NamespacedName) int {
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// Resolve is the DaemonSet that an object's controller reference points at: of that name in the object's namespace, with that
// uid (D-103). Nil if there is none.
func (s *Store) Resolve(namespace string, controller *nodewisev1.ControllerReference) *DaemonSet {
	if controller.GetKind() != Kind {
		return nil
	}
	daemonSet := s.daemonSets[types.NamespacedName{Namespace: namespace, Name: controller.GetName()}]
	if daemonSet == nil || string(daemonSet.UID) != controller.GetUid() {
		return nil
	}
	return daemonSet
}

// Matching are the DaemonSets of a namespace whose selector matches an orphan's labels, ordered by name (D-104).
func (s *Store) Matching(namespace string, set kubelabels.Set) []*DaemonSet {
	if len(set) == 0 {
		return nil
	}
	var matching []*DaemonSet
	for key, daemonSet := range s.daemonSets {
		if key.Namespace == namespace && daemonSet.Selector.Matches(set) {
			matching = append(matching, daemonSet)
		}
	}
	slices.SortFunc(matching, func(a, b *DaemonSet) int { return compareKeys(a.Key, b.Key) })
	return matching
}

// NodeBuckets are all nodes as they are sent about a workload.
func (s *Store) NodeBuckets(workload *DaemonSet, known Known) []*nodewisev1.Bucket {
	s.know(workload)
	return render(s.nodes, nil, s.nodeKeys.keys(), s.bucketCount, known)
}

// PodBuckets are the pods of a workload, and the orphans of its namespace that it selects, as they are sent (D-3).
func (s *Store) PodBuckets(workload *DaemonSet, known Known) []*nodewisev1.Bucket {
	s.know(workload)
	namespace := workload.Key.Namespace
	keys, kept := s.keysOfPods(namespace), s.namespaces[namespace]
	if kept == nil {
		return render(nil, nil, keys, s.bucketCount, known)
	}
	orphans := kept.pods.orphansOf(workload, s.bucketCount)
	return render(kept.pods.owned[string(workload.UID)], orphans, keys, s.bucketCount, known)
}

// ControlsPod tells whether the caches show a pod of this name that the workload controls.
func (s *Store) ControlsPod(namespace string, uid types.UID, name string) bool {
	kept := s.namespaces[namespace]
	if kept == nil {
		return false
	}
	pod := kept.pods.names[name]
	return pod != nil && pod.owner() == string(uid)
}

// Identity is the pod or revision of this name, if a DaemonSet controls it or it is an orphan; nil if there is none.
func (s *Store) Identity(resource Resource, namespace, name string) *Identity {
	kept := s.namespaces[namespace]
	if kept == nil {
		return nil
	}
	switch resource {
	case Pods:
		if found := kept.pods.names[name]; found != nil {
			return found.pod(namespace).Identity()
		}
	case Revisions:
		if found := kept.revisions.names[name]; found != nil {
			return &Identity{UID: string(found.UID), Controller: found.Controller, Labels: found.Labels}
		}
	default:
	}
	return nil
}

// HasNode tells whether there is a node of this name.
func (s *Store) HasNode(name string) bool {
	return s.nodes.get(convert.BucketOf(name, s.bucketCount), name) != nil
}

// LivePods are pods of a workload on one node.
type LivePods struct {
	Count int
	// Changed is the number of the last change of any of them.
	Changed uint64
}

// LivePods are the pods of a workload on each of these nodes or meant for it, where there is such a node: those that it controls and
// selects, without those that have finished or are being deleted. Each bucket is passed through once, whatever the number of nodes.
func (s *Store) LivePods(workload *DaemonSet, nodes []string) map[string]LivePods {
	live, indexes := make(map[string]LivePods, len(nodes)), sets.New[uint32]()
	for _, node := range nodes {
		if s.HasNode(node) {
			live[node] = LivePods{}
			indexes.Insert(convert.BucketOf(node, s.bucketCount))
		}
	}
	kept := s.namespaces[workload.Key.Namespace]
	if kept == nil || kept.pods.owned[string(workload.UID)] == nil {
		return live
	}
	owned := kept.pods.owned[string(workload.UID)]
	for index := range indexes {
		for _, member := range owned.list[index].members {
			// Most pods are on other nodes of the bucket, and need not be decoded.
			if before, isCounted := live[string(member.targetNode())]; isCounted {
				if pod := member.pod(workload.Key.Namespace); workload.claims(pod) && isLive(pod) {
					live[convert.TargetNode(pod.Pod)] = LivePods{before.Count + 1, max(before.Changed, member.changed)}
				}
			}
		}
	}
	return live
}

// claims tells whether a pod is the workload's as the planner sees it: one that it controls by kind, name and uid, and that it selects. It
// releases those that it controls and does not select, and leaves the others alone.
func (d *DaemonSet) claims(pod *Pod) bool {
	controller := pod.Controller
	return controller.GetKind() == Kind && controller.GetName() == d.Key.Name && controller.GetUid() == string(d.UID) &&
		d.Selector.Matches(pod.LabelSet())
}

// isLive tells whether a pod has neither finished nor is being deleted.
func isLive(pod *Pod) bool {
	isFinished := pod.GetPhase() == nodewisev1.PodPhase_POD_PHASE_FAILED || pod.GetPhase() == nodewisev1.PodPhase_POD_PHASE_SUCCEEDED
	return pod.DeletionTime == nil && !isFinished
}

// Deleting tells by uid whether a pod is being deleted, for each pod that the workload controls and each orphan of its
// namespace: a pod that was adopted just now may still look like one.
func (s *Store) Deleting(namespace string, uid types.UID) map[string]bool {
	deleting := map[string]bool{}
	kept := s.namespaces[namespace]
	if kept == nil {
		return deleting
	}
	for _, set := range []*buckets{kept.pods.owned[string(uid)], kept.pods.owned[""]} {
		set.all(func(member *stored) bool {
			pod := member.pod(namespace)
			deleting[pod.GetUid()] = pod.DeletionTime != nil
			return true
		})
	}
	return deleting
}

// Version is the resourceVersion of a node or pod that is kept.
func (s *Store) Version(resource Resource, key types.NamespacedName) (version string, isKept bool) {
	var found *stored
	switch resource {
	case Nodes:
		found = s.nodes.get(convert.BucketOf(key.Name, s.bucketCount), key.Name)
	case Pods:
		if kept := s.namespaces[key.Namespace]; kept != nil {
			found = kept.pods.names[key.Name]
		}
	default:
	}
	if found == nil {
		return "", false
	}
	return found.version, true
}

// ForgetOrphan takes out an orphan that the API does not find, before its watch shows that. Nobody waits for orphans to go. By
// now another object may have that name.
func (s *Store) ForgetOrphan(resource Resource, namespace, name string) {
	kept := s.namespaces[namespace]
	if kept == nil {
		return
	}
	switch resource {
	case Pods:
		if pod := kept.pods.names[name]; pod != nil && pod.owner() == "" {
			s.removePod(namespace, name)
		}
	case Revisions:
		if revision := kept.revisions.names[name]; revision != nil && revision.Controller == nil {
			s.removeRevision(namespace, name)
		}
	default:
	}
}

// Seal marks a revision or an orphaned pod as one that cannot be changed, as long as it stays as it is. A revision is sent with that
// mark. A pod is not sent.
func (s *Store) Seal(resource Resource, namespace, name string) {
	kept := s.namespaces[namespace]
	if kept == nil {
		return
	}
	switch resource {
	case Pods:
		kept.pods.leaveOut(name)
	case Revisions:
		if revision := kept.revisions.names[name]; revision != nil {
			kept.sealed[name] = revision.ResourceVersion
		}
	default:
	}
}

// IsSealed tells whether a revision is marked so.
func (s *Store) IsSealed(revision *Revision) bool {
	kept := s.namespaces[revision.Namespace]
	return kept != nil && kept.sealed[revision.Name] == revision.ResourceVersion
}

func (s *Store) namespace(name string) *namespace {
	kept := s.namespaces[name]
	if kept == nil {
		kept = &namespace{pods: newPods(), revisions: revisions{names: map[string]*Revision{}}, sealed: map[string]string{}}
		s.namespaces[name] = kept
	}
	return kept
}

func (s *Store) dropIfEmpty(name string) {
	kept := s.namespaces[name]
	if kept != nil && len(kept.pods.names) == 0 && len(kept.revisions.names) == 0 {
		delete(s.namespaces, name)
	}
}

func (s *Store) removePod(namespace, name string) *Pod {
	kept := s.namespaces[namespace]
	if kept == nil {
		return nil
	}
	pod := kept.pods.remove(name)
	if pod == nil {
		return nil
	}
	s.parts.release(pod)
	s.changes.removed(Pods)
	s.dropIfEmpty(namespace)
	return pod.pod(namespace)
}
