//! Several servers: whatever becomes of one of them, no reconcile fails.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, Server, daemon_set};
use nodewise_e2e::{Load, Rig, RigOptions, SlowLink, own_address};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// Reconciles that must go well while something is wrong.
const MEANWHILE: u64 = 40;

/// Fails if any reconcile has failed, or if the load has ended.
async fn nothing_failed(rig: &Rig, load: &mut Load, when: &str) -> Result<()> {
    load.check().await?;
    for outcome in ["unreachable", "failed"] {
        let series = format!("nodewise_reconcile_duration_seconds_count{{outcome=\"{outcome}\"}}");
        let count = rig.executor_metric(&series).await?;
        ensure!(count == 0, "{when}: {count} reconciles ended as {outcome}");
    }
    Ok(())
}

async fn kill(rig: &Rig, replicas: &mut [Server; 3]) -> Result<()> {
    replicas[0].process().kill9()?;
    rig.replicas_are("evicted", 1).await?;
    rig.more_reconciles(MEANWHILE).await?;
    rig.start_replica_again(&mut replicas[0]).await?;
    rig.replicas_are("ready", 3).await
}

async fn hang(rig: &Rig, replicas: &[Server; 3]) -> Result<()> {
    replicas[1].process().pause()?;
    rig.replicas_are("evicted", 1).await?;
    rig.more_reconciles(MEANWHILE).await?;
    replicas[1].process().resume()?;
    rig.replicas_are("ready", 3).await
}

async fn slow_down(rig: &Rig, link: &SlowLink) -> Result<()> {
    let series = "nodewise_plan_hedges_total{outcome=\"won\"}";
    let before = rig.executor_metric(series).await?;
    link.delay(Duration::from_secs(1));
    rig.more_reconciles(MEANWHILE).await?;
    eventually(DEADLINE, "the slow one to be overtaken", async || {
        ensure!(rig.executor_metric(series).await? > before, "never yet");
        Ok(())
    })
    .await?;
    link.delay(Duration::ZERO);
    rig.replicas_are("ready", 3).await
}

async fn restart_one_by_one(rig: &Rig, replicas: &mut [Server; 3]) -> Result<()> {
    for replica in replicas {
        replica.process().terminate(DEADLINE).await?;
        rig.start_replica_again(replica).await?;
        rig.replicas_are("ready", 3).await?;
    }
    rig.more_reconciles(MEANWHILE).await
}

/// Killed, stopped, slow, restarted one after the other, under load: zero failed reconciles, and everything converges.
#[tokio::test(flavor = "multi_thread")]
async fn no_reconcile_fails_while_one_of_three_servers_does() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(3)).await?;
    let mut replicas = [
        rig.start_replica("127.0.0.1:0").await?,
        rig.start_replica("127.0.0.1:0").await?,
        rig.start_replica("127.0.0.1:0").await?,
    ];
    let link = SlowLink::to(replicas[2].address()).await?;
    let servers = [replicas[0].address(), replicas[1].address(), link.address()];
    let servers = servers.map(|address| format!("http://{address}")).join(",");
    // A third of the time is an attempt's, so a server that hangs is given up after two seconds.
    rig.start_executor_for(&servers, &["--plan-timeout=6s", "--hedge-after=500ms"])
        .await?;
    rig.replicas_are("ready", 3).await?;
    // So many that each server is the first choice for some of them.
    let mut load = rig.load(24).await?;
    rig.more_reconciles(MEANWHILE).await?;
    nothing_failed(&rig, &mut load, "at first").await?;

    kill(&rig, &mut replicas).await?;
    nothing_failed(&rig, &mut load, "while one was dead").await?;
    hang(&rig, &replicas).await?;
    nothing_failed(&rig, &mut load, "while one hung").await?;
    slow_down(&rig, &link).await?;
    nothing_failed(&rig, &mut load, "while one was slow").await?;
    restart_one_by_one(&rig, &mut replicas).await?;
    nothing_failed(&rig, &mut load, "while all were restarted").await?;

    ensure!(load.changes() > 50, "{} changes are no load", load.changes());
    for name in load.stop().await? {
        rig.rolled_out(&name).await?;
        rig.expect_one_pod_per_node(&name).await?;
    }
    Ok(())
}

