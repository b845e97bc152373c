//! Reads responses of the apiserver, up to a size limit.
//!
//! The data of a ControllerRevision is what some client wrote, byte for byte, and may contain invalid UTF-8. Invalid bytes
//! are replaced in the same way wherever an object is read: in a list, in a watch, and by itself.

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::{
    Client,
    client::Body,
    core::{Status, response::StatusDetails},
};
use prost::Message as _;
use serde::Deserialize;

use crate::encoding::{DecodeError, Encoding, Payload};
use crate::protobuf::{self, AnyObject};

/// Most bytes of a response about one object: 64 MiB. etcd stores 1.5 MiB per object by default, and up to 10 MiB if
/// configured. The apiserver may escape each byte as six (`\u003c`).
pub const MAX_OBJECT_BYTES: usize = 64 << 20;
/// Most bytes of an error response that are read: 4 MiB. The response may quote the rejected object, and requests have at
/// most 3 MiB.
const ERROR_BYTES: usize = 4 << 20;

/// Sends a request and returns the body of a successful response.
pub async fn read_text(client: &Client, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
    let (_, answer) = send(client, request).await?;
    answer.into_json()
}

/// Sends a request and returns the status and the body of a successful response.
pub(crate) async fn send(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<(StatusCode, Payload), kube::Error> {
    let answer = send_bounded(client, request, MAX_OBJECT_BYTES).await?;
    answer.ok_or_else(|| too_long(MAX_OBJECT_BYTES))
}

/// Sends a request and returns the status and the body, or `None` if the body has more than `most` bytes. It stops reading
/// then.
pub(crate) async fn send_bounded(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
) -> Result<Option<(StatusCode, Payload)>, kube::Error> {
    let response = open(client, request).await?;
    let status = response.status();
    let payload = read(response, most).await?;
    Ok(payload.map(|payload| (status, payload)))
}

/// Sends a request and returns a successful response, whose body is not read yet.
pub(crate) async fn open(client: &Client, request: Request<Vec<u8>>) -> Result<Response<Body>, kube::Error> {
    let response = client.send(request.map(Body::from)).await?;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return Ok(response);
    }
    let retry_after = retry_after(response.headers());
    // A proxy may answer in another format.
    let mut error = match read(response, ERROR_BYTES).await? {
        Some(Payload::Json(text)) => serde_json::from_str(&text).map_err(|_| text),
        Some(Payload::Protobuf(bytes)) => {
            protobuf::read_status(bytes.clone()).map_err(|_| protobuf::text(&bytes))
        }
        None => Err(String::new()),
    }
    .unwrap_or_else(|text: String| Status::failure(text.trim(), "Failed to parse error data"));
    if error.message.is_empty() {
        error.message = format!("the answer is {status}, and gives no reason");
    }
    if let Some(seconds) = retry_after {
        let details = error.details.get_or_insert_with(no_details);
        details.retry_after_seconds = details.retry_after_seconds.max(seconds);
    }
    // The HTTP status counts, because the body may not be a Status at all.
    Err(kube::Error::Api(error.with_code(status.as_u16()).boxed()))
}

/// The seconds of the header Retry-After. It is also set where the body is no Status.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

/// The error for a response that has more than `most` bytes.
pub(crate) fn too_long(most: usize) -> kube::Error {
    kube::Error::Service(format!("the answer is longer than {most} bytes").into())
}

/// Reads the body of a response. Returns `None` if it has more than `most` bytes.
pub(crate) async fn read(response: Response<Body>, most: usize) -> Result<Option<Payload>, kube::Error> {
    let encoding = Encoding::of(response.headers());
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    if encoding == Encoding::Json && replaced_len(&bytes) > most {
        return Ok(None);
    }
    Ok(Some(Payload::new(encoding, bytes)))
}

/// The number of bytes with the invalid ones replaced.
fn replaced_len(bytes: &[u8]) -> usize {
    // The replacement character has three bytes.
    let replaced = |chunk: std::str::Utf8Chunk<'_>| if chunk.invalid().is_empty() { 0 } else { 3 };
    let chunks = bytes.utf8_chunks();
    chunks.map(|chunk| chunk.valid().len() + replaced(chunk)).sum()
}

/// The namespace, name and resourceVersion of an object, as far as they can be read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectIdentity {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
}

/// An object of which only the identity is read.
#[derive(Deserialize)]
struct Identified {
    metadata: ObjectIdentity,
}

impl From<AnyObject> for ObjectIdentity {
    fn from(object: AnyObject) -> Self {
        let meta = object.metadata.unwrap_or_default();
        Self {
            namespace: protobuf::text(&meta.namespace),
            name: protobuf::text(&meta.name),
            resource_version: protobuf::text(&meta.resource_version),
        }
    }
}

impl ObjectIdentity {
    /// Reads the identity from the JSON of an object. Fields that cannot be read are empty.
    #[must_use]
    pub fn of(object: &str) -> Self {
        let object = serde_json::from_str(object);
        object.map_or_else(|_| Self::default(), |object: Identified| object.metadata)
    }

    /// Reads the identity from the answer to a request for the metadata of an object.
    pub(crate) fn of_metadata(answer: Payload) -> Result<Self, DecodeError> {
        let object = match answer {
            Payload::Json(text) => return Ok(serde_json::from_str::<Identified>(&text)?.metadata),
            Payload::Protobuf(bytes) => protobuf::unwrap(bytes, "PartialObjectMetadata")?,
        };
        Ok(AnyObject::decode(object)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{ObjectMeta, TypeMeta, Unknown};

    fn protobuf(kind: &str) -> Payload {
        let object = AnyObject {
            metadata: Some(ObjectMeta {
                name: "p".into(),
                namespace: "ns".into(),
                resource_version: "7".into(),
            }),
        };
        let envelope = Unknown {
            type_meta: Some(TypeMeta {
                kind: kind.to_owned().into(),
            }),
            raw: object.encode_to_vec().into(),
            ..Unknown::default()
        };
        Payload::Protobuf([&b"k8s\0"[..], &envelope.encode_to_vec()].concat().into())
    }

    #[test]
    fn the_metadata_of_a_written_object_is_read_in_both_encodings() {
        let json = |text: &str| Payload::Json(text.to_owned());
        let read = |answer| {
            let identity = ObjectIdentity::of_metadata(answer).ok()?;
            Some([identity.namespace, identity.name, identity.resource_version])
        };
        let expected = Some(["ns", "p", "7"].map(str::to_owned));
        let text =
            r#"{"metadata": {"name": "p", "namespace": "ns", "resourceVersion": "7", "labels": {"a": "b"}}}"#;
        assert_eq!(read(json(text)), expected);
        assert_eq!(read(protobuf("PartialObjectMetadata")), expected);
        for wrong in [
            protobuf("Status"),
            json("{}"),
            json("<html>"),
            Payload::Protobuf("k8s".into()),
        ] {
            assert_eq!(read(wrong), None);
        }
    }
}
