//! Objects of the maximum size that etcd stores, to which nothing can be added.

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

use crate::replicas::controller_of;
use crate::{
    case::{Case, shared, solo},
    fixture::{Fixture, SoloFixture},
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "too-large-to-adopt",
        "Orphans that are too large to be adopted are skipped and reported, block nothing, and are adopted once they are \
         smaller.",
        too_large_to_adopt
    ),
    solo!(
        "too-large-to-relabel",
        "When revisions with the same template are merged, a pod that is too large for another hash label is reported and \
         blocks nothing.",
        too_large_to_relabel
    ),
];

/// The default size limit of an etcd request, in bytes.
const MOST_BYTES: usize = 1_536 << 10;

/// The annotation whose removal makes an object smaller.
pub(super) const SPARE: &str = "example.com/spare";

/// The size difference between two tries to create an object, in bytes. An adoption or a new hash label adds more than
/// this.
const STEP: usize = 128;

/// Creates an object with as much padding as the apiserver accepts.
pub(super) async fn create_largest<K>(fixture: &Fixture, object: impl Fn(String) -> Value) -> Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    // The spare annotation and the other metadata take more than this.
    let mut padding = MOST_BYTES - (1 << 10);
    loop {
        let object: K = serde_json::from_value(object("x".repeat(padding)))?;
        match fixture.api::<K>().create(&PostParams::default(), &object).await {
            Ok(created) => return Ok(created),
            Err(kube::Error::Api(status)) if status.message.contains("too large") => {}
            Err(error) => return Err(error.into()),
        }
        padding = padding.checked_sub(STEP).context("nothing is small enough")?;
    }
}

/// Waits until the object has this controller, or none.
pub(super) async fn wait_for_controller<K>(fixture: &Fixture, name: &str, owner: Option<&str>) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = fixture.api();
    fixture
        .eventually(format!("{name} to have the controller {owner:?}"), async || {
            let object = api.get_metadata(name).await?;
            let found = controller_of(&object.metadata);
            ensure!(found == owner, "it has {found:?}");
            Ok(())
        })
        .await
}

/// Waits for an event that says that this object is too large.
pub(super) async fn wait_for_event(fixture: &Fixture, name: &str) -> Result<()> {
    fixture
        .eventually(format!("an event about {name}"), async || {
            let events = fixture.events("ObjectTooLarge").await?;
            let told = events
                .iter()
                .any(|event| event.message.as_deref().unwrap_or_default().contains(name));
            ensure!(told, "{} events are about others", events.len());
            Ok(())
        })
        .await
}

/// A revision and a pod that are too large for an owner reference: the DaemonSet is rolled out without them.
async fn too_large_to_adopt(fixture: &Fixture) -> Result<()> {
    let metadata = |name: &str| json!({ "name": name, "labels": { "app": "agent" }, "annotations": { SPARE: "y".repeat(1 << 10) } });
    create_largest::<ControllerRevision>(fixture, |padding| {
        json!({ "metadata": metadata("large-revision"), "revision": 1, "data": { "padding": padding } })
    })
    .await?;
    create_largest::<Pod>(fixture, |padding| {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": [padding] });
        json!({ "metadata": metadata("large-pod"), "spec": { "containers": [container], "schedulerName": "nobody" } })
    })
    .await?;
    fixture.add_nodes(2).await?;
    let agent = fixture.roll_out("agent", daemon_set("agent").build()).await?;
    for name in ["large-revision", "large-pod"] {
        wait_for_event(fixture, name).await?;
    }
    wait_for_controller::<ControllerRevision>(fixture, "large-revision", None).await?;
    wait_for_controller::<Pod>(fixture, "large-pod", None).await?;
    // Smaller objects can be adopted.
    let (params, smaller) = (
        PatchParams::default(),
        Patch::Merge(json!({ "metadata": { "annotations": null } })),
    );
    let revisions: Api<ControllerRevision> = fixture.api();
    revisions.patch("large-revision", &params, &smaller).await?;
    wait_for_controller::<ControllerRevision>(fixture, "large-revision", agent.metadata.uid.as_deref())
        .await?;
    fixture.pod_api().patch("large-pod", &params, &smaller).await?;
    wait_for_controller::<Pod>(fixture, "large-pod", agent.metadata.uid.as_deref()).await
}

/// A pod of the DaemonSet that is too large for a new hash label, and a second revision of the template.
async fn too_large_to_relabel(solo: &mut SoloFixture) -> Result<()> {
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
    wait_for_event(solo, "large-pod").await?;
    solo.eventually("the copy to be the only revision", async || {
        let numbers = solo.revisions("agent").await?;
        ensure!(numbers == [7], "{numbers:?}");
        Ok(())
    })
    .await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_for_rollout("agent").await?;
    // At its present size the pod cannot even be marked as in deletion.
    let smaller = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    solo.pod_api()
        .patch("large-pod", &PatchParams::default(), &smaller)
        .await?;
    Ok(())
}
