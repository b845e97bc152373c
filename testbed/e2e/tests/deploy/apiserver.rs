//! A real apiserver accepts all objects with strict field validation, and all pods with Pod Security's strictest level.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api, Client,
    api::{DynamicObject, PatchParams},
};
use nodewise_conformance::DEADLINE;
use nodewise_testbed::{ControlPlane, eventually, manifests};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::{crds, documented, render};

/// A dry run that rejects unknown and duplicate fields.
fn dry_run() -> PatchParams {
    PatchParams::apply("test").dry_run().validation_strict()
}

/// A control plane with third-party CRDs and the namespace.
struct Apiserver {
    client: Client,
    plane: ControlPlane,
}

impl Apiserver {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::builder().start().await?;
        let client = plane.client();
        let params = PatchParams::apply("test");
        for definition in tokio::task::spawn_blocking(crds::all).await?? {
            manifests::apply(&client, &definition, &params).await?;
        }
        let overlay = tokio::task::spawn_blocking(|| render::overlay("own-monitored")).await??;
        let namespace = overlay.iter().find(|object| object["kind"] == "Namespace");
        manifests::apply(&client, namespace.context("a namespace")?, &params).await?;
        // The apiserver serves new kinds shortly after their CRD was created.
        eventually(DEADLINE, "the kinds of others", async || {
            for kind in ["Issuer", "Certificate", "PodMonitor", "PrometheusRule"] {
                let object = overlay.iter().find(|object| object["kind"] == kind);
                manifests::apply(&client, object.context(kind)?, &dry_run()).await?;
            }
            Ok(())
        })
        .await?;
        Ok(Self { client, plane })
    }

    async fn dry_run(&self, object: &Value) -> Result<DynamicObject> {
        manifests::apply(&self.client, object, &dry_run()).await
    }

    /// Fails unless the apiserver rejects the object for this reason.
    async fn refuses(&self, object: &Value, reason: &str) -> Result<()> {
        let Err(error) = self.dry_run(object).await else {
            anyhow::bail!("taken: {object:#}");
        };
        ensure!(format!("{error:#}").contains(reason), "{error:#}");
        Ok(())
    }
}

/// The pod of a Deployment.
fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": deployment["metadata"]["name"],
            "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
        },
        "spec": template["spec"],
    })
}

