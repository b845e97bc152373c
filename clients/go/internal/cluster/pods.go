package cluster

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// pods are the pods of one namespace.
type pods struct {
	names map[string]*stored
	// owned are the pods by their controller. Orphans are under the empty owner.
	owned map[owner]*buckets
	// selected are the orphans that a workload selects. A workload has an entry if a snapshot of it was taken while there were orphans.
	selected map[selector]*selected
	// leftOut are the names of orphans that cannot be adopted as they are. They are not in selected.
	leftOut sets.Set[string]
}

// owner is the controller of pods. Pods of one uid are apart if they are divided into other buckets: a client may write any controller into a
// pod.
type owner struct {
	uid    string
	byName bool
}

// ownerOf is the owner of the pods that a workload controls.
func ownerOf(workload *Workload) owner {
	return owner{uid: string(workload.UID), byName: workload.Kind.Pods == ByName}
}

// selector is a workload that selects orphans of its namespace.
type selector struct {
	kind *Kind
	name string
}

func selectorOf(workload *Workload) selector { return selector{workload.Kind, workload.Key.Name} }

func newPods() pods {
	return pods{
		names: map[string]*stored{}, owned: map[owner]*buckets{}, selected: map[selector]*selected{}, leftOut: sets.New[string](),
	}
}

// put stores a pod, and returns the pod of the same name that was stored before.
func (p *pods) put(pod *stored, bucketCount uint32) *stored {
	old := p.names[pod.name]
	p.names[pod.name] = pod
	p.leftOut.Delete(pod.name)
	if old != nil && (old.part.owner != pod.part.owner || old.bucket != pod.bucket) {
		p.takeOut(old)
	}
	set := p.owned[pod.part.owner]
	if set == nil {
		set = newBuckets(bucketCount, pod.part.owner.byName)
		p.owned[pod.part.owner] = set
	}
	set.put(pod)
	if pod.owner() == "" {
		for _, selected := range p.selected {
			selected.put(pod)
		}
	}
	return old
}

func (p *pods) remove(name string) *stored {
	pod := p.names[name]
	if pod == nil {
		return nil
	}
	delete(p.names, name)
	p.leftOut.Delete(name)
	p.takeOut(pod)
	return pod
}

func (p *pods) takeOut(pod *stored) {
	set := p.owned[pod.part.owner]
	if set == nil {
		return
	}
	if pod.owner() == "" {
		for _, selected := range p.selected {
			selected.orphans.take(pod)
		}
	}
	set.take(pod)
	if set.len == 0 {
		delete(p.owned, pod.part.owner)
	}
}

// orphansOf returns the orphans that a workload selects.
func (p *pods) orphansOf(workload *Workload, bucketCount uint32) *buckets {
	orphans := p.owned[owner{}]
	if orphans == nil {
		delete(p.selected, selectorOf(workload))
		return nil
	}
	known := p.selected[selectorOf(workload)]
	if known == nil || known.selector != workload.Reads.Selector.String() {
		known = &selected{
			selector: workload.Reads.Selector.String(), reads: workload.Reads,
			orphans: newBuckets(bucketCount, workload.Kind.Pods == ByName),
		}
		orphans.all(func(orphan *stored) bool {
			if !p.leftOut.Has(orphan.name) {
				known.put(orphan)
			}
			return true
		})
		p.selected[selectorOf(workload)] = known
	}
	return known.orphans
}

// leaveOut leaves an orphan out of the selected ones until it changes.
func (p *pods) leaveOut(name string) {
	orphan := p.names[name]
	if orphan == nil || orphan.owner() != "" {
		return
	}
	for _, selected := range p.selected {
		selected.orphans.take(orphan)
	}
	p.leftOut.Insert(name)
}

// selected are the orphans that a selector matches.
type selected struct {
	selector string
	reads    convert.Reads
	orphans  *buckets
}

// put adds or removes an orphan that is new or has changed.
func (s *selected) put(orphan *stored) {
	if s.reads.Selects(orphan.part.metadata().GetLabels()) {
		s.orphans.put(orphan)
	} else {
		s.orphans.take(orphan)
	}
}

// parts are the shared metadata of pods. Each is stored once, for as long as a pod has it.
type parts map[string]*part

func (p parts) intern(shared *nodewisev1.SharedMetadata) *part {
	encoded := encode(shared)
	known := p[string(encoded)]
	if known == nil {
		known = &part{encoded: encoded, owner: owner{
			uid: shared.GetController().GetUid(), byName: placementOf(shared.GetController()) == ByName,
		}}
		p[string(encoded)] = known
	}
	known.users++
	return known
}

// release drops the reference of a removed pod.
func (p parts) release(pod *stored) {
	if pod == nil || pod.part == nil {
		return
	}
	pod.part.users--
	if pod.part.users == 0 {
		delete(p, string(pod.part.encoded))
	}
}

// encodePod encodes a pod for the store. Labels and controller are stored separately: most pods of a workload have the same.
func encodePod(pod *Pod, parts parts, bucketCount uint32) *stored {
	labels, controller := pod.Labels, pod.Controller
	pod.Labels, pod.Controller = nil, nil
	own := encode(pod.Pod)
	pod.Labels, pod.Controller = labels, controller
	return &stored{
		name:    pod.GetName(),
		version: pod.ResourceVersion,
		bucket:  convert.BucketOf(convert.TargetNode(pod.Pod), bucketCount),
		own:     own,
		part:    parts.intern(&nodewisev1.SharedMetadata{Labels: labels, Controller: controller}),
	}
}
