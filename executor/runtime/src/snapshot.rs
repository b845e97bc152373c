//! Builds the snapshot of one workload for a plan request.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use crate::{Resource, actuator::ObjectKey};
use nodewise_projection::{Revision, Workload, buckets::RenderedBuckets};
use nodewise_proto::bucket::Digest;
use nodewise_proto::{Timestamp, v1};

use crate::kind::Kind;
use crate::store::{REVISION_BYTES, Store};

/// Takes the snapshot of a workload. `known` says of which buckets the receiver already has the content: these are sent
/// by digest only.
///
/// `colliding` are ControllerRevisions, read live, whose names a plan found taken.
pub fn take<K: Kind>(
    store: &mut Store,
    workload: &Workload,
    state: v1::ReconcileState,
    colliding: &[Revision],
    now: Timestamp,
    known: &dyn Fn(&Digest) -> bool,
) -> v1::Snapshot {
    let revisions = revisions(store, workload, colliding);
    let reads = |resource| K::READS.contains(&resource);
    let nodes = if reads(Resource::NODES) {
        store.node_buckets(workload, known)
    } else {
        RenderedBuckets::default()
    };
    let pods = store.pod_buckets(workload, known);
    tracing::trace!(
        written = nodes.written + pods.written,
        hashed = nodes.hashed + pods.hashed,
        "bytes of nodes and pods that this snapshot cost"
    );
    v1::Snapshot {
        now: Some(now),
        workload: Some(v1::Workload {
            kind: Some(K::message(workload)),
        }),
        revisions,
        caches_synced: store.unsynced().next().is_none(),
        bucket_count: store.bucket_count(),
        node_buckets: nodes.buckets,
        pod_buckets: pods.buckets,
        digest_function: v1::DigestFunction::Sha256.into(),
        state: Some(state),
        own_writes: Vec::new(),
    }
}

/// Maximum number of revisions of one snapshot: the default limit of the service.
const REVISION_COUNT: usize = 10_000;

/// The revisions that have to be read live and passed to [`Store::keep_whole`] before the snapshot is taken: those that
/// belong in the snapshot and whose data is not cached, and those whose labels are not all cached, so that it is not
/// known whether the selector matches. The snapshot leaves out revisions that are still missing then. Cached data of
/// revisions that do not fit into the snapshot is dropped.
pub fn unread(store: &mut Store, workload: &Workload, colliding: &[Revision]) -> Vec<ObjectKey> {
    let key = |revision: &Arc<Revision>| {
        ObjectKey::new(Resource::REVISIONS, &*workload.key.namespace, &*revision.name)
    };
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
    let live = colliding.iter().map(|live| live.size).sum();
    let cached: Vec<_> = store
        .revisions(workload)
        .filter(|revision| !colliding.iter().any(|live| live.name == revision.name))
        .collect();
    let room = (
        REVISION_COUNT.saturating_sub(colliding.len()),
        REVISION_BYTES.saturating_sub(live),
    );
    let fit = fitting(&cached, room);
    (cached, fit)
}

/// The revisions of the snapshot: those that were read live, and the cached ones of other names.
fn revisions(store: &mut Store, workload: &Workload, colliding: &[Revision]) -> Vec<v1::ControllerRevision> {
    let mut too_many = std::mem::take(&mut store.too_many);
    let (cached, kept) = cached(store, workload, colliding);
    if kept.len() < cached.len() && too_many.is_due(workload.key.clone()) {
        tracing::warn!(
            left_out = cached.len() - kept.len(),
            "the revisions are more than {REVISION_COUNT}, or take more than {REVISION_BYTES} bytes together; orphans, and then the oldest, \
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

/// The revisions that fit into these limits of count and bytes, at least one, in the given order. Revisions that the
/// workload controls take precedence over orphans, and new ones over old ones.
fn fitting<'a>(revisions: &[&'a Arc<Revision>], (count, most): (usize, usize)) -> Vec<&'a Arc<Revision>> {
    let all: usize = revisions.iter().map(|revision| revision.size).sum();
    if all <= most && revisions.len() <= count {
        return revisions.to_vec();
    }
    let mut chosen: Vec<_> = (0..revisions.len()).collect();
    chosen.sort_by_cached_key(|index| {
        let revision = revisions[*index];
        (revision.controller.is_none(), Reverse(revision.number))
    });
    let mut taken = 0_usize;
    let fit = chosen.iter().take(count).take_while(|index| {
        taken = taken.saturating_add(revisions[**index].size);
        taken <= most
    });
    let fit = fit.count().max(1);
    chosen.truncate(fit);
    chosen.sort_unstable();
    chosen.into_iter().map(|index| revisions[index]).collect()
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
            let kept = fitting(&all, (count, most));
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
            colliding,
            now,
            &|_| false,
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
