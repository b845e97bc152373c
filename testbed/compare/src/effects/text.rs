//! The sentence for one write or event.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Sending, parse};
use crate::case::Case;
use crate::outcome::{Call, Event, Outcome};

/// Removes an unset creation time, and a namespace that equals the one in the path.
fn normalize_metadata(case: &Case, object: &mut Value) -> Result<()> {
    let namespace = &case.subject()?["metadata"]["namespace"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if metadata.get("creationTimestamp").is_some_and(Value::is_null) {
            metadata.remove("creationTimestamp");
        }
        if metadata.get("namespace") == Some(namespace) {
            metadata.remove("namespace");
        }
    }
    Ok(())
}

/// A new revision, with the bytes of its data as sent.
pub(super) fn revision_text(case: &Case, call: &Call) -> Result<String> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let raw: Raw<'_> = parse(call)?;
    let mut object: Value = parse(call)?;
    object["data"] = raw.data.get().into();
    normalize_metadata(case, &mut object)?;
    Ok(object.to_string())
}

/// A pod's manifest. If levelled, without the name.
pub(super) fn manifest_text(case: &Case, sending: Sending, mut manifest: Value) -> Result<String> {
    normalize_metadata(case, &mut manifest)?;
    if manifest["status"]
        .as_object()
        .is_some_and(serde_json::Map::is_empty)
        && let Some(object) = manifest.as_object_mut()
    {
        object.remove("status");
    }
    let prefix = generate_name(case)?;
    if sending == Sending::Normalized
        && let Some(metadata) = manifest["metadata"].as_object_mut()
        && let Some(name) = metadata.get("name").and_then(Value::as_str)
        && is_derived(name, &prefix)
    {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), prefix.into());
    }
    Ok(manifest.to_string())
}

/// The preconditions of a delete. If levelled, empty.
pub(super) fn preconditions(sending: Sending, call: &Call) -> Result<String> {
    let options: Value = parse(call)?;
    Ok(match (&options["preconditions"], sending) {
        (Value::Null, _) | (_, Sending::Normalized) => String::new(),
        (preconditions, Sending::AsIs) => format!(" if {preconditions}"),
    })
}

/// A patch without its uid precondition.
pub(super) fn patch_text(call: &Call) -> Result<String> {
    let mut patch: Value = parse(call)?;
    if let Some(metadata) = patch["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    Ok(patch.to_string())
}

fn generate_name(case: &Case) -> Result<String> {
    let name = case.subject()?["metadata"]["name"].as_str().unwrap_or_default();
    Ok(format!("{name}-"))
}

/// Whether a name was made from this prefix, by the API or by Nodewise: as much of the prefix as fits, and a suffix.
fn is_derived(name: &str, prefix: &str) -> bool {
    let common = name
        .bytes()
        .zip(prefix.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    common == prefix.len() || (common > 40 && name.len() <= 253)
}

/// The names of created pods, each with the name that the fake API would have generated.
pub(super) fn created_names(case: &Case, outcome: &Outcome) -> Result<BTreeMap<String, String>> {
    let prefix = generate_name(case)?;
    let mut names = BTreeMap::new();
    for call in outcome.calls.iter().filter(|call| call.op == "create-pod") {
        let manifest: Value = parse(call)?;
        if let Some(name) = manifest["metadata"]["name"].as_str() {
            names.insert(name.to_owned(), format!("{prefix}@{}", call.name));
        }
    }
    Ok(names)
}

/// A status without zeros, which only one side writes explicitly, and the metadata of the request.
pub(super) fn status_text(case: &Case, call: &Call) -> Result<String> {
    let mut object: Value = parse(call)?;
    normalize_metadata(case, &mut object)?;
    let mut status = object["status"].take();
    if let Some(members) = status.as_object_mut() {
        members.retain(|_, value| !value.is_null() && *value != 0);
    }
    Ok(format!("{status} with {}", object["metadata"]))
}

/// The kinds of writes in the order of their first occurrence. Upstream claims several times per sync.
pub(super) fn order(sequence: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for op in sequence {
        let kind = match op.as_str() {
            "adopt-pod" | "release-pod" => "claim pods",
            "adopt-revision" | "release-revision" => "claim revisions",
            "adopt-replicaset" | "release-replicaset" => "claim ReplicaSets",
            other => other,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// An event without the text of the API's errors, and with generated names of created pods.
pub(super) fn event_text(event: &Event, names: &BTreeMap<String, String>) -> String {
    let Event {
        kind,
        reason,
        message,
    } = event;
    let message = match message.split_once(": ") {
        Some((what @ ("Error creating" | "Error deleting"), _)) => what.to_owned(),
        Some((what @ "Created pod", name)) => {
            format!("{what}: {}", names.get(name).map_or(name, String::as_str))
        }
        _ => message.clone(),
    };
    format!("{kind} {reason}: {message}")
}
