//! The executor is killed as soon as the apiserver has answered a write, once for each kind of write. Started again it has to
//! go on from what the cluster shows: no pod is made twice, no budget is lost.

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use nodewise_testbed::AuditEvent;
use serde_json::json;

use super::claims::{controller_of, make_orphan, relabel, released};
use crate::{
    audit::Place,
    budget::BudgetWatch,
    case::{Case, solo},
    daemon_set::{DaemonSetBuilder, daemon_set, image_patch},
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "kill-after-create-revision",
        "SIGKILL after a revision was created: it is found again, and no second one is made.",
        after_create_revision
    ),
    solo!(
        "kill-after-create-pod",
        "SIGKILL after a pod was created: its node gets no second one.",
        after_create_pod
    ),
    solo!(
        "kill-after-adopt-pod",
        "SIGKILL after a pod was adopted: the others are adopted too, and none is made beside them.",
        after_adopt_pod
    ),
    solo!(
        "kill-after-release-pod",
        "SIGKILL after a pod was released: it is replaced, once.",
        after_release_pod
    ),
    solo!(
        "kill-after-delete-pod",
        "SIGKILL after a pod was deleted in a rollout: it still counts against the budget.",
        after_delete_pod
    ),
    solo!(
        "kill-after-update-revision",
        "SIGKILL after a revision was given a higher number: the rollback goes on.",
        after_update_revision
    ),
    solo!(
        "kill-after-delete-revision",
        "SIGKILL after an old revision was deleted: no more of them go than the limit says.",
        after_delete_revision
    ),
    solo!(
        "kill-after-update-status",
        "SIGKILL after the status was written: it still becomes right.",
        after_update_status
    ),
    solo!(
        "kill-after-emit-event",
        "SIGKILL after an event was written: nothing is done again because of it.",
        after_emit_event
    ),
];

const NODES: usize = 8;

/// A kind of write that has been done.
struct Write {
    what: &'static str,
    verbs: &'static [&'static str],
    resource: &'static str,
    subresource: &'static str,
}

