//! The ReplicaSets of a Deployment: how they are created, adopted, released and deleted.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::{
    Resource as _, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::{delete_and_orphan, start, wait_until_gone};
use crate::{
    case::{Case, shared},
    cases::{
        placement::expect_nothing_forbidden,
        sizes::{SPARE, create_largest, wait_for_controller, wait_for_event},
    },
    fixture::Fixture,
    replicas::{HASH_LABEL, controller_of, revision_of},
    workload_builder::{deployment, image_patch, replica_set},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "deployment-create",
        "A Deployment gets one ReplicaSet with the hash of its template, as many pods as replicas, and revision 1.",
        create
    ),
    shared!(
        "deployment-adopt",
        "A Deployment adopts the ReplicaSet with its template, and no pod is touched.",
        adopt
    ),
    shared!(
        "deployment-too-large-to-adopt",
        "An orphaned ReplicaSet that is too large to be adopted is skipped and reported, and is adopted once it is smaller.",
        too_large_to_adopt
    ),
    shared!(
        "deployment-release",
        "A ReplicaSet whose labels no longer match is released and keeps its pods. The Deployment creates another one, with \
         another name.",
        release
    ),
    shared!(
        "deployment-name-collision",
        "When the name of a new ReplicaSet is taken by another one, the collision count rises and another name is used.",
        name_collision
    ),
    shared!(
        "deployment-history-limit",
        "At most revisionHistoryLimit old ReplicaSets are kept, and those with the lowest revisions are deleted.",
        history_limit
    ),
    shared!(
        "deployment-delete",
        "The ReplicaSets and pods of a deleted Deployment go away, and nothing is created again.",
        delete
    ),
];

// P-24, P-25, P-26
async fn create(fixture: &Fixture) -> Result<()> {
    let begun = fixture.begin_history("agent").await?;
    start(fixture, deployment("agent", 10)).await?;
    let history = fixture.history(&begun).await?;
    history.expect_pods(10, 0)?;
    let set = fixture.replica_set_of("agent", 1).await?;
    let hash = set.labels().get(HASH_LABEL).context("a hash")?;
    ensure!(set.name_any() == format!("agent-{hash}"), "{}", set.name_any());
    let deployment = fixture.deployment_api().get("agent").await?;
    let revisions = (revision_of(&set), revision_of(&deployment));
    ensure!(revisions == (Some("1"), Some("1")), "{revisions:?}");
    ensure!(
        controller_of(&set.metadata) == deployment.metadata.uid.as_deref(),
        "it is not controlled"
    );
    expect_nothing_forbidden(fixture).await
}

// P-12, P-13, P-16
async fn adopt(fixture: &Fixture) -> Result<()> {
    start(fixture, deployment("agent", 4)).await?;
    let first = fixture.replica_set_of("agent", 1).await?;
    delete_and_orphan(fixture).await?;
    let begun = fixture.begin_history("agent").await?;
    let deployment = fixture.start_deployment(deployment("agent", 4).build()).await?;
    let second = fixture.replica_set_of("agent", 1).await?;
    ensure!(first.metadata.uid == second.metadata.uid, "it is another one");
    ensure!(
        controller_of(&second.metadata) == deployment.metadata.uid.as_deref(),
        "it is not adopted"
    );
    fixture.history(&begun).await?.expect_pods(0, 0)
}

/// A ReplicaSet that is too large for an owner reference: the Deployment is rolled out without it.
async fn too_large_to_adopt(fixture: &Fixture) -> Result<()> {
    let name = "large-set";
    create_largest::<ReplicaSet>(fixture, |padding| {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": [padding] });
        json!({
            "metadata": { "name": name, "labels": { "app": "agent" }, "annotations": { SPARE: "y".repeat(1 << 10) } },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": { "app": "agent", "set": "large" } },
                "template": {
                    "metadata": { "labels": { "app": "agent", "set": "large" } },
                    "spec": { "containers": [container] },
                },
            },
        })
    })
    .await?;
    fixture.add_nodes(2).await?;
    let agent = fixture.start_deployment(deployment("agent", 3).build()).await?;
    wait_for_event(fixture, name).await?;
    wait_for_controller::<ReplicaSet>(fixture, name, None).await?;
    let smaller = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    let sets = fixture.replica_set_api();
    sets.patch(name, &PatchParams::default(), &smaller).await?;
    wait_for_controller::<ReplicaSet>(fixture, name, agent.metadata.uid.as_deref()).await
}

