//! One write or event as a sentence.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Sending, parse};
use crate::case::Case;
use crate::nodewise::subject;
use crate::outcome::{Call, Event, Outcome};

/// Drops what says nothing: an unset creation time, and the namespace that the path names already.
fn level_metadata(case: &Case, object: &mut Value) -> Result<()> {
    let namespace = &subject(case)?["metadata"]["namespace"];
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

/// A new revision with its data as the bytes that were sent.
pub(super) fn revision_text(case: &Case, call: &Call) -> Result<String> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let raw: Raw<'_> = parse(call)?;
    let mut object: Value = parse(call)?;
    object["data"] = raw.data.get().into();
    level_metadata(case, &mut object)?;
    Ok(object.to_string())
}

/// A pod's manifest; levelled, with its name left to the API.
pub(super) fn manifest_text(case: &Case, sending: Sending, mut manifest: Value) -> Result<String> {
    level_metadata(case, &mut manifest)?;
    if manifest["status"]
        .as_object()
        .is_some_and(serde_json::Map::is_empty)
        && let Some(object) = manifest.as_object_mut()
    {
        object.remove("status");
    }
    let prefix = generate_name(case)?;
    if sending == Sending::Levelled
        && let Some(metadata) = manifest["metadata"].as_object_mut()
        && let Some(name) = metadata.get("name").and_then(Value::as_str)
        && is_derived(name, &prefix)
    {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), prefix.into());
    }
    Ok(manifest.to_string())
}

/// What a delete insists on; levelled, that says nothing.
pub(super) fn preconditions(sending: Sending, call: &Call) -> Result<String> {
    let options: Value = parse(call)?;
    Ok(match (&options["preconditions"], sending) {
        (Value::Null, _) | (_, Sending::Levelled) => String::new(),
        (preconditions, Sending::AsIs) => format!(" if {preconditions}"),
    })
}

/// A patch without the uid that it insists on.
pub(super) fn patch_text(call: &Call) -> Result<String> {
    let mut patch: Value = parse(call)?;
    if let Some(metadata) = patch["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    Ok(patch.to_string())
}

fn generate_name(case: &Case) -> Result<String> {
    let name = subject(case)?["metadata"]["name"].as_str().unwrap_or_default();
    Ok(format!("{name}-"))
}

/// Whether a name is what the API, or Nodewise in its place, makes of this prefix: as much of it as fits, and something after it.
fn is_derived(name: &str, prefix: &str) -> bool {
    let common = name
        .bytes()
        .zip(prefix.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    common == prefix.len() || (common > 40 && name.len() <= 253)
}

/// The names that pods were created under, each with the name that the fake API would have generated.
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

/// A status without zeros, which one side spells out and the other leaves out, and the metadata that it travels with.
pub(super) fn status_text(case: &Case, call: &Call) -> Result<String> {
    let mut object: Value = parse(call)?;
    level_metadata(case, &mut object)?;
    let mut status = object["status"].take();
    if let Some(members) = status.as_object_mut() {
        members.retain(|_, value| !value.is_null() && *value != 0);
    }
    Ok(format!("{status} with {}", object["metadata"]))
}

/// The kinds of writes in the order in which each came first. Upstream claims several times, one after the other.
pub(super) fn order(sequence: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for op in sequence {
        let kind = match op.as_str() {
            "adopt-pod" | "release-pod" => "claim pods",
            "adopt-revision" | "release-revision" => "claim revisions",
            other => other,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// An event, with the text of the API's errors cut off and created pods under their generated names.
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
