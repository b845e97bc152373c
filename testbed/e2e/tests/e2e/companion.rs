//! Rollouts beside the built-in controller, where that cannot be switched off.

use anyhow::{Result, ensure};
use nodewise_conformance::{
    DEADLINE, DaemonSetBuilder, EXECUTOR_USER, daemon_set, image_patch,
    rights::{self, Right},
};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::{AuditEvent, eventually};
use serde_json::json;

const NODES: usize = 8;

/// Adopting wants it, which an observer would do. It lets nobody see more than `list`.
const OF_BASE: &str = "get daemonsets.apps";

/// One that gives its rollouts away, with this budget.
fn managed(name: &str, max_unavailable: &str) -> DaemonSetBuilder {
    let annotations = json!({
        "nodewise.dev/rollout": "managed",
        "nodewise.dev/max-unavailable": max_unavailable,
    });
    daemon_set(name)
        .on_delete()
        .set("/metadata", "annotations", annotations)
}

/// All pods are of this version, one on each node.
async fn runs_version(rig: &Rig, name: &str, version: u32) -> Result<()> {
    eventually(DEADLINE, "a ready pod of the version on every node", async || {
        let status = rig.observed_status(name).await?;
        let count = rig.count_of_version(name, version).await?;
        let ready = usize::try_from(status.number_ready)?;
        ensure!(
            (count, ready) == (NODES, NODES),
            "{count} of the version, {ready} ready"
        );
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn old_pods_go_within_the_budget_and_the_built_in_controller_does_the_rest() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(NODES).companion()).await?;
    // The service is looked up besides; nobody is there.
    let servers = format!(
        "{},kubernetes:///nodewise-server.nodewise-system:grpc",
        rig.server_url()
    );
    rig.start_executor_for(&servers, &[]).await?;
    let _built_in = rig.cluster().start_upstream().await?;
    let (managed_name, own_rollout, manual) = ("managed", "own-rollout", "manual");
    rig.create(managed(managed_name, "25%").build()).await?;
    rig.create(daemon_set(own_rollout).max_unavailable(1).build())
        .await?;
    rig.create(daemon_set(manual).on_delete().build()).await?;
    for name in [managed_name, own_rollout, manual] {
        runs_version(&rig, name, 1).await?;
    }
    let manual_pods = rig.uids(manual).await?;

    let watch = rig.watch(managed_name);
    watch.arm().await?;
    for name in [managed_name, own_rollout, manual] {
        rig.patch(name, image_patch(2)).await?;
    }
    runs_version(&rig, managed_name, 2).await?;
    runs_version(&rig, own_rollout, 2).await?;
    let seen = watch.seen().await?;
    seen.expect_rollout(2, 2 * NODES)?;
    ensure!(
        seen.most_unavailable == 2,
        "it went one by one where two may be away"
    );
    ensure!(
        rig.uids(manual).await? == manual_pods,
        "nobody asked for this one"
    );

    // Back again: the built-in controller takes up the old revision, and its pods are the right ones then.
    rig.patch(managed_name, image_patch(1)).await?;
    runs_version(&rig, managed_name, 1).await?;
    ensure!(
        rig.revisions(managed_name).await? == [2, 3],
        "the first revision became the third"
    );

    // Events about these deletes besides, and the lease.
    let wanted = |event: &AuditEvent| {
        event.user == EXECUTOR_USER
            && event.is_write()
            && !["events", "leases"].contains(&event.resource.as_str())
    };
    let writes = rig.audit(wanted).await?;
    for write in &writes {
        let of_managed = write.name.starts_with(managed_name);
        ensure!(
            write.verb == "delete" && write.resource == "pods" && of_managed,
            "it wrote: {write:?}"
        );
    }
    ensure!(writes.len() == 2 * NODES, "{} deletes", writes.len());
    let refused = rig
        .audit(|event| event.user == EXECUTOR_USER && event.is_forbidden)
        .await?;
    ensure!(refused.is_empty(), "a right is missing: {refused:?}");
    every_right_is_used(&rig).await
}

/// Sooner or later: events come in their own time.
async fn every_right_is_used(rig: &Rig) -> Result<()> {
    let objects = tokio::task::spawn_blocking(|| rights::objects("companion")).await??;
    let given = Right::given_by(&objects)?;
    eventually(DEADLINE, "the executor to use its rights", async || {
        let requests = rig.audit(|event| event.user == EXECUTOR_USER).await?;
        let unused: Vec<_> = rights::unused(&given, &requests)
            .map(ToString::to_string)
            .collect();
        ensure!(unused == [OF_BASE], "nobody uses these rights: {unused:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_no_use_are_told() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2).companion()).await?;
    rig.create(managed("agent", "none").build()).await?;
    eventually(DEADLINE, "an event about the annotation", async || {
        let events = rig.events("InvalidRollout").await?;
        let said: Vec<_> = events
            .iter()
            .filter_map(|event| event.message.as_deref())
            .collect();
        ensure!(
            said.iter()
                .any(|text| text.contains("nodewise.dev/max-unavailable")),
            "{said:?}"
        );
        Ok(())
    })
    .await
}
