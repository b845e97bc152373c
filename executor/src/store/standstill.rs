//! For how long a rollout has stood still, as the cluster itself shows it.

use std::time::Duration;

use jiff::Timestamp;
use nodewise_proto::v1;

use super::{Store, is_live};
use crate::buckets::Buckets;
use crate::event::DaemonSet;

impl Store {
    /// The time since a revision of the workload was created, or one of its live pods that are not ready, or since such a pod ceased to be
    /// ready; where all are ready, since one was created or became ready. Zero where nothing tells. A walk over all pods of the workload.
    ///
    /// The newest of all revisions counts: a rollout back to an older one began after it. Clocks of other machines wrote these times.
    pub(crate) fn standstill(&self, workload: &DaemonSet, now: Timestamp) -> Duration {
        let namespace = self.namespaces.get(&workload.key.namespace);
        let is_own = |controller: &v1::ControllerReference| *controller.uid == *workload.uid;
        let revisions = namespace
            .into_iter()
            .flat_map(|namespace| namespace.revisions.iter());
        let revisions = revisions
            .filter(|revision| revision.controller.as_ref().is_some_and(is_own))
            .filter_map(|revision| revision.created);
        let pods = namespace.and_then(|namespace| namespace.pods.owned(&workload.uid));
        let pods = pods.into_iter().flat_map(Buckets::iter);
        let pods: Vec<v1::Pod> = pods
            .map(|pod| pod.decode_own::<v1::Pod>())
            .filter(is_live)
            .collect();
        // Where pods are not ready, they hold the rollout up; that others were ready lately is no progress.
        let is_ready = |pod: &&v1::Pod| pod.ready() == v1::ConditionStatus::True;
        let all_ready = pods.iter().all(|pod| is_ready(&pod));
        let times = (pods.iter())
            .filter(|pod| all_ready || !is_ready(pod))
            .flat_map(|pod| [pod.creation_time, pod.ready_transition_time])
            .flatten();
        let newest = revisions
            .chain(times)
            .max_by_key(|time| (time.seconds, time.nanos));
        newest
            .and_then(|time| Timestamp::new(time.seconds, time.nanos).ok())
            .and_then(|time| now.duration_since(time).try_into().ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{ClusterEvent, Delta, Pod, Revision};
    use crate::testing::{first_lists, key};

    const NOW: &str = "2026-11-23T10:00:00Z";

    fn owned(kind: &str, name: &str, uid: &str, created: &str) -> Value {
        let owner = json!({"kind": "DaemonSet", "name": kind, "uid": uid, "controller": true});
        json!({"metadata": {
            "namespace": "ns", "name": name, "uid": name, "resourceVersion": "11", "creationTimestamp": created,
            "ownerReferences": [owner],
        }})
    }

    fn revision(uid: &str, created: &str) -> ClusterEvent {
        let object = owned("foo", &format!("r-{uid}-{created}"), uid, created);
        ClusterEvent::Revisions(Delta::Applied(Revision::from_json(&object).expect("a revision")))
    }

    fn pod(created: &str, ready_since: &str, more: &[(&str, Value)]) -> ClusterEvent {
        let mut object = owned("foo", &format!("p-{created}"), "u1", created);
        object["status"] = json!({"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": ready_since},
        ]});
        for (pointer, value) in more {
            let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
            object.pointer_mut(parent).expect("its parent")[field] = value.clone();
        }
        ClusterEvent::Pods(Delta::Applied(Pod::from_json(&object).expect("a pod")))
    }

    #[test]
    fn the_newest_of_what_the_cluster_shows_counts() {
        let deleting = [("/metadata/deletionTimestamp", json!("2026-11-23T09:59:00Z"))];
        let failed = [("/status/phase", json!("Failed"))];
        let minutes = |minutes| Duration::from_mins(minutes);
        for (what, events, expected) in [
            ("nothing", vec![], Duration::ZERO),
            (
                "a revision",
                vec![revision("u1", "2026-11-23T09:00:00Z")],
                minutes(60),
            ),
            (
                "that of a rollout back was created before another",
                vec![
                    revision("u1", "2026-11-23T08:00:00Z"),
                    revision("u1", "2026-11-23T09:00:00Z"),
                ],
                minutes(60),
            ),
            (
                "that of another workload",
                vec![
                    revision("u1", "2026-11-23T09:00:00Z"),
                    revision("u2", "2026-11-23T09:30:00Z"),
                ],
                minutes(60),
            ),
            (
                "a pod that came",
                vec![
                    revision("u1", "2026-11-23T09:00:00Z"),
                    pod("2026-11-23T09:10:00Z", "2026-11-23T09:10:00Z", &[]),
                ],
                minutes(50),
            ),
            (
                "one whose readiness changed",
                vec![
                    pod("2026-11-23T09:10:00Z", "2026-11-23T09:40:00Z", &[]),
                    pod("2026-11-23T09:20:00Z", "2026-11-23T09:30:00Z", &[]),
                ],
                minutes(20),
            ),
            (
                "pods that are gone or go",
                vec![
                    revision("u1", "2026-11-23T09:00:00Z"),
                    pod("2026-11-23T09:10:00Z", "2026-11-23T09:40:00Z", &deleting),
                    pod("2026-11-23T09:20:00Z", "2026-11-23T09:30:00Z", &failed),
                ],
                minutes(60),
            ),
            (
                "another machine's clock is ahead",
                vec![pod("2026-11-23T10:00:01Z", "2026-11-23T10:00:03Z", &[])],
                Duration::ZERO,
            ),
        ] {
            let mut store = Store::new(2);
            for event in first_lists().into_iter().chain(events) {
                store.apply(event);
            }
            let workload = store.daemon_set(&key()).expect("the workload");
            let now = NOW.parse().expect("a time");
            assert_eq!(store.standstill(workload, now), expected, "{what}");
        }
    }
}
