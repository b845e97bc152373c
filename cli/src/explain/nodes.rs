//! Explains a DaemonSet, node by node.

use anyhow::ensure;
use nodewise_proto::v1;
use serde::Serialize;

use super::{Case, warnings::Warnings};
use crate::{
    args::{Output, SourceArgs},
    print,
    refusals::Refusals,
    text::{self, Page},
};

/// The JSON output.
#[derive(Serialize)]
struct Explanation<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    nodes: &'a [v1::NodeExplanation],
    /// What holds up pods, with the most frequent cause first.
    causes: &'a [v1::BlockCause],
    /// The warnings of the DaemonSet's plan.
    #[serde(flatten)]
    warnings: &'a Warnings,
}

/// Explains all nodes, or one.
pub(super) async fn explain(
    case: &Case<'_>,
    events: Option<&SourceArgs>,
    node: Option<&str>,
    output: Output,
) -> anyhow::Result<String> {
    let workload = case.requests.request_for(case.workload);
    let explanation = case.engine.explain(&workload, node).await?;
    let plan = case.engine.plan(&workload).await?;
    let refusals = match events.filter(|_| nodewise_status::lacks_a_pod(&plan, &explanation)) {
        Some(source) => Refusals::read(source, std::iter::once(case.workload)).await,
        None => Refusals::default(),
    };
    let refusal = refusals.of(&case.workload.uid);
    let status = case.status(refusal, &plan, &explanation)?;
    let nodes = explanation.nodes;
    let warnings = Warnings::of(plan);
    let warnings = match (nodes.as_slice(), node) {
        ([one], Some(_)) => warnings.about(one),
        _ => warnings,
    };
    if let Some(node) = node {
        let known = nodes
            .iter()
            .any(|node| node.rule() != v1::Rule::NodeMissing || !node.pods.is_empty());
        ensure!(
            known,
            "{}: no Node {node}, and no pod of {} for it",
            case.cluster.source(),
            workload.title()
        );
    }
    if output == Output::Json {
        return print::json_text(&Explanation {
            kind: case.workload.kind.name(),
            namespace: &case.workload.namespace,
            name: &case.workload.name,
            nodes: &nodes,
            causes: &status.causes,
            warnings: &warnings,
        });
    }
    let mut page = Page::new(case.width);
    match nodes.as_slice() {
        [one] if node.is_some() => {
            text::explain::render_node(&mut page, &workload.title(), one, &status);
        }
        nodes => text::explain::render_all(&mut page, &workload.title(), nodes, &status),
    }
    warnings.render(&mut page);
    case.render_second_owner(&mut page);
    Ok(page.into_text())
}
