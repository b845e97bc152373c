//! Objects that are as large as etcd stores them: nothing more can be written into them.

use std::fmt::Debug;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::ControllerRevision, core::v1::Pod},
};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::claims::controller_of;
use crate::{
    case::{Case, shared, solo},
    daemon_set::{daemon_set, image_patch},
    scene::{Scene, Solo},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "too-large-to-adopt",
        "Orphans that are too large to be adopted are left out and named, hold up nothing, and are adopted once they are smaller.",
        too_large_to_adopt
    ),
    solo!(
        "too-large-to-relabel",
        "A pod that is too large for another hash label is named, and holds up nothing when revisions of one template are merged.",
        too_large_to_relabel
    ),
];

/// Bytes of a request that etcd takes by default.
const MOST_BYTES: usize = 1_536 << 10;

/// The annotation that is taken away to make an object smaller.
const SPARE: &str = "example.com/spare";

/// How much smaller each try to create an object is. An adoption and another hash label add more.
const STEP: usize = 128;

/// Creates an object with as much padding as the apiserver takes.
async fn create_largest<K>(scene: &Scene, object: impl Fn(String) -> Value) -> Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    // The spare annotation and the rest of the metadata take more than this.
    let mut padding = MOST_BYTES - (1 << 10);
    loop {
        let object: K = serde_json::from_value(object("x".repeat(padding)))?;
        match scene.api::<K>().create(&PostParams::default(), &object).await {
            Ok(created) => return Ok(created),
            Err(kube::Error::Api(status)) if status.message.contains("too large") => {}
            Err(error) => return Err(error.into()),
        }
        padding = padding.checked_sub(STEP).context("nothing is small enough")?;
    }
}

/// Waits until `agent` is the controller of an object, or nobody is.
async fn controlled<K>(scene: &Scene, name: &str, owner: Option<&str>) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = scene.api();
    scene
        .eventually(format!("{name} to have the controller {owner:?}"), async || {
            let object = api.get_metadata(name).await?;
            let found = controller_of(&object.metadata);
            ensure!(found == owner, "it has {found:?}");
            Ok(())
        })
        .await
}

/// Waits until an event says that this object is too large.
async fn told(scene: &Scene, name: &str) -> Result<()> {
    scene
        .eventually(format!("an event about {name}"), async || {
            let events = scene.events("ObjectTooLarge").await?;
            let told = events
                .iter()
                .any(|event| event.message.as_deref().unwrap_or_default().contains(name));
            ensure!(told, "{} events are about others", events.len());
            Ok(())
        })
        .await
}

/// A revision and a pod, neither of which has room for an owner: the DaemonSet is rolled out without them.
async fn too_large_to_adopt(scene: &Scene) -> Result<()> {
    let metadata = |name: &str| json!({ "name": name, "labels": { "app": "agent" }, "annotations": { SPARE: "y".repeat(1 << 10) } });
    create_largest::<ControllerRevision>(scene, |padding| {
        json!({ "metadata": metadata("large-revision"), "revision": 1, "data": { "padding": padding } })
    })
    .await?;
    create_largest::<Pod>(scene, |padding| {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": [padding] });
        json!({ "metadata": metadata("large-pod"), "spec": { "containers": [container], "schedulerName": "nobody" } })
    })
    .await?;
    scene.add_nodes(2).await?;
    let agent = scene.roll_out("agent", daemon_set("agent").build()).await?;
    for name in ["large-revision", "large-pod"] {
        told(scene, name).await?;
    }
    controlled::<ControllerRevision>(scene, "large-revision", None).await?;
    controlled::<Pod>(scene, "large-pod", None).await?;
    // Smaller ones have room.
    let (params, smaller) = (
        PatchParams::default(),
        Patch::Merge(json!({ "metadata": { "annotations": null } })),
    );
    let revisions: Api<ControllerRevision> = scene.api();
    revisions.patch("large-revision", &params, &smaller).await?;
    controlled::<ControllerRevision>(scene, "large-revision", agent.metadata.uid.as_deref()).await?;
    scene.pod_api().patch("large-pod", &params, &smaller).await?;
    controlled::<Pod>(scene, "large-pod", agent.metadata.uid.as_deref()).await
}

/// A pod of the DaemonSet that has no room for another hash label, and a second revision of the template.
async fn too_large_to_relabel(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(2).await?;
    let first = solo
        .revision_objects("agent")
        .await?
        .pop()
        .context("agent has no revision")?;
    solo.stop().await?;
    let owners = &first.metadata.owner_references;
    create_largest::<Pod>(solo, |padding| {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": [padding] });
        json!({
            "metadata": {
                "name": "large-pod",
                "labels": first.metadata.labels,
                "ownerReferences": owners,
                "annotations": { SPARE: "y".repeat(1 << 10) },
            },
            "spec": { "containers": [container], "schedulerName": "nobody" },
        })
    })
    .await?;
    let copy = json!({
        "metadata": {
            "name": "copy",
            "labels": { "app": "agent", "controller-revision-hash": "c".repeat(63) },
            "ownerReferences": owners,
        },
        "data": first.data,
        "revision": 7,
    });
    let revisions: Api<ControllerRevision> = solo.api();
    revisions
        .create(&PostParams::default(), &serde_json::from_value(copy)?)
        .await?;
    solo.start()?;
    told(solo, "large-pod").await?;
    solo.eventually("the copy to be the only revision", async || {
        let numbers = solo.revisions("agent").await?;
        ensure!(numbers == [7], "{numbers:?}");
        Ok(())
    })
    .await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.rolled_out("agent").await?;
    // As it is, it has no room for the mark that it is being deleted either.
    let smaller = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    solo.pod_api()
        .patch("large-pod", &PatchParams::default(), &smaller)
        .await?;
    Ok(())
}
