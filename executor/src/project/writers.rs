//! Who wrote an object, as its managed fields say.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    manager: String,
    subresource: String,
    time: String,
}

impl<'de> Deserialize<'de> for Writers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Writers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Writers, A::Error> {
        let mut writers = Writers::default();
        while let Some(Entry {
            manager,
            subresource,
            time,
        }) = entries.next_element()?
        {
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
}
