//! Proves that the committed CustomResourceDefinition is what the types say, by making it again.
//!
//! After a change to the types run `NODEWISE_REGENERATE=1 cargo test -p nodewise-api --test generated`.

use std::{fs, path::Path};

use nodewise_api::{CustomResourceExt as _, RolloutPolicy};
use serde_json::{Number, Value, json};

const COMMITTED: &str = "deploy/kustomize/components/rollout-policy/crd.yaml";
/// A link: Helm reads only files of the chart.
const OF_THE_CHART: &str = "deploy/helm/nodewise/files/rollout-policy-crd.yaml";
const HEAD: &str = "# Made from api/src. After a change there: NODEWISE_REGENERATE=1 cargo test -p nodewise-api --test generated\n";

fn definition() -> Value {
    let mut definition = serde_json::to_value(RolloutPolicy::crd()).expect("it is JSON");
    with_integers(&mut definition);
    definition
}

/// Bounds are floating-point numbers in the types of Kubernetes.
fn with_integers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(with_integers),
        Value::Array(items) => items.iter_mut().for_each(with_integers),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            let integer = text
                .strip_suffix(".0")
                .and_then(|digits| digits.parse::<i64>().ok());
            *number = Number::from(integer.expect("all bounds are integers"));
        }
        _ => {}
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_default()
}

fn file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn committed_definition_is_fresh() {
    let fresh = HEAD.to_owned() + &serde_saphyr::to_string(&definition()).expect("it is YAML");
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        fs::write(file(COMMITTED), &fresh).expect("the file is writable");
    }
    for path in [COMMITTED, OF_THE_CHART] {
        assert!(
            read(path) == fresh,
            "{path} is stale: run NODEWISE_REGENERATE=1 cargo test -p nodewise-api --test generated"
        );
    }
    // Helm does not expand the file, but who copies it into a template must not be surprised.
    assert!(!fresh.contains("{{"));
}

/// Calls `visit` with every schema below this one, and its path.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(&format!("{path}{mark}"), &schema[key], visit);
        }
    }
}

fn each_schema(mut visit: impl FnMut(&str, &Value)) {
    let definition = definition();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut count = 0;
    walk("", schema, &mut |path, schema| {
        count += 1;
        visit(path, schema);
    });
    assert!(count > 100, "the walk sees {count} schemas");
}

/// A wrong writer must not fill the store, and the apiserver estimates the cost of rules from these.
#[test]
fn texts_lists_and_maps_have_a_maximum() {
    each_schema(|path, schema| {
        let has_maximum = match schema["type"].as_str() {
            Some("string") => {
                schema["maxLength"].is_u64() || schema["enum"].is_array() || schema["format"] == "date-time"
            }
            Some("array") => schema["maxItems"].is_u64(),
            Some("object") => schema["properties"].is_object() || schema["maxProperties"].is_u64(),
            _ => true,
        };
        assert!(has_maximum, "{path} has no maximum");
    });
}

/// `kubectl explain` prints these. A default of the schema would hide from the planner whether a value was given.
#[test]
fn fields_have_a_description_and_no_default() {
    each_schema(|path, schema| {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let description = property["description"].as_str().unwrap_or_default();
            assert!(
                description.ends_with('.') || description.ends_with('"'),
                "{path}.{name}: {description}"
            );
            assert!(
                !description.contains('\n') && !description.contains('`'),
                "{path}.{name}"
            );
        }
        assert!(schema["default"].is_null(), "{path} has a default");
        assert!(schema["nullable"] != true, "{path} may be null");
    });
}

#[test]
fn kubectl_get_prints_target_stage_updated_state_and_age() {
    let definition = definition();
    let version = &definition["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"].as_array().expect("columns");
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Target", "Stage", "Updated", "State", "Age"]);
    assert_eq!(version["subresources"], json!({ "status": {} }));
    assert_eq!(definition["spec"]["scope"], "Namespaced");
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["rop"]));
}
