package nodewise

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// takeSnapshot takes the snapshot of a workload. Buckets of which known says that the receiver has them go by their digest alone.
// Live are revisions that were read live, since a plan found their names taken or the caches need not show them yet.
func takeSnapshot(
	store *cluster.Store, workload *cluster.DaemonSet, held *nodewisev1.ReconcileState, live []*cluster.Revision,
	now time.Time, known cluster.Known,
) *nodewisev1.Snapshot {
	return &nodewisev1.Snapshot{
		Now: timestamppb.New(now),
		Workload: &nodewisev1.Workload{
			Kind: &nodewisev1.Workload_DaemonSet{DaemonSet: &nodewisev1.DaemonSet{Object: workload.JSON}},
		},
		Revisions:      revisionsOf(store, workload, live),
		CachesSynced:   store.Synced(),
		BucketCount:    store.BucketCount(),
		NodeBuckets:    store.NodeBuckets(workload, known),
		PodBuckets:     store.PodBuckets(workload, known),
		DigestFunction: nodewisev1.DigestFunction_DIGEST_FUNCTION_SHA256,
		State:          held,
	}
}

// revisionsOf are the cached revisions, and in the place of or besides them those that were read live.
func revisionsOf(
	store *cluster.Store, workload *cluster.DaemonSet, live []*cluster.Revision,
) []*nodewisev1.ControllerRevision {
	var revisions []*nodewisev1.ControllerRevision
	// What was read last counts.
	latest := make(map[string]*cluster.Revision, len(live))
	for _, revision := range live {
		latest[revision.Name] = revision
	}
	for _, cached := range store.Revisions(workload) {
		if latest[cached.Name] != nil {
			continue
		}
		// What cannot be changed is used as it is or not at all, as what was read after a collision.
		revisions = append(revisions, &nodewisev1.ControllerRevision{
			Object: cached.JSON, ReadAfterNameCollision: store.IsSealed(cached),
		})
	}
	for _, revision := range live {
		if latest[revision.Name] == revision {
			revisions = append(revisions, &nodewisev1.ControllerRevision{
				Object: revision.JSON, ReadAfterNameCollision: true,
			})
		}
	}
	return revisions
}
