//! The actions of a plan, as two plans are compared by them.

use std::collections::BTreeMap;

use nodewise_proto::v1::{self, action::Kind};
use serde::Serialize;
use serde_json::Value;

use crate::{plan::kept::digest, text::plan::what};

/// What an action does, and why. Two actions with equal entries are the same for a reader of the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Entry {
    pub(super) action: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// Of an object that is created or patched: `scale ReplicaSet web-5d4f to 5`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) change: String,
    pub(super) reason: String,
    /// The digest of what is created, or of the patch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) content: String,
}

/// The entries of a plan, how often each occurs, and what is written.
#[derive(Debug, Default)]
pub(super) struct Entries(BTreeMap<Entry, (usize, Value)>);

impl Entries {
    /// The actions of a plan, without Events and writes of statuses.
    pub(super) fn of(plan: &v1::Plan) -> Self {
        let mut entries = Self::default();
        for (entry, content) in plan.actions().filter_map(entry) {
            entries.0.entry(entry).or_insert((0, content)).0 += 1;
        }
        entries
    }

    /// The entries that another plan does not have, or has less often.
    pub(super) fn beyond(&self, other: &Self) -> Vec<Entry> {
        let missing = |(entry, (count, _)): (&Entry, &(usize, Value))| {
            let more = count.saturating_sub(other.0.get(entry).map_or(0, |(count, _)| *count));
            std::iter::repeat_n(entry.clone(), more)
        };
        self.0.iter().flat_map(missing).collect()
    }

    /// What an entry writes.
    pub(super) fn content(&self, entry: &Entry) -> &Value {
        self.0.get(entry).map_or(&Value::Null, |(_, content)| content)
    }
}

impl Entry {
    /// Whether both do the same to one object, and write different things.
    pub(super) fn differs_in_content(&self, other: &Self) -> bool {
        let is_same = (&self.action, &self.node, &self.name) == (&other.action, &other.node, &other.name);
        is_same && !self.content.is_empty() && self.content != other.content
    }

    /// `CreatePod on node-1: node without pod`, or `scale ReplicaSet web-5d4f to 5: replicas changed`.
    pub(super) fn sentence(&self) -> String {
        let Self {
            action,
            node,
            name,
            change,
            reason,
            ..
        } = self;
        if !change.is_empty() {
            return format!("{change}: {reason}");
        }
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" {name}")
        };
        let node = if node.is_empty() {
            String::new()
        } else {
            format!(" on {node}")
        };
        format!("{action}{name}{node}: {reason}")
    }
}

/// The manifest of the pods that a plan creates. `None` if it creates none.
pub(super) fn pod_manifest(plan: &v1::Plan) -> Option<Value> {
    (!plan.pod_manifest.is_empty()).then(|| content(&plan.pod_manifest))
}

fn entry(action: &v1::Action) -> Option<(Entry, Value)> {
    let of = |object: &Option<v1::ObjectReference>| {
        object
            .as_ref()
            .map(|object| object.name.clone())
            .unwrap_or_default()
    };
    let written = |name: String, bytes: &[u8]| (String::new(), name, content(bytes));
    let named = |name: String| (String::new(), name, Value::Null);
    let (node, name, content) = match action.kind.as_ref()? {
        // The name of a new pod has a number, which may differ.
        Kind::CreatePod(create) => (create.node_name.clone(), String::new(), Value::Null),
        Kind::DeletePod(delete) => (delete.node_name.clone(), of(&delete.pod), Value::Null),
        Kind::EvictPod(evict) => (evict.node_name.clone(), of(&evict.pod), Value::Null),
        Kind::CreateRevision(create) => written(create.name.clone(), &create.manifest),
        Kind::UpdateRevision(update) => written(of(&update.revision), &update.patch),
        Kind::DeleteRevision(delete) => named(of(&delete.revision)),
        Kind::AdoptRevision(adopt) => named(of(&adopt.revision)),
        Kind::ReleaseRevision(release) => named(of(&release.revision)),
        Kind::AdoptPod(adopt) => named(of(&adopt.pod)),
        Kind::ReleasePod(release) => named(of(&release.pod)),
        Kind::RelabelPod(relabel) => written(of(&relabel.pod), &relabel.patch),
        Kind::CreateObject(create) => written(create.name.clone(), &create.manifest),
        Kind::PatchObject(patch) if patch.subresource.is_empty() => written(of(&patch.object), &patch.patch),
        Kind::DeleteObject(delete) => named(of(&delete.object)),
        Kind::PatchObject(_) | Kind::UpdateStatus(_) | Kind::EmitEvent(_) | Kind::Measure(_) => return None,
    };
    let reason = action.reason().as_str_name();
    let entry = Entry {
        action: action.kind_name().to_owned(),
        node,
        name,
        change: if content.is_null() {
            String::new()
        } else {
            what(action)
        },
        reason: reason
            .trim_start_matches("REASON_")
            .replace('_', " ")
            .to_lowercase(),
        content: if content.is_null() {
            String::new()
        } else {
            digest(content.to_string().as_bytes())
        },
    };
    Some((entry, content))
}

/// What is written, without what differs in each plan: the preconditions of a patch, which say how the object was read, and the time of
/// a dry run.
fn content(bytes: &[u8]) -> Value {
    let mut content: Value = serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()));
    if let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    content
}
