//! What is found out about one pod and holds for all pods with the same labels and controller.
//!
//! The pods of a workload differ in name and node; of what their labels and their controller decide there are a handful of cases
//! in a whole cluster. Each is looked at once.

use std::{collections::HashMap, sync::Arc};

use crate::core::snapshot::Pod;

/// Findings about pods, by what they share.
#[derive(Debug)]
pub(crate) struct PodFindings<T> {
    last: Option<(Kind, T)>,
    all: HashMap<Kind, T>,
}

/// What pods that are alike have in common. While the snapshot is there, what is at one address is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    labels: usize,
    controller: usize,
    deleting: bool,
}

impl Kind {
    fn of(pod: &Pod) -> Self {
        Self {
            labels: pod.labels.address(),
            controller: pod
                .controller
                .as_ref()
                .map_or(0, |controller| Arc::as_ptr(controller).addr()),
            deleting: pod.deleting,
        }
    }
}

impl<T> Default for PodFindings<T> {
    fn default() -> Self {
        Self {
            last: None,
            all: HashMap::new(),
        }
    }
}

impl<T: Copy> PodFindings<T> {
    /// The finding about a pod, which depends on nothing but its labels, its controller and whether it is being deleted. All pods
    /// must be of one snapshot.
    pub(crate) fn find(&mut self, pod: &Pod, find: impl FnOnce() -> T) -> T {
        let kind = Kind::of(pod);
        match self.last {
            // Most are like the one before them.
            Some((last, finding)) if last == kind => finding,
            _ => {
                let finding = *self.all.entry(kind).or_insert_with(find);
                self.last = Some((kind, finding));
                finding
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{controller, daemon_set, pod};

    #[test]
    fn each_kind_of_pod_is_looked_at_once() {
        let ds = daemon_set();
        let one = pod(&ds, "a", "n1", "h");
        let mut copy = one.clone();
        copy.name = "b".to_owned();
        let mut deleting = one.clone();
        deleting.deleting = true;
        let mut orphan = one.clone();
        orphan.controller = None;
        let mut of_another = one.clone();
        of_another.controller = Some(controller(&ds).into());
        let mut labelled = pod(&ds, "c", "n1", "h");
        labelled.controller.clone_from(&one.controller);
        let mut findings = PodFindings::default();
        let mut looks = 0;
        for _ in 0..2 {
            for (pod, expected) in [
                (&one, 1),
                (&copy, 1),
                (&deleting, 2),
                (&orphan, 3),
                (&of_another, 4),
                (&labelled, 5),
            ] {
                let found = findings.find(pod, || {
                    looks += 1;
                    looks
                });
                assert_eq!(found, expected);
            }
        }
    }
}
