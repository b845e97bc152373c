//! Changes a workload as `kubectl set image` and `kubectl apply` do: in a dry run of the apiserver, or here.

use std::{fs, io::Read as _, path::Path};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::{
    dry_run,
    flags::{DryRunArgs, SourceArgs},
    input::{Served, connect},
    kind::Kind,
};

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
            .map(|file| read_manifest(file, workload))
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
            set_images(&mut manifest, self.images, &workload.title())?;
            dry_run::apply(cluster, workload.into(), &manifest, manager).await?
        } else {
            let mut changed = before.clone();
            set_images(&mut changed, self.images, &workload.title())?;
            let patch = image_patch(&before, &changed);
            dry_run::patch(cluster, workload, patch, manager).await?
        };
        served(workload, &after)
    }

    fn merged(&self, workload: &Served, before: &Value, manifest: Option<&Value>) -> anyhow::Result<Value> {
        let mut after = before.clone();
        if let (Some(file), Some(manifest)) = (self.manifest, manifest) {
            apply(&mut after, manifest).with_context(|| file.display().to_string())?;
        }
        set_images(&mut after, self.images, &workload.title())?;
        raise_generations(workload.kind, before, &mut after);
        Ok(after)
    }
}

/// The workload with the fields of a manifest, merged here.
pub(crate) fn merged_into(kind: Kind, before: &Value, manifest: &Value) -> anyhow::Result<Value> {
    let mut after = before.clone();
    apply(&mut after, manifest)?;
    raise_generations(kind, before, &mut after);
    Ok(after)
}

/// Reads the manifest of the workload: a file with one object.
fn read_manifest(file: &Path, workload: &Served) -> anyhow::Result<Value> {
    let name = file.display();
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    let text = text.with_context(|| format!("{name}: cannot be read"))?;
    let manifest: Value =
        serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{name}: is not YAML: {error}"))?;
    let of = |field: &str| manifest["metadata"][field].as_str();
    ensure!(
        manifest["kind"] == workload.kind.name()
            && of("name") == Some(&workload.name)
            && of("namespace").is_none_or(|namespace| namespace == workload.namespace),
        "{name}: is {} {}; expected {}",
        manifest["kind"].as_str().unwrap_or("an object without kind"),
        of("name").unwrap_or("without a name"),
        workload.title()
    );
    Ok(manifest)
}

