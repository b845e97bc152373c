//! Labels that are read live. If an object has very many labels, only those that selectors name are cached. A new
//! workload may name others.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Pods, Store, pods};
use crate::{Resource, actuator::ObjectKey, gate::is_behind};
use nodewise_projection::{Pod, Revision, Workload};

impl Store {
    /// A pod for which it is not known whether a workload selects it.
    pub(crate) fn undecided_pod(&self, workload: &Workload) -> Option<ObjectKey> {
        let namespace = &*workload.key.namespace;
        let pods = &self.namespaces.get(namespace)?.pods;
        let pod = pods.undecided(workload).next()?;
        Some(ObjectKey::new(Resource::PODS, namespace, pod.name()))
    }

    /// The revisions, controlled by the workload or by nobody, for which it is not known whether the workload selects
    /// them, ordered by name.
    pub(crate) fn undecided_revisions<'a>(
        &'a self,
        workload: &'a Workload,
    ) -> impl Iterator<Item = &'a Arc<Revision>> {
        let namespace = self.namespaces.get(&workload.key.namespace);
        let all = namespace
            .into_iter()
            .flat_map(|namespace| namespace.revisions.iter());
        let may_concern = |revision: &&Arc<Revision>| {
            let controller = revision.controller.as_ref();
            controller.is_none_or(|controller| *controller.uid == *workload.uid)
        };
        all.filter(may_concern)
            .filter(|revision| !revision.has_labels_of(workload))
    }

    /// If there is a pod for which it is not known whether a workload selects it: all pods of the namespace that may
    /// have uncached labels which workloads name now. Uids by name.
    pub fn unread_pods(&mut self, workload: &Workload) -> HashMap<String, String> {
        let namespace = &*workload.key.namespace;
        let undecided = |pods: &Pods| pods.undecided(workload).next().is_some();
        let kept = self.namespaces.get(namespace);
        if !kept.is_some_and(|namespace| undecided(&namespace.pods)) {
            return HashMap::new();
        }
        self.know(workload);
        let keys = self.keys.of_pods(namespace);
        let pods = self.namespaces.get(namespace).map(|namespace| &namespace.pods);
        let unread = pods.into_iter().flat_map(|pods| pods.cut_otherwise(&keys));
        unread.map(|pod| (pod.name().to_owned(), pod.pod().uid)).collect()
    }

    /// Caches the labels of a pod that was read live, unless that is another pod or an older version than the watch has
    /// shown.
    pub fn take_labels(&mut self, read: Pod) {
        let keys = self.keys.of_pods(&read.namespace);
        let Some(namespace) = self.namespaces.get_mut(read.namespace.as_str()) else {
            return;
        };
        let Some(kept) = namespace.pods.get(&read.projection.name) else {
            return;
        };
        let (mut pod, version) = (kept.pod(), kept.version());
        if pod.uid != read.projection.uid || is_behind(version, &read.resource_version) {
            return;
        }
        pod.labels = read.projection.labels;
        let is_newer = version != read.resource_version;
        self.changes.begin();
        let mut pod = pods::encode(&mut pod, version, &keys, &mut self.parts, &self.layout);
        pod.change(self.changes.last);
        let old = namespace.pods.put_labels(pod, is_newer, &self.layout);
        if let Some(old) = old {
            self.parts.release(&old);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Delta;
    use crate::event::ClusterEvent;
    use crate::snapshot;
    use crate::testing::{DAEMON_SETS, DaemonSets};

    /// An object with more labels than are cached of one object.
    fn object(name: &str, owner: Option<&str>) -> Value {
        let owners: Vec<Value> = owner
            .iter()
            .map(|uid| json!({"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": true}))
            .collect();
        let labels: serde_json::Map<_, _> = (0..65)
            .map(|index| (format!("x{index}"), json!("x")))
            .chain([("app".to_owned(), json!("foo")), ("tier".to_owned(), json!("a"))])
            .chain([("controller-revision-hash".to_owned(), json!("h"))])
            .collect();
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "11",
            "labels": labels, "ownerReferences": owners}})
    }

    fn show(store: &mut Store, object: &Value) {
        let pod = Pod::from_json(object).expect("a pod");
        store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        let revision = Revision::from_json(object).expect("a revision");
        store.apply(ClusterEvent::Revisions(Delta::Applied(revision)));
    }

    fn undecided(store: &Store) -> Option<ObjectKey> {
        snapshot::undecided::<DaemonSets>(store, &selecting("app"))
    }

    fn selecting(key: &str) -> Workload {
        let object = json!({"metadata": {"namespace": "ns", "name": "foo", "uid": "u1"},
            "spec": {"selector": {"matchLabels": {key: "foo"}}}});
        Workload::daemon_set_from_json(&object).expect("a DaemonSet")
    }

    #[test]
    fn only_named_labels_are_cached_of_many() {
        let mut store = Store::new(&[DAEMON_SETS], 1);
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(selecting("app")),
        ));
        show(&mut store, &object("a", None));
        let expected = [("app", "foo"), ("controller-revision-hash", "h")];
        let expected = expected.map(|(key, value)| nodewise_proto::v1::Label {
            key: key.into(),
            value: value.into(),
        });
        assert_eq!(store.pod("ns", "a").expect("it").labels, expected);
        assert_eq!(store.revision("ns", "a").expect("it").labels, expected);
        assert_eq!(undecided(&store), None);
    }

    // The selector decides about orphans, and about the release of controlled objects.
    #[test]
    fn objects_with_unknown_labels_are_undecided() {
        for (owner, expected) in [(None, true), (Some("u1"), true), (Some("u2"), false)] {
            let mut store = Store::new(&[DAEMON_SETS], 1);
            show(&mut store, &object("a", owner));
            let pod = undecided(&store).map(|key| key.resource);
            assert_eq!(pod == Some(Resource::PODS), expected, "{owner:?}");
            store.remove_pod("ns", "a");
            let revision = undecided(&store).map(|key| key.resource);
            assert_eq!(revision == Some(Resource::REVISIONS), expected, "{owner:?}");
        }
    }

    // The cached labels of both pods are equal, but not the sets of keys that are known.
    #[test]
    fn known_labels_are_those_of_one_pod() {
        let mut store = Store::new(&[DAEMON_SETS], 1);
        show(&mut store, &object("a", None));
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(selecting("other")),
        ));
        show(&mut store, &object("b", None));
        let workload = selecting("other");
        let unread: Vec<_> = store.unread_pods(&workload).into_keys().collect();
        assert_eq!(unread, ["a"]);
        store.take_labels(Pod::from_json(&object("a", None)).expect("a pod"));
        assert!(store.unread_pods(&workload).is_empty());
    }
}
