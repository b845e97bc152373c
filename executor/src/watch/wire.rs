//! What an apiserver sends: pages of a list and lines of a watch, of which each object stays the text that it is.
//!
//! An object may hold what cannot be read, in particular a ControllerRevision, whose data is what some client wrote, byte
//! for byte. It must spoil itself only, so nothing here looks into objects, and bytes that are no UTF-8 are replaced.

use std::{
    error::Error,
    io::{self, ErrorKind},
    pin::Pin,
};

use futures::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use http::{HeaderValue, Request, header};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    pub(super) metadata: PageMeta,
    // The API writes an empty list as null.
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMeta {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(rename = "continue", default)]
    pub(super) continue_token: String,
}

/// A line of a watch.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) kind: LineKind,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum LineKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// What says which object it is, as far as that can be read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Identity {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) resource_version: String,
}

impl Identity {
    pub(super) fn of(object: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Object {
            metadata: Identity,
        }
        serde_json::from_str(object.get()).map_or_else(|_| Self::default(), |object: Object| object.metadata)
    }
}

/// An answer as a whole.
pub(super) async fn text(client: &Client, request: Request<Vec<u8>>) -> Result<String, kube::Error> {
    let mut body = std::pin::pin!(client.request_stream(request).await?);
    let mut bytes = Vec::new();
    let read = body.read_to_end(&mut bytes).await;
    read.map_err(|error| kube::Error::Service(error.into()))?;
    Ok(lossy(bytes))
}

/// An answer line by line.
pub(super) async fn lines(
    client: &Client,
    mut request: Request<Vec<u8>>,
) -> Result<Lines<impl AsyncBufRead + use<>>, kube::Error> {
    // From 1.37 on each event would be compressed by itself, which our decompression does not understand.
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
    let body = client.request_stream(request).await?;
    Ok(Lines { body: Box::pin(body) })
}

/// The lines that are still to come.
pub(super) struct Lines<R> {
    body: Pin<Box<R>>,
}

impl<R: AsyncBufRead> Lines<R> {
    /// The next line; none at the end, be it that the connection broke: the next watch begins where this one ended, with
    /// what was cut off.
    pub(super) async fn next(&mut self) -> Result<Option<String>, kube::Error> {
        let mut line = Vec::new();
        match self.body.read_until(b'\n', &mut line).await {
            Ok(_) if line.ends_with(b"\n") => Ok(Some(lossy(line))),
            Ok(_) => Ok(None),
            Err(error) if is_cut(&error) => {
                tracing::debug!(%error, "the connection of a watch was cut");
                Ok(None)
            }
            Err(error) => Err(kube::Error::ReadEvents(error)),
        }
    }
}

/// Whether the other end went away, as an apiserver that restarts does.
fn is_cut(error: &io::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        // hyper has no kind for a body that ends within a chunk.
        if matches!(kind, Some(ErrorKind::UnexpectedEof | ErrorKind::TimedOut))
            || error.to_string().contains("unexpected EOF during chunk")
        {
            return true;
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
