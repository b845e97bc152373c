//! An object of a list or of an event, which is not parsed yet.

use bytes::Bytes;
use kube::core::Status;
use prost::Message as _;
use serde_json::value::RawValue;

use crate::encoding::DecodeError;
use crate::protobuf::{self, AnyObject};
use crate::response::ObjectIdentity;

/// An object as the apiserver sent it.
#[derive(Debug)]
pub(crate) enum Object<'a> {
    Json(&'a RawValue),
    /// Without its envelope.
    Protobuf(Bytes),
}

impl Object<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(json) => json.get().len(),
            Self::Protobuf(bytes) => bytes.len(),
        }
    }

    /// The namespace, name and resourceVersion. What cannot be read is empty.
    pub(crate) fn identity(&self) -> ObjectIdentity {
        match self {
            Self::Json(json) => ObjectIdentity::of(json.get()),
            Self::Protobuf(bytes) => AnyObject::decode(bytes.clone()).unwrap_or_default().into(),
        }
    }

    /// Reads the Status of an event that is an error.
    pub(crate) fn status(&self) -> Result<Status, DecodeError> {
        Ok(match self {
            Self::Json(json) => serde_json::from_str(json.get())?,
            Self::Protobuf(bytes) => protobuf::Failure::decode(bytes.clone())?.into(),
        })
    }
}
