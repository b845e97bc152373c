//! The owner of ReplicaSets changes from upstream's controller to the executor, or back. Nothing may change in the
//! cluster.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;

use super::replace_one;
use crate::{
    case::{Case, solo},
    cases::takeover::{expect_idle_executor, expect_idle_upstream},
    cluster::{EXECUTOR_USER, UPSTREAM_USER},
    cluster_state::{ClusterState, REPLICA_SETS},
    controllers::Controllers,
    fixture::{Fixture, SoloFixture},
    tricky_templates::{tricky_scheduling, tricky_strings, tricky_volumes},
    workload_builder::replica_set,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "rs-take-over-from-upstream",
        "The executor takes over ReplicaSets from kube-controller-manager: no pod restarts, and nothing is written.",
        take_over_from_upstream
    ),
    solo!(
        "rs-give-back-to-upstream",
        "kube-controller-manager takes over ReplicaSets from the executor, and finds nothing to do.",
        give_back_to_upstream
    ),
];

const NAMES: [&str; 3] = ["volumes", "scheduling", "strings"];
const REPLICAS: i32 = 3;

/// Creates the ReplicaSets and replaces a pod of each, under the present owner.
async fn make_history(fixture: &Fixture) -> Result<()> {
    for object in [
        tricky_volumes(replica_set("volumes", REPLICAS)),
        tricky_scheduling(replica_set("scheduling", REPLICAS)),
        tricky_strings(replica_set("strings", REPLICAS)),
    ] {
        let _: ReplicaSet = fixture.create_as(object.build()).await?;
    }
    for name in NAMES {
        fixture.wait_for_replica_set(name).await?;
        replace_one(fixture, name).await?;
    }
    fixture.wait_until_unchanged(REPLICA_SETS, &NAMES).await
}

/// The new owner works: it replaces a pod and scales, and no one else does.
async fn owner_works(fixture: &Fixture, before: &ClusterState, owner: &str) -> Result<()> {
    replace_one(fixture, NAMES[0]).await?;
    fixture.scale::<ReplicaSet>(NAMES[0], 5).await?;
    fixture.wait_for_replica_set(NAMES[0]).await?;
    fixture.expect_same(before, &NAMES[1..]).await?;
    let created = fixture.audit_since(before).await?.into_iter().filter(|event| {
        event.verb == "create"
            && event.resource == "pods"
            && event.subresource.is_empty()
            && event.code == 201
    });
    let users: Vec<_> = created.map(|event| event.user).collect();
    ensure!(users == [owner; 3], "pods were made by {users:?}");
    Ok(())
}

async fn take_over_from_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(3).await?;
    let upstream = solo
        .cluster()
        .start_built_in(Controllers::ReplicaSets.names())
        .await?;
    make_history(solo).await?;
    upstream.stop().await?;
    let mut before = solo.cluster_state(REPLICA_SETS, &NAMES).await?;
    let since = solo.proxy().mark();
    solo.start()?;
    expect_idle_executor(solo, since, &mut before, &NAMES).await?;
    owner_works(solo, &before, EXECUTOR_USER).await
}

async fn give_back_to_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(3).await?;
    solo.start()?;
    make_history(solo).await?;
    solo.stop().await?;
    let mut before = solo.cluster_state(REPLICA_SETS, &NAMES).await?;
    let upstream = solo
        .cluster()
        .start_built_in(Controllers::ReplicaSets.names())
        .await?;
    expect_idle_upstream(solo, &upstream, &mut before, &NAMES).await?;
    owner_works(solo, &before, UPSTREAM_USER).await?;
    upstream.stop().await
}
