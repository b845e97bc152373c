//! Reads and applies manifests.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::tools::Tool;

/// The objects of a YAML file. Empty documents are skipped.
///
/// # Errors
/// The text is not YAML.
pub fn parse(yaml: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    Ok(documents.into_iter().filter(|it| !it.is_null()).collect())
}

/// The objects of a kustomization.
///
/// # Errors
/// kubectl cannot be built, or the kustomization is invalid.
pub fn kustomize(folder: &Path) -> Result<Vec<Value>> {
    let output = Command::new(Tool::Kubectl.path()?)
        .arg("kustomize")
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .context("running kubectl kustomize")?;
    ensure!(
        output.status.success(),
        "kubectl kustomize {}: {}",
        folder.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    parse(&String::from_utf8(output.stdout)?).with_context(|| format!("what {} comes to", folder.display()))
}

/// Applies an object with server-side apply and returns the result. An object without a namespace is cluster-scoped.
///
/// # Errors
/// The apiserver rejects the object, or the value is not an object.
pub async fn apply(client: &Client, object: &Value, params: &PatchParams) -> Result<DynamicObject> {
    let what = || format!("applying {} {}", object["kind"], object["metadata"]["name"]);
    let dynamic: DynamicObject = serde_json::from_value(object.clone()).with_context(what)?;
    let types = dynamic.types.as_ref().with_context(what)?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types).with_context(what)?);
    let api: Api<DynamicObject> = match dynamic.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&dynamic.name_any(), params, &Patch::Apply(object))
        .await
        .with_context(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_documents_are_skipped() -> Result<()> {
        let objects = parse("# first\n---\nkind: A\n---\n# nothing\n---\nkind: B\n")?;
        assert_eq!(
            objects.iter().map(|object| &object["kind"]).collect::<Vec<_>>(),
            ["A", "B"]
        );
        Ok(())
    }
}
