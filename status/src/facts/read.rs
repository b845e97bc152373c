//! Reads fields of a JSON object by their JSON pointer (RFC 6901). A field that is absent or of another type says nothing.

use jiff::Timestamp;
use serde_json::Value;

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn owned(object: &Value, pointer: &str) -> String {
    text(object, pointer).to_owned()
}

pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object
        .pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// An object of the API as JSON. Text that is no JSON reads as an object without fields.
pub(crate) fn object(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// The images of the containers at `pointer`, each as `CONTAINER=IMAGE`.
pub(crate) fn images(object: &Value, pointer: &str) -> Vec<String> {
    let container = |container: &Value| format!("{}={}", text(container, "/name"), text(container, "/image"));
    list(object, pointer).iter().map(container).collect()
}

/// The uid of the controller. Empty if there is none.
pub(crate) fn controller(object: &Value) -> String {
    owner(object).map_or_else(String::new, |owner| owned(owner, "/uid"))
}

/// The kind and the name of the controller. Empty if there is none.
pub(crate) fn controller_name(object: &Value) -> String {
    owner(object).map_or_else(String::new, |owner| {
        format!("{} {}", text(owner, "/kind"), text(owner, "/name"))
    })
}

/// The owner with `controller: true`.
fn owner(object: &Value) -> Option<&Value> {
    let mut owners = list(object, "/metadata/ownerReferences").iter();
    owners.find(|owner| flag(owner, "/controller"))
}
