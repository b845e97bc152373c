//! Limits the total length of the explanations of all nodes.
//!
//! Each explanation repeats parts of the template, so a small request could give a very large response. The limit is in proportion
//! to the names, labels and taints of the nodes. Real nodes have many labels, so their explanations are not cut.

use super::NodeExplanation;
use crate::core::snapshot::NodeView;

/// The limit in bytes before the first node.
const LEAST: usize = 256 << 10;
/// Each byte of a node raises the limit by this many bytes.
const TIMES: usize = 2;
/// At most this many bytes of a node's labels count.
const MOST_LABELS: usize = 1_024;
/// The length to which a message is cut, in bytes.
const CUT: usize = 100;

/// The bytes that are left.
pub(super) struct SizeLimit(usize);

impl SizeLimit {
    /// The limit before the first node.
    pub(super) const fn new() -> Self {
        Self(LEAST)
    }

    /// Cuts an explanation that exceeds the rest of the limit: drops its details and shortens its message.
    pub(super) fn fit(&mut self, node: Option<NodeView<'_>>, explanation: &mut NodeExplanation) {
        self.0 += TIMES * node.map_or(explanation.node_name.len(), node_bytes);
        let details = &mut explanation.details;
        let length = |texts: &[String]| {
            texts
                .iter()
                .map(|text| text.len() + size_of::<String>())
                .sum::<usize>()
        };
        let wanted = explanation.message.len() + length(details);
        if let Some(left) = self.0.checked_sub(wanted) {
            self.0 = left;
            return;
        }
        *details = Vec::new();
        let message = &mut explanation.message;
        if message.len() > CUT {
            message.truncate(message.floor_char_boundary(CUT));
            message.push('…');
            message.shrink_to_fit();
        }
        self.0 = self.0.saturating_sub(message.len());
    }
}

/// The length of a node's name, labels and taints, in bytes.
fn node_bytes(node: NodeView<'_>) -> usize {
    let taints = node
        .taints()
        .iter()
        .map(|taint| taint.key.len() + taint.value.len());
    let labels = node.labels().iter().map(|(key, value)| key.len() + value.len());
    // A request has the labels that nodes share only once.
    let labels = labels.sum::<usize>().min(MOST_LABELS);
    node.name().len() + taints.sum::<usize>() + labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::snapshot::Snapshot, fixtures};

    fn explanation(message: &str, details: usize) -> NodeExplanation {
        let snapshot = Snapshot {
            buckets: vec![fixtures::bucket(vec![fixtures::node("a", &[], &[])], vec![])],
            ..fixtures::snapshot(fixtures::daemon_set(), vec![])
        };
        let mut explained = crate::daemonset::explain(&snapshot, None).remove(0);
        explained.message = message.to_owned();
        explained.details = vec!["detail".to_owned(); details];
        explained
    }

    #[test]
    fn name_labels_and_taints_count() {
        let bytes = |labels: &[(&str, &str)], taints: &[&str]| {
            node_bytes(fixtures::table(&[fixtures::node("name", labels, taints)]).at(0))
        };
        assert_eq!(bytes(&[], &[]), 4);
        assert_eq!(bytes(&[("key", "value")], &[]), 4 + 3 + 5);
        assert_eq!(bytes(&[("key", "value")], &["k=v:NoSchedule"]), 4 + 3 + 5 + 1 + 1);
    }

    #[test]
    fn explanations_beyond_the_limit_are_cut() {
        let nodes = fixtures::table(&[fixtures::node("name", &[], &[])]);
        // The name of four bytes raises the limit by eight.
        let taken = |room: usize, text: usize, details: usize| {
            let mut room = SizeLimit(room);
            let mut explained = explanation(&"x".repeat(text), details);
            room.fit(Some(nodes.at(0)), &mut explained);
            (explained.message.chars().count(), explained.details.len(), room.0)
        };
        let detail = "detail".len() + size_of::<String>();
        assert_eq!(taken(1_000, 50, 2), (50, 2, 1_008 - 50 - 2 * detail));
        assert_eq!(taken(142 - 8 + 2 * detail, 142, 2), (142, 2, 0));
        assert_eq!(
            taken(141 - 8 + 2 * detail, 142, 2),
            (CUT + 1, 0, 141 + 2 * detail - CUT - 3)
        );
        assert_eq!(taken(0, CUT, 1), (CUT, 0, 0));
        assert_eq!(taken(0, CUT + 1, 1), (CUT + 1, 0, 0));
        let mut room = SizeLimit(0);
        let mut missing = explanation("", 0);
        missing.node_name = "gone".to_owned();
        room.fit(None, &mut missing);
        assert_eq!(room.0, 8);
    }
}
