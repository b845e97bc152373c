//! Reads objects that a request contains as the JSON that the apiserver served.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use nodewise_planner::snapshot::{ControllerRef, Labels};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use super::problems::{Path, Problems, too_long};
use crate::limits::Limits;

/// The fields of an object's metadata that are read. Others, such as the managed fields, may be long and are skipped.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) generation: Option<i64>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Controller>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
}

/// The fields of an object's metadata that decide to which workload it belongs.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Ownership {
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Controller>,
}

impl Ownership {
    /// The labels, and the owner reference with `controller: true`.
    pub(super) fn parts(self) -> (BTreeMap<String, String>, Option<ControllerRef>) {
        let controller = self.owner_references.and_then(|found| found.0);
        (self.labels.unwrap_or_default(), controller)
    }
}

/// The first owner reference with `controller: true` of a list. The others are dropped while the list is read.
struct Controller(Option<ControllerRef>);

#[derive(Deserialize)]
struct Owner {
    kind: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    controller: Option<bool>,
}

impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Owners)
    }
}

struct Owners;

impl<'de> Visitor<'de> for Owners {
    type Value = Controller;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Controller, A::Error> {
        let mut found = None;
        while let Some(owner) = list.next_element::<Owner>()? {
            if owner.controller == Some(true) && found.is_none() {
                found = Some(ControllerRef {
                    kind: owner.kind.unwrap_or_default(),
                    name: owner.name.unwrap_or_default(),
                    uid: owner.uid.unwrap_or_default(),
                });
            }
        }
        Ok(Controller(found))
    }
}

/// Reads an object. The description of a problem begins with the path inside the object.
pub(super) fn read<'de, T: Deserialize<'de>>(
    json: &'de [u8],
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<T> {
    if json.is_empty() {
        problems.add(at, "is required");
        return None;
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| match error.path().to_string() {
            // The object as a whole, or text that is not JSON.
            path if path == "." || path == "?" => error.inner().to_string(),
            path => format!("{path}: {}", error.inner()),
        })
        .and_then(|object| reader.end().map(|()| object).map_err(|error| error.to_string()));
    match read {
        Ok(object) => Some(object),
        Err(error) => {
            problems.add(at, error);
            None
        }
    }
}

/// Checks the apiVersion and kind of an object. Both may be absent, as in the items of a list.
pub(super) fn type_meta(
    api_version: Option<&str>,
    kind: Option<&str>,
    (right_version, right_kind): (&str, &str),
    at: &Path<'_>,
    problems: &mut Problems,
) {
    for (field, value, right) in [
        ("apiVersion", api_version, right_version),
        ("kind", kind, right_kind),
    ] {
        if value.is_some_and(|value| !value.is_empty() && value != right) {
            problems.add(at, format!("{field}: must be {right}"));
        }
    }
}

/// An object's name and uid.
pub(super) fn identity(meta: &Meta, at: &Path<'_>, problems: &mut Problems) -> Option<(String, String)> {
    let name = meta.name.clone().unwrap_or_default();
    let uid = meta.uid.clone().unwrap_or_default();
    require_name("metadata.name", &name, at, problems);
    require_name("metadata.uid", &uid, at, problems);
    (!name.is_empty() && !uid.is_empty()).then_some((name, uid))
}

/// Adds a problem if a name in an object is empty or too long.
pub(super) fn require_name(field: &str, name: &str, at: &Path<'_>, problems: &mut Problems) {
    if name.is_empty() {
        problems.add(at, format!("{field}: is required"));
    }
    bound(field, name, Limits::NAME_BYTES, at, problems);
}

/// Adds a problem if a text in an object has more than `most` bytes.
pub(super) fn bound(field: &str, text: &str, most: usize, at: &Path<'_>, problems: &mut Problems) {
    if text.len() > most {
        problems.add(at, format!("{field}: {}", too_long(text, most)));
    }
}

/// The labels of an object.
pub(super) fn labels_of(labels: &BTreeMap<String, String>) -> Labels {
    let entries = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Labels::of(&mut entries.collect::<Vec<_>>())
}

impl Meta {
    /// metadata.creationTimestamp; `None` if it is absent or cannot be parsed.
    pub(super) fn created(&self) -> Option<Timestamp> {
        self.creation_timestamp.as_deref()?.parse().ok()
    }

    /// Whether metadata.deletionTimestamp is set. Its value is not read.
    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner reference with `controller: true`.
    pub(super) fn controller(&mut self) -> Option<ControllerRef> {
        self.owner_references.take()?.0
    }
}
