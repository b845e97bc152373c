//! `nodewise status`: one row for each workload, the worst first.

mod rows;
mod watch;

use std::process::ExitCode;

use nodewise_proto::v1;

use crate::{
    args::{StatusArgs, ViewOutput},
    engine::Engine,
    gaps,
    input::{Cluster, Served},
    kind::Kind,
    print,
    refusals::Refusals,
    request::RequestFactory,
    target::Target,
    text::{self, Page},
    view,
};

/// The kinds of a command line that names none. The ReplicaSets of Deployments are left out: their Deployments are there.
const DEFAULT: &str = "deployments,daemonsets,replicasets";

pub(crate) async fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let namespace = args.namespace.as_deref();
    let default = [DEFAULT.to_owned()];
    let words = if args.targets.is_empty() {
        &default
    } else {
        args.targets.as_slice()
    };
    let targets = Target::parse_many(words)?;
    if args.watch {
        return watch::run(args, &targets).await;
    }
    let cluster = Cluster::read_with_facts(&args.source, &targets, namespace).await?;
    let mut workloads: Vec<&Served> = Vec::new();
    for target in &targets {
        workloads.extend(cluster.find(target, namespace)?);
    }
    workloads.retain(|workload| is_shown(args, workload));
    let refusals = Refusals::read(&args.source, workloads.iter().copied()).await;
    let engine = Engine::new(&args.engine)?;
    let requests = RequestFactory::new(&cluster, &args.engine);
    let source = view::Source {
        cluster: &cluster,
        engine: &engine,
        requests: &requests,
    };
    let mut statuses = Vec::with_capacity(workloads.len());
    for workload in &workloads {
        gaps::refuse(&cluster, workload)?;
        let mut status = source.status(workload, refusals.of(&workload.uid)).await?;
        refusals.add_owner(&mut status);
        statuses.push(status);
    }
    gaps::hint_without_policies(&cluster, workloads.iter().copied());
    sort(&mut statuses);
    print(&statuses, args)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the table has a row for a workload that a target matches.
fn is_shown(args: &StatusArgs, workload: &Served) -> bool {
    !args.targets.is_empty() || workload.kind != Kind::ReplicaSet || workload.controller.is_none()
}

/// The worst first: stuck, then progressing, and so on; then by namespace, kind and name.
fn sort(statuses: &mut [v1::WorkloadStatus]) {
    statuses.sort_by(|a, b| {
        let rank = |status: &v1::WorkloadStatus| std::cmp::Reverse(status.state);
        (rank(a), &a.namespace, &a.kind, &a.name).cmp(&(rank(b), &b.namespace, &b.kind, &b.name))
    });
}

fn print(statuses: &[v1::WorkloadStatus], args: &StatusArgs) -> anyhow::Result<()> {
    match args.output {
        ViewOutput::Json => print::json(&statuses),
        ViewOutput::Yaml => print::yaml(&statuses),
        ViewOutput::Text | ViewOutput::Wide => {
            let mut page = Page::new(text::terminal_width());
            match &args.namespace {
                Some(namespace) if statuses.is_empty() => {
                    page.line(0, text::PLAIN, &format!("No workloads in namespace {namespace}."));
                }
                _ => text::status::render_table(&mut page, statuses, args.output == ViewOutput::Wide),
            }
            print::text(&page.into_text())
        }
    }
}
