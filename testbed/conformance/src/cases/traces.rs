//! What a trace shows of an executor that traces.

use anyhow::Result;
use nodewise_testbed::Collector;

use crate::{
    case::{Case, solo},
    cluster::Cluster,
    daemon_set::{daemon_set, image_patch},
    scene::Solo,
    server::Server,
    space::Space,
    traces::Traces,
};

pub(super) const CASES: &[Case] = &[solo!(
    "traces",
    "With OTEL_EXPORTER_OTLP_ENDPOINT each reconcile of a rolling update is one trace, from the service to etcd, and SIGTERM \
     loses no span.",
    traces
)];

/// Nodes, and how many of them may be without a pod.
const NODES: usize = 12;
const UNAVAILABLE: usize = 3;

/// The executor, to its spans.
const EXECUTOR: &str = "executor-under-test";

/// On a control plane of its own, which sends spans, too.
async fn traces(solo: &mut Solo) -> Result<()> {
    let collector = Collector::start().await?;
    let cluster = Cluster::start_traced(&collector.endpoint()).await?;
    let plane = cluster.plane();
    plane.create_nodes(NODES).await?;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), collector.endpoint());
    let name = ("OTEL_SERVICE_NAME".to_owned(), EXECUTOR.to_owned());
    let environment = [endpoint, name];
    let server = Server::start_in(plane, "127.0.0.1:0", &[], &environment[..1]).await?;
    solo.start_on(&cluster, &server, &environment)?;
    let space = Space::of_all_nodes(cluster.client(), "default").with_deadline(solo.deadline());
    let agent = daemon_set("agent").max_unavailable(UNAVAILABLE);
    space.roll_out("agent", agent.build()).await?;
    let before = space.pod_names("agent").await?;
    space.patch("agent", image_patch(2)).await?;
    space.rolled_out("agent").await?;
    let after = space.pod_names("agent").await?;
    solo.stop().await?;
    server.process().terminate(solo.deadline()).await?;
    let traces = Traces::of(&collector, EXECUTOR).await?;
    traces.expect_rollout("agent", &before, &after).map(drop)
}
