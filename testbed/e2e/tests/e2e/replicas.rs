//! Several servers: if one of them fails, no reconcile fails.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, Server, daemon_set};
use nodewise_e2e::{Load, Setup, SetupOptions, SlowProxy, own_address};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// How many reconciles must succeed during each failure.
const MEANWHILE: u64 = 40;

/// Fails if a reconcile has failed or the load has ended.
async fn expect_no_failure(setup: &Setup, load: &mut Load, when: &str) -> Result<()> {
    load.check().await?;
    for outcome in ["unreachable", "failed"] {
        let series =
            format!("nodewise_reconcile_duration_seconds_count{{kind=\"DaemonSet\",outcome=\"{outcome}\"}}");
        let count = setup.executor_metric(&series).await?;
        ensure!(count == 0, "{when}: {count} reconciles ended as {outcome}");
    }
    Ok(())
}

async fn kill(setup: &Setup, replicas: &mut [Server; 3]) -> Result<()> {
    replicas[0].process().kill9()?;
    setup.wait_for_replicas("evicted", 1).await?;
    setup.wait_for_reconciles(MEANWHILE).await?;
    setup.start_replica_again(&mut replicas[0]).await?;
    setup.wait_for_replicas("ready", 3).await
}

async fn hang(setup: &Setup, replicas: &[Server; 3]) -> Result<()> {
    replicas[1].process().pause()?;
    setup.wait_for_replicas("evicted", 1).await?;
    setup.wait_for_reconciles(MEANWHILE).await?;
    replicas[1].process().resume()?;
    setup.wait_for_replicas("ready", 3).await
}

async fn slow_down(setup: &Setup, link: &SlowProxy) -> Result<()> {
    let series = "nodewise_plan_hedges_total{outcome=\"won\"}";
    let before = setup.executor_metric(series).await?;
    link.delay(Duration::from_secs(1));
    setup.wait_for_reconciles(MEANWHILE).await?;
    eventually(DEADLINE, "the slow one to be overtaken", async || {
        ensure!(setup.executor_metric(series).await? > before, "never yet");
        Ok(())
    })
    .await?;
    link.delay(Duration::ZERO);
    setup.wait_for_replicas("ready", 3).await
}

async fn restart_one_by_one(setup: &Setup, replicas: &mut [Server; 3]) -> Result<()> {
    for replica in replicas {
        replica.process().terminate(DEADLINE).await?;
        setup.start_replica_again(replica).await?;
        setup.wait_for_replicas("ready", 3).await?;
    }
    setup.wait_for_reconciles(MEANWHILE).await
}

/// One of three servers is killed, paused, slow, and all are restarted one by one under load. No reconcile fails, and
/// all rollouts complete.
#[tokio::test(flavor = "multi_thread")]
async fn no_reconcile_fails_while_one_of_three_servers_does() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(3)).await?;
    let mut replicas = [
        setup.start_replica("127.0.0.1:0").await?,
        setup.start_replica("127.0.0.1:0").await?,
        setup.start_replica("127.0.0.1:0").await?,
    ];
    let link = SlowProxy::to(replicas[2].address()).await?;
    let servers = [replicas[0].address(), replicas[1].address(), link.address()];
    let servers = servers.map(|address| format!("http://{address}")).join(",");
    // An attempt gets a third of the timeout, so a paused server is given up after two seconds.
    setup
        .start_executor_for(&servers, &["--plan-timeout=6s", "--hedge-after=500ms"])
        .await?;
    setup.wait_for_replicas("ready", 3).await?;
    // Enough DaemonSets that each server is the first choice for some.
    let mut load = setup.load(24).await?;
    setup.wait_for_reconciles(MEANWHILE).await?;
    expect_no_failure(&setup, &mut load, "at first").await?;

    kill(&setup, &mut replicas).await?;
    expect_no_failure(&setup, &mut load, "while one was dead").await?;
    hang(&setup, &replicas).await?;
    expect_no_failure(&setup, &mut load, "while one hung").await?;
    slow_down(&setup, &link).await?;
    expect_no_failure(&setup, &mut load, "while one was slow").await?;
    restart_one_by_one(&setup, &mut replicas).await?;
    expect_no_failure(&setup, &mut load, "while all were restarted").await?;

    ensure!(load.changes() > 50, "{} changes are no load", load.changes());
    for name in load.stop().await? {
        setup.wait_for_rollout(&name).await?;
        setup.expect_one_pod_per_node(&name).await?;
    }
    Ok(())
}

