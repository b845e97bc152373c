//! Builds the snapshot of one workload for a plan request.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use crate::{Resource, actuator::ObjectKey};
use nodewise_projection::{ProjectError, Revision, RolloutPolicy, Workload, buckets::RenderedBuckets};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::{Timestamp, v1};

use crate::kind::{Kind, needed};
use crate::store::{REVISION_BYTES, Store};

/// Objects that were read live because a plan found their names taken, or because the caches do not show them yet. In a
/// snapshot they replace the cached objects of their names.
#[derive(Clone, Debug, Default)]
pub struct LiveObjects {
    /// `ControllerRevision`s.
    pub revisions: Vec<Revision>,
    /// Workloads of the kind that the workloads of the snapshot's kind control.
    pub workloads: Vec<Workload>,
}

impl LiveObjects {
    /// Reads an object of this resource that belongs in snapshots of this kind. An object of another resource is left out.
    pub fn read<K: Kind>(resource: Resource, object: &str) -> Result<Self, ProjectError> {
        let mut live = Self::default();
        if resource == Resource::REVISIONS {
            live.revisions.push(Revision::from_text(object)?);
        } else if resource == K::Controls::RESOURCE {
            live.workloads.push(K::Controls::read(object)?);
        }
        Ok(live)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.revisions.is_empty() && self.workloads.is_empty()
    }

    /// Adds these objects. They replace those of the same names: a snapshot may have each name once.
    pub fn extend(&mut self, others: Self) {
        replace(&mut self.revisions, others.revisions, |revision| &revision.name);
        replace(&mut self.workloads, others.workloads, |workload| {
            &workload.key.name
        });
    }

    /// Drops the oldest objects beyond this number of each resource.
    pub fn truncate(&mut self, most: usize) {
        self.revisions.drain(..self.revisions.len().saturating_sub(most));
        self.workloads.drain(..self.workloads.len().saturating_sub(most));
    }
}

fn replace<T>(known: &mut Vec<T>, objects: Vec<T>, name: impl Fn(&T) -> &str) {
    known.retain(|known| objects.iter().all(|object| name(object) != name(known)));
    known.extend(objects);
}

/// Takes the snapshot of a workload. The buckets that the receiver has are sent by digest only.
pub fn take<K: Kind>(
    store: &mut Store,
    workload: &Workload,
    state: v1::ReconcileState,
    live: &LiveObjects,
    now: Timestamp,
    receiver: &Receiver<'_>,
) -> v1::Snapshot {
    let reads = |resource| K::READS.contains(&resource);
    let revisions = if reads(Resource::REVISIONS) {
        revisions(store, workload, &live.revisions)
    } else {
        Vec::new()
    };
    let nodes = if reads(Resource::NODES) {
        store.node_buckets(workload, receiver)
    } else {
        RenderedBuckets::default()
    };
    let pods = if K::PODS.is_some() {
        store.pod_buckets(workload, receiver)
    } else {
        RenderedBuckets::default()
    };
    tracing::trace!(
        written = nodes.written + pods.written,
        hashed = nodes.hashed + pods.hashed,
        "bytes of nodes and pods that this snapshot cost"
    );
    let bucket_count = nodes.buckets.len().max(pods.buckets.len());
    v1::Snapshot {
        now: Some(now),
        workload: Some(v1::Workload {
            kind: Some(K::message(store, workload, &live.workloads)),
        }),
        revisions,
        caches_synced: store.are_listed(needed::<K>()),
        bucket_count: bucket_count.try_into().unwrap_or(u32::MAX),
        node_buckets: nodes.buckets,
        pod_buckets: pods.buckets,
        digest_function: v1::DigestFunction::Sha256.into(),
        state: Some(state),
        own_writes: Vec::new(),
    }
}

