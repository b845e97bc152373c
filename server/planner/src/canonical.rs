//! JSON as Go's encoder writes it, and the bytes of a revision's data.

use serde_json::Value;

/// Compact JSON with members sorted by the bytes of their keys and strings escaped as Go's encoder does.
pub(crate) fn to_bytes(_value: &Value) -> Vec<u8> {
    todo!()
}

/// What a ControllerRevision of this template holds as `data`.
pub(crate) fn revision_data(_template: &Value) -> Value {
    todo!()
}
