//! The traces of an executor that exports spans.

use anyhow::Result;
use nodewise_testbed::Collector;

use crate::{
    case::{Case, solo},
    cluster::Cluster,
    controllers::Controllers,
    fixture::SoloFixture,
    server::Server,
    test_namespace::TestNamespace,
    traces::Traces,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[solo!(
    "traces",
    "With OTEL_EXPORTER_OTLP_ENDPOINT each reconcile of a rolling update is one trace that includes the service, the \
         apiserver and etcd, and SIGTERM loses no span.",
    traces
)];

/// The number of nodes, and how many of them may be unavailable.
const NODES: usize = 12;
const UNAVAILABLE: usize = 3;

/// The service name in the executor's spans.
const EXECUTOR: &str = "executor-under-test";

/// Runs on a control plane of its own, which exports spans too.
async fn traces(solo: &mut SoloFixture) -> Result<()> {
    let collector = Collector::start().await?;
    let control_plane = Controllers::DaemonSets.control_plane();
    let cluster = Cluster::start_traced(control_plane, "own", &collector.endpoint()).await?;
    let plane = cluster.plane();
    plane.create_nodes(NODES).await?;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), collector.endpoint());
    let name = ("OTEL_SERVICE_NAME".to_owned(), EXECUTOR.to_owned());
    let environment = [endpoint, name];
    let server = Server::start_in(plane, "127.0.0.1:0", &[], &environment[..1]).await?;
    solo.start_on(&cluster, &server, &environment)?;
    let test_namespace =
        TestNamespace::of_all_nodes(cluster.client(), "default").with_deadline(solo.deadline());
    let agent = daemon_set("agent").max_unavailable(UNAVAILABLE);
    test_namespace.roll_out("agent", agent.build()).await?;
    let before = test_namespace.pod_names("agent").await?;
    test_namespace.patch("agent", image_patch(2)).await?;
    test_namespace.wait_for_rollout("agent").await?;
    let after = test_namespace.pod_names("agent").await?;
    solo.stop().await?;
    server.process().terminate(solo.deadline()).await?;
    let traces = Traces::of(&collector, EXECUTOR).await?;
    traces.expect_rollout("agent", &before, &after).map(drop)
}