// P-12, P-27
async fn release(fixture: &Fixture) -> Result<()> {
    start(fixture, deployment("agent", 3)).await?;
    let first = fixture.replica_set_of("agent", 1).await?;
    let label = Patch::Merge(json!({ "metadata": { "labels": { "app": "debugging" } } }));
    fixture
        .replica_set_api()
        .patch(&first.name_any(), &PatchParams::default(), &label)
        .await?;
    fixture
        .eventually("the ReplicaSet to be released and replaced", async || {
            let released = fixture.replica_set_api().get(&first.name_any()).await?;
            ensure!(
                controller_of(&released.metadata).is_none(),
                "it is still controlled"
            );
            let ready = released.status.and_then(|status| status.ready_replicas);
            ensure!(ready == Some(3), "it has {ready:?} ready pods");
            let second = fixture.replica_set_of("agent", 1).await?;
            let ready = second.status.as_ref().and_then(|status| status.ready_replicas);
            ensure!(ready == Some(3), "the other one has {ready:?} ready pods");
            ensure!(second.name_any() != first.name_any(), "they have one name");
            Ok(())
        })
        .await
}

// P-27
async fn name_collision(fixture: &Fixture) -> Result<()> {
    start(fixture, deployment("agent", 2)).await?;
    let name = fixture.replica_set_of("agent", 1).await?.name_any();
    fixture
        .deployment_api()
        .delete("agent", &DeleteParams::background())
        .await?;
    wait_until_gone(fixture).await?;
    fixture
        .eventually("its ReplicaSet to be gone", async || {
            let left = fixture.replica_set_api().get_opt(&name).await?;
            ensure!(left.is_none(), "it is still there");
            Ok(())
        })
        .await?;
    let foreign = replica_set("other", 0).set("/metadata", "name", json!(name));
    let foreign: ReplicaSet = fixture.create_as(foreign.build()).await?;
    let deployment = fixture.start_deployment(deployment("agent", 2).build()).await?;
    let count = deployment.status.and_then(|status| status.collision_count);
    ensure!(count == Some(1), "the collision count is {count:?}");
    let set = fixture.replica_set_of("agent", 1).await?;
    ensure!(set.name_any() != name, "the name was free");
    let after = fixture.replica_set_api().get(&name).await?;
    ensure!(
        after.meta().uid == foreign.meta().uid && after.meta().owner_references.is_none(),
        "the other one was touched: {after:?}"
    );
    Ok(())
}

// P-51
async fn history_limit(fixture: &Fixture) -> Result<()> {
    let limited = deployment("agent", 2).set("/spec", "revisionHistoryLimit", json!(1));
    start(fixture, limited).await?;
    for version in [2, 3, 4] {
        fixture.patch_deployment("agent", image_patch(version)).await?;
        fixture.wait_for_deployment("agent").await?;
    }
    fixture.wait_for_sizes("agent", &[(3, 0), (4, 2)]).await
}

// P-64
async fn delete(fixture: &Fixture) -> Result<()> {
    let begun = start(fixture, deployment("agent", 4)).await?;
    let _: Deployment = fixture.patch_deployment("agent", image_patch(2)).await?;
    fixture.wait_for_deployment("agent").await?;
    delete_agent(fixture).await?;
    // Four pods of the second version; all eight are gone.
    fixture.history(&begun).await?.expect_pods(4, 8)
}

/// Deletes `agent`, and waits until its ReplicaSets and pods are gone.
pub(super) async fn delete_agent(fixture: &Fixture) -> Result<()> {
    fixture
        .deployment_api()
        .delete("agent", &DeleteParams::background())
        .await?;
    fixture
        .eventually("everything to be gone", async || {
            let (pods, sets) = (
                fixture.pods("agent").await?.len(),
                fixture.replica_sets("agent").await?.len(),
            );
            ensure!((pods, sets) == (0, 0), "{pods} pods and {sets} ReplicaSets");
            Ok(())
        })
        .await
}
