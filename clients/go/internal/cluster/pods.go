package cluster

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// pods are those of one namespace: by name, and in the buckets of whoever controls them.
type pods struct {
	names map[string]*stored
	// owned are pods by the uid of the DaemonSet that controls them; orphans are under the empty uid.
	owned map[string]*buckets
	// selected are by the name of a DaemonSet that was asked about while there were orphans: those that it selects.
	selected map[string]*selected
	// leftOut are names of orphans that cannot be adopted as they are. None of them is selected.
	leftOut sets.Set[string]
}

func newPods() pods {
	return pods{
		names: map[string]*stored{}, owned: map[string]*buckets{}, selected: map[string]*selected{}, leftOut: sets.New[string](),
	}
}

// put keeps a pod; it answers with the one of that name that was kept before.
func (p *pods) put(pod *stored, bucketCount uint32) *stored {
	old := p.names[pod.name]
	p.names[pod.name] = pod
	p.leftOut.Delete(pod.name)
	if old != nil && (old.owner() != pod.owner() || old.bucket != pod.bucket) {
		p.takeOut(old)
	}
	set := p.owned[pod.owner()]
	if set == nil {
		set = newBuckets(bucketCount)
		p.owned[pod.owner()] = set
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
	set := p.owned[pod.owner()]
	if set == nil {
		return
	}
	if pod.owner() == "" {
		for _, selected := range p.selected {
			selected.orphans.remove(pod.bucket, pod.name)
		}
	}
	set.remove(pod.bucket, pod.name)
	if set.len == 0 {
		delete(p.owned, pod.owner())
	}
}

// orphansOf are the orphans that a DaemonSet selects.
func (p *pods) orphansOf(workload *DaemonSet, bucketCount uint32) *buckets {
	orphans := p.owned[""]
	if orphans == nil {
		delete(p.selected, workload.Key.Name)
		return nil
	}
	known := p.selected[workload.Key.Name]
	if known == nil || known.selector != workload.Reads.Selector.String() {
		known = &selected{selector: workload.Reads.Selector.String(), reads: workload.Reads, orphans: newBuckets(bucketCount)}
		orphans.all(func(orphan *stored) bool {
			if !p.leftOut.Has(orphan.name) {
				known.put(orphan)
			}
			return true
		})
		p.selected[workload.Key.Name] = known
	}
	return known.orphans
}

// leaveOut selects an orphan no more, as long as it stays as it is.
func (p *pods) leaveOut(name string) {
	orphan := p.names[name]
	if orphan == nil || orphan.owner() != "" {
		return
	}
	for _, selected := range p.selected {
		selected.orphans.remove(orphan.bucket, name)
	}
	p.leftOut.Insert(name)
}

// selected are the orphans that a selector matches.
type selected struct {
	selector string
	reads    convert.Reads
	orphans  *buckets
}

// put is told that an orphan came or changed.
func (s *selected) put(orphan *stored) {
	if s.reads.Selects(orphan.part.metadata().GetLabels()) {
		s.orphans.put(orphan)
	} else {
		s.orphans.remove(orphan.bucket, orphan.name)
	}
}

// parts are what pods share, each kept once for as long as a pod has it.
type parts map[string]*part

func (p parts) intern(shared *nodewisev1.SharedMetadata) *part {
	encoded := encode(shared)
	known := p[string(encoded)]
	if known == nil {
		known = &part{encoded: encoded, owner: shared.GetController().GetUid()}
		p[string(encoded)] = known
	}
	known.users++
	return known
}

// release is told that a pod is gone.
func (p parts) release(pod *stored) {
	if pod == nil || pod.part == nil {
		return
	}
	pod.part.users--
	if pod.part.users == 0 {
		delete(p, string(pod.part.encoded))
	}
}

// encodePod puts a pod into the form in which it is kept. The labels and the controller of a workload's pods are all but equal.
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