/// All objects of each overlay and of the chart, with their origin.
fn everything() -> Result<Vec<(String, Vec<Value>)>> {
    let mut all = vec![(
        "base".to_owned(),
        manifests::kustomize(&render::file("deploy/kustomize/base"))?,
    )];
    for name in render::overlays()? {
        all.push((format!("overlay {name}"), render::overlay(&name)?));
    }
    for name in render::values()? {
        all.push((format!("chart with {name}"), render::chart(&name)?));
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn apiserver_and_pod_security_accept_everything() -> Result<()> {
    let apiserver = Apiserver::start().await?;
    let (mut objects, mut pods) = (0, 0);
    for (from, manifests) in tokio::task::spawn_blocking(everything).await?? {
        for object in &manifests {
            apiserver.dry_run(object).await.with_context(|| from.clone())?;
            objects += 1;
        }
        for deployment in render::deployments(&manifests) {
            apiserver
                .dry_run(&pod(deployment))
                .await
                .with_context(|| from.clone())?;
            pods += 1;
        }
    }
    ensure!(
        objects > 200 && pods >= 26,
        "only {objects} objects and {pods} pods"
    );
    what_is_wrong_is_refused(&apiserver).await
}

/// Checks that the apiserver rejects wrong objects; otherwise its acceptance would mean nothing.
async fn what_is_wrong_is_refused(apiserver: &Apiserver) -> Result<()> {
    let overlay = tokio::task::spawn_blocking(|| render::overlay("own-monitored")).await??;
    let of_kind = |kind: &str| {
        overlay
            .iter()
            .find(|object| object["kind"] == kind)
            .cloned()
            .context(kind.to_owned())
    };
    for (kind, pointer, field) in [
        (
            "Deployment",
            "/spec/template/spec/containers/0",
            "imagePullPolciy",
        ),
        ("HorizontalPodAutoscaler", "/spec", "minReplica"),
        ("NetworkPolicy", "/spec", "ingres"),
        ("Certificate", "/spec", "dnsName"),
        ("PodMonitor", "/spec/podMetricsEndpoints/0", "honourLabels"),
        ("PrometheusRule", "/spec/groups/0/rules/0", "expression"),
    ] {
        let mut object = of_kind(kind)?;
        object
            .pointer_mut(pointer)
            .with_context(|| format!("{kind} has no {pointer}"))?[field] = json!("x");
        apiserver
            .refuses(&object, field)
            .await
            .with_context(|| kind.to_owned())?;
    }
    let deployment = of_kind("Deployment")?;
    for (pointer, field, value) in [
        ("/spec/securityContext", "runAsNonRoot", json!(false)),
        ("/spec", "hostNetwork", json!(true)),
        (
            "/spec/containers/0/securityContext",
            "allowPrivilegeEscalation",
            json!(true),
        ),
        (
            "/spec/containers/0/securityContext/capabilities",
            "drop",
            json!([]),
        ),
    ] {
        let mut pod = pod(&deployment);
        pod.pointer_mut(pointer)
            .with_context(|| format!("no {pointer}"))?[field] = value;
        apiserver
            .refuses(&pod, "violates PodSecurity \"restricted")
            .await
            .with_context(|| field.to_owned())?;
    }
    Ok(())
}

/// Installs the chart or upgrades it to these values. Returns the notes.
fn install(plane: &ControlPlane, values: &str, registry: &str) -> Result<String> {
    let values = render::file(&format!("deploy/helm/nodewise/ci/{values}-values.yaml"));
    let (values, kubeconfig) = (
        values.display().to_string(),
        plane.kubeconfig().display().to_string(),
    );
    let registry = format!("image.registry={registry}");
    let arguments = [
        "upgrade",
        "--install",
        "--namespace",
        render::NAMESPACE,
        "--kubeconfig",
        &kubeconfig,
    ];
    render::helm(
        &[
            &arguments[..],
            &["--values", &values, "--set", &registry, "nodewise"],
        ]
        .concat(),
    )
}

/// A change back to observe mode removes the rights to write.
#[tokio::test(flavor = "multi_thread")]
async fn helm_upgrade_to_observe_mode_removes_write_rights() -> Result<()> {
    let Apiserver { client, plane } = Apiserver::start().await?;
    let roles = Api::<ClusterRole>::all(client);
    let may_write = async || anyhow::Ok(roles.get_opt("nodewise-executor-own").await?.is_some());
    let notes = block_in_place(|| install(&plane, "own-monitored", "r.example"))?;
    ensure!(notes.contains("in mode own") && may_write().await?, "{notes}");
    // The notes must tell users to add to the flag's value, not to replace it.
    ensure!(notes.contains("must be off") && !notes.contains("*,"), "{notes}");
    ensure!(!notes.contains("WARNING"), "{notes}");
    let notes = block_in_place(|| install(&plane, "observe", ""))?;
    ensure!(
        notes.contains("in mode observe") && !may_write().await?,
        "{notes}"
    );
    ensure!(notes.contains("WARNING: image.registry is empty"), "{notes}");
    let notes = block_in_place(|| install(&plane, "companion", "r.example"))?;
    ensure!(
        notes.contains("stays on") && !notes.contains("must be off"),
        "{notes}"
    );
    Ok(())
}

/// kubectl does not remove objects by itself. The documented command must do it, for both modes that write.
#[tokio::test(flavor = "multi_thread")]
async fn documented_command_removes_write_rights() -> Result<()> {
    let Apiserver { client, plane } = Apiserver::start().await?;
    let params = PatchParams::apply("test");
    let objects = async |overlay| tokio::task::spawn_blocking(move || render::overlay(overlay)).await?;
    let stays: Vec<_> = objects("observe").await?.iter().map(render::name).collect();
    let delete = documented::delete_command()?;
    let (kubectl, arguments) = delete.split_first().context("a command")?;
    ensure!(kubectl == "kubectl", "{delete:?}");
    for overlay in ["own", "companion"] {
        let objects = objects(overlay).await?;
        for object in &objects {
            manifests::apply(&client, object, &params).await?;
        }
        plane.kubectl(arguments).await?;
        for object in &objects {
            let mut get = vec!["get".to_owned(), "--ignore-not-found".into(), "-o=name".into()];
            get.push(format!("--namespace={}", render::NAMESPACE));
            get.extend(render::name(object).split(' ').map(str::to_owned));
            let is_there = !plane.kubectl(get).await?.is_empty();
            let name = render::name(object);
            ensure!(is_there == stays.contains(&name), "{overlay}: {name}: {is_there}");
        }
    }
    Ok(())
}
