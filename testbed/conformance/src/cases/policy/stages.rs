//! Stages: their order, and their soak.

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use kube::ResourceExt as _;
use nodewise_testbed::PodBehaviour;
use serde_json::{Value, json};

use super::{
    create, expect_versions,
    moves::{expect_in_order, moves, nodes_of_pods},
    only_pod, start,
};
use crate::{
    budget::{BudgetWatch, node_of},
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "policy-canary-then-zones",
        "A policy updates its canary, and after the canary's soak one zone after another. Nodes without the label come last.",
        policy_canary_then_zones
    ),
    shared!(
        "policy-soak-broken",
        "When a pod becomes unready while its stage soaks, the soak begins again, and no further node is touched before its end.",
        policy_soak_broken
    ),
];

/// The label of the zone of a node.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The soak of the canary, which the zones wait for. Long enough to be seen on a busy machine.
const SOAK: SignedDuration = SignedDuration::from_secs(6);

/// Rolls out version 1 of `agent` on nodes of two zones and one without a zone, and creates a policy with a canary and a wave for
/// each zone. Returns the nodes of the zones, those without one last, and a watch that checks the budget from then on.
pub(super) async fn start_zones(fixture: &Fixture) -> Result<(Vec<Vec<String>>, BudgetWatch)> {
    let watch = fixture.start_watched(7, 2).await?;
    let nodes = fixture.node_names().await?;
    // The nodes of a zone are not neighbours in the order of names.
    let mut zones = vec![Vec::new(), Vec::new(), Vec::new()];
    for (index, node) in nodes.iter().enumerate().skip(1) {
        let zone = ["b", "a"][index % 2];
        let labels = json!({ "metadata": { "labels": { ZONE: zone } } });
        fixture.patch_node(node, labels).await?;
        zones[usize::from(zone == "b")].push(node.clone());
    }
    zones[2].push(nodes[0].clone());
    let stages = json!([
        { "name": "canary", "replicas": 1, "nodeSelector": { "matchLabels": { ZONE: "b" } }, "soak": format!("{}s", SOAK.as_secs()) },
        { "name": "zones", "groupBy": ZONE },
    ]);
    create(fixture, json!({ "stages": stages })).await?;
    Ok((zones, watch))
}

/// The groups of nodes in the order in which a policy of [`start_zones`] updates them.
pub(super) fn in_order(mut zones: Vec<Vec<String>>, canary: &str) -> Vec<Vec<String>> {
    for zone in &mut zones {
        zone.retain(|node| node != canary);
    }
    let mut groups = vec![vec![canary.to_owned()]];
    groups.append(&mut zones);
    groups
}

// L-12, L-13, L-14, L-16
async fn policy_canary_then_zones(fixture: &Fixture) -> Result<()> {
    let (zones, watch) = start_zones(fixture).await?;
    let before = nodes_of_pods(fixture).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Soaking").await?;
    let canary = node_of(&only_pod(fixture, 2).await?);
    ensure!(zones[1].contains(&canary), "the canary {canary} is not in zone b");
    let target = fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    let moves = moves(fixture, &before).await?;
    let groups = in_order(zones, &canary);
    expect_in_order(&moves, &groups[..2], SOAK)?;
    expect_in_order(&moves, &groups[1..], SignedDuration::ZERO)?;
    let names: Vec<_> = target["stages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stage| (stage["name"].as_str().unwrap_or_default(), &stage["state"]))
        .collect();
    let complete = Value::from("Complete");
    let expected = ["canary", "zones/a", "zones/b", "zones/(none)"].map(|name| (name, &complete));
    ensure!(names == expected, "the status has the stages {names:?}");
    watch.seen().await?.expect_rollout(2, 14)
}

// L-14. The soak is too long for this case until its pod is ready again, so that the case cannot come too late.
async fn policy_soak_broken(fixture: &Fixture) -> Result<()> {
    let stages = |soak: &str| json!([{ "name": "canary", "replicas": 1, "soak": soak }, { "name": "rest" }]);
    let watch = start(fixture, 4, 2, json!({ "stages": stages("1h") })).await?;
    let before = nodes_of_pods(fixture).await?;
    fixture.patch("agent", image_patch(2)).await?;
    let target = fixture.wait_for_state(2, "Soaking").await?;
    let first = target["stages"][0]["soakStartTime"].clone();
    let canary = only_pod(fixture, 2).await?;
    let set = async |behaviour| {
        let (plane, name) = (fixture.cluster().plane(), canary.name_any());
        plane
            .set_pod_behaviour(fixture.namespace(), &name, behaviour)
            .await
    };
    set(PodBehaviour::Unready).await?;
    let target = fixture.wait_for_state(2, "Progressing").await?;
    let during = &target["stages"][0];
    ensure!(during["soakStartTime"].is_null(), "it still soaks: {during}");
    // The second soak must be told from the first one, and times have whole seconds.
    super::nodes::next_second(fixture).await?;
    set(PodBehaviour::Ready).await?;
    let target = fixture.wait_for_state(2, "Soaking").await?;
    let second = &target["stages"][0]["soakStartTime"];
    ensure!(
        first.as_str() < second.as_str(),
        "the soak that began at {second} did not begin after {first}"
    );
    expect_versions(fixture, 3, 1).await?;
    let patch = json!({ "spec": { "stages": stages("2s") } });
    fixture.patch_policy("agents", patch).await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    let moves = moves(fixture, &before).await?;
    let canary = node_of(&canary);
    let rest = moves.keys().filter(|node| **node != canary).cloned().collect();
    expect_in_order(&moves, &[vec![canary], rest], SignedDuration::from_secs(2))
        .context("the second soak")?;
    watch.seen().await?.expect_rollout(2, 8)
}