/// A slice with one endpoint; the servers of this test share an address and differ in their ports.
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

/// That Service, as `--server` takes it.
const SERVICE: &str = "kubernetes:///planner.nodewise-system:grpc";

/// The EndpointSlices of a Service `planner` in the executors' namespace, where the executor may watch them.
pub(super) struct Endpoints(Api<EndpointSlice>);

impl Endpoints {
    /// Makes the Service; nothing but the test says what its endpoints are.
    async fn of_new_service(rig: &Rig) -> Result<Self> {
        let service: Service = serde_json::from_value(json!({
            "metadata": { "name": "planner" },
            "spec": { "clusterIP": "None", "ports": [{ "name": "grpc", "port": 7443 }] },
        }))?;
        let services: Api<Service> = Api::namespaced(rig.client(), "nodewise-system");
        services.create(&PostParams::default(), &service).await?;
        Ok(Self(Api::namespaced(rig.client(), "nodewise-system")))
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

/// Starts two servers, a Service that has the first of them as its endpoint, and the executor anew, which looks for servers there.
pub(super) async fn start_behind_a_service(rig: &mut Rig) -> Result<(Endpoints, [Server; 2])> {
    let listen = format!("{}:0", own_address()?);
    let replicas = [
        rig.start_replica(&listen).await?,
        rig.start_replica(&listen).await?,
    ];
    let endpoints = Endpoints::of_new_service(rig).await?;
    endpoints.set("planner-first", &replicas[0], true).await?;
    rig.start_executor_for(SERVICE, &["--plaintext"]).await?;
    Ok((endpoints, replicas))
}

/// The EndpointSlices of a Service say where the servers are: they come and go, and when there is none nothing is written.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_found_by_the_endpoint_slices_of_a_service() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(3)).await?;
    let (endpoints, [first, second]) = start_behind_a_service(&mut rig).await?;
    rig.replicas_are("ready", 1).await?;
    endpoints.set("planner-second", &second, true).await?;
    rig.replicas_are("ready", 2).await?;
    let mut load = rig.load(6).await?;
    rig.more_reconciles(MEANWHILE).await?;

    // As a Service sees a pod go: first it ends, then it is no endpoint any more.
    endpoints.set("planner-first", &first, false).await?;
    rig.replicas_are("ready", 1).await?;
    first.process().terminate(DEADLINE).await?;
    endpoints.remove("planner-first").await?;
    rig.more_reconciles(MEANWHILE).await?;
    nothing_failed(&rig, &mut load, "while one went").await?;
    for name in load.stop().await? {
        rig.rolled_out(&name).await?;
    }

    endpoints.remove("planner-second").await?;
    eventually(DEADLINE, "the executor to know nobody", async || {
        let (status, body) = rig.executor_get("/readyz").await?;
        ensure!(
            status == 500 && body.contains("no replica of the planning service is known"),
            "{status}: {body}"
        );
        Ok(())
    })
    .await?;
    rig.create(daemon_set("later").build()).await?;
    eventually(DEADLINE, "the executor to have tried", async || {
        let series = "nodewise_reconcile_duration_seconds_count{outcome=\"unreachable\"}";
        ensure!(rig.executor_metric(series).await? > 0, "not yet");
        Ok(())
    })
    .await?;
    ensure!(
        rig.live_pods("later").await?.is_empty(),
        "nobody planned these pods"
    );
    endpoints.set("planner-second", &second, true).await?;
    rig.rolled_out("later").await?;
    rig.expect_one_pod_per_node("later").await
}
