//! What is true of a pod by itself, and the order of pods.

use std::cmp::Ordering;

use super::{Listed, Pod, Target};

impl Pod {
    /// Finished and being deleted: such a pod does not occupy its node any more (D-26).
    pub(crate) fn is_gone(&self) -> bool {
        self.deleting && self.phase.is_terminal()
    }

    /// Neither finished nor being deleted (D-30).
    pub(crate) fn is_live(&self) -> bool {
        !self.deleting && !self.phase.is_terminal()
    }
}

impl Listed for Pod {
    /// By node, those without one first, and on a node in the order in which they are kept.
    fn order(a: &Self, b: &Self) -> Ordering {
        a.target
            .node()
            .cmp(&b.target.node())
            .then_with(|| order_on_node(a, b))
    }
}

/// The order in which pods of a node are kept (D-38): bound first, then older, then by name; last those that do not occupy
/// the node any more. The uid only makes the order total where names repeat.
fn order_on_node(a: &Pod, b: &Pod) -> Ordering {
    let unbound = |pod: &Pod| !matches!(pod.target, Target::Bound(_));
    a.is_gone()
        .cmp(&b.is_gone())
        .then_with(|| unbound(a).cmp(&unbound(b)))
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.name.cmp(&b.name))
        .then_with(|| a.uid.cmp(&b.uid))
}
