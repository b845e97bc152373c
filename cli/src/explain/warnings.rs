//! The warnings of a plan, beside an explanation.

use nodewise_proto::v1;
use serde::Serialize;

use crate::text::{self, Page};

/// The warnings of a plan. The explanation of one node has only those about the node and its pods.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Warnings {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<v1::Warning>,
    #[serde(skip_serializing_if = "is_zero")]
    more_warnings: u32,
}

/// The protocol's JSON leaves out zeros.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Warnings {
    /// The warnings of a plan.
    pub(super) fn of(plan: v1::Plan) -> Self {
        Self {
            warnings: plan.warnings,
            more_warnings: plan.more_warnings,
        }
    }

    /// The warnings about a node and its pods.
    pub(super) fn about(self, node: &v1::NodeExplanation) -> Self {
        let is_about = |warning: &v1::Warning| match warning.kind.as_str() {
            "Node" => warning.name == node.node_name,
            "Pod" => node.pods.iter().any(|pod| pod.pod_name == warning.name),
            _ => false,
        };
        Self {
            warnings: self.warnings.into_iter().filter(is_about).collect(),
            more_warnings: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.warnings.is_empty()
    }

    pub(super) fn render(&self, page: &mut Page) {
        if !self.is_empty() {
            page.blank();
            text::render_warnings(page, self.warnings.iter(), self.more_warnings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_warnings_about_itself_and_its_pods() {
        let warning = |kind: &str, name: &str| v1::Warning {
            kind: kind.to_owned(),
            name: name.to_owned(),
            message: "labels: there are 2000".to_owned(),
        };
        let warnings = Warnings::of(v1::Plan {
            warnings: vec![
                warning("ControllerRevision", "node-1"),
                warning("Node", "node-1"),
                warning("Node", "node-2"),
                warning("Pod", "node-1"),
                warning("Pod", "web-1"),
            ],
            more_warnings: 7,
            ..v1::Plan::default()
        });
        let node = v1::NodeExplanation {
            node_name: "node-1".to_owned(),
            pods: vec![v1::PodExplanation {
                pod_name: "web-1".to_owned(),
                ..v1::PodExplanation::default()
            }],
            ..v1::NodeExplanation::default()
        };
        let about = warnings.about(&node);
        assert_eq!(
            about.warnings,
            [warning("Node", "node-1"), warning("Pod", "web-1")]
        );
        assert_eq!(about.more_warnings, 0);
    }
}
