//! `nodewise explain`.

mod node;
mod nodes;
mod pod;
mod replicas;
mod subject;
mod warnings;

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use nodewise_proto::v1;
use nodewise_status::several_writers;

use crate::{
    args::{ExplainArgs, Output, SourceArgs},
    engine::Engine,
    gaps,
    input::{Cluster, Served},
    kind::Kind,
    print,
    request::RequestFactory,
    target::Target,
    text::{self, Page},
    view,
};

use self::subject::Subject;

/// One workload that is explained, and what that needs.
pub(crate) struct Case<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) workload: &'a Served,
    pub(crate) requests: &'a RequestFactory<'a>,
    pub(crate) engine: &'a Engine,
    /// The columns of the text. `None`: unlimited.
    pub(crate) width: Option<usize>,
}

impl Case<'_> {
    /// The status of the workload, for what holds it up. Nodes with the same cause are grouped there. `refusal` is the last refused create.
    fn status(
        &self,
        refusal: Option<&v1::Refusal>,
        plan: &v1::Plan,
        explanation: &v1::ExplainResponse,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let source = view::Source {
            cluster: self.cluster,
            engine: self.engine,
            requests: self.requests,
        };
        source.status_of(self.workload, refusal, plan, explanation)
    }

    /// A warning if more than one client writes the status of the workload.
    fn render_second_owner(&self, page: &mut Page) {
        let Served {
            kind,
            namespace,
            name,
            ..
        } = self.workload;
        let facts = self.cluster.facts.as_ref();
        let facts = facts.and_then(|facts| facts.workload(*kind, namespace, name));
        if let Some(facts) = facts {
            let warning = several_writers(&facts.writers, self.requests.now());
            text::status::render_second_owner(page, warning.as_slice());
        }
    }
}

pub(crate) async fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let target = match Subject::parse(&args.target)? {
        Subject::Workload(target) => target,
        other => return run_entry(args, &other).await,
    };
    ensure!(
        target.kind == Kind::DaemonSet || args.node.is_none(),
        "--node is for DaemonSets; a {} is explained as a whole",
        target.kind.name()
    );
    let namespace = args.namespace.as_deref();
    let cluster = Cluster::read_with_facts(&args.source, std::slice::from_ref(&target), namespace).await?;
    let found = cluster.find(&target, namespace)?;
    let workload = *found.first().context("no workload is named")?;
    gaps::refuse(&cluster, workload)?;
    let engine = Engine::new(&args.engine)?;
    let case = Case {
        cluster: &cluster,
        workload,
        requests: &RequestFactory::new(&cluster, &args.engine),
        engine: &engine,
        width: text::terminal_width(),
    };
    let events = Some(&args.source);
    let text = explain_with(&case, events, args.node.as_deref(), args.output).await?;
    gaps::hint_without_policies(&cluster, std::iter::once(workload));
    print::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Explains a pod or a node: with it as the entry, the workloads are found.
async fn run_entry(args: &ExplainArgs, subject: &Subject) -> anyhow::Result<ExitCode> {
    ensure!(args.node.is_none(), "--node is for DaemonSets; leave it out");
    let namespace = args.namespace.as_deref();
    let targets = Target::every_workload();
    let cluster = Cluster::read_with_facts(&args.source, &targets, namespace).await?;
    let engine = Engine::new(&args.engine)?;
    let requests = RequestFactory::new(&cluster, &args.engine);
    let source = view::Source {
        cluster: &cluster,
        engine: &engine,
        requests: &requests,
    };
    let text = match subject {
        Subject::Pod(name) => pod::explain(&source, name, namespace, args.output).await?,
        Subject::Node(name) => {
            let events = &args.source;
            node::explain(&source, events, (name, namespace), args.output).await?
        }
        Subject::Workload(_) => String::new(),
    };
    gaps::hint_without_policies(&cluster, cluster.workloads(Kind::DaemonSet).iter());
    print::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The explanation of a workload, or of a DaemonSet on one node.
pub(crate) async fn explain(case: &Case<'_>, node: Option<&str>, output: Output) -> anyhow::Result<String> {
    explain_with(case, None, node, output).await
}

/// As [`explain`]. `events` is the cluster whose Events say why a DaemonSet misses a pod; the other kinds say it in their status.
async fn explain_with(
    case: &Case<'_>,
    events: Option<&SourceArgs>,
    node: Option<&str>,
    output: Output,
) -> anyhow::Result<String> {
    match case.workload.kind {
        Kind::ReplicaSet => replicas::explain_replica_set(case, output).await,
        Kind::Deployment => replicas::explain_deployment(case, output).await,
        _ => nodes::explain(case, events, node, output).await,
    }
}
