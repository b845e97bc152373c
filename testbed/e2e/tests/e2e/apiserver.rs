//! What kube-apiserver itself does to DaemonSets and revisions. The planner does not rely on it (D-120).

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use kube::{
    Api, Error,
    api::{Patch, PatchParams, PostParams},
};
use nodewise_conformance::{daemon_set, image_patch};
use nodewise_testbed::ControlPlane;
use serde_json::{Value, json};

const GENERATION: &str = "deprecated.daemonset.template.generation";

struct Apiserver {
    plane: ControlPlane,
}

impl Apiserver {
    fn api(&self) -> Api<DaemonSet> {
        Api::namespaced(self.plane.client(), "default")
    }

    async fn create(&self, object: Value) -> Result<DaemonSet, Error> {
        let object = serde_json::from_value(object).expect("the test's DaemonSet is one");
        self.api().create(&PostParams::default(), &object).await
    }

    async fn patch(&self, name: &str, patch: Value) -> Result<DaemonSet, Error> {
        self.api()
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
    }
}

fn refused_as_invalid<T>(result: Result<T, Error>, field: &str) -> Result<()> {
    match result {
        Err(Error::Api(status)) if status.code == 422 && status.message.contains(field) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("expected a 422 about {field}")),
        Ok(_) => anyhow::bail!("it was accepted, in spite of {field}"),
    }
}

/// D-114 to D-119, on one apiserver because its start takes most of the time.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_and_validation() -> Result<()> {
    let apiserver = Apiserver {
        plane: ControlPlane::builder().start().await?,
    };
    defaults(&apiserver).await?;
    limits(&apiserver).await?;
    template_and_selector(&apiserver).await?;
    status_and_generations(&apiserver).await?;
    revisions(&apiserver).await
}

// D-114
async fn defaults(apiserver: &Apiserver) -> Result<()> {
    let made = apiserver.create(daemon_set("defaults").build()).await?;
    let spec = serde_json::to_value(made.spec.context("a spec")?)?;
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } });
    assert_eq!(spec["updateStrategy"], rolling);
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec.get("minReadySeconds"), None, "0 is not served");
    let on_delete = apiserver
        .create(daemon_set("on-delete").on_delete().build())
        .await?;
    let strategy = serde_json::to_value(on_delete.spec.context("a spec")?.update_strategy)?;
    assert_eq!(strategy, json!({ "type": "OnDelete" }));
    Ok(())
}

// D-115
async fn limits(apiserver: &Apiserver) -> Result<()> {
    for (unavailable, surge) in [
        (json!(0), json!(0)),
        (json!(1), json!(1)),
        (json!("0%"), json!(0)),
    ] {
        let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
        let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": rolling });
        let result = apiserver
            .create(daemon_set("limits").strategy(strategy).build())
            .await;
        refused_as_invalid(result, "rollingUpdate")?;
    }
    refused_as_invalid(
        apiserver
            .create(daemon_set("limits").max_unavailable("101%").build())
            .await,
        "100%",
    )?;
    refused_as_invalid(
        apiserver
            .create(daemon_set("limits").max_unavailable("5").build())
            .await,
        "maxUnavailable",
    )?;
    apiserver
        .create(daemon_set("limits").max_surge("10%").build())
        .await?;
    Ok(())
}

// D-116
async fn template_and_selector(apiserver: &Apiserver) -> Result<()> {
    let empty = daemon_set("refused").set("/spec", "selector", json!({})).build();
    refused_as_invalid(apiserver.create(empty).await, "spec.selector")?;
    let other = daemon_set("refused")
        .set("/spec", "selector", json!({ "matchLabels": { "app": "other" } }))
        .build();
    refused_as_invalid(apiserver.create(other).await, "spec.template.metadata.labels")?;
    let once = daemon_set("refused")
        .set("/spec/template/spec", "restartPolicy", json!("Never"))
        .build();
    refused_as_invalid(apiserver.create(once).await, "restartPolicy")?;
    let changed = json!({ "spec": {
        "selector": { "matchLabels": { "app": "x" } }, "template": { "metadata": { "labels": { "app": "x" } } },
    } });
    refused_as_invalid(apiserver.patch("defaults", changed).await, "immutable")
}

// D-117, D-118
async fn status_and_generations(apiserver: &Apiserver) -> Result<()> {
    let generations = |object: &DaemonSet| {
        let template = object
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(GENERATION).cloned());
        (object.metadata.generation, template)
    };
    let made = apiserver.create(daemon_set("generations").build()).await?;
    assert_eq!(generations(&made), (Some(1), Some("1".into())));
    let limited = apiserver
        .patch("generations", json!({ "spec": { "minReadySeconds": 5 } }))
        .await?;
    assert_eq!(
        generations(&limited),
        (Some(2), Some("1".into())),
        "the template did not change"
    );
    let changed = apiserver.patch("generations", image_patch(2)).await?;
    assert_eq!(generations(&changed), (Some(3), Some("2".into())));
    let edited = json!({ "metadata": { "annotations": { GENERATION: "7" } } });
    assert_eq!(
        generations(&apiserver.patch("generations", edited).await?).1,
        Some("2".into())
    );

    let mut object = changed;
    object.metadata.resource_version = None;
    let status = json!({ "collisionCount": 2, "currentNumberScheduled": 0, "desiredNumberScheduled": 0,
        "numberMisscheduled": 0, "numberReady": 0 });
    object.status = Some(serde_json::from_value(status)?);
    object.spec.as_mut().context("a spec")?.min_ready_seconds = Some(77);
    let written = apiserver
        .api()
        .replace_status("generations", &PostParams::default(), &object)
        .await?;
    assert_eq!(
        written.status.as_ref().and_then(|status| status.collision_count),
        Some(2)
    );
    assert_eq!(
        written.spec.context("a spec")?.min_ready_seconds,
        Some(5),
        "a status write leaves the spec"
    );
    object.status.as_mut().context("a status")?.collision_count = Some(1);
    let shrunk = apiserver
        .api()
        .replace_status("generations", &PostParams::default(), &object)
        .await;
    refused_as_invalid(shrunk, "collisionCount")
}

// D-119
async fn revisions(apiserver: &Apiserver) -> Result<()> {
    let api: Api<ControllerRevision> = Api::namespaced(apiserver.plane.client(), "default");
    let revision = |data: Value| -> Result<ControllerRevision> {
        Ok(serde_json::from_value(
            json!({ "metadata": { "name": "r" }, "revision": 1, "data": data }),
        )?)
    };
    refused_as_invalid(
        api.create(&PostParams::default(), &revision(json!([1]))?).await,
        "data",
    )?;
    api.create(&PostParams::default(), &revision(json!({ "a": 1 }))?)
        .await?;
    let patch = |patch: Value| async {
        api.patch("r", &PatchParams::default(), &Patch::Merge(patch))
            .await
    };
    refused_as_invalid(patch(json!({ "data": { "a": 2 } })).await, "immutable")?;
    let renumbered = patch(json!({ "revision": 9 })).await?;
    ensure!(renumbered.revision == 9, "renumbered to {}", renumbered.revision);
    Ok(())
}
