//! The encodings in which an apiserver answers: JSON, and Protobuf where the apiserver speaks it and the executor reads it.
//!
//! The executor asks for Protobuf first and for JSON as the second choice. The Content-Type of each response decides how it is read, because
//! an aggregated apiserver or a proxy may know JSON only.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

use crate::protobuf::EnvelopeError;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The Accept header that clients in Go send, too.
const PROTOBUF_OR_JSON: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Without a Content-Type, too.
    Json,
    /// Kubernetes' Protobuf encoding.
    Protobuf,
}

impl Encoding {
    /// The encoding of a response with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        // Of a watch, the parameter `stream=watch` follows.
        let media_type = content_type.and_then(|value| value.split(';').next());
        if media_type.is_some_and(|value| value.trim().eq_ignore_ascii_case(PROTOBUF)) {
            Self::Protobuf
        } else {
            Self::Json
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
        })
    }
}

/// Asks for a response in Protobuf, or in JSON where the apiserver does not speak Protobuf.
pub(crate) fn ask_for_protobuf(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT, PROTOBUF_OR_JSON);
}

/// A response, or one event of a watch.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Invalid UTF-8 is replaced.
    Json(String),
    Protobuf(Bytes),
}

impl Payload {
    pub(crate) fn new(encoding: Encoding, bytes: Vec<u8>) -> Self {
        match encoding {
            Encoding::Json => Self::Json(lossy(bytes)),
            Encoding::Protobuf => Self::Protobuf(bytes.into()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Protobuf(bytes) => bytes.len(),
        }
    }

    /// The text, or an error if it is Protobuf, which is read of some resources only.
    pub(crate) fn into_json(self) -> Result<String, kube::Error> {
        match self {
            Self::Json(text) => Ok(text),
            Self::Protobuf(_) => Err(kube::Error::Service(UNASKED.into())),
        }
    }
}

/// What is wrong with Protobuf of a resource that is read in JSON only.
pub(crate) const UNASKED: &str = "the answer is Protobuf, which was not asked for";

/// A response or an event does not have the form that it should have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Protobuf(#[from] EnvelopeError),
}

impl From<prost::DecodeError> for DecodeError {
    fn from(error: prost::DecodeError) -> Self {
        Self::Protobuf(error.into())
    }
}

/// Converts bytes to text. Invalid UTF-8 is replaced.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_decides() {
        for (content_type, expected) in [
            (None, Encoding::Json),
            (Some("application/json"), Encoding::Json),
            (Some("application/json;stream=watch"), Encoding::Json),
            (Some("text/plain"), Encoding::Json),
            (Some("application/vnd.kubernetes.protobuf"), Encoding::Protobuf),
            (
                Some("application/vnd.kubernetes.protobuf;stream=watch"),
                Encoding::Protobuf,
            ),
            (
                Some("Application/Vnd.Kubernetes.Protobuf ; stream=watch"),
                Encoding::Protobuf,
            ),
            (Some("application/vnd.kubernetes.protobuffer"), Encoding::Json),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            }
            assert_eq!(Encoding::of(&headers), expected, "{content_type:?}");
        }
    }
}
