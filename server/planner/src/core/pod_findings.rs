//! A cache of results that depend only on a pod's labels, controller and deletion.
//!
//! The pods of a workload differ in name and node, but a whole cluster has only a few combinations of labels and controller. The
//! result is computed once for each combination.

use std::{collections::HashMap, sync::Arc};

use crate::core::snapshot::Pod;

/// Results by combination of labels, controller and deletion.
#[derive(Debug)]
pub(crate) struct PodFindings<T> {
    last: Option<(Kind, T)>,
    all: HashMap<Kind, T>,
}

/// The inputs of a result. Labels and controller are compared by address, which is enough while the snapshot is alive.
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
    /// The result for a pod; `find` computes it if it is not cached. `find` must depend on nothing but the pod's labels, its
    /// controller and whether it is being deleted. All pods must be of one snapshot.
    pub(crate) fn find(&mut self, pod: &Pod, find: impl FnOnce() -> T) -> T {
        let kind = Kind::of(pod);
        match self.last {
            // Most pods are like the one before.
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
    fn each_combination_is_computed_once() {
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