/// The RolloutPolicies of a workload's snapshot.
#[must_use]
pub fn policies<K: Kind>(store: &Store, workload: &Workload) -> Vec<Arc<RolloutPolicy>> {
    if K::READS.contains(&Resource::ROLLOUT_POLICIES) {
        store.policies(workload)
    } else {
        Vec::new()
    }
}

/// An object for which it is not known whether it belongs in the workload's snapshot, because not all of its labels are
/// cached. No plan may be requested for the workload then.
#[must_use]
pub fn undecided<K: Kind>(store: &Store, workload: &Workload) -> Option<ObjectKey> {
    let pod = K::PODS.and_then(|_| store.undecided_pod(workload));
    let reads_revisions = K::READS.contains(&Resource::REVISIONS);
    pod.or_else(|| {
        let revision = reads_revisions.then(|| store.undecided_revisions(workload).next())??;
        Some(revision_key(workload, revision))
    })
}

fn revision_key(workload: &Workload, revision: &Revision) -> ObjectKey {
    ObjectKey::new(Resource::REVISIONS, &*workload.key.namespace, &*revision.name)
}

/// Maximum number of revisions, or of workloads that a workload controls or may adopt, of one snapshot: the default limit of
/// the service.
const OBJECT_COUNT: usize = 10_000;

/// The revisions that have to be read live and passed to [`Store::keep_whole`] before the snapshot is taken: those that
/// belong in the snapshot and whose data is not cached, and those whose labels are not all cached, so that it is not
/// known whether the selector matches. The snapshot leaves out revisions that are still missing then. Cached data of
/// revisions that do not fit into the snapshot is dropped.
pub fn unread<K: Kind>(store: &mut Store, workload: &Workload, colliding: &[Revision]) -> Vec<ObjectKey> {
    if !K::READS.contains(&Resource::REVISIONS) {
        return Vec::new();
    }
    let key = |revision: &Arc<Revision>| revision_key(workload, revision);
    let (cached, fit) = cached(store, workload, colliding);
    let undecided = store.undecided_revisions(workload);
    let without_data = fit.iter().copied().filter(|revision| revision.object.is_none());
    let unread: Vec<_> = undecided.chain(without_data).map(key).collect();
    if !unread.is_empty() {
        let sent: HashSet<&str> = fit.iter().map(|revision| &*revision.name).collect();
        let others = cached
            .into_iter()
            .filter(|revision| revision.object.is_some() && !sent.contains(&*revision.name));
        let others: Vec<_> = others.map(key).collect();
        for other in &others {
            store.drop_data(other);
        }
    }
    unread
}

/// The cached revisions, except those that were read live; and those of them that fit into a snapshot together with the
/// live ones.
fn cached<'a>(
    store: &'a Store,
    workload: &'a Workload,
    colliding: &[Revision],
) -> (Vec<&'a Arc<Revision>>, Vec<&'a Arc<Revision>>) {
    let cached: Vec<_> = store
        .revisions(workload)
        .filter(|revision| !colliding.iter().any(|live| live.name == revision.name))
        .collect();
    let room = Room::beside(colliding.iter().map(|live| live.size));
    let weigh = |revision: &&Arc<Revision>| {
        (
            revision.size,
            (revision.controller.is_none(), Reverse(revision.number)),
        )
    };
    let fit = fitting(&cached, room, weigh);
    (cached, fit)
}

/// The revisions of the snapshot: those that were read live, and the cached ones of other names.
fn revisions(store: &mut Store, workload: &Workload, colliding: &[Revision]) -> Vec<v1::ControllerRevision> {
    let mut too_many = std::mem::take(&mut store.too_many);
    let (cached, kept) = cached(store, workload, colliding);
    if kept.len() < cached.len() && too_many.is_due(workload.key.clone()) {
        tracing::warn!(
            left_out = cached.len() - kept.len(),
            "the revisions are more than {OBJECT_COUNT}, or take more than {REVISION_BYTES} bytes together; orphans, and then the oldest, \
             are not sent"
        );
    }
    let cached = kept
        .into_iter()
        // A sealed revision cannot be changed. Like one that was read after a name collision, it may only be used as it
        // is.
        .filter_map(|revision| Some((revision.object.clone()?, store.is_sealed(revision))));
    let live = colliding
        .iter()
        .filter_map(|live| Some((live.object.clone()?, true)));
    let sent = cached.chain(live);
    let sent = sent.map(|(object, read_after_name_collision)| v1::ControllerRevision {
        object,
        read_after_name_collision,
    });
    let sent = sent.collect();
    store.too_many = too_many;
    sent
}

