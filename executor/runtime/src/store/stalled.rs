//! How long a rollout has made no progress, derived from the objects of the cluster. An executor that has just started
//! has not seen the rollout begin.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::{Workload, buckets::EncodedPod, moment};
use nodewise_proto::{Timestamp as ProtoTimestamp, v1};

use super::{Store, is_live};

/// A kubelet writes the first Ready condition of a pod within this time.
const FIRST_CONDITION: SignedDuration = SignedDuration::from_mins(1);

/// How long a rollout has made no progress, and which pods may be ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// The time since the last change.
    pub age: Duration,
    /// The number of live pods that had been ready before their nodes broke.
    pub lost: usize,
}

impl Store {
    /// The time since the last of these: a revision of the workload, or a workload that it controls, was created; one of its live pods that are not
    /// ready was created, or became not ready. If all live pods are ready: the last time that one was created or became
    /// ready. Zero if there is none of these times. Visits all pods of the workload.
    ///
    /// The newest of all revisions counts, also after a rollback: the rollback began after it was created. The times
    /// come from clocks of other machines.
    pub fn stalled(&self, workload: &Workload, now: Timestamp) -> Stalled {
        let namespace = self.namespaces.get(&workload.key.namespace);
        let is_own = |controller: &v1::ControllerReference| *controller.uid == *workload.uid;
        let revisions = namespace
            .into_iter()
            .flat_map(|namespace| namespace.revisions.iter());
        let revisions = revisions
            .filter(|revision| revision.controller.as_ref().is_some_and(is_own))
            .filter_map(|revision| revision.created);
        let pods = namespace
            .into_iter()
            .flat_map(|namespace| namespace.pods.owned(&workload.uid));
        let pods: Vec<v1::Pod> = pods
            .map(EncodedPod::decode_own::<v1::Pod>)
            .filter(is_live)
            .collect();
        // If pods are not ready, they block the rollout, so ready pods do not count as progress.
        let is_ready = |pod: &&v1::Pod| pod.ready() == v1::ConditionStatus::True;
        let all_ready = pods.iter().all(|pod| is_ready(&pod));
        let times = (pods.iter())
            .filter(|pod| all_ready || !is_ready(pod))
            .flat_map(|pod| [pod.creation_time, pod.ready_transition_time])
            .flatten();
        let controlled = self.workloads.controlled(&workload.uid);
        let newest = revisions
            .chain(controlled.filter_map(|other| other.created))
            .chain(times)
            .max_by_key(|time| (time.seconds, time.nanos));
        let newest = newest.and_then(moment);
        Stalled {
            age: newest
                .and_then(|time| now.duration_since(time).try_into().ok())
                .unwrap_or_default(),
            lost: pods.iter().filter(|pod| self.is_lost(pod)).count(),
        }
    }

    /// When the rollout to the template of which `is_current` knows the labels began: the last time that a revision or controlled
    /// workload with these labels was created, or a pod without them. Visits all pods of the workload, and of those that it controls.
    pub fn began(
        &self,
        workload: &Workload,
        is_current: &dyn Fn(&[v1::Label]) -> bool,
    ) -> Option<ProtoTimestamp> {
        let namespace = self.namespaces.get(&workload.key.namespace)?;
        let is_own = |controller: &v1::ControllerReference| *controller.uid == *workload.uid;
        let revisions = namespace.revisions.iter();
        let revisions = revisions
            .filter(|revision| {
                revision.controller.as_ref().is_some_and(is_own) && is_current(&revision.labels)
            })
            .filter_map(|revision| revision.created);
        let controlled = || self.workloads.controlled(&workload.uid);
        let templates = controlled().filter(|other| is_current(&other.labels));
        let controllers = std::iter::once(&workload.uid).chain(controlled().map(|other| &other.uid));
        let pods = controllers.flat_map(|uid| namespace.pods.owned(uid));
        let outdated = pods.map(EncodedPod::pod).filter(|pod| !is_current(&pod.labels));
        let times = revisions
            .chain(templates.filter_map(|other| other.created))
            .chain(outdated.filter_map(|pod| pod.creation_time));
        times.max_by_key(|time| (time.seconds, time.nanos))
    }

    /// Whether the pod had been ready before its node broke. The node lifecycle controller changes the Ready conditions
    /// of the pods of a broken node. The condition of a pod that has never been ready is as old as its containers.
    fn is_lost(&self, pod: &v1::Pod) -> bool {
        let [created, changed] =
            [pod.creation_time, pod.ready_transition_time].map(|time| time.and_then(moment));
        let changed_later = (created.zip(changed))
            .is_some_and(|(created, changed)| changed.duration_since(created) > FIRST_CONDITION);
        let node = self.nodes.get(&pod.node_name);
        let is_broken =
            || node.is_some_and(|node| node.decode_own::<v1::Node>().ready() != v1::ConditionStatus::True);
        pod.ready() != v1::ConditionStatus::True && changed_later && is_broken()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Delta;
    use crate::event::ClusterEvent;
    use crate::testing::DAEMON_SETS;
    use crate::testing::{first_lists, key};
    use nodewise_projection::{Node, Pod, Revision};

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
    fn the_newest_time_counts() {
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
            let mut store = Store::new(&[DAEMON_SETS], 2);
            for event in first_lists().into_iter().chain(events) {
                store.apply(event);
            }
            let workload = store.workload(&key()).expect("the workload");
            let now = NOW.parse().expect("a time");
            assert_eq!(store.stalled(workload, now).age, expected, "{what}");
        }
    }

    #[test]
    fn pods_that_were_ready_until_their_nodes_broke_are_told_apart() {
        let on = |node: &str| [("/spec", json!({"nodeName": node}))];
        let node = |name: &str, ready: &str| {
            let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
            let metadata = json!({"name": name, "uid": name, "resourceVersion": "11"});
            let object = json!({"metadata": metadata, "status": status});
            ClusterEvent::Nodes(Delta::Applied(Node::from_json(&object).expect("a node")))
        };
        let (created, at_once, later) = (
            "2026-11-23T09:00:00Z",
            "2026-11-23T09:00:30Z",
            "2026-11-23T09:40:00Z",
        );
        let ready = [
            ("/spec", json!({"nodeName": "dead"})),
            (
                "/status",
                json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": later}]}),
            ),
        ];
        for (what, pod, lost) in [
            ("its node broke", pod(created, later, &on("dead")), 1),
            ("its node does not answer", pod(created, later, &on("unknown")), 1),
            ("it has never been ready", pod(created, at_once, &on("dead")), 0),
            ("its node is well", pod(created, later, &on("well")), 0),
            ("its node is gone", pod(created, later, &on("gone")), 0),
            ("it is ready", pod(created, later, &ready), 0),
        ] {
            let nodes = [
                node("dead", "False"),
                node("unknown", "Unknown"),
                node("well", "True"),
            ];
            let mut store = Store::new(&[DAEMON_SETS], 2);
            for event in first_lists().into_iter().chain(nodes).chain([pod]) {
                store.apply(event);
            }
            let workload = store.workload(&key()).expect("the workload");
            let now = NOW.parse().expect("a time");
            assert_eq!(store.stalled(workload, now).lost, lost, "{what}");
        }
    }
}
