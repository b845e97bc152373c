//! The cached RolloutPolicies, and those of them that a snapshot has.

mod bounded;

use std::sync::Arc;

use nodewise_projection::{Key, PolicyTargets, RolloutPolicy, Workload};

use super::cached::{Cached, missing};
use super::{Change, Store, Transition};
use crate::Resource;
pub(super) use bounded::Policies;
pub(crate) use bounded::bound;

/// Most policies of a snapshot. Only the first of them counts for a workload; the others are told so.
const MOST_SENT: usize = 100;
/// Most entries of a policy's status that are sent as former ones.
const MOST_FORMER_SENT: usize = 1_000;
/// Most bytes of the policies of a snapshot after the first. Anyone who may create policies in a namespace may create many, and the
/// service reads them for each plan.
const MOST_BYTES: usize = 1 << 20;

impl Store {
    /// The policies of a workload's snapshot: those that target it, and those of which it cannot be told. The oldest come first,
    /// then the first by name; those of which it cannot be told come last, as for the service. The first counts. The others are sent
    /// without their stages. One whose status is not kept is sent only if it counts: its status cannot be written.
    #[must_use]
    pub fn policies(&self, workload: &Workload) -> Vec<Arc<RolloutPolicy>> {
        let all = self.policies.in_namespace(&workload.key.namespace);
        let mut found: Vec<_> = all.filter(|policy| policy.may_target(workload)).collect();
        let created = |policy: &RolloutPolicy| policy.created.map(|at| (at.seconds, at.nanos));
        found.sort_by_key(|policy| {
            (
                policy.targets == PolicyTargets::Unknown,
                created(policy),
                &policy.name,
            )
        });
        let mut bytes = 0_usize;
        let has_status =
            |policy: &RolloutPolicy| policy.reduced.as_ref().is_none_or(|reduced| reduced.has_status);
        let fit = found
            .into_iter()
            .enumerate()
            .filter(|(index, policy)| *index == 0 || has_status(policy))
            .take(MOST_SENT)
            .map_while(|(index, policy)| {
                if index == 0 {
                    return Some(Arc::clone(policy));
                }
                let policy = policy.not_counting();
                bytes = bytes.saturating_add(policy.object.len());
                (bytes <= MOST_BYTES).then_some(policy)
            });
        fit.collect()
    }

    /// Whether a workload has a policy, or may have one.
    #[must_use]
    pub fn has_policy(&self, workload: &Workload) -> bool {
        let mut all = self.policies.in_namespace(&workload.key.namespace);
        all.any(|policy| policy.may_target(workload))
    }

    /// The uids of workloads of a kind in the status of a policy that do not exist any more, or that it does not target any more. One
    /// whose targets cannot be told may target all that exist.
    #[must_use]
    pub fn former_targets(&self, kind: &'static str, policy: &RolloutPolicy) -> Vec<String> {
        let is_former = |(name, uid): &&(String, String)| {
            let key = Key::new(kind, &policy.namespace, name);
            self.workloads
                .get(&key)
                .is_none_or(|workload| *workload.uid != **uid || !policy.may_target(workload))
        };
        let former = policy.recorded.iter().filter(is_former);
        former
            .map(|(_, uid)| uid.clone())
            .take(MOST_FORMER_SENT)
            .collect()
    }

    /// The workloads of a kind that a policy targets, or may target, ordered by name.
    pub fn targets<'a>(
        &'a self,
        kind: &'static str,
        policy: &'a RolloutPolicy,
    ) -> impl Iterator<Item = &'a Arc<Workload>> {
        let all = self.workloads.in_namespace(kind, &policy.namespace);
        all.filter(|workload| policy.may_target(workload))
    }

    /// The workloads of a kind that have a policy, or may have one. One with several policies comes several times.
    pub fn with_policies(&self, kind: &'static str) -> impl Iterator<Item = &Arc<Workload>> {
        let policies = self.policies.iter();
        policies.flat_map(move |policy| self.targets(kind, policy))
    }

    /// Logs that a policy is not kept. Whoever fills a namespace with policies does not fill the log.
    fn log_reduced(&mut self, old: Option<&RolloutPolicy>, new: &RolloutPolicy) {
        let Some(reduced) = &new.reduced else { return };
        let is_known = old.is_some_and(|old| {
            old.uid == new.uid
                && old
                    .reduced
                    .as_ref()
                    .is_some_and(|old| old.is_mark == reduced.is_mark)
        });
        if !is_known && self.not_kept.is_due(new.namespace.clone()) {
            tracing::warn!(
                namespace = new.namespace,
                policy = new.name,
                "a RolloutPolicy is not kept, and holds the rollouts of its targets: {}",
                reduced.why
            );
        }
    }

    fn remove_policy(&mut self, namespace: &str, name: &str) -> Option<Arc<RolloutPolicy>> {
        let old = self.policies.remove(namespace, name)?;
        self.keys.replace_policy(Some(&old.reads), None);
        Some(old)
    }
}