/// How many objects, and how many bytes of them together, fit into a snapshot. Anyone who may create objects in the namespace
/// may create orphans that the selector matches, so the total is limited to leave space for the rest of the message.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    count: usize,
    bytes: usize,
}

impl Room {
    /// What fits beside objects of these sizes.
    pub fn beside(sizes: impl Iterator<Item = usize>) -> Self {
        let (count, bytes) = sizes.fold((0_usize, 0_usize), |(count, bytes), size| {
            (count + 1, bytes.saturating_add(size))
        });
        Self {
            count: OBJECT_COUNT.saturating_sub(count),
            bytes: REVISION_BYTES.saturating_sub(bytes),
        }
    }
}

/// The objects that fit into a snapshot, at least one, in the given order. `weigh` is the size of an object and its rank: objects
/// of lower rank take precedence, such as those that the workload controls over orphans, and new ones over old ones.
pub fn fitting<T: Copy, R: Ord>(objects: &[T], room: Room, weigh: impl Fn(&T) -> (usize, R)) -> Vec<T> {
    let size = |object: &T| weigh(object).0;
    let all = objects.iter().map(size).fold(0, usize::saturating_add);
    if all <= room.bytes && objects.len() <= room.count {
        return objects.to_vec();
    }
    let mut chosen: Vec<_> = (0..objects.len()).collect();
    chosen.sort_by_cached_key(|index| weigh(&objects[*index]).1);
    let mut taken = 0_usize;
    let fit = chosen.iter().take(room.count).take_while(|index| {
        taken = taken.saturating_add(size(&objects[**index]));
        taken <= room.bytes
    });
    let fit = fit.count().max(1);
    chosen.truncate(fit);
    chosen.sort_unstable();
    chosen.into_iter().map(|index| objects[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ClusterEvent;
    use crate::testing::{DAEMON_SETS, DaemonSets};
    use crate::{Delta, Resource};
    use bytes::Bytes;
    use nodewise_projection::{Node, Pod};
    use prost::Message as _;
    use serde_json::{Value, json};

    // A service may have one object read several times in a reconcile.
    #[test]
    fn of_objects_with_one_name_the_last_is_kept() {
        let read = |name: &str, data: &str| LiveObjects {
            revisions: vec![Revision::from_json(&revision(name, None, data)).expect("a revision")],
            ..LiveObjects::default()
        };
        let mut live = LiveObjects::default();
        for (name, data) in [("a", "old"), ("b", "x"), ("a", "new")] {
            live.extend(read(name, data));
        }
        let sizes = |live: &LiveObjects| {
            live.revisions
                .iter()
                .map(|one| (one.name.clone(), one.size))
                .collect::<Vec<_>>()
        };
        let size = |data| read("a", data).revisions[0].size;
        assert_eq!(
            sizes(&live),
            [("b".to_owned(), size("x")), ("a".to_owned(), size("new"))]
        );
        live.truncate(1);
        assert_eq!(sizes(&live), [("a".to_owned(), size("new"))]);
    }

    // A tenant may create large revisions. The revisions that decide take precedence, and the request stays within its
    // limit.
    #[test]
    fn revisions_that_do_not_fit_are_left_out() {
        let of = |name: &str, owner: Option<&str>, number: i64| {
            let mut object = revision(name, owner, "d");
            object["revision"] = json!(number);
            Arc::new(Revision::from_json(&object).expect("a revision"))
        };
        let all = [
            of("a", None, 9),
            of("b", Some("u1"), 1),
            of("c", Some("u1"), 2),
            of("d", None, 8),
        ];
        let all: Vec<_> = all.iter().collect();
        let weigh = |revision: &&Arc<Revision>| {
            (
                revision.size,
                (revision.controller.is_none(), Reverse(revision.number)),
            )
        };
        let bytes = |names: &str| {
            let named = all.iter().filter(|revision| names.contains(&revision.name));
            named.map(|revision| revision.size).sum::<usize>()
        };
        for (count, most, expected) in [
            (4, usize::MAX, "abcd"),
            (4, bytes("abcd"), "abcd"),
            (4, bytes("abcd") - 1, "abc"),
            (4, bytes("abc") - 1, "bc"),
            (4, bytes("bc") - 1, "c"),
            (4, 0, "c"),
            (3, usize::MAX, "abc"),
            (2, usize::MAX, "bc"),
            (2, bytes("bc") - 1, "c"),
        ] {
            let kept = fitting(&all, Room { count, bytes: most }, weigh);
            let kept: String = kept.iter().map(|kept| &*kept.name).collect();
            assert_eq!(kept, expected, "{count} {most}");
        }
    }

    fn revision(name: &str, owner: Option<&str>, data: &str) -> Value {
        let owners: Vec<_> = owner
            .iter()
            .map(|uid| json!({"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": true}))
            .collect();
        json!({
            "metadata": {"namespace": "ns", "name": name, "resourceVersion": "1", "ownerReferences": owners,
                "labels": {"app": if name.ends_with("other-app") { "bar" } else { "foo" }}},
            "data": data,
        })
    }

    fn pod(namespace: &str, name: &str, owner: Option<(&str, &str)>) -> Pod {
        let owners: Vec<_> = owner
            .iter()
            .map(|(kind, uid)| json!({"kind": kind, "name": "foo", "uid": uid, "controller": true}))
            .collect();
        let object = json!({
            "metadata": {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1",
                "ownerReferences": owners, "labels": {"app": if name.ends_with("other-app") { "bar" } else { "foo" }}},
            "spec": {"nodeName": "n1"},
        });
        Pod::from_json(&object).expect("a pod")
    }

    fn listed<T>() -> Delta<T> {
        Delta::Listed {
            objects: Vec::new(),
            resource_version: "1".into(),
        }
    }

    fn cluster() -> (Store, Workload) {
        let mut store = Store::new(&[DAEMON_SETS], 4);
        for event in [
            ClusterEvent::Workloads(DAEMON_SETS, listed()),
            ClusterEvent::Pods(listed()),
            ClusterEvent::Nodes(listed()),
            ClusterEvent::Revisions(listed()),
            ClusterEvent::Policies(listed()),
        ] {
            store.apply(event);
        }
        let object = json!({
            "metadata": {"namespace": "ns", "name": "foo", "uid": "u1"},
            "spec": {"selector": {"matchLabels": {"app": "foo"}}},
        });
        let daemon_set = Workload::daemon_set_from_json(&object).expect("a DaemonSet");
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set.clone()),
        ));
        for name in ["n1", "n2"] {
            let node = Node::from_json(&json!({"metadata": {"name": name}})).expect("a node");
            store.apply(ClusterEvent::Nodes(Delta::Applied(node)));
        }
        for pod in [
            pod("ns", "mine", Some(("DaemonSet", "u1"))),
            pod("ns", "orphan", None),
            pod("ns", "orphan-of-other-app", None),
            pod("ns", "anothers", Some(("DaemonSet", "u2"))),
            pod("ns", "foreign", Some(("ReplicaSet", "u1"))),
            pod("elsewhere", "far-orphan", None),
        ] {
            store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        }
        for object in [
            revision("r-mine", Some("u1"), "a"),
            revision("r-orphan", None, "b"),
            revision("r-orphan-of-other-app", None, "b"),
            revision("r-other", Some("u2"), "c"),
        ] {
            let revision = Revision::from_json(&object).expect("a revision");
            store.apply(ClusterEvent::Revisions(Delta::Applied(revision)));
        }
        (store, daemon_set)
    }

    fn snapshot(store: &mut Store, workload: &Workload, colliding: &[Revision]) -> v1::Snapshot {
        let now = Timestamp { seconds: 7, nanos: 0 };
        take::<DaemonSets>(
            store,
            workload,
            v1::ReconcileState::default(),
            &LiveObjects {
                revisions: colliding.to_vec(),
                ..LiveObjects::default()
            },
            now,
            &Receiver::EMPTY,
        )
    }

    // D-3, D-4: the workload's own objects and the orphans of its namespace that it selects, and no objects of others.
    #[test]
    fn holds_what_the_plan_depends_on() {
        let (mut store, workload) = cluster();
        let snapshot = snapshot(&mut store, &workload, &[]);
        let pods = snapshot
            .pod_buckets
            .iter()
            .enumerate()
            .flat_map(|(index, bucket)| {
                let pods = v1::PodBucket::decode(bucket.data.clone().expect("inline"))
                    .expect("a bucket")
                    .pods;
                pods.into_iter().map(move |pod| (index, pod.name))
            });
        let bucket = nodewise_proto::bucket::of("n1", 4) as usize;
        assert_eq!(
            pods.collect::<Vec<_>>(),
            [(bucket, "mine".to_owned()), (bucket, "orphan".to_owned())]
        );
        let nodes = snapshot.node_buckets.iter().flat_map(|bucket| {
            v1::NodeBucket::decode(bucket.data.clone().expect("inline"))
                .expect("a bucket")
                .nodes
        });
        let mut nodes: Vec<_> = nodes.map(|node| node.name).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, ["n1", "n2"]);
        let revisions: Vec<_> = snapshot
            .revisions
            .iter()
            .map(|r| serde_json::from_slice::<Value>(&r.object).expect("JSON")["metadata"]["name"].clone())
            .collect();
        assert_eq!(revisions, ["r-mine", "r-orphan"]);
        assert_eq!(
            store.count(Resource::PODS),
            5,
            "a pod of another kind's is not even kept"
        );
    }

    // D-62: a revision that was read live replaces the cached one of its name.
    #[test]
    fn colliding_revisions_are_marked() {
        let (mut store, workload) = cluster();
        let live = Bytes::from(revision("r-orphan", None, "live").to_string());
        let alien = Bytes::from(revision("r-alien", Some("u9"), "x").to_string());
        let mut served = revision("r-alien", Some("u9"), "x");
        served["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:data": {}}}]);
        let read = [&live, &Bytes::from(served.to_string())].map(|object| {
            let text = std::str::from_utf8(object).expect("UTF-8");
            Revision::from_text(text).expect("a revision")
        });
        let snapshot = snapshot(&mut store, &workload, &read);
        let marked: Vec<_> = snapshot
            .revisions
            .iter()
            .filter(|r| r.read_after_name_collision)
            .map(|r| &r.object)
            .collect();
        assert_eq!(marked, [&live, &alien]);
        assert_eq!(snapshot.revisions.len(), 3);
    }

    // The protocol's rule 3: caches count as synced only after every first list.
    #[test]
    fn caches_are_synced_after_every_first_list() {
        let (mut store, workload) = cluster();
        assert_eq!(store.unsynced().count(), 0);
        assert!(snapshot(&mut store, &workload, &[]).caches_synced);
        assert!(!snapshot(&mut Store::new(&[DAEMON_SETS], 1), &workload, &[]).caches_synced);
    }
}