/// The strategic merge patch with the images that differ.
fn image_patch(before: &Value, after: &Value) -> Value {
    let mut spec = json!({});
    for field in ["containers", "initContainers"] {
        let list = |object: &Value| {
            let list = object["spec"]["template"]["spec"][field].as_array();
            list.cloned().unwrap_or_default()
        };
        let changed: Vec<Value> = list(before)
            .iter()
            .zip(list(after))
            .filter(|(old, new)| old["image"] != new["image"])
            .map(|(_, new)| json!({"name": new["name"], "image": new["image"]}))
            .collect();
        if !changed.is_empty() {
            spec[field] = Value::Array(changed);
        }
    }
    json!({"spec": {"template": {"spec": spec}}})
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

/// The annotation that counts changes of a DaemonSet's template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The workload with new images.
fn set_images(object: &mut Value, images: &[String], title: &str) -> anyhow::Result<()> {
    for image in images {
        let (container, image) = match image.split_once('=') {
            Some((container, image)) => (Some(container), image),
            None => (None, image.as_str()),
        };
        ensure!(!image.is_empty(), "--image: the image is empty");
        set_image(object, container, image, title)?;
    }
    Ok(())
}

fn set_image(object: &mut Value, container: Option<&str>, image: &str, title: &str) -> anyhow::Result<()> {
    let spec = &mut object["spec"]["template"]["spec"];
    let mut all: Vec<&mut Value> = Vec::new();
    if let Some(spec) = spec.as_object_mut() {
        for (field, list) in spec.iter_mut() {
            // An image without a name is for the only container; init containers are always named.
            if field == "containers" || (field == "initContainers" && container.is_some()) {
                all.extend(list.as_array_mut().into_iter().flatten());
            }
        }
    }
    let name = |container: &Value| container["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = all.iter().map(|container| name(container)).collect();
    let mut wanted = all
        .into_iter()
        .filter(|found| container.is_none_or(|wanted| found["name"] == wanted));
    match (wanted.next(), wanted.next()) {
        (Some(found), None) => {
            found["image"] = json!(image);
            Ok(())
        }
        (Some(_), Some(_)) => bail!(
            "--image {image}: {title} has the containers {}; name one: --image {}={image}",
            names.join(", "),
            names[0]
        ),
        (None, _) => bail!(
            "--image {}={image}: {title} has no such container; it has {}",
            container.unwrap_or_default(),
            names.join(", ")
        ),
    }
}

/// The workload with the fields of a manifest. Lists whose elements have names are merged by name; the manifest decides which
/// elements there are, and their order.
fn apply(object: &mut Value, manifest: &Value) -> anyhow::Result<()> {
    let Some(spec) = manifest.get("spec") else {
        bail!("spec is missing in the manifest");
    };
    ensure!(
        manifest["spec"].get("selector").is_none() || same(&object["spec"]["selector"], &spec["selector"]),
        "spec.selector: is another one than that of the workload; the apiserver refuses to change it"
    );
    merge(&mut object["spec"], spec);
    for field in ["labels", "annotations"] {
        if let Some(change) = manifest["metadata"].get(field) {
            merge(&mut object["metadata"][field], change);
        }
    }
    Ok(())
}

/// Whether two selectors are equal, apart from fields that are absent in one and empty in the other.
fn same(a: &Value, b: &Value) -> bool {
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.is_null();
    ["matchLabels", "matchExpressions"]
        .iter()
        .all(|field| a[field] == b[field] || (is_empty(&a[field]) && is_empty(&b[field])))
}

fn merge(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                if value.is_null() {
                    target.remove(key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(target), Value::Array(change)) if change.iter().all(|one| one["name"].is_string()) => {
            let before = std::mem::take(target);
            target.extend(change.iter().map(|change| {
                let known = before.iter().find(|one| one["name"] == change["name"]);
                let mut merged = known.cloned().unwrap_or(Value::Null);
                merge(&mut merged, change);
                merged
            }));
        }
        (target, change) => *target = change.clone(),
    }
}

/// Raises the generations as the apiserver does when it stores the changed object.
fn raise_generations(kind: Kind, before: &Value, after: &mut Value) {
    if after["spec"] == before["spec"] {
        return;
    }
    let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
    after["metadata"]["generation"] = json!(generation + 1);
    if kind == Kind::DaemonSet && after["spec"]["template"] != before["spec"]["template"] {
        let counted = &before["metadata"]["annotations"][TEMPLATE_GENERATION];
        let counted: i64 = counted.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        if !after["metadata"]["annotations"].is_object() {
            after["metadata"]["annotations"] = json!({});
        }
        after["metadata"]["annotations"][TEMPLATE_GENERATION] = json!((counted + 1).to_string());
    }
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

/// The fields that differ, each as `PATH: BEFORE → AFTER`, with the names of list elements.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("spec", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (a, b) if a == b => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let of =
                    |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}.{key}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                let name = b["name"]
                    .as_str()
                    .map_or_else(|| index.to_string(), str::to_owned);
                compare(&format!("{path}[{name}]"), a, b, found);
            }
        }
        (a, b) => {
            let shown = |value: &Value| match value {
                Value::Null => "none".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            found.push(format!("{path}: {} → {}", shown(a), shown(b)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Value {
        json!({"metadata": {"generation": 4}, "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {
                "initContainers": [{"name": "init", "image": "init:1"}],
                "containers": [{"name": "a", "image": "a:1", "tty": true}, {"name": "b", "image": "b:1"}],
            }},
        }})
    }

    #[test]
    fn images_are_of_the_named_container() {
        let mut object = workload();
        set_images(
            &mut object,
            &["b=b:2".to_owned(), "init=init:2".to_owned()],
            "DaemonSet x/y",
        )
        .expect("known");
        assert_eq!(
            differences(&workload()["spec"], &object["spec"]),
            [
                "spec.template.spec.containers[b].image: b:1 → b:2",
                "spec.template.spec.initContainers[init].image: init:1 → init:2"
            ]
        );
        for (image, expected) in [
            (
                "b:2",
                "--image b:2: DaemonSet x/y has the containers a, b; name one: --image a=b:2",
            ),
            (
                "c=c:2",
                "--image c=c:2: DaemonSet x/y has no such container; it has a, b, init",
            ),
            ("a=", "--image: the image is empty"),
        ] {
            let error = set_images(&mut workload(), &[image.to_owned()], "DaemonSet x/y").expect_err(image);
            let error = error.to_string();
            // The order of the fields of a JSON object is that of their names.
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_manifest_keeps_what_it_does_not_name() {
        let mut object = workload();
        let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}});
        apply(&mut object, &change).expect("valid");
        let containers = &object["spec"]["template"]["spec"]["containers"];
        assert_eq!(*containers, json!([{"name": "a", "image": "a:2", "tty": true}]));
        raise_generations(Kind::DaemonSet, &workload(), &mut object);
        assert_eq!(object["metadata"]["generation"], 5);
        assert_eq!(object["metadata"]["annotations"][TEMPLATE_GENERATION], "1");

        let other = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}});
        let error = apply(&mut object, &other).expect_err("another selector");
        assert!(error.to_string().starts_with("spec.selector: "), "{error}");
    }
}