/// An EndpointSlice with one endpoint. The servers of this test have the same address and different ports.
fn slice(name: &str, replica: &Server, ready: bool) -> Value {
    let (address, port) = (replica.address().ip().to_string(), replica.address().port());
    let conditions = json!({ "ready": ready, "serving": true, "terminating": !ready });
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": { "name": name, "labels": { "kubernetes.io/service-name": "planner" } },
        "addressType": "IPv4",
        "ports": [{ "name": "grpc", "port": port, "protocol": "TCP" }],
        "endpoints": [{ "addresses": [address], "conditions": conditions }],
    })
}

/// The Service in the form of `--server`.
const SERVICE: &str = "kubernetes:///planner.nodewise-system:grpc";

/// The EndpointSlices of a Service `planner` in the executors' namespace, which the executor may watch.
pub(super) struct Endpoints(Api<EndpointSlice>);

impl Endpoints {
    /// Creates the Service without a selector, so that the test manages its endpoints.
    async fn of_new_service(setup: &Setup) -> Result<Self> {
        let service: Service = serde_json::from_value(json!({
            "metadata": { "name": "planner" },
            "spec": { "clusterIP": "None", "ports": [{ "name": "grpc", "port": 7443 }] },
        }))?;
        let services: Api<Service> = Api::namespaced(setup.client(), "nodewise-system");
        services.create(&PostParams::default(), &service).await?;
        Ok(Self(Api::namespaced(setup.client(), "nodewise-system")))
    }

    pub(super) async fn set(&self, name: &str, replica: &Server, ready: bool) -> Result<()> {
        let patch = Patch::Apply(slice(name, replica, ready));
        let params = PatchParams::apply("test").force();
        self.0.patch(name, &params, &patch).await?;
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<()> {
        self.0.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// Starts two servers and a Service with the first of them as its endpoint, and restarts the executor with this
/// Service.
pub(super) async fn start_behind_a_service(setup: &mut Setup) -> Result<(Endpoints, [Server; 2])> {
    let listen = format!("{}:0", own_address()?);
    let replicas = [
        setup.start_replica(&listen).await?,
        setup.start_replica(&listen).await?,
    ];
    let endpoints = Endpoints::of_new_service(setup).await?;
    endpoints.set("planner-first", &replicas[0], true).await?;
    setup.start_executor_for(SERVICE, &["--plaintext"]).await?;
    Ok((endpoints, replicas))
}

/// The executor follows the EndpointSlices of a Service. While there is no endpoint it writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_found_by_the_endpoint_slices_of_a_service() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(3)).await?;
    let (endpoints, [first, second]) = start_behind_a_service(&mut setup).await?;
    setup.wait_for_replicas("ready", 1).await?;
    endpoints.set("planner-second", &second, true).await?;
    setup.wait_for_replicas("ready", 2).await?;
    let mut load = setup.load(6).await?;
    setup.wait_for_reconciles(MEANWHILE).await?;

    // The endpoint of a deleted pod is first terminating, then removed.
    endpoints.set("planner-first", &first, false).await?;
    setup.wait_for_replicas("ready", 1).await?;
    first.process().terminate(DEADLINE).await?;
    endpoints.remove("planner-first").await?;
    setup.wait_for_reconciles(MEANWHILE).await?;
    expect_no_failure(&setup, &mut load, "while one went").await?;
    for name in load.stop().await? {
        setup.wait_for_rollout(&name).await?;
    }

    endpoints.remove("planner-second").await?;
    eventually(DEADLINE, "the executor to know nobody", async || {
        let (status, body) = setup.executor_get("/readyz").await?;
        ensure!(
            status == 500 && body.contains("no replica of the planning service is known"),
            "{status}: {body}"
        );
        Ok(())
    })
    .await?;
    setup.create(daemon_set("later").build()).await?;
    eventually(DEADLINE, "the executor to have tried", async || {
        let series = "nodewise_reconcile_duration_seconds_count{kind=\"DaemonSet\",outcome=\"unreachable\"}";
        ensure!(setup.executor_metric(series).await? > 0, "not yet");
        Ok(())
    })
    .await?;
    ensure!(
        setup.live_pods("later").await?.is_empty(),
        "nobody planned these pods"
    );
    endpoints.set("planner-second", &second, true).await?;
    setup.wait_for_rollout("later").await?;
    setup.expect_one_pod_per_node("later").await
}
