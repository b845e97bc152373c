package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// Store is the caches of all resources.
type Store struct {
	// kinds are the cached kinds of workload, and watched all cached resources.
	kinds       []*Kind
	watched     []Resource
	bucketCount uint32
	workloads   map[*Kind]*workloads
	nodes       *buckets
	namespaces  map[string]*namespace
	// policies are by namespace and name. No namespace is empty.
	policies map[string]map[string]*Policy
	parts    parts
	labels   labels
	nodeKeys *named
	// podKeys are by namespace. Only namespaces with workloads have an entry.
	podKeys map[string]*named
	unnamed *convert.KeySet
	cuts    []CutObject
	// reached is the version that each watch has reached; absent until its first list is complete.
	reached map[Resource]string
	// unknown is why it is not known any more which objects of a resource there are.
	unknown map[Resource]string
	changes changes
	// staged is the size in bytes of the staged revisions, by namespace. A revision is staged until its list is complete.
	staged map[string]int
	// relisting is true if etcd was restored and not every resource has been listed since.
	relisting bool
}

type namespace struct {
	pods      pods
	revisions revisions
	// sealed are the revisions that cannot be changed, and the resourceVersions at which that was found.
	sealed map[string]string
}

// NewStore makes empty caches for plans of these kinds. Nodes and pods are sent in this many buckets.
func NewStore(bucketCount uint32, kinds ...*Kind) *Store {
	bucketCount = max(bucketCount, 1)
	kept := map[*Kind]*workloads{}
	for _, kind := range withControlled(kinds) {
		kept[kind] = newWorkloads()
	}
	return &Store{
		kinds:       withControlled(kinds),
		watched:     resourcesOf(kinds),
		bucketCount: bucketCount,
		workloads:   kept,
		nodes:       newBuckets(bucketCount, false),
		namespaces:  map[string]*namespace{},
		policies:    map[string]map[string]*Policy{},
		parts:       parts{},
		labels:      labels{},
		nodeKeys:    newNamed(false),
		podKeys:     map[string]*named{},
		unnamed:     convert.PodKeys(),
		reached:     map[Resource]string{},
		unknown:     map[Resource]string{},
		changes:     changes{removals: map[Resource]uint64{}},
		staged:      map[string]int{},
	}
}

// BucketCount is how many buckets nodes and pods are divided into.
func (s *Store) BucketCount() uint32 { return s.bucketCount }

// Synced reports whether every resource has been listed.
func (s *Store) Synced() bool { return len(s.reached) == len(s.watched) }

// Unsynced returns the resources whose first list is not complete.
func (s *Store) Unsynced() []Resource {
	return slices.DeleteFunc(slices.Clone(s.watched), func(resource Resource) bool {
		_, listed := s.reached[resource]
		return listed
	})
}

// Reached returns the version that the watch of a resource has reached; empty before its first list.
func (s *Store) Reached(resource Resource) string { return s.reached[resource] }

// Listed records the version of a complete list of a resource.
func (s *Store) Listed(resource Resource, version string) {
	s.reached[resource] = version
	delete(s.unknown, resource)
	s.relisting = s.relisting && !s.Synced()
}

// SetUnknown records why it is not known which objects of a resource there are, until a list of it is complete.
func (s *Store) SetUnknown(resource Resource, reason string) { s.unknown[resource] = reason }

// Unknown returns why it is not known which objects of a resource there are; empty if no reason is known.
func (s *Store) Unknown(resource Resource) string { return s.unknown[resource] }

// BeginAnew records that etcd was restored from a backup, so that an object of a known version may have another content now (D-112). The objects
// of a resource stay until a list replaces them. Until all resources are listed, the caches mix states from before and after the restore.
func (s *Store) BeginAnew() {
	s.relisting = true
	clear(s.reached)
	for _, kept := range s.namespaces {
		clear(kept.sealed)
	}
	for _, kept := range s.workloads {
		clear(kept.sealed)
	}
}

// Relisting reports whether etcd was restored and not every resource has been listed since.
func (s *Store) Relisting() bool { return s.relisting }

// ForgetVersions drops the versions of cached pods, so that a pod of a known version is not taken for a repetition. It does nothing for other
// resources.
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

// Advance records that the watch of a resource has reached a version. Before the first list it does nothing.
func (s *Store) Advance(resource Resource, version string) {
	if _, listed := s.reached[resource]; listed && version != "" {
		s.reached[resource] = version
	}
}

// NodeBuckets returns all nodes as they are sent in the snapshot of a workload: in the form in which they share labels, or in the one that every
// version of the service reads.
func (s *Store) NodeBuckets(workload *Workload, shareLabels bool, known Known) []*nodewisev1.Bucket {
	s.know(workload)
	form := plain
	if shareLabels {
		form = sharingLabels
	}
	return render(s.nodes, nil, s.nodeKeys.keys(), s.bucketCount, form, known)
}

// PodBuckets returns the pods of a workload, and the orphans of its namespace that it selects, as they are sent (D-3).
func (s *Store) PodBuckets(workload *Workload, known Known) []*nodewisev1.Bucket {
	s.know(workload)
	owned, orphans := s.podsOf(workload)
	count, form := s.bucketCount, byNode
	if workload.Kind.Pods == ByName {
		count, form = sameCount(owned, orphans), plain
	}
	return render(owned, orphans, s.keysOfPods(workload.Key.Namespace), count, form, known)
}

// ControlsPod reports whether the caches show a pod of this name that the workload controls.
func (s *Store) ControlsPod(namespace string, uid types.UID, name string) bool {
	kept := s.namespaces[namespace]
	if kept == nil {
		return false
	}
	pod := kept.pods.names[name]
	return pod != nil && pod.owner() == string(uid)
}

