//! Revisions that somebody else has written.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use nodewise_e2e::{DEADLINE, Rig, RigOptions, daemon_set, image_patch};
use nodewise_testbed::eventually;
use serde_json::json;

/// Puts a copy in the place of a DaemonSet's revision 1, as a backup would that is restored by a client whose JSON has `<`, `>`
/// and `&` as they are. The apiserver keeps these bytes, and refuses every patch because it would write others.
async fn restore_first(rig: &Rig, workload: &str, new_name: Option<&str>) -> Result<String> {
    let api: Api<ControllerRevision> = Api::namespaced(rig.client(), "default");
    let params = ListParams::default().labels(&format!("app={workload}"));
    let list = api.list(&params).await?;
    let first = list.items.into_iter().find(|revision| revision.revision == 1);
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
/// the revision was left out. One that has another name than Nodewise gives is replaced, and goes with the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_to_a_revision_that_cannot_be_changed() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(2)).await?;
    let names = ["same", "other"];
    for name in names {
        let container = json!({ "name": "main", "image": "registry.example/agent:1", "args": ["<a&b>"] });
        let object = daemon_set(name).set("/spec/template/spec", "containers", json!([container]));
        rig.create(object.build()).await?;
        rig.rolled_out(name).await?;
        rig.patch(name, image_patch(2)).await?;
        rig.rolled_out(name).await?;
    }
    rig.stop_executor().await?;
    let restored = [
        restore_first(&rig, names[0], None).await?,
        restore_first(&rig, names[1], Some("by-hand")).await?,
    ];
    rig.start_executor().await?;
    for (name, revision) in names.into_iter().zip(&restored) {
        rig.patch(name, image_patch(1)).await?;
        rig.rolled_out(name).await?;
        let images = rig.images(name).await?;
        assert_eq!(images, ["registry.example/agent:1"; 2]);
        eventually(DEADLINE, format!("an event about {revision}"), async || {
            let events = rig.kubectl(&["describe", "daemonset", name]).await?;
            let told = events
                .lines()
                .any(|line| line.contains("SealedRevision") && line.contains(revision));
            ensure!(told, "{events}");
            Ok(())
        })
        .await?;
    }
    // The new start finds two revisions of one template.
    rig.stop_executor().await?;
    rig.start_executor().await?;
    let api: Api<ControllerRevision> = Api::namespaced(rig.client(), "default");
    eventually(DEADLINE, "the restored revision to go", async || {
        ensure!(api.get_opt(&restored[1]).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    for name in names {
        rig.rolled_out(name).await?;
        assert_eq!(rig.images(name).await?, ["registry.example/agent:1"; 2]);
    }
    Ok(())
}
