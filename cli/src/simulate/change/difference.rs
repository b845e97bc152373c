//! What differs between two objects.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The fields of a spec that differ, each as `PATH: BEFORE → AFTER`, with the names of list elements.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    differences_at("spec", before, after)
}

/// As [`differences`], of the values at this path; it is empty for whole objects.
pub(crate) fn differences_at(path: &str, before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(path, before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (a, b) if a == b => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                compare(&path, &of(a), &of(b), found);
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
