//! A cache of results that depend only on a pod's labels, controller and deletion.
//!
//! The pods of a bucket differ in name and node, but a table has only a few kinds of pods. The result is computed once for each kind.

use crate::core::snapshot::PodView;

/// Results for the pods of one table, by kind, and by whether the pod is being deleted.
#[derive(Debug)]
pub(crate) struct PodFindings<T> {
    by_kind: Vec<[Option<T>; 2]>,
}

impl<T> Default for PodFindings<T> {
    fn default() -> Self {
        Self { by_kind: Vec::new() }
    }
}

impl<T: Copy> PodFindings<T> {
    /// The result for a pod; `find` computes it if it is not cached. `find` must depend on nothing but the pod's labels, its
    /// controller and whether it is being deleted. All pods must be of one table.
    pub(crate) fn find(&mut self, pod: PodView<'_>, find: impl FnOnce() -> T) -> T {
        let kind = pod.kind().number();
        if self.by_kind.len() <= kind {
            self.by_kind.resize(kind + 1, [None; 2]);
        }
        *self.by_kind[kind][usize::from(pod.deleting())].get_or_insert_with(find)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::snapshot::{ControllerRef, Pods, Table as _},
        fixtures::{daemon_set, pod},
    };

    #[test]
    fn each_combination_is_computed_once() {
        let ds = daemon_set();
        let one = pod(&ds, "a", "n1", "h");
        let mut copy = one.clone();
        copy.name = "b".to_owned();
        let mut deleting = one.clone();
        (deleting.name, deleting.deleting) = ("c".to_owned(), true);
        let mut orphan = one.clone();
        (orphan.name, orphan.controller) = ("d".to_owned(), None);
        let mut of_another = one.clone();
        of_another.name = "e".to_owned();
        let other = ControllerRef {
            uid: "other".to_owned(),
            ..(**one.controller.as_ref().expect("a controller")).clone()
        };
        of_another.controller = Some(other.into());
        let labelled = pod(&ds, "f", "n1", "other");
        let table = Pods::of(vec![one, copy, deleting, orphan, of_another, labelled]);
        let mut findings = PodFindings::default();
        let mut looks = 0;
        for _ in 0..2 {
            for (pod, expected) in table.iter().zip([1, 1, 2, 3, 4, 5]) {
                let found = findings.find(pod, || {
                    looks += 1;
                    looks
                });
                assert_eq!(found, expected, "{pod:?}");
            }
        }
    }
}
