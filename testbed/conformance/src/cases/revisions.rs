//! Revisions: how many are kept, and those that somebody else has written.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    case::{Case, shared, solo},
    daemon_set::{daemon_set, image_patch},
    scene::{Scene, Solo},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "revision-history-limit",
        "As many old revisions are kept as revisionHistoryLimit says.",
        revision_history_limit
    ),
    shared!(
        "revision-name-collision",
        "When a revision's name is taken by other data, the collision count rises and another name is found.",
        revision_name_collision
    ),
    solo!(
        "sealed-revision",
        "A revision that the apiserver does not let be changed (422 for its data) holds up no rollback.",
        sealed_revision
    ),
];

// D-63, D-64
async fn revision_history_limit(scene: &Scene) -> Result<()> {
    let agent = daemon_set("agent")
        .max_unavailable("100%")
        .set("/spec", "revisionHistoryLimit", json!(2));
    scene.start_as(2, agent).await?;
    for version in 2..=5 {
        scene.patch("agent", image_patch(version)).await?;
        scene.rolled_out("agent").await?;
    }
    scene
        .eventually("two old revisions and the current one", async || {
            let numbers = scene.revisions("agent").await?;
            ensure!(numbers == [3, 4, 5], "{numbers:?}");
            Ok(())
        })
        .await
}

/// Creates and deletes `agent` to learn the name of its first revision, and puts a stranger there.
async fn take_revision_name(scene: &Scene) -> Result<ControllerRevision> {
    scene.start_agent(2).await?;
    let first = scene
        .revision_objects("agent")
        .await?
        .pop()
        .context("a revision")?;
    scene.delete("agent").await?;
    let api: Api<ControllerRevision> = scene.api();
    scene
        .eventually("the revision to be gone", async || {
            ensure!(api.get_opt(&first.name_any()).await?.is_none(), "it is there");
            ensure!(scene.pods("agent").await?.is_empty(), "its pods are there");
            Ok(())
        })
        .await?;
    let stranger: ControllerRevision = serde_json::from_value(json!({
        "metadata": { "name": first.name_any(), "labels": { "app": "stranger" } },
        "revision": 7, "data": { "somebody": "else" },
    }))?;
    Ok(api.create(&PostParams::default(), &stranger).await?)
}

// D-61, D-62: the name is that of the template and the collision count, and not of the uid.
async fn revision_name_collision(scene: &Scene) -> Result<()> {
    let stranger = take_revision_name(scene).await?;
    scene.create(daemon_set("agent").build()).await?;
    let status = scene.rolled_out("agent").await?;
    ensure!(status.collision_count == Some(1), "{status:?}");
    let revisions = scene.revision_objects("agent").await?;
    ensure!(
        revisions.len() == 1 && revisions[0].name_any() != stranger.name_any(),
        "its revisions are {:?}",
        revisions
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect::<Vec<_>>()
    );
    let now = scene
        .api::<ControllerRevision>()
        .get(&stranger.name_any())
        .await?;
    ensure!(
        now.metadata.resource_version == stranger.metadata.resource_version,
        "the stranger was changed"
    );
    scene.expect_one_pod_per_node("agent").await
}

/// Puts a copy in the place of a DaemonSet's revision 1, as a backup would that is restored by a client whose JSON has `<`, `>`
/// and `&` as they are. The apiserver keeps these bytes, and refuses every patch because it would write others.
async fn restore_first(scene: &Scene, workload: &str, new_name: Option<&str>) -> Result<String> {
    let api: Api<ControllerRevision> = scene.api();
    let revisions = scene.revision_objects(workload).await?;
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

/// The DaemonSet goes back to the template of a revision that cannot be given a higher number: it does, and an event says why
/// the revision was left out. One that has another name than the planner gives is replaced, and goes with the next start.
async fn sealed_revision(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.add_nodes(2).await?;
    let names = ["same", "other"];
    for name in names {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": ["<a&b>"] });
        let object = daemon_set(name).set("/spec/template/spec", "containers", json!([container]));
        solo.roll_out(name, object.build()).await?;
        solo.patch(name, image_patch(2)).await?;
        solo.rolled_out(name).await?;
    }
    solo.stop().await?;
    let restored = [
        restore_first(solo, names[0], None).await?,
        restore_first(solo, names[1], Some("by-hand")).await?,
    ];
    solo.start()?;
    for (name, revision) in names.into_iter().zip(&restored) {
        solo.patch(name, image_patch(1)).await?;
        solo.rolled_out(name).await?;
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
    // The new start finds two revisions of one template.
    solo.stop().await?;
    solo.start()?;
    let api: Api<ControllerRevision> = solo.api();
    solo.eventually("the restored revision to go", async || {
        ensure!(api.get_opt(&restored[1]).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    for name in names {
        solo.rolled_out(name).await?;
        let first = solo.count_of_version(name, 1).await?;
        ensure!(first == 2, "{first} pods of {name} stayed");
    }
    Ok(())
}