impl Cached for RolloutPolicy {
    type Id = (String, String);

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn missing(store: &Store, _: Resource, listed: &[Self]) -> Vec<Self::Id> {
        let kept = store.policies.iter();
        let kept = kept.map(|kept| (&*kept.namespace, &*kept.name));
        let listed = listed.iter().map(|policy| (&*policy.namespace, &*policy.name));
        let missing = missing(kept, listed).into_iter();
        missing
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
            .collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let new = Arc::new(self);
        let old = store.policies.put(Arc::clone(&new));
        let reads = old.as_ref().map(|old| &old.reads);
        store.keys.replace_policy(reads, Some(&new.reads));
        while let Some([whole, mark]) = store.policies.make_mark(&new.namespace) {
            store.keys.replace_policy(Some(&whole.reads), Some(&mark.reads));
            if whole.name != new.name {
                store.log_reduced(Some(&whole), &mark);
            }
        }
        let new = store
            .policies
            .get(&new.namespace, &new.name)
            .map_or(new, Arc::clone);
        store.log_reduced(old.as_deref(), &new);
        store.check_cuts(&new.namespace);
        // A list may have the whole of a policy of which there was only room for a mark, or the other way round.
        let version = |policy: &RolloutPolicy| {
            let reduced = policy.reduced.is_some();
            (policy.uid.clone(), policy.resource_version.clone(), reduced)
        };
        let is_same = old.as_ref().is_some_and(|old| version(old) == version(&new));
        (!is_same || store.is_relisting).then_some(Transition::Policy(Change { old, new: Some(new) }))
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        store.remove_policy(&self.namespace, &self.name);
        Some(Transition::Policy(Change {
            old: Some(Arc::new(self)),
            new: None,
        }))
    }

