//! Patches, as the apiserver applies them.

use serde_json::{Map, Value};

/// JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Strategic merge patch, as far as adoption and release need it: owner references are a list with the key `uid`, whose
/// elements may have `$patch: delete`. Everything else is merged.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    let mut rest = patch.clone();
    let owners = rest["metadata"]
        .as_object_mut()
        .and_then(|metadata| metadata.remove("ownerReferences"));
    merge(target, &rest);
    let Some(Value::Array(owners)) = owners else {
        return;
    };
    let references = &mut target["metadata"]["ownerReferences"];
    if !references.is_array() {
        *references = Value::Array(Vec::new());
    }
    let Some(references) = references.as_array_mut() else {
        return;
    };
    for owner in owners {
        let present = references
            .iter()
            .position(|reference| reference["uid"] == owner["uid"]);
        match (present, owner["$patch"] == "delete") {
            (Some(position), true) => _ = references.remove(position),
            (Some(position), false) => merge(&mut references[position], &owner),
            (None, true) => {}
            (None, false) => references.push(owner),
        }
    }
}
