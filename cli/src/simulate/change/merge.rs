//! Merges a manifest into a workload: as plain `kubectl apply` does, or, where it is not known what was applied before, as far as the
//! manifest says.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::manifest::check;
use crate::kind::Kind;

/// The annotation that counts changes of a DaemonSet's template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// The annotation in which plain `kubectl apply` keeps the manifest that it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The parts of an object that a manifest changes.
const PARTS: [&[&str]; 3] = [&["spec"], &["metadata", "labels"], &["metadata", "annotations"]];

/// The workload with the fields of a manifest. Fields that the manifest does not name stay, whatever was applied before.
pub(crate) fn merged_into(kind: Kind, before: &Value, manifest: &Value) -> anyhow::Result<Value> {
    let mut after = before.clone();
    apply(&mut after, manifest)?;
    raise_generations(kind, before, &mut after);
    Ok(after)
}

/// As [`applied`], with the generations that the apiserver would set.
pub(crate) fn applied_here(kind: Kind, before: &Value, manifest: &Value) -> anyhow::Result<Value> {
    let mut after = applied(before, manifest)?;
    raise_generations(kind, before, &mut after);
    Ok(after)
}

/// The workload after its manifest was applied. If it is known what was applied before, fields that the manifest has no longer are
/// removed.
pub(super) fn applied(before: &Value, manifest: &Value) -> anyhow::Result<Value> {
    if let Some(last) = last_applied(before) {
        check_change(before, manifest)?;
        return Ok(three_way(before, &last, manifest));
    }
    let mut after = before.clone();
    apply(&mut after, manifest)?;
    Ok(after)
}

/// The manifest that plain `kubectl apply` applied last. `None` if that is not how the object was written.
pub(super) fn last_applied(object: &Value) -> Option<Value> {
    let text = object["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// The JSON merge patch (RFC 7386) that gives the workload the fields of a manifest and removes those that only `last` has. It has the
/// workload's uid.
pub(super) fn patch(before: &Value, last: &Value, manifest: &Value) -> anyhow::Result<Value> {
    check(manifest)?;
    let after = three_way(before, last, manifest);
    let mut patch = json!({"metadata": {"uid": before["metadata"]["uid"]}});
    for part in PARTS {
        if let Some(change) = merge_patch(at(before, part), at(&after, part)) {
            *at_mut(&mut patch, part) = change;
        }
    }
    Ok(patch)
}

fn at<'a>(object: &'a Value, part: &[&str]) -> &'a Value {
    part.iter().fold(object, |object, field| &object[*field])
}

/// A part of an object. `object` and the fields on the way are objects or absent.
fn at_mut<'a>(object: &'a mut Value, part: &[&str]) -> &'a mut Value {
    part.iter().fold(object, |object, field| &mut object[*field])
}

/// What turns one value into the other; `None` if they are equal.
fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        let change = merge_patch(before.get(key).unwrap_or(&Value::Null), value);
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    Some(patch.into())
}

/// The object with the fields of a manifest, without those that only the last manifest has: what `kubectl apply` calls a three-way
/// merge.
fn three_way(before: &Value, last: &Value, manifest: &Value) -> Value {
    let mut after = before.clone();
    for part in PARTS {
        let (last, mut new) = (at(last, part), at(manifest, part).clone());
        if new.is_null() && !last.is_object() {
            continue;
        }
        if new.is_null() {
            new = json!({});
        }
        if let Some(fields) = new.as_object_mut() {
            fields.remove(LAST_APPLIED);
        }
        replace("", at_mut(&mut after, part), last, &new);
    }
    after
}

/// The field by which the elements of a list are the same, as the API says for strategic merge patches. Other lists are replaced as a
/// whole.
fn merge_key(field: &str) -> Option<&'static str> {
    Some(match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims" => "name",
        "ports" => "containerPort",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "hostAliases" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        _ => return None,
    })
}

/// Whether a changed object has only the fields that the manifest names (the patch strategy `retainKeys`): a volume has one source, and a
/// Deployment with the strategy Recreate has no budget. `field` has the object, or the list that has it.
fn retains_keys(field: &str) -> bool {
    matches!(field, "strategy" | "volumes" | "resourceClaims")
}

/// Gives `target` what `new` says, and removes what `last` says and `new` does not. `field` is the name of the field with this value; the
/// elements of a list have that of the list.
fn replace(field: &str, target: &mut Value, last: &Value, new: &Value) {
    match (target, new) {
        (Value::Object(target), Value::Object(new)) => {
            if retains_keys(field) && last.as_object() != Some(new) {
                target.retain(|key, _| new.contains_key(key));
            }
            for key in last.as_object().into_iter().flat_map(Map::keys) {
                if !new.contains_key(key) {
                    target.remove(key);
                }
            }
            for (key, value) in new {
                if value.is_null() {
                    target.remove(key);
                } else {
                    let last = last.get(key).unwrap_or(&Value::Null);
                    replace(key, target.entry(key).or_insert(Value::Null), last, value);
                }
            }
        }
        (Value::Array(target), Value::Array(new)) => {
            let last = last.as_array().map_or(&[][..], Vec::as_slice);
            let key = merge_key(field);
            let lists = [target.as_slice(), last, new.as_slice()];
            match key.filter(|key| lists.iter().all(|list| has_key(list, key))) {
                Some(key) => *target = elements((field, key), target, last, new),
                None => new.clone_into(target),
            }
        }
        (target, new) => new.clone_into(target),
    }
}

/// Whether each element has this key, and no two have the same. A container may have the same port for TCP and for UDP.
fn has_key(list: &[Value], key: &str) -> bool {
    let mut keys: Vec<String> = list
        .iter()
        .filter(|one| !one[key].is_null())
        .map(|one| one[key].to_string())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.len() == list.len()
}

/// The elements of a list, in the order of the new manifest. Those that no manifest has, such as an injected container, keep their place
/// behind the one before them.
fn elements((field, key): (&str, &str), before: &[Value], last: &[Value], new: &[Value]) -> Vec<Value> {
    let find = |list: &[Value], like: &Value| list.iter().find(|one| one[key] == like[key]).cloned();
    let mut after: Vec<Value> = new
        .iter()
        .map(|new| {
            let mut element = find(before, new).unwrap_or_default();
            replace(field, &mut element, &find(last, new).unwrap_or_default(), new);
            element
        })
        .collect();
    for (index, foreign) in before.iter().enumerate() {
        if find(new, foreign).is_none() && find(last, foreign).is_none() {
            let behind = index.checked_sub(1).map(|index| &before[index][key]);
            let place = behind.and_then(|behind| after.iter().position(|one| one[key] == *behind));
            after.insert(place.map_or(0, |place| place + 1), foreign.clone());
        }
    }
    after
}

/// Checks what is changed here instead of by the apiserver.
fn check_change(object: &Value, manifest: &Value) -> anyhow::Result<()> {
    check(manifest)?;
    let spec = manifest.get("spec").context("spec is missing in the manifest")?;
    ensure!(
        spec.get("selector").is_none() || same(&object["spec"]["selector"], &spec["selector"]),
        "spec.selector: is another one than that of the workload; the apiserver refuses to change it"
    );
    Ok(())
}

/// The workload with the fields of a manifest. Lists whose elements have names are merged by name; the manifest decides which
/// elements there are, and their order.
fn apply(object: &mut Value, manifest: &Value) -> anyhow::Result<()> {
    check_change(object, manifest)?;
    merge(&mut object["spec"], &manifest["spec"]);
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
pub(super) fn raise_generations(kind: Kind, before: &Value, after: &mut Value) {
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

#[cfg(test)]
mod tests;
