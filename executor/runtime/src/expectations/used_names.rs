//! Names of deleted pods of one workload, until another pod of the workload is seen on the node. Names of pods that were
//! for no node stay until a plan removes them.
//!
//! The planner does not reuse such a name, because people and programs wait for the name of a deleted pod to disappear.
//! Watches add names. A plan only says which names are not needed any more.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_proto::v1;

/// The most names of one node, and without a node: as many as the pods of the largest workloads. Plans drop names,
/// but there are none while the service refuses the requests for a workload. A tenant can still create and delete its pods.
const MOST_OF_A_NODE: usize = 50_000;

/// Pod names by node name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsedNames(BTreeMap<String, BTreeSet<String>>);

impl UsedNames {
    /// Adds the name of a pod that is gone from the cache, unless there are [`MOST_OF_A_NODE`] already.
    pub(super) fn record(&mut self, node_name: String, pod_name: String) {
        let names = self.0.entry(node_name).or_default();
        if names.len() < MOST_OF_A_NODE {
            names.insert(pod_name);
        }
    }

    /// Removes the names of a node, because another pod was seen on it. Names without a node stay: another pod does not
    /// say which of them it replaces.
    pub(super) fn replaced(&mut self, node_name: &str) {
        if !node_name.is_empty() {
            self.0.remove(node_name);
        }
    }

    /// Drops the names that were `sent` with the request and that the plan did not keep. Names that were added since stay.
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

    /// Returns the names for a request, ordered by node and name.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[(&str, &str)]) -> Vec<v1::UsedPodName> {
        let name = |&(node_name, pod_name): &(&str, &str)| v1::UsedPodName {
            node_name: node_name.to_owned(),
            pod_name: pod_name.to_owned(),
        };
        names.iter().map(name).collect()
    }

    // A new pod frees the names of its node. Names without a node are freed by plans only.
    #[test]
    fn names_without_a_node_stay_until_a_plan_removes_them() {
        let mut used = UsedNames::default();
        let all = [("", "a"), ("", "b"), ("n1", "c")];
        for (node_name, pod_name) in all {
            used.record(node_name.to_owned(), pod_name.to_owned());
        }
        used.replaced("");
        assert_eq!(used.to_message(), names(&all));
        used.replaced("n1");
        assert_eq!(used.to_message(), names(&all[..2]));
        used.drop_unneeded(&names(&all[..2]), &names(&all[1..2]));
        assert_eq!(used.to_message(), names(&all[1..2]));
    }

    // While the service refuses the requests for a workload, no plan removes a name.
    #[test]
    fn a_node_has_a_limited_number_of_names() {
        let mut used = UsedNames::default();
        for number in 0..=MOST_OF_A_NODE {
            used.record(String::new(), number.to_string());
        }
        used.record("n1".to_owned(), "other".to_owned());
        assert_eq!(used.to_message().len(), 50_000 + 1);
    }
}
