//! The Protobuf envelopes of Kubernetes, which are the same for all kinds: those of an object, a list, an event of a watch, and a failure.
//! Objects stay unparsed bytes.
//!
//! The names and numbers of the fields are those of Kubernetes 1.36, in `k8s.io/apimachinery/pkg/runtime/generated.proto` and
//! `k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto`. Kubernetes never changes them. Texts that clients wrote, or that may
//! quote such texts, are bytes, because they may be invalid UTF-8.

use bytes::Bytes;
use kube::core::{
    Status,
    response::{StatusCause, StatusDetails, StatusSummary},
};
use prost::Message;

/// What every object and list begins with, unless it is an item of a list.
const MAGIC: &[u8] = b"k8s\0";

/// A message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error(transparent)]
    Decode(#[from] prost::DecodeError),
    #[error("the message does not begin as Kubernetes' Protobuf messages do")]
    NoMagic,
    #[error("the object has the encoding {0:?}, which is not known")]
    Encoding(String),
    #[error("the object is of the kind {found:?} and not {expected:?}")]
    Kind { found: String, expected: String },
    #[error("the event has the type {0:?}, which is not known")]
    EventType(String),
}

/// `runtime.Unknown`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Unknown {
    #[prost(message, optional, tag = "1")]
    pub(crate) type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) raw: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) content_encoding: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) content_type: Bytes,
}

/// `runtime.TypeMeta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeMeta {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) kind: Bytes,
}

/// A list of any kind.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct List {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) items: Vec<Bytes>,
}

/// `meta.v1.ListMeta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListMeta {
    #[prost(string, tag = "2")]
    pub(crate) resource_version: String,
    #[prost(string, tag = "3")]
    pub(crate) continue_token: String,
}

/// `meta.v1.WatchEvent`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchEvent {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) kind: Bytes,
    #[prost(message, optional, tag = "2")]
    pub(crate) object: Option<RawExtension>,
}

/// `runtime.RawExtension`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) raw: Bytes,
}

/// An object of any kind.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyObject {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
}

/// `meta.v1.ObjectMeta`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectMeta {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) namespace: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) resource_version: Bytes,
}

/// `meta.v1.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failure {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) status: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) message: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) reason: Bytes,
    #[prost(message, optional, tag = "5")]
    pub(crate) details: Option<Details>,
    #[prost(int32, tag = "6")]
    pub(crate) code: i32,
}

/// `meta.v1.StatusDetails`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Details {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) group: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) kind: Bytes,
    #[prost(message, repeated, tag = "4")]
    pub(crate) causes: Vec<Cause>,
    #[prost(int32, tag = "5")]
    pub(crate) retry_after_seconds: i32,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) uid: Bytes,
}

/// `meta.v1.StatusCause`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Cause {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) reason: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) message: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) field: Bytes,
}

/// Returns the object of this kind that is in an envelope. Another kind is an error: its fields could be read as those of an object of this
/// kind.
pub(crate) fn unwrap(mut envelope: Bytes, kind: &str) -> Result<Bytes, EnvelopeError> {
    if !envelope.starts_with(MAGIC) {
        return Err(EnvelopeError::NoMagic);
    }
    let object = Unknown::decode(envelope.split_off(MAGIC.len()))?;
    for encoding in [&object.content_encoding, &object.content_type] {
        if !encoding.is_empty() {
            return Err(EnvelopeError::Encoding(text(encoding)));
        }
    }
    let found = object.type_meta.unwrap_or_default().kind;
    if found == kind.as_bytes() {
        Ok(object.raw)
    } else {
        Err(EnvelopeError::Kind {
            found: text(&found),
            expected: kind.to_owned(),
        })
    }
}

/// Reads a Status that is in an envelope.
pub(crate) fn read_status(envelope: Bytes) -> Result<Status, EnvelopeError> {
    let failure = Failure::decode(unwrap(envelope, "Status")?)?;
    Ok(failure.into())
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        Self {
            status: match &*failure.status {
                b"Success" => Some(StatusSummary::Success),
                b"Failure" => Some(StatusSummary::Failure),
                _ => None,
            },
            code: failure.code.try_into().unwrap_or_default(),
            message: text(&failure.message),
            metadata: None,
            reason: text(&failure.reason),
            details: failure.details.map(StatusDetails::from),
        }
    }
}

impl From<Details> for StatusDetails {
    fn from(details: Details) -> Self {
        let causes = details.causes.iter().map(|cause| StatusCause {
            reason: text(&cause.reason),
            message: text(&cause.message),
            field: text(&cause.field),
        });
        Self {
            name: text(&details.name),
            group: text(&details.group),
            kind: text(&details.kind),
            uid: text(&details.uid),
            causes: causes.collect(),
            retry_after_seconds: details.retry_after_seconds.try_into().unwrap_or_default(),
        }
    }
}

/// Copies a text of a message. Invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
