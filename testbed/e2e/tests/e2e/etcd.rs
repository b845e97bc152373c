//! etcd is restored from a backup while the executor runs: versions begin again at that of the backup, and what was written after it is gone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::eventually;
use serde_json::json;

use crate::replicas::start_behind_a_service;

/// Further writes after the backup: more than the restored cluster makes until the test ends.
const LOST_WRITES: usize = 3_000;

/// The version of the apiserver.
async fn version(rig: &Rig) -> Result<u64> {
    let pods = Api::<Pod>::all(rig.client())
        .list_metadata(&ListParams::default().limit(1))
        .await?;
    let version = pods.metadata.resource_version.context("a list has a version")?;
    Ok(version.parse()?)
}

/// Raises the version of the apiserver.
async fn write_much(rig: &Rig) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(rig.client(), "default");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("counter".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await?;
    for count in 0..LOST_WRITES {
        let patch = Patch::Merge(json!({ "data": { "count": count.to_string() } }));
        maps.patch("counter", &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

/// D-112: the same executor process does what the restored cluster wants, also with what is changed there later, and asks the replicas
/// that the restored cluster names.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_goes_on_after_a_restore_of_etcd() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(5)).await?;
    let (endpoints, [_first, second]) = start_behind_a_service(&mut rig).await?;
    rig.create(daemon_set("agent").max_unavailable(2).build()).await?;
    rig.settled("agent").await?;
    let (pods, revisions) = (rig.uids("agent").await?, rig.revisions("agent").await?);

    let plane = rig.cluster().plane();
    let backup = plane.back_up_etcd()?;
    rig.patch("agent", image_patch(2)).await?;
    rig.settled("agent").await?;
    rig.create(daemon_set("lost").build()).await?;
    rig.settled("lost").await?;
    endpoints.set("planner-second", &second, true).await?;
    rig.replicas_are("ready", 2).await?;
    write_much(&rig).await?;
    let reached = version(&rig).await?;

    plane.restore_etcd(&backup).await?;
    ensure!(
        rig.uids("agent").await? == pods,
        "the pods are not those of the backup"
    );
    let watch = rig.watch("agent");
    rig.replicas_are("ready", 1).await?;
    rig.create(daemon_set("later").build()).await?;
    rig.settled("later").await?;
    ensure!(
        rig.uids("agent").await? == pods && rig.revisions("agent").await? == revisions,
        "what was restored was as it should be, and was changed nevertheless"
    );
    ensure!(
        rig.pods("lost").await?.is_empty(),
        "nobody wants these pods any more"
    );

    endpoints.set("planner-second", &second, true).await?;
    rig.replicas_are("ready", 2).await?;
    rig.patch("agent", image_patch(3)).await?;
    rig.settled("agent").await?;
    ensure!(
        rig.count_of_version("agent", 3).await? == 5,
        "not the newest template"
    );
    plane.create_nodes(1).await?;
    rig.settled("agent").await?;
    watch.seen().await?.expect_no_doubles()?;
    eventually(DEADLINE, "the executor to be ready", async || {
        let (status, body) = rig.executor_get("/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    })
    .await?;
    rig.executor().check_running()?;
    let now = version(&rig).await?;
    ensure!(
        now < reached,
        "versions are at {now} already, and were at {reached}"
    );
    Ok(())
}
