//! Who wrote an object, as its managed fields say.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;

use crate::actuator::WRITER;

/// What is read of `metadata.managedFields`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writers {
    /// The manager of the first entry for the object itself. Right after its creation that is who created it.
    pub(crate) creator: Option<String>,
    /// Whoever else than this executor wrote the status last.
    pub(crate) other_of_status: Option<StatusWriter>,
}

/// Who wrote a status, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWriter {
    /// The field manager.
    pub manager: String,
    /// When, to the second, as the apiserver wrote it.
    pub time: String,
}

/// All of it is what somebody wrote: an apiserver serves a zero time as null, and nothing here may make an object unreadable.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    manager: Value,
    subresource: Value,
    time: Value,
}

/// A text, or nothing.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

impl<'de> Deserialize<'de> for Writers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
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
                let last = writers.other_of_status.as_ref();
                // Times of this form are in order as texts are.
                if last.is_none_or(|last| last.time <= time) {
                    writers.other_of_status = Some(StatusWriter { manager, time });
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
    use crate::event::{DaemonSet, Node, Pod, Revision};

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
        assert_eq!(of_pod.other_of_status, None);
        let of_workload = read(json!([
            entry("a", "status", late),
            entry("b", "status", early),
            entry(WRITER, "status", late),
        ]));
        let writer = StatusWriter {
            manager: "a".to_owned(),
            time: late.to_owned(),
        };
        assert_eq!(of_workload.other_of_status, Some(writer));
        assert_eq!(of_workload.creator, None);
    }

    // Whoever may write an object may write these, too: an apiserver keeps a zero time, and serves it as null.
    #[test]
    fn odd_entries_are_no_reason_not_to_read_an_object() {
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
            assert!(DaemonSet::from_text(&text).is_ok(), "{odd}");
            assert!(Revision::from_text(&text).is_ok(), "{odd}");
        }
    }
}
