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
)

// takeSnapshot takes the snapshot of a workload with these revisions. Buckets for which known returns true are sent by digest alone.
func takeSnapshot(
	store *cluster.Store, workload *cluster.DaemonSet, held *nodewisev1.ReconcileState, revisions []*nodewisev1.ControllerRevision,
	now time.Time, known cluster.Known,
) *nodewisev1.Snapshot {
	return &nodewisev1.Snapshot{
		Now: timestamppb.New(now),
		Workload: &nodewisev1.Workload{
			Kind: &nodewisev1.Workload_DaemonSet{DaemonSet: &nodewisev1.DaemonSet{Object: workload.JSON}},
		},
		Revisions:      revisions,
		CachesSynced:   store.Synced(),
		BucketCount:    store.BucketCount(),
		NodeBuckets:    store.NodeBuckets(workload, known),
		PodBuckets:     store.PodBuckets(workload, known),
		DigestFunction: nodewisev1.DigestFunction_DIGEST_FUNCTION_SHA256,
		State:          held,
	}
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
func choose(store *cluster.Store, workload *cluster.DaemonSet, live []*cluster.Revision) chosen {
	// Of several live revisions of one name the last one counts.
	latest := make(map[string]*cluster.Revision, len(live))
	for _, revision := range live {
		latest[revision.Name] = revision
	}
	room := cluster.MaxRevisionBytes
	for _, revision := range latest {
		room -= revision.Size
	}
	all := slices.DeleteFunc(store.Revisions(workload), func(revision *cluster.Revision) bool { return latest[revision.Name] != nil })
	cached := fitting(all, room)
	fits := sets.New(cached...)
	return chosen{
		live:   slices.DeleteFunc(slices.Clone(live), func(revision *cluster.Revision) bool { return latest[revision.Name] != revision }),
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

// fitting returns the revisions that fit into room bytes, and at least one, in the given order. Revisions that the workload controls rank
// before orphans, and newer ones before older ones. All that rank after the first one that does not fit are left out.
func fitting(revisions []*cluster.Revision, room int) []*cluster.Revision {
	ranked := slices.Clone(revisions)
	// The sort is stable: revisions of equal rank stay ordered by name.
	class := func(revision *cluster.Revision) int {
		if revision.Controller != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(ranked, func(a, b *cluster.Revision) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(b.Number, a.Number))
	})
	fits := make(map[string]bool, len(ranked))
	for i, revision := range ranked {
		room -= revision.Size
		if room < 0 && i > 0 {
			break
		}
		fits[revision.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(revisions), func(revision *cluster.Revision) bool { return !fits[revision.Name] })
}
