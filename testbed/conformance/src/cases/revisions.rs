//! Revisions: the history limit, and revisions that another client has written.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    case::{Case, shared, solo},
    fixture::{Fixture, SoloFixture},
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "revision-history-limit",
        "At most revisionHistoryLimit old revisions are kept.",
        revision_history_limit
    ),
    shared!(
        "revision-name-collision",
        "When the name of a new revision is taken by other data, the collision count rises and another name is used.",
        revision_name_collision
    ),
    solo!(
        "sealed-revision",
        "A revision that the apiserver refuses to update (422 for its data) does not block a rollback.",
        sealed_revision
    ),
];

// D-63, D-64
async fn revision_history_limit(fixture: &Fixture) -> Result<()> {
    let agent = daemon_set("agent")
        .max_unavailable("100%")
        .set("/spec", "revisionHistoryLimit", json!(2));
    fixture.start_as(2, agent).await?;
    for version in 2..=5 {
        fixture.patch("agent", image_patch(version)).await?;
        fixture.wait_for_rollout("agent").await?;
    }
    fixture
        .eventually("two old revisions and the current one", async || {
            let numbers = fixture.revisions("agent").await?;
            ensure!(numbers == [3, 4, 5], "{numbers:?}");
            Ok(())
        })
        .await
}

/// Creates and deletes `agent` to learn the name of its first revision, and creates a foreign revision with that name.
async fn take_revision_name(fixture: &Fixture) -> Result<ControllerRevision> {
    fixture.start_agent(2).await?;
    let first = fixture
        .revision_objects("agent")
        .await?
        .pop()
        .context("a revision")?;
    fixture.delete("agent").await?;
    let api: Api<ControllerRevision> = fixture.api();
    fixture
        .eventually("the revision to be gone", async || {
            ensure!(api.get_opt(&first.name_any()).await?.is_none(), "it is there");
            ensure!(fixture.pods("agent").await?.is_empty(), "its pods are there");
            Ok(())
        })
        .await?;
    let stranger: ControllerRevision = serde_json::from_value(json!({
        "metadata": { "name": first.name_any(), "labels": { "app": "stranger" } },
        "revision": 7, "data": { "somebody": "else" },
    }))?;
    Ok(api.create(&PostParams::default(), &stranger).await?)
}

// D-61, D-62: the name depends on the template and the collision count, not on the uid.
async fn revision_name_collision(fixture: &Fixture) -> Result<()> {
    let stranger = take_revision_name(fixture).await?;
    fixture.create(daemon_set("agent").build()).await?;
    let status = fixture.wait_for_rollout("agent").await?;
    ensure!(status.collision_count == Some(1), "{status:?}");
    let revisions = fixture.revision_objects("agent").await?;
    ensure!(
        revisions.len() == 1 && revisions[0].name_any() != stranger.name_any(),
        "its revisions are {:?}",
        revisions
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect::<Vec<_>>()
    );
    let now = fixture
        .api::<ControllerRevision>()
        .get(&stranger.name_any())
        .await?;
    ensure!(
        now.metadata.resource_version == stranger.metadata.resource_version,
        "the stranger was changed"
    );
    fixture.expect_one_pod_per_node("agent").await
}

/// Replaces revision 1 of a DaemonSet by a copy whose JSON has unescaped `<`, `>` and `&`, as a backup tool may restore
/// it. The apiserver keeps these bytes, and rejects every patch because it would store them escaped.
async fn restore_first(fixture: &Fixture, workload: &str, new_name: Option<&str>) -> Result<String> {
    let api: Api<ControllerRevision> = fixture.api();
    let revisions = fixture.revision_objects(workload).await?;
    let first = revisions.into_iter().find(|revision| revision.revision == 1);
    let mut copy = first.context("revision 1")?;
    api.delete(&copy.name_any(), &DeleteParams::default()).await?;
    let name = new_name.map_or_else(|| copy.name_any(), str::to_owned);
    copy.metadata.name = Some(name.clone());
    (copy.metadata.uid, copy.metadata.resource_version) = (None, None);
    copy.metadata.managed_fields = None;
    api.create(&PostParams::default(), &copy).await?;
    let patch = Patch::Merge(json!({ "revision": 1, "metadata": { "labels": { "any": "change" } } }));
    let refused = api.patch(&name, &PatchParams::default(), &patch).await;
    ensure!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.code == 422 && status.message.contains("data: Invalid value")),
        "the apiserver takes patches of such a revision by now: {refused:?}"
    );
    Ok(name)
}

/// The DaemonSet goes back to the template of a revision whose number cannot be raised. The rollback succeeds, and an
/// event says why the revision was left out. A restored revision with a name that the planner would not give is
/// replaced, and deleted after the next start.
async fn sealed_revision(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.add_nodes(2).await?;
    let names = ["same", "other"];
    for name in names {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": ["<a&b>"] });
        let object = daemon_set(name).set("/spec/template/spec", "containers", json!([container]));
        solo.roll_out(name, object.build()).await?;
        solo.patch(name, image_patch(2)).await?;
        solo.wait_for_rollout(name).await?;
    }
    solo.stop().await?;
    let restored = [
        restore_first(solo, names[0], None).await?,
        restore_first(solo, names[1], Some("by-hand")).await?,
    ];
    solo.start()?;
    for (name, revision) in names.into_iter().zip(&restored) {
        solo.patch(name, image_patch(1)).await?;
        solo.wait_for_rollout(name).await?;
        let first = solo.count_of_version(name, 1).await?;
        ensure!(first == 2, "{first} pods of {name} went back");
        solo.eventually(format!("an event about {revision}"), async || {
            let events = solo.events("SealedRevision").await?;
            let told = events
                .iter()
                .any(|event| event.message.as_deref().unwrap_or_default().contains(revision));
            ensure!(told, "{events:?}");
            Ok(())
        })
        .await?;
    }
    // After the restart the executor finds two revisions of one template.
    solo.stop().await?;
    solo.start()?;
    let api: Api<ControllerRevision> = solo.api();
    solo.eventually("the restored revision to go", async || {
        ensure!(api.get_opt(&restored[1]).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    for name in names {
        solo.wait_for_rollout(name).await?;
        let first = solo.count_of_version(name, 1).await?;
        ensure!(first == 2, "{first} pods of {name} stayed");
    }
    Ok(())
}
