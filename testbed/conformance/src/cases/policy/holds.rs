//! What a policy holds back: all nodes while it is paused or outside its windows, and those of its partition.

use anyhow::{Result, ensure};
use jiff::{ToSpan as _, civil::Weekday, tz::TimeZone};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{expect_versions, start, wait_for_versions};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "policy-pause",
        "While a RolloutPolicy is paused no pod is replaced, and pods that are deleted or fail come back with the old template.",
        policy_pause
    ),
    shared!(
        "policy-partition",
        "A partition keeps exactly its nodes, a percentage that is rounded up, on the old template until it is lowered.",
        policy_partition
    ),
    shared!(
        "policy-window",
        "Outside its windows a policy replaces no pod. Inside one the rollout goes on.",
        policy_window
    ),
];

// L-6, L-8
async fn policy_pause(fixture: &Fixture) -> Result<()> {
    let watch = start(fixture, 3, 1, json!({ "paused": true })).await?;
    let before = fixture.uids("agent").await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Paused").await?;
    let (_, deleted) = fixture.delete_a_pod("agent").await?;
    wait_until_gone(fixture, &deleted).await?;
    let pods = fixture.live_pods("agent").await?;
    let old = pods
        .iter()
        .find(|pod| pod.uid().is_some_and(|uid| before.contains(&uid)));
    let failed = old.map(kube::ResourceExt::name_any).unwrap_or_default();
    let failed_uid = old.and_then(kube::ResourceExt::uid).unwrap_or_default();
    fixture.fail_pod(&failed).await?;
    wait_until_gone(fixture, &failed_uid).await?;
    wait_for_versions(fixture, 3, 0).await?;
    let kept = fixture.uids("agent").await?.intersection(&before).count();
    ensure!(kept == 1, "{kept} pods were left alone, where one should be");

    fixture
        .patch_policy("agents", json!({ "spec": { "paused": false } }))
        .await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    // One node lacks a pod because it was deleted, and one because it failed. Neither is the rollout's doing.
    watch.seen().await?.expect_rollout(1, 3 + 2 + 3)
}

/// Waits until this pod is gone and each node has a ready pod.
async fn wait_until_gone(fixture: &Fixture, uid: &str) -> Result<()> {
    fixture
        .eventually("another pod in its place", async || {
            let pods = fixture.pods("agent").await?;
            let is_there = pods.iter().any(|pod| pod.uid().as_deref() == Some(uid));
            ensure!(!is_there, "it is still there");
            fixture.expect_one_pod_per_node("agent").await?;
            let ready = pods.iter().filter(|pod| crate::is_ready(pod)).count();
            ensure!(ready == pods.len(), "{ready} of {} are ready", pods.len());
            Ok(())
        })
        .await
}

// L-6, L-9: 40 % of 6 is 2.4, rounded up to 3.
async fn policy_partition(fixture: &Fixture) -> Result<()> {
    let watch = start(fixture, 6, 2, json!({ "partition": "40%" })).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Partitioned").await?;
    wait_for_versions(fixture, 3, 3).await?;
    // A node of the partition that lost its pod gets another one of the same version.
    let withheld = fixture.live_pods("agent").await?.into_iter();
    let withheld = withheld.filter(|pod| super::image_of(pod).is_some_and(|image| image.ends_with(":1")));
    let Some(lost) = withheld.into_iter().next() else {
        anyhow::bail!("no pod has version 1");
    };
    fixture
        .pod_api()
        .delete(&lost.name_any(), &kube::api::DeleteParams::default())
        .await?;
    wait_until_gone(fixture, &lost.uid().unwrap_or_default()).await?;
    expect_versions(fixture, 3, 3).await?;
    fixture
        .patch_policy("agents", json!({ "spec": { "partition": 1 } }))
        .await?;
    wait_for_versions(fixture, 1, 5).await?;
    fixture.wait_for_state(2, "Partitioned").await?;
    fixture
        .patch_policy("agents", json!({ "spec": { "partition": 0 } }))
        .await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 6 + 1 + 6)
}

/// A window of these whole days, in UTC.
fn window(days: &[Weekday]) -> Value {
    let name = |day: &Weekday| match day {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    };
    let days: Vec<_> = days.iter().map(name).collect();
    json!([{ "days": days, "timeZone": "UTC" }])
}

// L-6, L-33
async fn policy_window(fixture: &Fixture) -> Result<()> {
    // A day may end meanwhile, so the open window has the neighbours of today, and the closed one is far from it.
    let today = jiff::Timestamp::now().to_zoned(TimeZone::UTC).date();
    let day = |days: i32| anyhow::Ok(today.checked_add(days.days())?.weekday());
    let (closed, open) = (window(&[day(3)?]), window(&[day(-1)?, day(0)?, day(1)?]));
    let watch = start(fixture, 3, 1, json!({ "windows": closed })).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "OutsideWindow").await?;
    let (_, deleted) = fixture.delete_a_pod("agent").await?;
    wait_until_gone(fixture, &deleted).await?;
    expect_versions(fixture, 3, 0).await?;
    fixture
        .patch_policy("agents", json!({ "spec": { "windows": open } }))
        .await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(1, 3 + 1 + 3)
}
