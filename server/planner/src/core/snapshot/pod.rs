//! Properties of a single pod, and the order of pods.

use std::cmp::Ordering;

use super::{Listed, Pod, Target};

impl Pod {
    /// Finished and being deleted: the pod no longer occupies its node (D-26).
    pub(crate) fn is_gone(&self) -> bool {
        self.deleting && self.phase.is_terminal()
    }

    /// The deletion cost that an annotation states. An invalid one counts as 0: also a leading plus and leading zeros.
    #[must_use]
    pub fn deletion_cost_of(annotation: &str) -> i32 {
        let is_padded = annotation.starts_with('+') || (annotation.starts_with('0') && annotation.len() > 1);
        if is_padded {
            return 0;
        }
        annotation.parse().unwrap_or_default()
    }

    /// Neither finished nor being deleted (D-30).
    pub(crate) fn is_live(&self) -> bool {
        !self.deleting && !self.phase.is_terminal()
    }
}

impl Listed for Pod {
    /// By node, pods without a node first. The pods of one node are in the order of D-38.
    fn order(a: &Self, b: &Self) -> Ordering {
        a.target
            .node()
            .cmp(&b.target.node())
            .then_with(|| order_on_node(a, b))
    }
}

/// The order of the pods of one node (D-38): bound pods first, then older ones, then by name. Pods that no longer occupy the node
/// come last. The first pod is the one that stays. The uid makes the order total if names repeat.
fn order_on_node(a: &Pod, b: &Pod) -> Ordering {
    let unbound = |pod: &Pod| !matches!(pod.target, Target::Bound(_));
    a.is_gone()
        .cmp(&b.is_gone())
        .then_with(|| unbound(a).cmp(&unbound(b)))
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.name.cmp(&b.name))
        .then_with(|| a.uid.cmp(&b.uid))
}
