//! Reads the Protobuf encoding of Kubernetes objects, `application/vnd.kubernetes.protobuf`. Only pods and nodes are read from it, because
//! no field of the other kinds may be lost.
//!
//! The submodules have the messages, with only the fields that are read. All other fields are skipped, also those of later versions of
//! Kubernetes. [`object`] has what every pod or node has, [`unready`] what is read in a second pass of pods that are not ready.
//!
//! The result is the same as from the JSON that the apiserver would serve of the same object. The two encodings differ in this:
//! - A text may be invalid UTF-8. JSON has a replacement character instead of each invalid byte.
//! - A field that JSON leaves out because it is empty is present, and empty. [`text_if_any`] reads it.
//! - JSON has null for the time zero; Protobuf has an empty message.
//!
//! Fields are slices of the response. They are copied when they are kept, so no cache keeps a response in memory.

use bytes::Bytes;
use prost::Message;

use crate::error::ProjectError;

pub(crate) mod object;
pub(crate) mod unready;

/// Decodes a message. An error is about the whole object.
pub(crate) fn decode<M: Message + Default>(object: &Bytes) -> Result<M, ProjectError> {
    M::decode(object.clone()).map_err(|error| ProjectError::at(".", error.to_string()))
}

/// Copies a text. Each byte that is not UTF-8 becomes one replacement character, as in the JSON of the apiserver.
pub(crate) fn text(bytes: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Copies a text that JSON leaves out if it is empty.
pub(crate) fn text_if_any(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Go writes one replacement character for each byte that does not begin a valid character. `from_utf8_lossy` writes one for each
    // incomplete character.
    #[test]
    fn invalid_bytes_are_replaced_as_go_does() {
        for (bytes, expected) in [
            (&b"plain"[..], "plain"),
            ("é€😀".as_bytes(), "é€😀"),
            (b"a\xffb", "a\u{fffd}b"),
            (b"\xe2\x82", "\u{fffd}\u{fffd}"),
            (b"\xf0\x9f\x98x", "\u{fffd}\u{fffd}\u{fffd}x"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xc0\x80", "\u{fffd}\u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(text(bytes), expected, "{bytes:?}");
        }
    }
}