impl Write {
    const fn new(what: &'static str, verbs: &'static [&'static str], resource: &'static str) -> Self {
        Self {
            what,
            verbs,
            resource,
            subresource: "",
        }
    }

    fn is(&self, event: &AuditEvent) -> bool {
        self.verbs.contains(&event.verb.as_str())
            && event.resource == self.resource
            && event.subresource == self.subresource
            && (200..300).contains(&event.code)
            && event.complete
    }
}

/// Kills the executor after the first such write since then, starts it again, and does the same after the next one.
async fn kill_after(solo: &mut Solo, since: Place, write: Write, times: usize) -> Result<()> {
    let mut since = since;
    for _ in 0..times {
        solo.first_write(since, write.what, |event| write.is(event))
            .await?;
        solo.kill()?;
        since = solo.place().await?;
        solo.start()?;
    }
    Ok(())
}

fn agent() -> DaemonSetBuilder {
    daemon_set("agent").max_unavailable(2)
}

/// Starts the executor on nodes without pods. Gives the place before `agent` is created.
async fn start(solo: &mut Solo) -> Result<(BudgetWatch, Place)> {
    solo.start()?;
    solo.add_nodes(NODES).await?;
    Ok((solo.watch("agent"), solo.place().await?))
}

/// Starts the executor and has `agent` rolled out. Gives the place after it.
async fn start_rolled_out(solo: &mut Solo, agent: DaemonSetBuilder) -> Result<(BudgetWatch, Place)> {
    let (watch, _) = start(solo).await?;
    solo.create(agent.build()).await?;
    solo.settled("agent").await?;
    solo.at_rest().await?;
    watch.arm().await?;
    Ok((watch, solo.place().await?))
}

/// Waits for the end, at which so many pods were ever made.
async fn ends_well(solo: &Solo, watch: &BudgetWatch, made: usize) -> Result<()> {
    solo.settled("agent").await?;
    watch.seen().await?.expect_rollout(2, made)?;
    solo.expect_running()
}

async fn expect_revisions(solo: &Solo, expected: &[i64]) -> Result<()> {
    solo.eventually(format!("the revisions {expected:?}"), async || {
        let revisions = solo.revisions("agent").await?;
        ensure!(revisions == expected, "{revisions:?}");
        Ok(())
    })
    .await
}

async fn after_create_revision(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start(solo).await?;
    solo.create(agent().build()).await?;
    let write = Write::new("a new revision", &["create"], "controllerrevisions");
    kill_after(solo, place, write, 1).await?;
    ends_well(solo, &watch, NODES).await?;
    expect_revisions(solo, &[1]).await
}

async fn after_create_pod(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start(solo).await?;
    // So many that some are left for the second time, though the first signal may come late.
    let more = 60;
    solo.add_nodes(more).await?;
    solo.create(agent().build()).await?;
    kill_after(solo, place, Write::new("a new pod", &["create"], "pods"), 2).await?;
    ends_well(solo, &watch, NODES + more).await
}

async fn after_adopt_pod(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start(solo).await?;
    let nodes = solo.node_names().await?;
    for node in &nodes[..4] {
        make_orphan(solo, &format!("orphan-on-{node}"), node).await?;
    }
    // OnDelete: the orphans have no hash and would be replaced.
    let ds = solo.create(daemon_set("agent").on_delete().build()).await?;
    let write = Write::new("an adopted pod", &["patch", "update"], "pods");
    kill_after(solo, place, write, 1).await?;
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

async fn after_release_pod(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start_rolled_out(solo, agent()).await?;
    let pods = solo.live_pods("agent").await?;
    for pod in &pods[..2] {
        relabel(solo, &pod.name_any()).await?;
    }
    let write = Write::new("a released pod", &["patch", "update"], "pods");
    kill_after(solo, place, write, 1).await?;
    for pod in &pods[..2] {
        released(solo, pod).await?;
    }
    ends_well(solo, &watch, NODES + 2).await
}

async fn after_delete_pod(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start_rolled_out(solo, agent()).await?;
    solo.patch("agent", image_patch(2)).await?;
    let write = Write::new("a deleted pod", &["delete"], "pods");
    kill_after(solo, place, write, 3).await?;
    ends_well(solo, &watch, 2 * NODES).await
}

async fn after_update_revision(solo: &mut Solo) -> Result<()> {
    let (watch, _) = start_rolled_out(solo, agent()).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.settled("agent").await?;
    let place = solo.place().await?;
    solo.patch("agent", image_patch(1)).await?;
    let write = Write::new(
        "a revision with a higher number",
        &["patch", "update"],
        "controllerrevisions",
    );
    kill_after(solo, place, write, 1).await?;
    ends_well(solo, &watch, 3 * NODES).await?;
    expect_revisions(solo, &[2, 3]).await
}

async fn after_delete_revision(solo: &mut Solo) -> Result<()> {
    let few = daemon_set("agent")
        .on_delete()
        .set("/spec", "revisionHistoryLimit", json!(1));
    let (watch, place) = start_rolled_out(solo, few).await?;
    solo.patch("agent", image_patch(2)).await?;
    expect_revisions(solo, &[1, 2]).await?;
    // Nothing holds the second revision then: no pod ever had its template.
    solo.patch("agent", image_patch(3)).await?;
    let write = Write::new("a deleted revision", &["delete"], "controllerrevisions");
    kill_after(solo, place, write, 1).await?;
    solo.at_rest().await?;
    expect_revisions(solo, &[1, 3]).await?;
    watch.seen().await?.expect_no_doubles()?;
    watch.seen().await?.expect_created(NODES)
}

async fn after_update_status(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start(solo).await?;
    solo.create(agent().build()).await?;
    let write = Write {
        what: "a status",
        verbs: &["update", "patch"],
        resource: "daemonsets",
        subresource: "status",
    };
    kill_after(solo, place, write, 2).await?;
    ends_well(solo, &watch, NODES).await
}

async fn after_emit_event(solo: &mut Solo) -> Result<()> {
    let (watch, place) = start(solo).await?;
    solo.create(agent().build()).await?;
    kill_after(
        solo,
        place,
        Write::new("an event", &["create", "patch"], "events"),
        1,
    )
    .await?;
    ends_well(solo, &watch, NODES).await
}
