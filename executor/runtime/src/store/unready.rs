//! What people want to know about pods that are not ready, or that are being deleted. No plan reads it, so it is kept beside the
//! encoded pods, and only for pods that a workload controls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nodewise_projection::{Unready, buckets::EncodedPod};
use nodewise_proto::v1;

use super::Store;

/// The pods of one namespace that are not ready or are being deleted.
#[derive(Debug, Default)]
pub(super) struct UnreadyPods {
    /// By the uid of the controller, and by name.
    by_controller: HashMap<Arc<str>, HashMap<Box<str>, Box<Unready>>>,
}

impl UnreadyPods {
    /// Keeps what is known of a pod. Returns whether something changed.
    pub(super) fn put(&mut self, pod: &EncodedPod, unready: Option<Box<Unready>>) -> bool {
        let (Some(owner), Some(unready)) = (pod.owner(), unready) else {
            return self.remove(pod);
        };
        let pods = match self.by_controller.get_mut(owner) {
            Some(pods) => pods,
            None => self.by_controller.entry(owner.into()).or_default(),
        };
        match pods.get_mut(pod.name()) {
            Some(known) if *known == unready => false,
            Some(known) => {
                *known = unready;
                true
            }
            None => pods.insert(pod.name().into(), unready).is_none(),
        }
    }

    /// Forgets a pod of this controller. Returns whether it was known.
    pub(super) fn remove(&mut self, pod: &EncodedPod) -> bool {
        let Some(owner) = pod.owner() else { return false };
        let Some(pods) = self.by_controller.get_mut(owner) else {
            return false;
        };
        let was_known = pods.remove(pod.name()).is_some();
        if pods.is_empty() {
            self.by_controller.remove(owner);
        }
        was_known
    }

    fn of(&self, uid: &str) -> impl Iterator<Item = (&str, &Unready)> {
        let pods = self.by_controller.get(uid).into_iter().flatten();
        pods.map(|(name, unready)| (&**name, &**unready))
    }
}

impl Store {
    /// The pods that name this uid as that of their controller and that are not ready or are being deleted. Decodes these pods only.
    pub fn unready_pods<'a>(
        &'a self,
        namespace: &str,
        uid: &'a str,
    ) -> impl Iterator<Item = (v1::Pod, &'a Unready)> {
        let namespace = self.namespaces.get(namespace).into_iter();
        namespace.flat_map(move |namespace| {
            let pods = namespace.unready.of(uid);
            pods.filter_map(|(name, unready)| Some((namespace.pods.get(name)?.pod(), unready)))
        })
    }

    /// The uids of the controllers of which a pod became ready or not ready, or is not ready for another reason, since the last call.
    pub fn take_unready_changes(&mut self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.unready_changes)
    }
}

#[cfg(test)]
mod tests {
    use nodewise_projection::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::Delta;
    use crate::Resource;
    use crate::event::ClusterEvent;
    use crate::testing::DAEMON_SETS;

    fn pod(version: &str, owner: Option<&str>, ready: &str, reason: &str) -> Pod {
        let owners: Vec<Value> = (owner.iter())
            .map(|uid| json!({"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": true}))
            .collect();
        let object = json!({
            "metadata": {"namespace": "ns", "name": "a", "uid": "a", "resourceVersion": version, "ownerReferences": owners},
            "spec": {"nodeName": "n"},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": reason}}}],
            },
        });
        Pod::from_json(&object).expect("a pod")
    }

    fn reasons(store: &Store, uid: &str) -> Vec<String> {
        let pods = store.unready_pods("ns", uid);
        let problems = pods.filter_map(|(_, unready)| unready.problem.clone());
        problems.map(|problem| problem.reason).collect()
    }

    // Another reason is no news for plans: it causes no transition.
    #[test]
    fn reasons_are_kept_until_the_pod_is_ready_or_gone() {
        let mut store = Store::new(&[DAEMON_SETS], 1);
        let applied = |pod| ClusterEvent::Pods(Delta::Applied(pod));
        let one = |uid: &str| HashSet::from([Arc::from(uid)]);
        let steps = [
            (
                "it came",
                pod("1", Some("u1"), "False", "ErrImagePull"),
                true,
                &["ErrImagePull"][..],
            ),
            (
                "another reason",
                pod("2", Some("u1"), "False", "ImagePullBackOff"),
                true,
                &["ImagePullBackOff"],
            ),
            (
                "the same",
                pod("3", Some("u1"), "False", "ImagePullBackOff"),
                false,
                &["ImagePullBackOff"],
            ),
            ("it is ready", pod("4", Some("u1"), "True", ""), true, &[]),
            ("it still is", pod("5", Some("u1"), "True", ""), false, &[]),
            (
                "it is not any more",
                pod("6", Some("u1"), "False", "CrashLoopBackOff"),
                true,
                &["CrashLoopBackOff"],
            ),
        ];
        for (what, pod, is_change, expected) in steps {
            let transitions = store.apply(applied(pod));
            let changes = store.take_unready_changes();
            assert_eq!(
                changes,
                if is_change { one("u1") } else { HashSet::new() },
                "{what}"
            );
            assert_eq!(reasons(&store, "u1"), expected, "{what}");
            assert_eq!(
                transitions.is_empty(),
                ["another reason", "the same", "it still is"].contains(&what),
                "{what}"
            );
        }
        store.apply(applied(pod("7", Some("u2"), "False", "CrashLoopBackOff")));
        assert_eq!(reasons(&store, "u1"), [""; 0], "it has another controller");
        assert_eq!(reasons(&store, "u2"), ["CrashLoopBackOff"]);
        store.apply(ClusterEvent::Pods(Delta::Deleted(pod(
            "8",
            Some("u2"),
            "False",
            "CrashLoopBackOff",
        ))));
        assert_eq!(reasons(&store, "u2"), [""; 0], "it is gone");
        assert_eq!(store.count(Resource::PODS), 0);
    }

    #[test]
    fn reasons_come_with_the_pages_of_a_list() {
        let mut store = Store::new(&[DAEMON_SETS], 1);
        let pods = vec![pod("1", Some("u1"), "False", "ErrImagePull")];
        store.apply(ClusterEvent::PodPage { pods, is_first: true });
        assert_eq!(reasons(&store, "u1"), [""; 0]);
        let (objects, resource_version) = (Vec::new(), "2".to_owned());
        store.apply(ClusterEvent::Pods(Delta::Listed {
            objects,
            resource_version,
        }));
        assert_eq!(reasons(&store, "u1"), ["ErrImagePull"]);
    }
}
