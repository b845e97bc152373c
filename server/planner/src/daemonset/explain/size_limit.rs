//! How long the explanations of all nodes may be.
//!
//! They repeat what the template says, for every node. So what there is room for is in proportion to what the nodes
//! themselves say: of real nodes, whose labels and taints are long, every explanation is whole.

use super::NodeExplanation;
use crate::core::snapshot::Node;

/// Bytes that there is room for however little the nodes say.
const LEAST: usize = 256 << 10;
/// Bytes that there is room for for each of a node.
const TIMES: usize = 2;
/// Bytes of a message without room.
const CUT: usize = 100;

/// What is left.
pub(super) struct SizeLimit(usize);

impl SizeLimit {
    /// Before the first node.
    pub(super) const fn new() -> Self {
        Self(LEAST)
    }

    /// Cuts an explanation for which there is no room.
    pub(super) fn fit(&mut self, node: Option<&Node>, explanation: &mut NodeExplanation) {
        self.0 += TIMES * node.map_or(explanation.node_name.len(), says);
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

/// How much a node says.
fn says(node: &Node) -> usize {
    let taints = node
        .taints
        .iter()
        .map(|taint| taint.key.len() + taint.value.len());
    let labels = node.labels.iter().map(|(key, value)| key.len() + value.len());
    node.name.len() + taints.chain(labels).sum::<usize>()
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
        let mut explained = crate::explain(&snapshot, None).remove(0);
        explained.message = message.to_owned();
        explained.details = vec!["detail".to_owned(); details];
        explained
    }

    #[test]
    fn a_node_says_its_name_its_labels_and_its_taints() {
        assert_eq!(says(&fixtures::node("name", &[], &[])), 4);
        assert_eq!(says(&fixtures::node("name", &[("key", "value")], &[])), 4 + 3 + 5);
        assert_eq!(
            says(&fixtures::node("name", &[("key", "value")], &["k=v:NoSchedule"])),
            4 + 3 + 5 + 1 + 1
        );
    }

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut() {
        let node = fixtures::node("name", &[], &[]);
        // Twice the name is new room.
        let taken = |room: usize, text: usize, details: usize| {
            let mut room = SizeLimit(room);
            let mut explained = explanation(&"x".repeat(text), details);
            room.fit(Some(&node), &mut explained);
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
