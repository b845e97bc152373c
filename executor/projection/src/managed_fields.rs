//! Removes the managed fields from the JSON of DaemonSets and ControllerRevisions, which are sent as they were served
//! otherwise.

use bytes::Bytes;
use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the object without `metadata.managedFields`, which nothing reads and which may be larger than the rest. The caches
/// of kube-controller-manager drop them, too. A status update without managed fields keeps those of the live object, because
/// the apiserver does not take them from a subresource update. A text that is not a JSON object is returned unchanged.
#[must_use]
pub fn without_managed_fields(object: &str) -> Cow<'_, str> {
    if !object.contains("managedFields") {
        return object.into();
    }
    let mut out = String::with_capacity(object.len());
    let read = MemberCopier::Object(&mut out).deserialize(&mut serde_json::Deserializer::from_str(object));
    if read.is_ok() { out.into() } else { object.into() }
}

/// Copies the members of a JSON object, except managed fields.
enum MemberCopier<'a> {
    /// The object itself.
    Object(&'a mut String),
    /// Its metadata.
    Metadata(&'a mut String),
}

impl<'de> DeserializeSeed<'de> for MemberCopier<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MemberCopier<'_> {
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
            // The key is escaped again.
            out.push_str(&serde_json::Value::from(key.as_str()).to_string());
            out.push(':');
            if !is_metadata && key == "metadata" && value.get().starts_with('{') {
                MemberCopier::Metadata(out)
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

/// Returns the JSON of an object as it is stored and sent.
pub(crate) fn object_json(object: &str) -> Bytes {
    without_managed_fields(object).into_owned().into()
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
            // Fields of this name elsewhere are kept.
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
