//! SIGKILL right after the apiserver has answered a write, one case for each kind of write. The restarted executor must
//! continue from the state of the cluster: no pod is created twice, and the budget holds.

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use nodewise_testbed::AuditEvent;
use serde_json::json;

use super::claims::{make_orphan, relabel, wait_until_released};
use crate::{
    audit::AuditPosition,
    budget::BudgetWatch,
    case::{Case, solo},
    fixture::SoloFixture,
    replicas::controller_of,
    workload_builder::{WorkloadBuilder, daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "kill-after-create-revision",
        "SIGKILL after a revision was created: it is used, and no second one is created.",
        after_create_revision
    ),
    solo!(
        "kill-after-create-pod",
        "SIGKILL after a pod was created: its node gets no second pod.",
        after_create_pod
    ),
    solo!(
        "kill-after-adopt-pod",
        "SIGKILL after a pod was adopted: the other orphans are adopted too, and no extra pod is created.",
        after_adopt_pod
    ),
    solo!(
        "kill-after-release-pod",
        "SIGKILL after a pod was released: it is replaced exactly once.",
        after_release_pod
    ),
    solo!(
        "kill-after-delete-pod",
        "SIGKILL after a pod was deleted in a rollout: it still counts against the budget.",
        after_delete_pod
    ),
    solo!(
        "kill-after-update-revision",
        "SIGKILL after a revision got a higher number: the rollback continues.",
        after_update_revision
    ),
    solo!(
        "kill-after-delete-revision",
        "SIGKILL after an old revision was deleted: no more revisions are deleted than the limit requires.",
        after_delete_revision
    ),
    solo!(
        "kill-after-update-status",
        "SIGKILL after the status was written: the status becomes correct.",
        after_update_status
    ),
    solo!(
        "kill-after-emit-event",
        "SIGKILL after an event was written: no write is repeated because of it.",
        after_emit_event
    ),
];

const NODES: usize = 8;

/// A kind of write, as the audit log shows it.
pub(super) struct Write {
    what: &'static str,
    verbs: &'static [&'static str],
    resource: &'static str,
    subresource: &'static str,
}

impl Write {
    pub(super) const fn new(
        what: &'static str,
        verbs: &'static [&'static str],
        resource: &'static str,
    ) -> Self {
        Self {
            what,
            verbs,
            resource,
            subresource: "",
        }
    }

    /// The same of a subresource.
    pub(super) const fn of(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    fn is(&self, event: &AuditEvent) -> bool {
        self.verbs.contains(&event.verb.as_str())
            && event.resource == self.resource
            && event.subresource == self.subresource
            && (200..300).contains(&event.code)
            && event.complete
    }
}

/// Kills the executor after the first such write since `since` and restarts it. Repeats this `times` times.
pub(super) async fn kill_after(
    solo: &mut SoloFixture,
    since: AuditPosition,
    write: Write,
    times: usize,
) -> Result<()> {
    let mut since = since;
    for _ in 0..times {
        solo.first_write(since, write.what, |event| write.is(event))
            .await?;
        solo.kill()?;
        since = solo.audit_position().await?;
        solo.start()?;
    }
    Ok(())
}

fn agent() -> WorkloadBuilder {
    daemon_set("agent").max_unavailable(2)
}

/// Starts the executor on nodes without pods. Returns the audit position before `agent` is created.
async fn start(solo: &mut SoloFixture) -> Result<(BudgetWatch, AuditPosition)> {
    solo.start()?;
    solo.add_nodes(NODES).await?;
    Ok((solo.watch("agent"), solo.audit_position().await?))
}

/// Starts the executor and waits until `agent` is rolled out. Returns the audit position after that.
async fn start_rolled_out(
    solo: &mut SoloFixture,
    agent: WorkloadBuilder,
) -> Result<(BudgetWatch, AuditPosition)> {
    let (watch, _) = start(solo).await?;
    solo.create(agent.build()).await?;
    solo.wait_until_settled("agent").await?;
    solo.wait_until_idle().await?;
    watch.arm().await?;
    Ok((watch, solo.audit_position().await?))
}

/// Waits until the rollout is complete. Fails unless exactly `made` pods were created in total.
async fn expect_completed(solo: &SoloFixture, watch: &BudgetWatch, made: usize) -> Result<()> {
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, made)?;
    solo.expect_running()
}

async fn expect_revisions(solo: &SoloFixture, expected: &[i64]) -> Result<()> {
    solo.eventually(format!("the revisions {expected:?}"), async || {
        let revisions = solo.revisions("agent").await?;
        ensure!(revisions == expected, "{revisions:?}");
        Ok(())
    })
    .await
}

