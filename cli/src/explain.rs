//! `nodewise explain`.

use std::process::ExitCode;

use anyhow::{bail, ensure};
use nodewise_proto::v1;
use serde::Serialize;

use crate::{
    args::{ExplainArgs, Output},
    engine::Engine,
    input::{Cluster, Served},
    print,
    request::RequestFactory,
    text::{self, Page},
};

/// The JSON output.
#[derive(Serialize)]
struct Explanation<'a> {
    namespace: &'a str,
    name: &'a str,
    nodes: &'a [v1::NodeExplanation],
    /// The warnings of the DaemonSet's plan.
    #[serde(flatten)]
    warnings: &'a Warnings,
}

/// The warnings of a plan. The explanation of one node has only those about the node and its pods.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Warnings {
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
    fn of(plan: v1::Plan) -> Self {
        Self {
            warnings: plan.warnings,
            more_warnings: plan.more_warnings,
        }
    }

    /// The warnings about a node and its pods.
    fn about(self, node: &v1::NodeExplanation) -> Self {
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

    fn render(&self, page: &mut Page) {
        if !self.is_empty() {
            page.blank();
            text::render_warnings(page, self.warnings.iter(), self.more_warnings);
        }
    }
}

pub(crate) async fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let name = daemon_set_name(&args.target)?;
    let cluster = Cluster::read(&args.source, args.namespace.as_deref()).await?;
    let daemon_set = find(&cluster, name, args.namespace.as_deref())?;
    let engine = Engine::new(&args.engine)?;
    let workload = RequestFactory::new(&cluster, &args.engine).request_for(daemon_set);
    let nodes = engine.explain(&workload, args.node.as_deref()).await?;
    let warnings = Warnings::of(engine.plan(&workload).await?);
    let warnings = match (nodes.as_slice(), &args.node) {
        ([node], Some(_)) => warnings.about(node),
        _ => warnings,
    };
    if let Some(node) = &args.node {
        let known = nodes
            .iter()
            .any(|node| node.rule() != v1::Rule::NodeMissing || !node.pods.is_empty());
        ensure!(
            known,
            "{}: no Node {node}, and no pod of {} for it",
            cluster.source(),
            workload.title()
        );
    }
    match args.output {
        Output::Json => {
            let explanation = Explanation {
                namespace: &daemon_set.namespace,
                name: &daemon_set.name,
                nodes: &nodes,
                warnings: &warnings,
            };
            print::json(&explanation)?;
        }
        Output::Text => {
            let mut page = Page::new(text::terminal_width());
            match nodes.as_slice() {
                [node] if args.node.is_some() => {
                    text::explain::render_node(&mut page, &workload.title(), node);
                }
                nodes => text::explain::render_all(&mut page, &workload.title(), nodes),
            }
            warnings.render(&mut page);
            print::text(&page.into_text())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses `daemonset NAME` or `daemonset/NAME`. The kind may be any of kubectl's names for it.
fn daemon_set_name(target: &[String]) -> anyhow::Result<&str> {
    let (kind, name) = match target {
        [kind, name] => (kind.as_str(), name.as_str()),
        [both] => match both.split_once('/') {
            Some((kind, name)) => (kind, name),
            None => bail!("{both}: expected `daemonset NAME` or `daemonset/NAME`"),
        },
        _ => bail!("expected `daemonset NAME` or `daemonset/NAME`"),
    };
    let kind = kind.to_ascii_lowercase();
    ensure!(
        matches!(
            kind.as_str(),
            "daemonset" | "daemonsets" | "ds" | "daemonset.apps" | "daemonsets.apps"
        ),
        "{kind}: not a kind that can be explained; daemonset is"
    );
    Ok(name)
}

fn find<'a>(cluster: &'a Cluster, name: &str, namespace: Option<&str>) -> anyhow::Result<&'a Served> {
    let named: Vec<&Served> = cluster
        .daemon_sets
        .iter()
        .filter(|daemon_set| daemon_set.name == name)
        .filter(|daemon_set| namespace.is_none_or(|namespace| daemon_set.namespace == namespace))
        .collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => {
            let in_namespace = namespace
                .map(|namespace| format!(" in namespace {namespace}"))
                .unwrap_or_default();
            bail!(
                "{}: no DaemonSet {name}{in_namespace}{}",
                cluster.source(),
                others(cluster)
            )
        }
        several => {
            let namespaces: Vec<&str> = several
                .iter()
                .map(|daemon_set| daemon_set.namespace.as_str())
                .collect();
            bail!(
                "{}: DaemonSet {name} is in several namespaces: choose with -n {}",
                cluster.source(),
                namespaces.join(" or -n ")
            )
        }
    }
}

/// A hint with the DaemonSets that exist, if they are few.
fn others(cluster: &Cluster) -> String {
    let names: Vec<String> = cluster
        .daemon_sets
        .iter()
        .map(|daemon_set| format!("{}/{}", daemon_set.namespace, daemon_set.name))
        .collect();
    match names.len() {
        0 => "; there is none at all".to_owned(),
        1..=8 => format!("; there is {}", names.join(", ")),
        many => format!("; there are {many} others"),
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
