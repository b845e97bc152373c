//! Answers of an apiserver as text.
//!
//! The data of a ControllerRevision is what some client wrote, byte for byte, and an apiserver keeps bytes that are no UTF-8.
//! They are replaced, wherever an object is read: it is the same one in a list, in a watch and by itself.

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body, core::Status};
use serde::Deserialize;

/// Most bytes of an answer about one object. etcd stores 1.5 MiB of it, or up to 10 MiB where it is told to, and of these an apiserver may
/// write each in six (`\u003c`).
pub const OBJECT_BYTES: usize = 64 << 20;
/// Most bytes of a refusal that are read. An object that is refused may be in it, and requests have at most 3 MiB.
const REFUSAL_BYTES: usize = 4 << 20;

/// An answer as a whole.
pub async fn text(client: &Client, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
    answer(client, request).await.map(|(_, text)| text)
}

/// A successful answer as a whole, and its status.
pub(crate) async fn answer(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<(StatusCode, String), kube::Error> {
    let answer = bounded(client, request, OBJECT_BYTES).await?;
    answer.ok_or_else(|| too_long(OBJECT_BYTES))
}

/// The same, or nothing if it has more than so many bytes. No more is read then.
pub(crate) async fn bounded(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
) -> Result<Option<(StatusCode, String)>, kube::Error> {
    let response = client.send(request.map(Body::from)).await?;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        let text = read(response.into_body(), most).await?;
        return Ok(text.map(|text| (status, text)));
    }
    let text = read(response.into_body(), REFUSAL_BYTES)
        .await?
        .unwrap_or_default();
    // What stands between here and an apiserver may answer in another form.
    let mut refusal = serde_json::from_str::<Status>(&text)
        .unwrap_or_else(|_| Status::failure(text.trim(), "Failed to parse error data"));
    if refusal.message.is_empty() {
        refusal.message = format!("the answer is {status}, and gives no reason");
    }
    // Whatever the body says: it may be no Status at all.
    Err(kube::Error::Api(refusal.with_code(status.as_u16()).boxed()))
}

/// The error of an answer that has more bytes.
pub(crate) fn too_long(most: usize) -> kube::Error {
    kube::Error::Service(format!("the answer is longer than {most} bytes").into())
}

/// A body as text, unless that is longer.
async fn read(mut body: Body, most: usize) -> Result<Option<String>, kube::Error> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    // What stands for a byte that is no text has three.
    let replaced = |chunk: std::str::Utf8Chunk<'_>| if chunk.invalid().is_empty() { 0 } else { 3 };
    let length: usize = (bytes.utf8_chunks())
        .map(|chunk| chunk.valid().len() + replaced(chunk))
        .sum();
    Ok((length <= most).then(|| lossy(bytes)))
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
