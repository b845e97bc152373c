//! Answers of an apiserver as text.
//!
//! The data of a ControllerRevision is what some client wrote, byte for byte, and an apiserver keeps bytes that are no UTF-8.
//! They are replaced, wherever an object is read: it is the same one in a list, in a watch and by itself.

use http::{Request, StatusCode};
use kube::{Client, client::Body, core::Status};
use serde::Deserialize;

/// An answer as a whole.
pub async fn text(client: &Client, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
    answer(client, request).await.map(|(_, text)| text)
}

/// A successful answer as a whole, and its status.
pub(crate) async fn answer(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<(StatusCode, String), kube::Error> {
    let response = client.send(request.map(Body::from)).await?;
    let status = response.status();
    let text = lossy(response.into_body().collect_bytes().await?.into());
    if status.is_client_error() || status.is_server_error() {
        // What stands between here and an apiserver may answer in another form.
        let mut refusal = serde_json::from_str::<Status>(&text)
            .unwrap_or_else(|_| Status::failure(text.trim(), "Failed to parse error data"));
        if refusal.message.is_empty() {
            refusal.message = format!("the answer is {status}, and gives no reason");
        }
        // Whatever the body says: it may be no Status at all.
        return Err(kube::Error::Api(refusal.with_code(status.as_u16()).boxed()));
    }
    Ok((status, text))
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