async fn after_create_revision(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start(solo).await?;
    solo.create(agent().build()).await?;
    let write = Write::new("a new revision", &["create"], "controllerrevisions");
    kill_after(solo, position, write, 1).await?;
    expect_completed(solo, &watch, NODES).await?;
    expect_revisions(solo, &[1]).await
}

async fn after_create_pod(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start(solo).await?;
    // Enough pods that some are still missing at the second kill, even if the first kill comes late.
    let more = 60;
    solo.add_nodes(more).await?;
    solo.create(agent().build()).await?;
    kill_after(solo, position, Write::new("a new pod", &["create"], "pods"), 2).await?;
    expect_completed(solo, &watch, NODES + more).await
}

async fn after_adopt_pod(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start(solo).await?;
    let nodes = solo.node_names().await?;
    for node in &nodes[..4] {
        make_orphan(solo, &format!("orphan-on-{node}"), node).await?;
    }
    // OnDelete, because a rolling update would replace the orphans, which have no hash label.
    let ds = solo.create(daemon_set("agent").on_delete().build()).await?;
    let write = Write::new("an adopted pod", &["patch", "update"], "pods");
    kill_after(solo, position, write, 1).await?;
    solo.eventually("all orphans to be adopted", async || {
        solo.expect_one_pod_per_node("agent").await?;
        for pod in solo.live_pods("agent").await? {
            ensure!(
                controller_of(&pod.metadata) == ds.metadata.uid.as_deref(),
                "{} is not adopted",
                pod.name_any()
            );
        }
        Ok(())
    })
    .await?;
    let seen = watch.seen().await?;
    seen.expect_no_doubles()?;
    seen.expect_created(NODES)
}

async fn after_release_pod(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start_rolled_out(solo, agent()).await?;
    let pods = solo.live_pods("agent").await?;
    for pod in &pods[..2] {
        relabel(solo, &pod.name_any()).await?;
    }
    let write = Write::new("a released pod", &["patch", "update"], "pods");
    kill_after(solo, position, write, 1).await?;
    for pod in &pods[..2] {
        wait_until_released(solo, pod).await?;
    }
    expect_completed(solo, &watch, NODES + 2).await
}

async fn after_delete_pod(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start_rolled_out(solo, agent()).await?;
    solo.patch("agent", image_patch(2)).await?;
    let write = Write::new("a deleted pod", &["delete"], "pods");
    kill_after(solo, position, write, 3).await?;
    expect_completed(solo, &watch, 2 * NODES).await
}

async fn after_update_revision(solo: &mut SoloFixture) -> Result<()> {
    let (watch, _) = start_rolled_out(solo, agent()).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_settled("agent").await?;
    let position = solo.audit_position().await?;
    solo.patch("agent", image_patch(1)).await?;
    let write = Write::new(
        "a revision with a higher number",
        &["patch", "update"],
        "controllerrevisions",
    );
    kill_after(solo, position, write, 1).await?;
    expect_completed(solo, &watch, 3 * NODES).await?;
    expect_revisions(solo, &[2, 3]).await
}

async fn after_delete_revision(solo: &mut SoloFixture) -> Result<()> {
    let few = daemon_set("agent")
        .on_delete()
        .set("/spec", "revisionHistoryLimit", json!(1));
    let (watch, position) = start_rolled_out(solo, few).await?;
    solo.patch("agent", image_patch(2)).await?;
    expect_revisions(solo, &[1, 2]).await?;
    // No pod ever had the second template, so the limit of 1 lets the second revision be deleted.
    solo.patch("agent", image_patch(3)).await?;
    let write = Write::new("a deleted revision", &["delete"], "controllerrevisions");
    kill_after(solo, position, write, 1).await?;
    solo.wait_until_idle().await?;
    expect_revisions(solo, &[1, 3]).await?;
    watch.seen().await?.expect_no_doubles()?;
    watch.seen().await?.expect_created(NODES)
}

async fn after_update_status(solo: &mut SoloFixture) -> Result<()> {
    let status = || Write::new("a status", &["update", "patch"], "daemonsets").of("status");
    let (watch, position) = start(solo).await?;
    solo.create(agent().build()).await?;
    kill_after(solo, position, status(), 1).await?;
    // Another node, so that there is a status to write however late the kill was.
    let position = solo.audit_position().await?;
    solo.add_nodes(1).await?;
    kill_after(solo, position, status(), 1).await?;
    expect_completed(solo, &watch, NODES + 1).await
}

async fn after_emit_event(solo: &mut SoloFixture) -> Result<()> {
    let (watch, position) = start(solo).await?;
    solo.create(agent().build()).await?;
    kill_after(
        solo,
        position,
        Write::new("an event", &["create", "patch"], "events"),
        1,
    )
    .await?;
    expect_completed(solo, &watch, NODES).await
}
