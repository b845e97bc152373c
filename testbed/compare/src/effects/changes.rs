//! The changes of an object by several writes, PUTs or patches.

use std::collections::BTreeSet;

use serde_json::Value;

/// Members that are not compared: versions that every write changes, and fields that one side leaves out.
const SILENT: [&str; 5] = [
    "/apiVersion",
    "/kind",
    "/metadata/resourceVersion",
    "/metadata/creationTimestamp",
    "/metadata/namespace",
];

/// An object with several writes. Their order is unknown, so each is compared with the object before the sync.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    before: Value,
    changed: BTreeSet<String>,
}

impl Changes {
    /// No changes of this object so far.
    pub(super) fn of(before: Value) -> Self {
        Self {
            before,
            changed: BTreeSet::new(),
        }
    }

    /// Adds a write: a whole object or a merge patch.
    pub(super) fn take(&mut self, body: Value) {
        let after = if body["kind"].is_string() {
            body
        } else {
            let mut patched = self.before.clone();
            merge(&mut patched, &body);
            patched
        };
        differences("", &self.before, &after, &mut self.changed);
    }

    /// Every changed member, by its JSON pointer.
    pub(super) fn changed(&self) -> String {
        let changed: Vec<&str> = self.changed.iter().map(String::as_str).collect();
        changed.join(", ")
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (name, value) in members {
        if value.is_null() {
            target.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}

fn differences(at: &str, before: &Value, after: &Value, changed: &mut BTreeSet<String>) {
    if SILENT.contains(&at) || before == after || (is_nothing(before) && is_nothing(after)) {
        return;
    }
    let empty = serde_json::Map::new();
    let members = |value: &Value| match value {
        Value::Object(members) => Some(members.clone()),
        Value::Null => Some(empty.clone()),
        _ => None,
    };
    let (Some(old), Some(new)) = (members(before), members(after)) else {
        changed.insert(format!("{at}: {after}"));
        return;
    };
    let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of = |members: &serde_json::Map<String, Value>| members.get(name).cloned().unwrap_or_default();
        differences(&format!("{at}/{name}"), &of(&old), &of(&new), changed);
    }
}

/// Whether a value equals a missing member.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patch_and_put_give_the_same_changes() {
        let before =
            json!({"metadata": {"name": "r", "labels": {"a": "1"}}, "revision": 1, "data": {"x": [1]}});
        let mut patched = Changes::of(before.clone());
        patched.take(json!({"metadata": {"labels": {"hash": "r"}}}));
        patched.take(json!({"revision": 3}));
        let mut replaced = Changes::of(before);
        replaced.take(json!({
            "kind": "ControllerRevision",
            "metadata": {"name": "r", "labels": {"a": "1", "hash": "r"}, "resourceVersion": "7", "annotations": {}},
            "revision": 3,
            "data": {"x": [1]},
        }));
        assert_eq!(patched.changed(), r#"/metadata/labels/hash: "r", /revision: 3"#);
        assert_eq!(replaced.changed(), patched.changed());
        replaced.take(json!({"data": {"x": [2]}, "metadata": {"labels": {"a": null}}}));
        assert_eq!(
            replaced.changed(),
            r#"/data/x: [2], /metadata/labels/a: null, /metadata/labels/hash: "r", /revision: 3"#
        );
    }
}
