//! Reads the manifest of a workload, and checks the types of the fields that are changed here.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::input::{Served, read_text_file};

/// Reads the manifest of the workload: a file with one object.
pub(super) fn read(file: &Path, workload: &Served) -> anyhow::Result<Value> {
    let text = read_text_file(file)?;
    let name = file.display();
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
    check(&manifest).with_context(|| name.to_string())?;
    Ok(manifest)
}

/// Checks that objects are objects, and that the containers are a list of objects. The apiserver or the planner checks the rest.
pub(super) fn check(manifest: &Value) -> anyhow::Result<()> {
    for path in ["/metadata", "/spec", "/spec/template", "/spec/template/spec"] {
        if let Some(found) = manifest.pointer(path).filter(|found| !found.is_object()) {
            anyhow::bail!("{}: is {}; expected an object", field(path), what(found));
        }
    }
    for path in [
        "/spec/template/spec/containers",
        "/spec/template/spec/initContainers",
    ] {
        let Some(found) = manifest.pointer(path).filter(|found| !found.is_null()) else {
            continue;
        };
        let Some(containers) = found.as_array() else {
            anyhow::bail!("{}: is {}; expected a list", field(path), what(found));
        };
        for (index, container) in containers.iter().enumerate() {
            ensure!(
                container.is_object(),
                "{}[{index}]: is {}; expected an object",
                field(path),
                what(container)
            );
        }
    }
    Ok(())
}

/// `/spec/template` → `spec.template`.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn what(found: &Value) -> &'static str {
    match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_a_wrong_type_are_named() {
        let with_spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        for (manifest, expected) in [
            (json!({"spec": "text"}), "spec: is a string; expected an object"),
            (
                json!({"spec": {"template": "text"}}),
                "spec.template: is a string; expected an object",
            ),
            (
                with_spec(json!(["a"])),
                "spec.template.spec: is a list; expected an object",
            ),
            (
                with_spec(json!({"containers": 5})),
                "spec.template.spec.containers: is a number; expected a list",
            ),
            (
                with_spec(json!({"initContainers": ["a"]})),
                "spec.template.spec.initContainers[0]: is a string; expected an object",
            ),
        ] {
            let error = check(&manifest).expect_err(expected).to_string();
            assert_eq!(error, expected);
        }
        check(&with_spec(
            json!({"containers": [{"name": "a"}], "initContainers": null}),
        ))
        .expect("valid");
        check(&json!({"spec": {"replicas": 3}})).expect("fields may be missing");
    }
}
