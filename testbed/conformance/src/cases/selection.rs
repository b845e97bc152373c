//! An executor that owns only some of the DaemonSets.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    audit::Place,
    case::{Case, solo},
    daemon_set::{daemon_set, image_patch},
    proxy::Mark,
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[solo!(
    "only-selected",
    "With --selector only DaemonSets whose labels match are planned for and written; one that loses the label is left as it is, \
     and one that gets it is taken up.",
    only_selected
)];

const LABEL: &str = "nodewise.test/selected";

/// The labels of a DaemonSet that is selected, or is not any more.
fn labels(value: &Value) -> Value {
    json!({ LABEL: value })
}

fn label_patch(value: &Value) -> Value {
    json!({ "metadata": { "labels": labels(value) } })
}

async fn only_selected(solo: &mut Solo) -> Result<()> {
    solo.add_nodes(3).await?;
    let (mark, place) = (solo.proxy().mark(), solo.place().await?);
    solo.start_with_flags(&format!("--selector {LABEL}=yes"))?;
    solo.create(daemon_set("second").build()).await?;
    let first = daemon_set("first").set("/metadata", "labels", labels(&json!("yes")));
    solo.roll_out("first", first.build()).await?;
    // Whatever wakes a DaemonSet.
    solo.patch("second", image_patch(2)).await?;
    solo.add_nodes(1).await?;
    solo.settled("first").await?;
    solo.at_rest().await?;
    left_alone(solo, "second", mark, place).await?;
    let pods = solo.pods("second").await?.len();
    ensure!(pods == 0, "second has {pods} pods");

    solo.patch("first", label_patch(&Value::Null)).await?;
    solo.patch("second", label_patch(&json!("yes"))).await?;
    solo.settled("second").await?;
    solo.at_rest().await?;
    let (mark, place) = (solo.proxy().mark(), solo.place().await?);
    let before = solo.uids("first").await?;
    solo.patch("first", image_patch(2)).await?;
    solo.delete_a_pod("first").await?;
    solo.add_nodes(1).await?;
    solo.settled("second").await?;
    solo.at_rest().await?;
    left_alone(solo, "first", mark, place).await?;
    let after = solo.uids("first").await?;
    ensure!(after.is_subset(&before), "first has another pod");
    Ok(())
}

/// Fails if since then a plan was asked for this DaemonSet, or it or what is named after it was written.
async fn left_alone(solo: &Solo, name: &str, mark: Mark, place: Place) -> Result<()> {
    let calls = solo.plan_calls(mark, name).len();
    ensure!(
        calls == 0,
        "{calls} plans were asked for {name}, which is not selected"
    );
    let mut writes = solo.writes_since(place).await?;
    writes.retain(|write| write.name.starts_with(name));
    ensure!(
        writes.is_empty(),
        "{name} is not selected, but written: {writes:?}"
    );
    Ok(())
}
