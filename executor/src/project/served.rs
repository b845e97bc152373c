//! DaemonSets and revisions, which travel as the JSON that was served: all of it but who wrote which field.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The object without its `metadata.managedFields`, of which nothing is read and which may be larger than all the rest;
/// kube-controller-manager's caches drop it too. A status that is written without it keeps the live object's: of a
/// subresource the apiserver never takes it. What is no object is given back as it is.
#[must_use]
pub fn without_managed_fields(object: &str) -> Cow<'_, str> {
    if !object.contains("managedFields") {
        return object.into();
    }
    let mut out = String::with_capacity(object.len());
    let read = Members::Object(&mut out).deserialize(&mut serde_json::Deserializer::from_str(object));
    if read.is_ok() { out.into() } else { object.into() }
}

/// Writes the members of a JSON object that are kept.
enum Members<'a> {
    /// Of the object as a whole.
    Object(&'a mut String),
    /// Of its metadata.
    Metadata(&'a mut String),
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (out, is_metadata) = match self {
            Self::Object(out) => (out, false),
            Self::Metadata(out) => (out, true),
        };
        let mut separator = '{';
        while let Some(key) = members.next_key::<String>()? {
            let value: &RawValue = members.next_value()?;
            if is_metadata && key == "managedFields" {
                continue;
            }
            out.push(separator);
            separator = ',';
            // A string is written whatever is in it.
            out.push_str(&serde_json::Value::from(key.as_str()).to_string());
            out.push(':');
            if !is_metadata && key == "metadata" && value.get().starts_with('{') {
                Members::Metadata(out)
                    .deserialize(&mut serde_json::Deserializer::from_str(value.get()))
                    .map_err(serde::de::Error::custom)?;
            } else {
                out.push_str(value.get());
            }
        }
        if separator == '{' {
            out.push(separator);
        }
        out.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::without_managed_fields;

    #[test]
    fn only_the_managed_fields_of_the_metadata_are_dropped() {
        let table = [
            (
                r#"{"metadata":{"name":"n","managedFields":[{"fieldsV1":{"f:a":{}}}],"uid":"u"},"spec":{ "a": [1.50, "é<"] }}"#,
                r#"{"metadata":{"name":"n","uid":"u"},"spec":{ "a": [1.50, "é<"] }}"#,
            ),
            (
                r#"{"a\"b":1,"metadata":{"managedFields":[]}}"#,
                r#"{"a\"b":1,"metadata":{}}"#,
            ),
            // What is called so elsewhere is somebody's.
            (
                r#"{"spec":{"managedFields":1},"managedFields":2,"data":{"metadata":{"managedFields":3}},"metadata":{"labels":{"managedFields":"4"}}}"#,
                r#"{"spec":{"managedFields":1},"managedFields":2,"data":{"metadata":{"managedFields":3}},"metadata":{"labels":{"managedFields":"4"}}}"#,
            ),
            (
                r#"{"metadata":"managedFields"}"#,
                r#"{"metadata":"managedFields"}"#,
            ),
            (r#"["managedFields"]"#, r#"["managedFields"]"#),
            (
                r#"{"metadata":{"managedFields":"#,
                r#"{"metadata":{"managedFields":"#,
            ),
            (r#"{"metadata":{"name":"n"}}"#, r#"{"metadata":{"name":"n"}}"#),
        ];
        for (object, expected) in table {
            assert_eq!(without_managed_fields(object), expected, "{object}");
        }
    }
}
