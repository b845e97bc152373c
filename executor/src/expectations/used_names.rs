//! The names of one workload's pods that are gone, until another pod of it is seen on their node.
//!
//! The planner gives no new pod such a name: people and programs wait for the name of a pod to go away. The list is the executor's
//! own: watches make it longer, and a plan only says which entries are not needed any more.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_proto::v1;

/// Names of pods, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsedNames(BTreeMap<String, BTreeSet<String>>);

impl UsedNames {
    /// A pod is gone from the cache.
    pub(super) fn retire(&mut self, node_name: String, pod_name: String) {
        self.0.entry(node_name).or_default().insert(pod_name);
    }

    /// Another pod is on the node.
    pub(super) fn replaced(&mut self, node_name: &str) {
        self.0.remove(node_name);
    }

    /// Drops what was `sent` with a plan's request and is not among the names that the plan `kept`. What came since stays.
    pub(super) fn drop_unneeded(&mut self, sent: &[v1::UsedPodName], kept: &[v1::UsedPodName]) {
        let kept: BTreeSet<_> = kept
            .iter()
            .map(|name| (&name.node_name, &name.pod_name))
            .collect();
        for name in sent {
            if !kept.contains(&(&name.node_name, &name.pod_name))
                && let Some(names) = self.0.get_mut(&name.node_name)
            {
                names.remove(&name.pod_name);
                if names.is_empty() {
                    self.0.remove(&name.node_name);
                }
            }
        }
    }

    /// As they are sent, ordered by node and name.
    pub(super) fn to_message(&self) -> Vec<v1::UsedPodName> {
        let names = self.0.iter().flat_map(|(node_name, names)| {
            names.iter().map(|pod_name| v1::UsedPodName {
                node_name: node_name.clone(),
                pod_name: pod_name.clone(),
            })
        });
        names.collect()
    }
}
