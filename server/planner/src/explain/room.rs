//! How long the explanations of all nodes may be.
//!
//! They repeat what the template says, for every node. So what there is room for is in proportion to what the nodes
//! themselves say: of real nodes, whose labels and taints are long, every explanation is whole.

use super::NodeExplanation;
use crate::snapshot::Node;

/// Bytes that there is room for however little the nodes say.
const LEAST: usize = 256 << 10;
/// Bytes that there is room for for each of a node.
const TIMES: usize = 2;
/// Bytes of a message without room.
const CUT: usize = 100;

/// What is left.
pub(super) struct Room(usize);

impl Room {
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
