//! An executor that owns only some of the DaemonSets.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    audit::AuditPosition,
    case::{Case, solo},
    fixture::SoloFixture,
    proxy::Mark,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[solo!(
    "only-selected",
    "With --selector the executor plans for and writes only matching DaemonSets. It leaves a DaemonSet alone that loses the \
         label, and takes over one that gets it.",
    only_selected
)];

const LABEL: &str = "nodewise.test/selected";

/// The label of a DaemonSet, with this value.
fn labels(value: &Value) -> Value {
    json!({ LABEL: value })
}

fn label_patch(value: &Value) -> Value {
    json!({ "metadata": { "labels": labels(value) } })
}

async fn only_selected(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(3).await?;
    let (mark, position) = (solo.proxy().mark(), solo.audit_position().await?);
    solo.start_with_flags(&format!("--selector {LABEL}=yes"))?;
    solo.create(daemon_set("second").build()).await?;
    let first = daemon_set("first").set("/metadata", "labels", labels(&json!("yes")));
    solo.roll_out("first", first.build()).await?;
    // Events that enqueue a DaemonSet.
    solo.patch("second", image_patch(2)).await?;
    solo.add_nodes(1).await?;
    solo.wait_until_settled("first").await?;
    solo.wait_until_idle().await?;
    left_alone(solo, "second", mark, position).await?;
    let pods = solo.pods("second").await?.len();
    ensure!(pods == 0, "second has {pods} pods");

    solo.patch("first", label_patch(&Value::Null)).await?;
    solo.patch("second", label_patch(&json!("yes"))).await?;
    solo.wait_until_settled("second").await?;
    solo.wait_until_idle().await?;
    let (mark, position) = (solo.proxy().mark(), solo.audit_position().await?);
    let before = solo.uids("first").await?;
    solo.patch("first", image_patch(2)).await?;
    solo.delete_a_pod("first").await?;
    solo.add_nodes(1).await?;
    solo.wait_until_settled("second").await?;
    solo.wait_until_idle().await?;
    left_alone(solo, "first", mark, position).await?;
    let after = solo.uids("first").await?;
    ensure!(after.is_subset(&before), "first has another pod");
    Ok(())
}

/// Fails if, since then, the executor asked for a plan for this DaemonSet, or wrote it or an object named after it.
async fn left_alone(solo: &SoloFixture, name: &str, mark: Mark, position: AuditPosition) -> Result<()> {
    let calls = solo.plan_calls(mark, name).len();
    ensure!(
        calls == 0,
        "{calls} plans were asked for {name}, which is not selected"
    );
    let mut writes = solo.writes_since(position).await?;
    writes.retain(|write| write.name.starts_with(name));
    ensure!(
        writes.is_empty(),
        "{name} is not selected, but written: {writes:?}"
    );
    Ok(())
}
