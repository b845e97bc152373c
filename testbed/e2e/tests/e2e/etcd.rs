//! etcd is restored from a backup while the executor runs. Resource versions continue from the backup, and later writes
//! are lost.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::json;

use crate::replicas::start_behind_a_service;

/// The number of additional writes after the backup: more than the restored cluster makes until the test ends.
const LOST_WRITES: usize = 3_000;

/// The present resource version of the apiserver.
async fn version(setup: &Setup) -> Result<u64> {
    let pods = Api::<Pod>::all(setup.client())
        .list_metadata(&ListParams::default().limit(1))
        .await?;
    let version = pods.metadata.resource_version.context("a list has a version")?;
    Ok(version.parse()?)
}

/// Raises the resource version of the apiserver.
async fn write_much(setup: &Setup) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(setup.client(), "default");
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

/// D-112: the same executor process follows the state of the restored cluster and later changes to it, and uses the
/// replicas that the restored cluster has.
#[tokio::test(flavor = "multi_thread")]
async fn executor_continues_after_a_restore_of_etcd() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(5)).await?;
    let (endpoints, [_first, second]) = start_behind_a_service(&mut setup).await?;
    setup
        .create(daemon_set("agent").max_unavailable(2).build())
        .await?;
    setup.wait_until_settled("agent").await?;
    let (pods, revisions) = (setup.uids("agent").await?, setup.revisions("agent").await?);

    let plane = setup.cluster().plane();
    let backup = plane.back_up_etcd()?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_until_settled("agent").await?;
    setup.create(daemon_set("lost").build()).await?;
    setup.wait_until_settled("lost").await?;
    endpoints.set("planner-second", &second, true).await?;
    setup.wait_for_replicas("ready", 2).await?;
    write_much(&setup).await?;
    let reached = version(&setup).await?;

    plane.restore_etcd(&backup).await?;
    ensure!(
        setup.uids("agent").await? == pods,
        "the pods are not those of the backup"
    );
    let watch = setup.watch("agent");
    setup.wait_for_replicas("ready", 1).await?;
    setup.create(daemon_set("later").build()).await?;
    setup.wait_until_settled("later").await?;
    ensure!(
        setup.uids("agent").await? == pods && setup.revisions("agent").await? == revisions,
        "what was restored was as it should be, and was changed nevertheless"
    );
    ensure!(
        setup.pods("lost").await?.is_empty(),
        "nobody wants these pods any more"
    );

    endpoints.set("planner-second", &second, true).await?;
    setup.wait_for_replicas("ready", 2).await?;
    setup.patch("agent", image_patch(3)).await?;
    setup.wait_until_settled("agent").await?;
    ensure!(
        setup.count_of_version("agent", 3).await? == 5,
        "not the newest template"
    );
    plane.create_nodes(1).await?;
    setup.wait_until_settled("agent").await?;
    watch.seen().await?.expect_no_doubles()?;
    eventually(DEADLINE, "the executor to be ready", async || {
        let (status, body) = setup.executor_get("/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    })
    .await?;
    setup.executor().check_running()?;
    let now = version(&setup).await?;
    ensure!(
        now < reached,
        "versions are at {now} already, and were at {reached}"
    );
    Ok(())
}
