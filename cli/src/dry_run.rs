//! Server-side dry runs: the apiserver completes, checks and admits a changed workload as it would a real write, and stores nothing.

use anyhow::{Context as _, anyhow};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    input::{Served, one_line},
    kind::Kind,
};

/// The field manager of kubectl, and the default of --field-manager.
pub(crate) const KUBECTL: &str = "kubectl";

/// A workload by its kind, namespace and name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) kind: Kind,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> From<&'a Served> for Named<'a> {
    fn from(workload: &'a Served) -> Self {
        Self {
            kind: workload.kind,
            namespace: &workload.namespace,
            name: &workload.name,
        }
    }
}

/// Applies a manifest, as `kubectl apply --server-side --dry-run=server` does. Fields of other managers are taken over, in the dry
/// run only. Returns the object that the apiserver would store; for a new workload, the object that it would create.
pub(crate) async fn apply(
    (client, url): (&Client, &str),
    workload: Named<'_>,
    manifest: &Value,
    manager: &str,
) -> anyhow::Result<Value> {
    let mut manifest = manifest.clone();
    strip(&mut manifest);
    manifest["apiVersion"] = json!(workload.kind.api_version());
    manifest["kind"] = json!(workload.kind.name());
    let params = PatchParams::apply(manager).dry_run().force();
    send(client, url, workload, &params, &Patch::Apply(manifest)).await
}

/// Sends a merge patch, which has the uid of the workload. Unknown fields are an error, as they are for `kubectl apply`.
pub(crate) async fn merge(
    (client, url): (&Client, &str),
    workload: Named<'_>,
    patch: Value,
    manager: &str,
) -> anyhow::Result<Value> {
    let params = PatchParams {
        dry_run: true,
        field_manager: Some(manager.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    send(client, url, workload, &params, &Patch::Merge(patch)).await
}

/// Sets images, as `kubectl set image --dry-run=server` does. `patch` is a strategic merge patch.
pub(crate) async fn patch(
    (client, url): (&Client, &str),
    workload: &Served,
    mut patch: Value,
    manager: &str,
) -> anyhow::Result<Value> {
    patch["metadata"]["uid"] = json!(workload.uid);
    let params = PatchParams {
        dry_run: true,
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    send(client, url, workload.into(), &params, &Patch::Strategic(patch)).await
}

async fn send(
    client: &Client,
    url: &str,
    workload: Named<'_>,
    params: &PatchParams,
    patch: &Patch<Value>,
) -> anyhow::Result<Value> {
    let Named {
        kind,
        namespace,
        name,
    } = workload;
    let gvk = GroupVersionKind::gvk("apps", "v1", kind.name());
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let answer = api.patch(name, params, patch).await;
    let answer = answer.map_err(|error| {
        let hint = match &error {
            kube::Error::Api(status) if status.is_forbidden() && status.message.contains("cannot patch") => {
                " (a dry run needs the right to patch; --local merges the change without it)"
            }
            _ => "",
        };
        anyhow!(
            "{url}: {} {namespace}/{name}: the dry run is refused: {}{hint}",
            kind.name(),
            one_line(&error)
        )
    })?;
    let mut object = serde_json::to_value(answer).context("cannot read the answer of the dry run")?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(object)
}

/// Removes what the apiserver alone sets. It is there if the manifest was printed by `kubectl get -o yaml`.
fn strip(manifest: &mut Value) {
    let Some(object) = manifest.as_object_mut() else {
        return;
    };
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "selfLink",
        ] {
            metadata.remove(field);
        }
    }
}
