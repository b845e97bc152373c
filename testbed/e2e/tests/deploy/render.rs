//! Renders the overlays and the chart.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::{Tool, manifests};
use serde_json::Value;

pub(crate) const NAMESPACE: &str = "nodewise-system";

const CHART: &str = "deploy/helm/nodewise";

/// The cluster-scoped kinds.
const CLUSTER_WIDE: [&str; 4] = [
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
];

/// The path of a file in the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn text(path: &str) -> Result<String> {
    fs::read_to_string(file(path)).with_context(|| format!("reading {path}"))
}

/// The names of all overlays.
pub(crate) fn overlays() -> Result<Vec<String>> {
    names("deploy/kustomize/overlays", "")
}

/// The names of all values files for the chart.
pub(crate) fn values() -> Result<Vec<String>> {
    names("deploy/helm/nodewise/ci", "-values.yaml")
}

fn names(folder: &str, suffix: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(file(folder)).with_context(|| format!("looking into {folder}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.push(name.strip_suffix(suffix).unwrap_or(&name).to_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// The objects of an overlay.
pub(crate) fn overlay(name: &str) -> Result<Vec<Value>> {
    manifests::kustomize(&file("deploy/kustomize/overlays").join(name))
}

/// The objects of the chart with these values and the default release name.
pub(crate) fn chart(values: &str) -> Result<Vec<Value>> {
    let values = file(CHART).join(format!("ci/{values}-values.yaml"));
    let mut objects = manifests::parse(&template(&["--values", &values.display().to_string()])?)?;
    for object in &mut objects {
        // Helm passes the namespace to the apiserver instead of writing it into objects.
        if is_in_namespace(object) {
            object["metadata"]["namespace"] = NAMESPACE.into();
        }
    }
    Ok(objects)
}

/// The arguments for rendering the chart.
pub(crate) const TEMPLATE: [&str; 5] = [
    "template",
    "nodewise",
    "--namespace",
    NAMESPACE,
    "--kube-version=1.36.0",
];

/// The output of `helm template` with these flags.
pub(crate) fn template(flags: &[&str]) -> Result<String> {
    helm(&[&TEMPLATE, flags].concat())
}

/// The output of `helm`. The chart is added as the last argument.
pub(crate) fn helm(arguments: &[&str]) -> Result<String> {
    helm_for(&file(CHART).display().to_string(), arguments)
}

/// The same with this chart.
pub(crate) fn helm_for(chart: &str, arguments: &[&str]) -> Result<String> {
    // Without the user's own settings.
    let home = tempfile::tempdir().context("making a home for helm")?;
    let output = Command::new(Tool::Helm.path()?)
        .env("HOME", home.path())
        .args(arguments)
        .arg(chart)
        .output()
        .context("running helm")?;
    let (said, complained) = (
        String::from_utf8(output.stdout)?,
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "helm {arguments:?}: {said}{complained}");
    Ok(said)
}

pub(crate) fn is_in_namespace(object: &Value) -> bool {
    object["kind"]
        .as_str()
        .is_some_and(|kind| !CLUSTER_WIDE.contains(&kind))
}

/// Kind and name of an object.
pub(crate) fn name(object: &Value) -> String {
    format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "")
}

/// The Deployments among these objects.
pub(crate) fn deployments(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().filter(|object| object["kind"] == "Deployment")
}