    fn forget(store: &mut Store, (namespace, name): &Self::Id) -> Option<Transition> {
        let old = store.remove_policy(namespace, name)?;
        Some(Transition::Policy(Change {
            old: Some(old),
            new: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use nodewise_proto::bucket::Receiver;
    use serde_json::json;

    use super::*;
    use crate::Delta;
    use crate::event::ClusterEvent;
    use crate::testing::{DAEMON_SETS, daemon_set, listed, policy};

    fn store(events: impl IntoIterator<Item = ClusterEvent>) -> Store {
        let mut store = Store::new(&[DAEMON_SETS], 1);
        let workload = ClusterEvent::Workloads(DAEMON_SETS, listed(vec![daemon_set("u1", "10")]));
        for event in std::iter::once(workload).chain(events) {
            store.apply(event);
        }
        store
    }

    fn sent(store: &Store) -> Vec<String> {
        let policies = store.policies(&daemon_set("u1", "10"));
        policies.iter().map(|policy| policy.name.clone()).collect()
    }

    fn at(mut policy: RolloutPolicy, seconds: i64) -> RolloutPolicy {
        policy.created = Some(nodewise_proto::Timestamp { seconds, nanos: 0 });
        policy
    }

    #[test]
    fn entries_of_a_status_whose_workload_is_gone_are_told() {
        let target = |name: &str, uid: &str| json!({"name": name, "uid": uid, "state": "Complete"});
        let targets = json!([target("foo", "u1"), target("foo", "before"), target("bar", "u3")]);
        for (status, expected) in [
            (json!({ "targets": targets }), vec!["before", "u3"]),
            (json!({ "targets": 7 }), vec![]),
            (json!(null), vec![]),
        ] {
            let object = json!({"metadata": {"namespace": "ns", "name": "a", "uid": "a"}, "status": status});
            let policy = RolloutPolicy::from_json(&object).expect("a policy");
            let former = store([]).former_targets(DAEMON_SETS.kind, &policy);
            assert_eq!(former, expected, "{status}");
        }
    }

    // A status has a bounded number of entries: those of workloads that a policy has let go must not fill it.
    #[test]
    fn entries_of_a_status_whose_workload_is_not_a_target_any_more_are_told() {
        let of_other_label = json!({"selector": {"matchLabels": {"tier": "other"}}});
        for (targets, expected) in [
            (json!({"names": ["foo"]}), vec![]),
            (json!({"names": ["bar"]}), vec!["u1"]),
            (json!({"selector": {}}), vec![]),
            (of_other_label, vec!["u1"]),
            (json!(7), vec![]),
        ] {
            let object = json!({
                "metadata": {"namespace": "ns", "name": "a", "uid": "a"},
                "spec": {"targets": targets},
                "status": {"targets": [{"name": "foo", "uid": "u1", "state": "Complete"}]},
            });
            let policy = RolloutPolicy::from_json(&object).expect("a policy");
            let former = store([]).former_targets(DAEMON_SETS.kind, &policy);
            assert_eq!(former, expected, "{targets}");
        }
    }

    #[test]
    fn the_oldest_policies_of_a_workload_are_sent() {
        let target = || json!({"names": ["foo"]});
        let all = vec![
            at(policy("late", "1", &target()), 9),
            at(policy("b", "1", &target()), 3),
            at(policy("a", "1", &target()), 3),
            at(policy("of-another", "1", &json!({"names": ["bar"]})), 1),
            at(policy("odd", "1", &json!(7)), 1),
        ];
        let store = store([ClusterEvent::Policies(listed(all))]);
        assert_eq!(sent(&store), ["a", "b", "late", "odd"]);
        assert!(store.has_policy(&daemon_set("u1", "10")));
        let names: Vec<_> = store
            .with_policies(DAEMON_SETS.kind)
            .map(|one| &*one.key.name)
            .collect();
        assert_eq!(names, ["foo"; 4]);
    }

    #[test]
    fn a_snapshot_has_a_limited_number_of_policies() {
        let many = (0..150).map(|number| {
            at(
                policy(&format!("p{number:03}"), "1", &json!({"selector": {}})),
                number,
            )
        });
        let store = store([ClusterEvent::Policies(listed(many.collect()))]);
        let sent = sent(&store);
        assert_eq!((sent.len(), &*sent[99]), (100, "p099"));
    }

    // A small write of a tenant must not cost the service the reading of all that the tenant has written.
    #[test]
    fn of_the_policies_that_do_not_count_no_stages_are_sent() {
        let all = (1..=100).map(|number| of_size(&format!("p{number:03}"), number, 100_000));
        let store = store([ClusterEvent::Policies(listed(all.collect()))]);
        let sent = store.policies(&daemon_set("u1", "10"));
        assert_eq!(sent.len(), MOST_SENT);
        assert!(sent[0].object.len() > 100_000);
        for policy in &sent[1..] {
            let object: serde_json::Value = serde_json::from_slice(&policy.object).expect("JSON");
            assert_eq!(object["spec"]["stages"], json!(null));
            assert_eq!(object["status"]["targets"][0]["name"], "foo");
        }
    }

    #[test]
    fn policies_of_a_snapshot_have_a_limited_size() {
        let large = |name: &str, seconds, length| {
            let object = json!({
                "metadata": {"namespace": "ns", "name": name, "uid": name},
                "spec": {"targets": {"names": ["foo"]}},
                "status": {"summary": {"target": "x".repeat(length)}},
            });
            at(RolloutPolicy::from_json(&object).expect("a policy"), seconds)
        };
        let [half, most] = [MOST_BYTES / 2 - 1_000, MOST_BYTES - 1_000];
        for (sizes, expected) in [
            (vec![most, most, 3_000], vec!["0", "1"]),
            (vec![most, half, half, 3_000, 1], vec!["0", "1", "2"]),
        ] {
            let all = (0..).zip(&sizes);
            let all = all.map(|(number, size)| large(&number.to_string(), number, *size));
            let store = store([ClusterEvent::Policies(listed(all.collect()))]);
            assert_eq!(sent(&store), expected, "{sizes:?}");
        }
    }

    /// A policy of this size, which targets `foo`.
    fn of_size(name: &str, seconds: i64, bytes: usize) -> RolloutPolicy {
        let object = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"},
            "spec": {"targets": {"names": ["foo"]}, "stages": [{"name": "x".repeat(bytes), "groupBy": name}]},
            "status": {"targets": [{"name": "foo", "message": "m".repeat(3_000)}]},
        });
        at(RolloutPolicy::from_json(&object).expect("a policy"), seconds)
    }

    // A namespace full of policies: nothing is rolled out without one, and those that can be used are.
    #[test]
    fn beyond_the_bytes_of_a_namespace_policies_hold_their_targets() {
        let mebibyte = (1 << 20) - 4_000;
        let many = (1..=20).map(|number| of_size(&format!("p{number:02}"), number, mebibyte));
        let mut store = store([ClusterEvent::Policies(listed(many.collect()))]);
        let kept = |store: &Store| {
            let all: Vec<_> = store.policies.in_namespace("ns").collect();
            let marks = all.iter().filter(|policy| policy.reduced.is_some()).count();
            (all.iter().map(|policy| policy.object.len()).sum::<usize>(), marks)
        };
        let (bytes, marks) = kept(&store);
        assert!(bytes < 17 << 20, "{bytes}");
        assert_eq!((store.count(Resource::ROLLOUT_POLICIES), marks), (20, 4));
        assert_eq!(sent(&store)[0], "p01");
        for number in 1..=16 {
            let old = of_size(&format!("p{number:02}"), number, 1);
            store.apply(ClusterEvent::Policies(Delta::Deleted(old)));
        }
        let policies = store.policies(&daemon_set("u1", "10"));
        assert_eq!(
            policies.len(),
            1,
            "of the statuses of others it is not known what they say"
        );
        let reduced = policies[0].reduced.as_ref().expect("a mark");
        assert!(
            policies[0].name == "p17" && reduced.why.contains("16777216 bytes"),
            "{}",
            reduced.why
        );
        assert!(policies[0].reads.node_labels.is_empty());
        let changed = of_size("p17", 17, mebibyte);
        store.apply(ClusterEvent::Policies(Delta::Applied(changed)));
        let policies = store.policies(&daemon_set("u1", "10"));
        assert_eq!(policies[0].reduced, None, "there is room for it");
    }

    // The version of the policy stays: only a transition wakes its targets.
    #[test]
    fn a_list_makes_a_mark_whole_again_once_there_is_room() {
        let whole = of_size("a", 1, 1);
        let mut store = store([ClusterEvent::Policies(listed(vec![whole.mark("x".to_owned())]))]);
        let list = || ClusterEvent::Policies(listed(vec![whole.clone()]));
        let woken = store.apply(list());
        assert!(
            matches!(&woken[..], [Transition::Policy(Change { new: Some(new), .. })] if new.reduced.is_none()),
            "{woken:?}"
        );
        assert_eq!(store.apply(list()).len(), 0, "nothing has changed");
    }

    // L-3, and a list after a gap in the watch.
    #[test]
    fn policies_that_are_gone_are_forgotten() {
        let targets = json!({"names": ["foo"]});
        let [a, b] = ["a", "b"].map(|name| policy(name, "1", &targets));
        let changes = |store: &mut Store, event| {
            let transitions = store.apply(event).into_iter();
            let changes = transitions.map(|transition| match transition {
                Transition::Policy(Change { old, new }) => {
                    let name = |policy: Option<Arc<RolloutPolicy>>| {
                        policy.map_or(String::new(), |one| one.name.clone())
                    };
                    format!("{}>{}", name(old), name(new))
                }
                other => panic!("unexpected {other:?}"),
            });
            changes.collect::<Vec<_>>()
        };
        let mut store = store([ClusterEvent::Policies(listed(vec![a.clone(), b.clone()]))]);
        assert_eq!(
            changes(&mut store, ClusterEvent::Policies(Delta::Applied(a.clone()))),
            [""; 0]
        );
        let newer = policy("a", "2", &targets);
        assert_eq!(
            changes(&mut store, ClusterEvent::Policies(Delta::Applied(newer))),
            ["a>a"]
        );
        assert_eq!(
            changes(&mut store, ClusterEvent::Policies(Delta::Deleted(b))),
            ["b>"]
        );
        let none = Delta::Listed {
            objects: Vec::new(),
            resource_version: String::new(),
        };
        assert_eq!(changes(&mut store, ClusterEvent::Policies(none)), ["a>"]);
        assert_eq!(
            (store.count(Resource::ROLLOUT_POLICIES), sent(&store).len()),
            (0, 0)
        );
        assert!(store.are_listed([Resource::ROLLOUT_POLICIES].into_iter()));
    }

    // Stages select nodes by labels that no workload may name.
    #[test]
    fn labels_that_a_policy_names_are_sent() {
        let node =
            json!({"metadata": {"name": "n1", "uid": "n1", "labels": {"pool": "canary", "other": "x"}}});
        let node = nodewise_projection::Node::from_json(&node).expect("a node");
        let mut store = store([ClusterEvent::Nodes(listed(vec![node]))]);
        let labels = |store: &mut Store| {
            let rendered = store.node_buckets(&daemon_set("u1", "10"), &Receiver::EMPTY);
            let bucket = rendered.buckets[0].data.clone().expect("inline");
            let bucket =
                <nodewise_proto::v1::NodeBucket as prost::Message>::decode(bucket).expect("a bucket");
            let labels = bucket.nodes[0].labels.iter().map(|label| label.key.clone());
            labels.collect::<Vec<_>>()
        };
        assert_eq!(labels(&mut store), [""; 0]);
        let object = json!({"metadata": {"namespace": "ns", "name": "a", "uid": "a"},
            "spec": {"targets": {"names": ["foo"]}, "stages": [{"name": "canary", "groupBy": "pool"}]}});
        let staged = RolloutPolicy::from_json(&object).expect("a policy");
        store.apply(ClusterEvent::Policies(Delta::Applied(staged)));
        assert_eq!(labels(&mut store), ["pool"]);
    }
}
