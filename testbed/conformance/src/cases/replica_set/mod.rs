//! ReplicaSets.

mod faults;
mod kills;
mod pods;
mod takeover;
mod wrong_plans;

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{ResourceExt as _, api::PostParams};
use serde_json::json;

use crate::{
    audit::AuditPosition,
    case::Case,
    fixture::{Fixture, SoloFixture},
    history::Beginning,
    workload_builder::replica_set,
};

/// The cases of ReplicaSets, by topic.
pub(super) const TOPICS: &[&[Case]] = &[
    pods::CASES,
    faults::CASES,
    kills::CASES,
    takeover::CASES,
    wrong_plans::CASES,
];

/// Creates pods without an owner that match the selector of `agent`.
async fn make_orphans(fixture: &Fixture, count: usize) -> Result<()> {
    let node = fixture.node_names().await?.swap_remove(0);
    for number in 0..count {
        let orphan: Pod = serde_json::from_value(json!({
            "metadata": { "name": format!("orphan-{number}"), "labels": { "app": "agent" } },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "registry.example/agent:1" }] },
        }))?;
        fixture.pod_api().create(&PostParams::default(), &orphan).await?;
    }
    Ok(())
}

/// Deletes a pod of a ReplicaSet and waits until there is another one.
async fn replace_one(fixture: &Fixture, name: &str) -> Result<()> {
    let count = fixture.uids(name).await?.len();
    let (pod, uid) = fixture.delete_a_pod(name).await?;
    fixture
        .eventually(format!("another pod instead of {pod}"), async || {
            let uids = fixture.uids(name).await?;
            ensure!(!uids.contains(&uid) && uids.len() == count, "{} pods", uids.len());
            Ok(())
        })
        .await?;
    fixture.wait_for_replica_set(name).await?;
    Ok(())
}

/// Adds nodes, creates `agent` with this many replicas and waits until it is complete.
async fn start(fixture: &Fixture, replicas: i32) -> Result<ReplicaSet> {
    fixture.add_nodes(2).await?;
    fixture
        .start_replica_set(replica_set("agent", replicas).build())
        .await
}

/// The same with an executor that was just started. Returns the begin of the history after that, and the audit position.
async fn start_solo(solo: &mut SoloFixture, replicas: i32) -> Result<(Beginning, AuditPosition)> {
    solo.start()?;
    let set = start(solo, replicas).await?;
    solo.wait_until_idle().await?;
    let begun = solo.begin_history(&set.name_any()).await?;
    Ok((begun, solo.audit_position().await?))
}
