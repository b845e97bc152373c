//! `nodewise explain`.

mod nodes;
mod replicas;
mod warnings;

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use nodewise_proto::v1;

use crate::{
    args::ExplainArgs,
    engine::Engine,
    gaps,
    input::{Cluster, Served},
    kind::Kind,
    request::RequestFactory,
    target::Target,
    view,
};

/// One workload that is explained, and what that needs.
struct Case<'a> {
    cluster: &'a Cluster,
    workload: &'a Served,
    requests: &'a RequestFactory<'a>,
    engine: &'a Engine,
}

impl Case<'_> {
    /// The status of the workload, for what holds it up. Nodes with the same cause are grouped there.
    fn status(
        &self,
        plan: &v1::Plan,
        explanation: &v1::ExplainResponse,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let source = view::Source {
            cluster: self.cluster,
            engine: self.engine,
            requests: self.requests,
        };
        source.status_of(self.workload, None, plan, explanation)
    }
}

pub(crate) async fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let target = Target::parse_one(&args.target)?;
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
    };
    match workload.kind {
        Kind::ReplicaSet => replicas::explain_replica_set(&case, args.output).await?,
        Kind::Deployment => replicas::explain_deployment(&case, args.output).await?,
        _ => nodes::explain(&case, args.node.as_deref(), args.output).await?,
    }
    Ok(ExitCode::SUCCESS)
}