// Identity returns the cached pod, revision or workload of this name; nil if there is none.
func (s *Store) Identity(resource Resource, namespace, name string) *Identity {
	if kind := kindOf(resource); kind != nil {
		found := s.Workload(kind, types.NamespacedName{Namespace: namespace, Name: name})
		if found == nil {
			return nil
		}
		return found.Identity()
	}
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

// HasNode reports whether there is a node of this name.
func (s *Store) HasNode(name string) bool {
	return s.nodes.get(convert.BucketOf(name, s.bucketCount), name) != nil
}

// LivePods are pods of a workload on one node.
type LivePods struct {
	Count int
	// Changed is the number of the last change of any of these pods.
	Changed uint64
}

// LivePods returns, for each of these nodes that exists, the live pods of a workload on the node or meant for it. A pod counts if the workload
// controls and selects it, and if it has not finished and is not being deleted. Each bucket is searched once, however many nodes there are.
func (s *Store) LivePods(workload *Workload, nodes []string) map[string]LivePods {
	live, indexes := make(map[string]LivePods, len(nodes)), sets.New[uint32]()
	for _, node := range nodes {
		if s.HasNode(node) {
			live[node] = LivePods{}
			indexes.Insert(convert.BucketOf(node, s.bucketCount))
		}
	}
	kept := s.namespaces[workload.Key.Namespace]
	if kept == nil || kept.pods.owned[ownerOf(workload)] == nil {
		return live
	}
	owned := kept.pods.owned[ownerOf(workload)]
	for index := range indexes {
		for _, member := range owned.list[index].members {
			// Pods on other nodes of the bucket are not decoded.
			if before, isCounted := live[string(member.targetNode())]; isCounted {
				if pod := member.pod(workload.Key.Namespace); workload.claims(pod) && isLive(pod) {
					live[convert.TargetNode(pod.Pod)] = LivePods{before.Count + 1, max(before.Changed, member.changed)}
				}
			}
		}
	}
	return live
}

// LivePodsBeyond returns the live pods of a workload, if its pods in any state are more than most.
func (s *Store) LivePodsBeyond(workload *Workload, most int) (LivePods, bool) {
	kept := s.namespaces[workload.Key.Namespace]
	if kept == nil || kept.pods.owned[ownerOf(workload)] == nil {
		return LivePods{}, false
	}
	number, live := 0, LivePods{}
	for _, bucket := range kept.pods.owned[ownerOf(workload)].list {
		number += len(bucket.members)
	}
	// Most workloads have room, and then no pod needs to be decoded.
	if number <= most {
		return LivePods{}, false
	}
	for _, bucket := range kept.pods.owned[ownerOf(workload)].list {
		for _, member := range bucket.members {
			if pod := member.pod(workload.Key.Namespace); workload.claims(pod) && isLive(pod) {
				live = LivePods{live.Count + 1, max(live.Changed, member.changed)}
			}
		}
	}
	return live, true
}

// claims reports whether a pod is the workload's for the planner: the workload controls it by kind, name and uid, and selects it. The planner
// releases pods that are controlled and not selected, and ignores all others.
func (w *Workload) claims(pod *Pod) bool {
	return w.controls(pod) && w.Selector.Matches(pod.LabelSet())
}

// controls reports whether the workload controls a pod, by kind, name and uid.
func (w *Workload) controls(pod *Pod) bool {
	controller := pod.Controller
	return controller.GetKind() == w.Kind.Name && controller.GetName() == w.Key.Name && controller.GetUid() == string(w.UID)
}

// isLive reports whether a pod has neither finished nor is being deleted.
func isLive(pod *Pod) bool { return pod.DeletionTime == nil && !isFinished(pod) }

func isFinished(pod *Pod) bool {
	return pod.GetPhase() == nodewisev1.PodPhase_POD_PHASE_FAILED || pod.GetPhase() == nodewisev1.PodPhase_POD_PHASE_SUCCEEDED
}

// Deleting returns, by uid, whether a pod is being deleted. It has each pod that the workload controls, and each orphan of its namespace: the
// caches may still show a pod as an orphan that was just adopted.
func (s *Store) Deleting(namespace string, uid types.UID) map[string]bool {
	deleting := map[string]bool{}
	kept := s.namespaces[namespace]
	if kept == nil {
		return deleting
	}
	byNode, byName := kept.pods.owned[owner{uid: string(uid)}], kept.pods.owned[owner{uid: string(uid), byName: true}]
	for _, set := range []*buckets{byNode, byName, kept.pods.owned[owner{}]} {
		set.all(func(member *stored) bool {
			pod := member.pod(namespace)
			deleting[pod.GetUid()] = pod.DeletionTime != nil
			return true
		})
	}
	return deleting
}

// Version returns the resourceVersion of a cached node or pod.
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

// ForgetOrphan removes an orphan that the apiserver does not find, before the watch shows its deletion. It checks that the object is an orphan,
// because another object may have the name by now.
func (s *Store) ForgetOrphan(resource Resource, namespace, name string) {
	if kind := kindOf(resource); kind != nil {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if workload := s.Workload(kind, key); workload != nil && workload.Controller == nil {
			s.RemoveWorkload(kind, key)
		}
		return
	}
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

// Seal marks a revision, an orphaned pod or an orphaned workload as one that the apiserver does not let anybody change. The mark is valid until
// the object changes. A marked revision is sent with the mark, and a marked pod or workload is not sent.
func (s *Store) Seal(resource Resource, namespace, name string) {
	if kind := kindOf(resource); kind != nil {
		s.workloads[kind].seal(types.NamespacedName{Namespace: namespace, Name: name})
		return
	}
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

// IsSealed reports whether a revision is marked by [Store.Seal].
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
