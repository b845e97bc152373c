//! `nodewise overhead`: which DaemonSets would run on a node that need not exist, why or why not, and what they request in sum.

pub(crate) mod args;
mod report;
mod shapes;
mod text;

use std::process::ExitCode;

use anyhow::ensure;
use nodewise_proto::v1;

use crate::{
    engine::Engine,
    input::{Cluster, Served},
    kind::Kind,
    output::ViewOutput,
    print,
    target::Target,
    text::{Page, terminal_width},
};
use args::OverheadArgs;
use report::Report;

pub(crate) async fn run(args: &OverheadArgs) -> anyhow::Result<ExitCode> {
    let targets = Target::parse_many(&args.targets)?;
    if let Some(other) = targets.iter().find(|target| target.kind != Kind::DaemonSet) {
        anyhow::bail!(
            "{}: only DaemonSets have an overhead on each node",
            other.kind.name().to_ascii_lowercase()
        );
    }
    let namespace = args.namespace.as_deref();
    let kinds: &[Kind] = if args.like.is_some() {
        &[Kind::DaemonSet, Kind::Node]
    } else {
        &[Kind::DaemonSet]
    };
    let cluster = Cluster::read_kinds(&args.source, kinds, namespace).await?;
    let mut sets: Vec<&Served> = Vec::new();
    for target in &targets {
        sets.extend(cluster.find(target, namespace)?);
    }
    let nodes = shapes::of(args, &cluster)?;
    ensure!(!nodes.is_empty(), "--shapes has no node to ask about");
    let request = v1::EvaluateNodesRequest {
        nodes: nodes.clone(),
        daemon_sets: sets.iter().map(|set| message(set)).collect(),
        feature_gates: Vec::new(),
    };
    let titles: Vec<_> = sets
        .iter()
        .map(|set| (set.namespace.clone(), set.name.clone()))
        .collect();
    let response = Engine::of(&args.service)?.evaluate_nodes(request).await?;
    let report = Report::new(nodes, &titles, response)?;
    match args.output {
        ViewOutput::Json => print::json(&report)?,
        ViewOutput::Yaml => print::yaml(&report)?,
        ViewOutput::Text | ViewOutput::Wide => {
            let mut page = Page::new(terminal_width());
            text::render(&mut page, &report, args.output == ViewOutput::Wide);
            print::text(&page.into_text())?;
        }
    }
    let is_read = report.daemon_sets.iter().all(|set| set.error.is_empty());
    Ok(if is_read {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn message(set: &Served) -> v1::DaemonSet {
    v1::DaemonSet {
        object: set.json.get().to_owned().into(),
        ..v1::DaemonSet::default()
    }
}
