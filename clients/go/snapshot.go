package nodewise

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxRevisionBytes is how much one snapshot carries of revisions. Anyone who may create revisions in the namespace may make orphans that
// the selector matches, and all together must leave room for the rest of the request.
const maxRevisionBytes = 16 << 20

// takeSnapshot takes the snapshot of a workload, and counts the revisions that are left out. Buckets of which known says that the receiver has them go by their digest alone.
// Live are revisions that were read live, since a plan found their names taken or the caches need not show them yet.
func takeSnapshot(
	store *cluster.Store, workload *cluster.DaemonSet, held *nodewisev1.ReconcileState, live []*cluster.Revision,
	now time.Time, known cluster.Known,
) (snapshot *nodewisev1.Snapshot, leftOut int) {
	revisions, leftOut := revisionsOf(store, workload, live)
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
	}, leftOut
}

// revisionsOf are the cached revisions, and in the place of or besides them those that were read live; and how many of the cached ones
// are left out, since all together are too large.
func revisionsOf(
	store *cluster.Store, workload *cluster.DaemonSet, live []*cluster.Revision,
) (sent []*nodewisev1.ControllerRevision, leftOut int) {
	// What was read last counts.
	latest := make(map[string]*cluster.Revision, len(live))
	for _, revision := range live {
		latest[revision.Name] = revision
	}
	room := maxRevisionBytes
	for _, revision := range latest {
		room -= len(revision.JSON)
	}
	cached := slices.DeleteFunc(store.Revisions(workload), func(revision *cluster.Revision) bool { return latest[revision.Name] != nil })
	kept := fitting(cached, room)
	for _, revision := range kept {
		// What cannot be changed is used as it is or not at all, as what was read after a collision.
		sent = append(sent, &nodewisev1.ControllerRevision{
			Object: revision.JSON, ReadAfterNameCollision: store.IsSealed(revision),
		})
	}
	for _, revision := range live {
		if latest[revision.Name] == revision {
			sent = append(sent, &nodewisev1.ControllerRevision{
				Object: revision.JSON, ReadAfterNameCollision: true,
			})
		}
	}
	return sent, len(cached) - len(kept)
}

// fitting are those of some revisions that fit into so many bytes, at least one, in the order of all: those that the workload controls
// before orphans, and new ones before old ones. None is sent that comes after one that does not fit.
func fitting(revisions []*cluster.Revision, room int) []*cluster.Revision {
	ranked := slices.Clone(revisions)
	// Those of equal rank stay in order of their names.
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
		room -= len(revision.JSON)
		if room < 0 && i > 0 {
			break
		}
		fits[revision.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(revisions), func(revision *cluster.Revision) bool { return !fits[revision.Name] })
}
