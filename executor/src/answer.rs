//! Answers of an apiserver as text.
//!
//! The data of a ControllerRevision is what some client wrote, byte for byte, and an apiserver keeps bytes that are no UTF-8.
//! They are replaced, wherever an object is read: it is the same one in a list, in a watch and by itself.

use futures::io::AsyncReadExt as _;
use http::Request;
use kube::Client;
use serde::Deserialize;

/// An answer as a whole.
pub async fn text(client: &Client, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
    let mut body = std::pin::pin!(client.request_stream(request).await?);
    let mut bytes = Vec::new();
    let read = body.read_to_end(&mut bytes).await;
    read.map_err(|error| kube::Error::Service(error.into()))?;
    Ok(lossy(bytes))
}

/// Bytes as text.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What says which object it is, as far as that can be read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Identity {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) resource_version: String,
}

impl Identity {
    pub(crate) fn of(object: &str) -> Self {
        #[derive(Deserialize)]
        struct Object {
            metadata: Identity,
        }
        serde_json::from_str(object).map_or_else(|_| Self::default(), |object: Object| object.metadata)
    }
}
