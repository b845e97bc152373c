//! The lines of a watch response. Each object stays unparsed text.
//!
//! An object may hold data that cannot be parsed. In particular, the data of a ControllerRevision is what some client wrote,
//! byte for byte. This module does not parse objects, so that such an object does not affect the others.

use std::{
    error::Error,
    io::{self, ErrorKind},
    pin::Pin,
};

use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use http::{HeaderValue, Request, header};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::response::lossy;

/// One line of a watch response.
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

/// Sends a watch request and returns the lines of the response.
pub(super) async fn lines(
    client: &Client,
    mut request: Request<Vec<u8>>,
) -> Result<Lines<impl AsyncBufRead + use<>>, kube::Error> {
    // From Kubernetes 1.37 on, the apiserver would compress each event by itself. The decompression of the client does not
    // support that.
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
    let body = client.request_stream(request).await?;
    Ok(Lines { body: Box::pin(body) })
}

/// The remaining lines.
pub(super) struct Lines<R> {
    body: Pin<Box<R>>,
}

impl<R: AsyncBufRead> Lines<R> {
    /// Returns the next line, or `None` at the end. A broken connection is an end, too: the next watch continues where this
    /// one ended, so an incomplete line is sent again.
    pub(super) async fn next(&mut self) -> Result<Option<String>, kube::Error> {
        let mut line = Vec::new();
        match self.body.read_until(b'\n', &mut line).await {
            Ok(_) if line.ends_with(b"\n") => Ok(Some(lossy(line))),
            Ok(_) => Ok(None),
            Err(error) if is_connection_closed(&error) => {
                tracing::debug!(%error, "the connection of a watch was cut");
                Ok(None)
            }
            Err(error) => Err(kube::Error::ReadEvents(error)),
        }
    }
}

/// Whether the connection was closed by the other side, for example by an apiserver that restarts.
fn is_connection_closed(error: &io::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        // hyper has no error kind for a body that ends within a chunk.
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

#[cfg(test)]
mod tests {
    use super::*;
    use kube::Config;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// An error whose cause is only in its source.
    #[derive(Debug, thiserror::Error)]
    #[error("reading a body")]
    struct Body(#[source] Box<dyn Error + Send + Sync>);

    #[test]
    fn closed_connections_are_told_from_failures() {
        let plain = |kind: ErrorKind| io::Error::from(kind);
        let within = |inner: io::Error| io::Error::other(inner);
        let below = |inner: io::Error| io::Error::other(Body(inner.into()));
        let chunk = "unexpected EOF during chunk size line";
        for (error, cut) in [
            (plain(ErrorKind::UnexpectedEof), true),
            (plain(ErrorKind::TimedOut), true),
            (within(plain(ErrorKind::UnexpectedEof)), true),
            (within(within(plain(ErrorKind::TimedOut))), true),
            (below(plain(ErrorKind::UnexpectedEof)), true),
            (within(below(within(plain(ErrorKind::TimedOut)))), true),
            (io::Error::other(chunk), true),
            (within(io::Error::new(ErrorKind::InvalidData, chunk)), true),
            (io::Error::other(Body(chunk.into())), true),
            (plain(ErrorKind::ConnectionReset), false),
            (plain(ErrorKind::InvalidData), false),
            (within(plain(ErrorKind::InvalidData)), false),
            (below(plain(ErrorKind::ConnectionReset)), false),
            (io::Error::other("unexpected EOF"), false),
            (io::Error::other(Body("invalid chunk size".into())), false),
        ] {
            assert_eq!(is_connection_closed(&error), cut, "{error:?}");
        }
    }

    // The error text of hyper may change. This test closes a real connection within a chunk, and within the content length.
    #[tokio::test]
    async fn a_closed_connection_ends_the_lines() {
        for (framing, rest) in [
            ("Transfer-Encoding: chunked\r\n\r\n4\r\nabc\n", "\r\n"),
            ("Transfer-Encoding: chunked\r\n\r\n4\r\nabc\n\r\n", "99\r\nabc"),
            ("Content-Length: 99\r\n\r\nabc\n", "abc"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            let answer = format!("HTTP/1.1 200 OK\r\n{framing}{rest}");
            let serving = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    stream.read_buf(&mut asked).await.expect("a request");
                }
                stream.write_all(answer.as_bytes()).await.expect("written");
            });
            let url = format!("http://{address}").parse().expect("a URL");
            let client = Client::try_from(Config::new(url)).expect("a client");
            let request = Request::get("/apis/apps/v1/controllerrevisions?watch=true");
            let opened = lines(&client, request.body(Vec::new()).expect("a request")).await;
            let mut lines = opened.unwrap_or_else(|error| panic!("{framing:?}: {error}"));
            let line = lines.next().await.expect("a line");
            assert_eq!(line.as_deref(), Some("abc\n"), "{framing:?}");
            let end = lines.next().await;
            assert!(matches!(end, Ok(None)), "{framing:?}: {end:?}");
            serving.await.expect("no panic");
        }
    }
}
