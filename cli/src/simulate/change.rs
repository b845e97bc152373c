//! Changes a workload as `kubectl set image` and `kubectl apply` do: in a dry run of the apiserver, or here.

mod difference;
mod images;
mod manifest;
mod merge;

use std::path::Path;

use anyhow::Context as _;
use kube::Client;
use serde_json::Value;

use crate::{
    dry_run::{self, KUBECTL, Named},
    flags::{DryRunArgs, SourceArgs},
    input::{Served, connect},
};

pub(crate) use difference::{differences, differences_at};
pub(crate) use merge::{applied_here, merged_into};

/// The changes that a command line asks for.
pub(crate) struct Asked<'a> {
    pub(crate) images: &'a [String],
    pub(crate) manifest: Option<&'a Path>,
    pub(crate) dry_run: &'a DryRunArgs,
    pub(crate) source: &'a SourceArgs,
}

impl Asked<'_> {
    /// The changed workload.
    pub(crate) async fn of(&self, workload: &Served) -> anyhow::Result<Served> {
        let before = value(workload)?;
        let manifest = self
            .manifest
            .map(|file| manifest::read(file, workload))
            .transpose()?;
        if manifest.is_none() && self.images.is_empty() {
            return served(workload, &before);
        }
        if self.dry_run.local || !self.source.files.is_empty() {
            return served(workload, &self.merged(workload, &before, manifest.as_ref())?);
        }
        let (kubeconfig, context) = (self.source.kubeconfig.as_deref(), self.source.context.as_deref());
        let (client, url) = connect(kubeconfig, context).await?;
        let (cluster, manager) = ((&client, &*url), self.dry_run.field_manager.as_str());
        let after = if let Some(mut manifest) = manifest {
            images::set(&mut manifest, self.images, &workload.title())?;
            applied(cluster, workload.into(), Some(&before), &manifest, manager).await?
        } else {
            let mut changed = before.clone();
            images::set(&mut changed, self.images, &workload.title())?;
            let patch = images::patch(&before, &changed);
            dry_run::patch(cluster, workload, patch, manager).await?
        };
        served(workload, &after)
    }

    fn merged(&self, workload: &Served, before: &Value, manifest: Option<&Value>) -> anyhow::Result<Value> {
        let mut after = match (self.manifest, manifest) {
            (Some(file), Some(manifest)) => {
                merge::applied(before, manifest).with_context(|| file.display().to_string())?
            }
            _ => before.clone(),
        };
        images::set(&mut after, self.images, &workload.title())?;
        merge::raise_generations(workload.kind, before, &mut after);
        Ok(after)
    }
}

/// The object that the apiserver would store if this manifest were applied, with a dry run. `before` is the present object.
///
/// An object that plain `kubectl apply` wrote has fields that no server-side apply removes, because the manager of that command is
/// another one. For such an object the dry run is what plain `kubectl apply` sends: a patch that removes what the manifest no longer
/// has. Another manager than kubectl's owns only what it has applied itself, so its dry run is a server-side apply.
pub(crate) async fn applied(
    apiserver: (&Client, &str),
    workload: Named<'_>,
    before: Option<&Value>,
    manifest: &Value,
    manager: &str,
) -> anyhow::Result<Value> {
    let written_by_kubectl = before.filter(|_| manager == KUBECTL);
    let last = written_by_kubectl.and_then(|before| Some((before, merge::last_applied(before)?)));
    let Some((before, last)) = last else {
        return dry_run::apply(apiserver, workload, manifest, manager).await;
    };
    let title = || {
        format!(
            "{} {}/{}",
            workload.kind.name(),
            workload.namespace,
            workload.name
        )
    };
    let patch = merge::patch(before, &last, manifest).with_context(title)?;
    dry_run::merge(apiserver, workload, patch, manager).await
}

/// The JSON of a workload.
pub(crate) fn value(workload: &Served) -> anyhow::Result<Value> {
    serde_json::from_str(workload.json.get())
        .with_context(|| format!("{}: cannot be read as JSON", workload.title()))
}

/// The fields of the spec that differ.
pub(crate) fn differences_of(before: &Served, after: &Served) -> anyhow::Result<Vec<String>> {
    Ok(differences(&value(before)?["spec"], &value(after)?["spec"]))
}

/// The changed workload, for requests.
pub(crate) fn served(workload: &Served, object: &Value) -> anyhow::Result<Served> {
    let json = serde_json::value::to_raw_value(object).context("cannot write the changed workload")?;
    Ok(Served {
        kind: workload.kind,
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        controller: workload.controller.clone(),
        json,
        origin: workload.origin.clone(),
    })
}
