//! Reads from the managed fields of an object which client wrote it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use crate::protobuf::{self, object};

/// The field manager and user agent of the executor.
pub const WRITER: &str = "nodewise-executor";

/// The fields that are read from `metadata.managedFields`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writers {
    /// The manager of the first entry for the object itself. Right after the creation, this is the creator.
    pub creator: Option<String>,
    /// The last writer of the status other than this executor.
    pub other_status_writer: Option<StatusWriter>,
}

/// The writer of a status, and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWriter {
    /// The field manager.
    pub manager: String,
    /// The time in seconds precision, as the apiserver wrote it.
    pub time: String,
}

impl Writers {
    /// Reads the creator of a pod or a node. Nobody reads who wrote their statuses.
    pub(crate) fn of(entries: &[object::ManagedFieldsEntry]) -> Self {
        let creator = entries.iter().find(|entry| entry.subresource.is_empty());
        Self {
            creator: creator.map(|entry| protobuf::text(&entry.manager)),
            other_status_writer: None,
        }
    }
}

/// An entry of the managed fields. Clients write these fields, and the apiserver serves a zero time as null. So any value is
/// accepted: an odd entry must not make the object unreadable.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    manager: Value,
    subresource: Value,
    time: Value,
}

/// Returns a string value, or an empty string for any other value.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

impl<'de> Deserialize<'de> for Writers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WritersVisitor)
    }
}

struct WritersVisitor;

impl<'de> Visitor<'de> for WritersVisitor {
    type Value = Writers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("managed fields")
    }

    fn visit_unit<E>(self) -> Result<Writers, E> {
        Ok(Writers::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Writers, A::Error> {
        let mut writers = Writers::default();
        while let Some(entry) = entries.next_element::<Option<Entry>>()? {
            let Entry {
                manager,
                subresource,
                time,
            } = entry.unwrap_or_default();
            let (manager, subresource, time) = (text(manager), text(subresource), text(time));
            if subresource.is_empty() {
                writers.creator.get_or_insert(manager);
            } else if subresource == "status" && manager != WRITER {
                let last = writers.other_status_writer.as_ref();
                // Times of this format sort like text.
                if last.is_none_or(|last| last.time <= time) {
                    writers.other_status_writer = Some(StatusWriter { manager, time });
                }
            }
        }
        Ok(writers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload::Workload;
    use crate::{Node, Pod, Revision};

    #[test]
    fn the_creator_and_the_last_other_writer_of_the_status_are_found() {
        let entry = |manager: &str, subresource: &str, time: &str| json!({ "manager": manager, "operation": "Update", "subresource": subresource, "time": time, "fieldsV1": { "f:a": {} } });
        let (early, late) = ("2026-11-23T04:00:00Z", "2026-11-23T05:00:00Z");
        let read = |entries: serde_json::Value| Writers::deserialize(entries).expect("entries");
        let of_pod = read(json!([
            { "manager": "kube-controller-manager", "operation": "Update", "time": early },
            entry("kube-scheduler", "binding", late),
            { "manager": "kubectl", "operation": "Update", "time": late },
        ]));
        assert_eq!(of_pod.creator.as_deref(), Some("kube-controller-manager"));
        assert_eq!(of_pod.other_status_writer, None);
        let of_workload = read(json!([
            entry("a", "status", late),
            entry("b", "status", early),
            entry(WRITER, "status", late),
        ]));
        let writer = StatusWriter {
            manager: "a".to_owned(),
            time: late.to_owned(),
        };
        assert_eq!(of_workload.other_status_writer, Some(writer));
        assert_eq!(of_workload.creator, None);
    }

    // A client that may write an object can write odd entries. The apiserver also keeps a zero time and serves it as null.
    #[test]
    fn odd_entries_do_not_make_an_object_unreadable() {
        for odd in [
            json!(null),
            json!([]),
            json!([null]),
            json!([{ "manager": null, "subresource": null, "time": null }]),
            json!([{ "manager": 1, "subresource": {}, "time": [] }]),
            json!([{ "manager": "a", "subresource": "status", "time": null }]),
        ] {
            let object =
                json!({ "metadata": { "namespace": "ns", "name": "a", "uid": "u", "managedFields": odd } });
            let text = object.to_string();
            assert!(Pod::from_text(&text).is_ok(), "{odd}");
            assert!(Node::from_text(&text).is_ok(), "{odd}");
            assert!(Workload::daemon_set_from_text(&text).is_ok(), "{odd}");
            assert!(Revision::from_text(&text).is_ok(), "{odd}");
        }
    }
}
