package nodewise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// takeSnapshot takes the snapshot of a workload with these revisions. Buckets that the receiver has are sent by digest alone. It returns how
// many objects that the workload controls or may adopt were left out, because there are too many.
func takeSnapshot(
	store *cluster.Store, of *kind, workload *cluster.Workload, held *nodewisev1.ReconcileState,
	revisions []*nodewisev1.ControllerRevision, live *liveObjects, now time.Time, receiver planclient.Receiver,
) (snapshot *nodewisev1.Snapshot, leftOut int) {
	message, leftOut := of.message(store, workload, live)
	snapshot = &nodewisev1.Snapshot{
		Now:            timestamppb.New(now),
		Workload:       message,
		Revisions:      revisions,
		CachesSynced:   store.Synced(),
		DigestFunction: nodewisev1.DigestFunction_DIGEST_FUNCTION_SHA256,
		State:          held,
	}
	if of.reads(cluster.Nodes) {
		snapshot.NodeBuckets = store.NodeBuckets(workload, receiver.ReadsSharedLabels(), receiver.Has)
	}
	if of.Pods != cluster.NoPods {
		snapshot.PodBuckets = store.PodBuckets(workload, receiver.Has)
	}
	snapshot.BucketCount = uint32(max(len(snapshot.NodeBuckets), len(snapshot.PodBuckets)))
	return snapshot, leftOut
}

// chosen are the revisions of a snapshot.
type chosen struct {
	// live are revisions that were read from the apiserver: a plan found their names taken, or the caches need not show them yet. Each is in
	// the state that was read last.
	live []*cluster.Revision
	// cached are the cached revisions that also fit. Some may be without data.
	cached []*cluster.Revision
	// others are the cached revisions that do not fit.
	others []*cluster.Revision
}

// choose chooses the revisions of a workload's snapshot. A live revision replaces the cached one of the same name.
func choose(store *cluster.Store, workload *cluster.Workload, live []*cluster.Revision) chosen {
	// Of several live revisions of one name the last one counts.
	live = latestOf(live, func(revision *cluster.Revision) string { return revision.Name })
	names, room := sets.New[string](), cluster.MaxRevisionBytes
	for _, revision := range live {
		names.Insert(revision.Name)
		room -= revision.Size
	}
	all := slices.DeleteFunc(store.Revisions(workload), func(revision *cluster.Revision) bool { return names.Has(revision.Name) })
	cached := fittingRevisions(all, room)
	fits := sets.New(cached...)
	return chosen{
		live:   live,
		cached: cached,
		others: slices.DeleteFunc(all, func(revision *cluster.Revision) bool { return fits.Has(revision) }),
	}
}

// sent returns the revisions as they are sent. An orphan without data is left out: it has changed since it was read.
func (c *chosen) sent(store *cluster.Store) (sent []*nodewisev1.ControllerRevision, leftOut int, err error) {
	leftOut = len(c.others)
	for _, revision := range c.cached {
		switch {
		case revision.IsWhole():
			// A revision that cannot be changed is used as it is or not at all, like one that was read after a name collision.
			sent = append(sent, &nodewisev1.ControllerRevision{
				Object: revision.JSON, ReadAfterNameCollision: store.IsSealed(revision),
			})
		case revision.Controller == nil:
			leftOut++
		default:
			return nil, 0, &failure{reason: fmt.Errorf("%s has changed since it was read", revisionKey(revision.Namespace, revision.Name))}
		}
	}
	for _, revision := range c.live {
		sent = append(sent, &nodewisev1.ControllerRevision{Object: revision.JSON, ReadAfterNameCollision: true})
	}
	return sent, leftOut, nil
}

// own returns the cached revisions that the workload controls.
func (c *chosen) own() []*cluster.Revision {
	return slices.DeleteFunc(slices.Clone(c.cached), func(revision *cluster.Revision) bool { return revision.Controller == nil })
}

// fittingRevisions returns the revisions that fit into room bytes. Revisions that the workload controls rank before orphans, and newer ones before
// older ones.
func fittingRevisions(revisions []*cluster.Revision, room int) []*cluster.Revision {
	return fitting(revisions, room, func(revision *cluster.Revision) int { return revision.Size }, func(a, b *cluster.Revision) int {
		return cmp.Or(compareBools(a.Controller == nil, b.Controller == nil), cmp.Compare(b.Number, a.Number))
	})
}

// fitting returns the objects that fit into room bytes, and at least one, in the given order. The function rank compares objects. All that rank
// after the first one that does not fit are left out.
func fitting[T comparable](objects []T, room int, size func(T) int, rank func(a, b T) int) []T {
	ranked := slices.Clone(objects)
	// The sort is stable: objects of equal rank stay in order.
	slices.SortStableFunc(ranked, rank)
	fits := make(sets.Set[T], len(ranked))
	for i, object := range ranked {
		room -= size(object)
		if room < 0 && i > 0 {
			break
		}
		fits.Insert(object)
	}
	return slices.DeleteFunc(slices.Clone(objects), func(object T) bool { return !fits.Has(object) })
}
