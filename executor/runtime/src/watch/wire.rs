//! The events of a watch response. Each object stays unparsed.
//!
//! In JSON, each event is a line. In Protobuf, each event follows its length, a number of 4 bytes in big-endian order.
//!
//! An object may hold data that cannot be parsed. In particular, the data of a ControllerRevision is what some client wrote,
//! byte for byte. This module does not parse objects, so that such an object does not affect the others.

use std::{
    error::Error,
    io::{self, ErrorKind},
    pin::Pin,
};

use futures::TryStreamExt as _;
use futures::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use prost::Message as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::encoding::{DecodeError, Encoding, Payload};
use crate::object::Object;
use crate::protobuf::{self, EnvelopeError};
use crate::response::{self, MAX_OBJECT_BYTES};

/// Most bytes of an event: those of an object, and of what is around it.
const MAX_EVENT_BYTES: usize = MAX_OBJECT_BYTES + 1_024;

/// One event of a watch response.
pub(super) struct Event<'a> {
    pub(super) kind: EventKind,
    /// The Status of a failure, if the event is an error.
    pub(super) object: Object<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum EventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl<'a> Event<'a> {
    /// Reads an event about an object of this kind.
    pub(super) fn read(payload: &'a Payload, kind: &str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(rename = "type")]
            kind: EventKind,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        match payload {
            Payload::Json(text) => {
                let Line { kind, object } = serde_json::from_str(text)?;
                let object = Object::Json(object);
                Ok(Self { kind, object })
            }
            Payload::Protobuf(bytes) => Self::read_frame(bytes.clone(), kind),
        }
    }

    fn read_frame(frame: bytes::Bytes, kind: &str) -> Result<Self, DecodeError> {
        let event = protobuf::WatchEvent::decode(frame)?;
        let (event_kind, kind) = match &*event.kind {
            b"ADDED" => (EventKind::Added, kind),
            b"MODIFIED" => (EventKind::Modified, kind),
            b"DELETED" => (EventKind::Deleted, kind),
            b"BOOKMARK" => (EventKind::Bookmark, kind),
            b"ERROR" => (EventKind::Error, "Status"),
            other => return Err(EnvelopeError::EventType(protobuf::text(other)).into()),
        };
        let object = event.object.unwrap_or_default().raw;
        Ok(Self {
            kind: event_kind,
            object: Object::Protobuf(protobuf::unwrap(object, kind)?),
        })
    }
}

/// Sends a watch request and returns the events of the response.
pub(super) async fn open(
    client: &Client,
    mut request: Request<Vec<u8>>,
) -> Result<Events<impl AsyncBufRead + use<>>, kube::Error> {
    // From Kubernetes 1.37 on, the apiserver would compress each event by itself. The decompression of the client does not
    // support that.
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
    let response = response::open(client, request).await?;
    let encoding = Encoding::of(response.headers());
    let body = response.into_body().into_data_stream().map_err(io::Error::other);
    Ok(Events {
        body: Box::pin(body.into_async_read()),
        encoding,
    })
}

/// The remaining events.
pub(super) struct Events<R> {
    body: Pin<Box<R>>,
    pub(super) encoding: Encoding,
}

impl<R: AsyncBufRead> Events<R> {
    /// Returns the next event, or `None` at the end. A broken connection is an end, too: the next watch continues where this
    /// one ended, so an incomplete event is sent again.
    pub(super) async fn next(&mut self) -> Result<Option<Payload>, kube::Error> {
        let event = match self.encoding {
            Encoding::Json => self.line().await,
            Encoding::Protobuf => self.frame().await,
        };
        match event {
            Ok(event) => Ok(event.map(|bytes| Payload::new(self.encoding, bytes))),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(response::too_long(MAX_EVENT_BYTES)),
            Err(error) if is_connection_closed(&error) => {
                tracing::debug!(%error, "the connection of a watch was cut");
                Ok(None)
            }
            Err(error) => Err(kube::Error::ReadEvents(error)),
        }
    }

    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut line, most) = (Vec::new(), MAX_EVENT_BYTES as u64);
        let mut body = self.body.as_mut().take(most);
        body.read_until(b'\n', &mut line).await?;
        if line.ends_with(b"\n") {
            Ok(Some(line))
        } else if line.len() as u64 == most {
            Err(ErrorKind::FileTooLarge.into())
        } else {
            Ok(None)
        }
    }

    async fn frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(Ok(length)) = self.bytes(4).await?.map(<[u8; 4]>::try_from) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(length);
        if length as usize > MAX_EVENT_BYTES {
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.bytes(length).await
    }

    /// Reads so many bytes, or `None` if the body ends before. Memory grows with what is received: the length may be wrong.
    async fn bytes(&mut self, length: u32) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let mut body = self.body.as_mut().take(length.into());
        body.read_to_end(&mut bytes).await?;
        Ok((bytes.len() == length as usize).then_some(bytes))
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
    use nodewise_telemetry::with_causes;
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

    /// The next event of a body in this encoding.
    async fn next(encoding: Encoding, body: impl AsyncBufRead) -> Result<Option<Payload>, kube::Error> {
        let body = Box::pin(body);
        Events { body, encoding }.next().await
    }

    // The parts of a body have nothing to do with its events.
    #[tokio::test]
    async fn events_may_arrive_in_parts() {
        let body = [
            &[0, 0, 0, 3][..],
            b"abc",
            &[0, 0, 0, 0],
            &[0, 0, 1, 4],
            &[b'x'; 260],
        ]
        .concat();
        for size in 1..body.len() {
            let parts: Vec<_> = body.chunks(size).map(|part| Ok(part.to_vec())).collect();
            let mut events = Events {
                body: Box::pin(futures::stream::iter(parts).into_async_read()),
                encoding: Encoding::Protobuf,
            };
            for expected in [&b"abc"[..], b"", &[b'x'; 260]] {
                let event = events.next().await.expect("no failure");
                let Some(Payload::Protobuf(bytes)) = event else {
                    panic!("{size}: {event:?}")
                };
                assert_eq!(bytes, expected, "{size}");
            }
            assert!(matches!(events.next().await, Ok(None)), "{size}");
        }
    }

    #[tokio::test]
    async fn an_event_has_a_bound() {
        let endless = || futures::io::BufReader::with_capacity(1 << 20, futures::io::repeat(b'x'));
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let error = next(encoding, endless()).await.expect_err("too long");
            let error = with_causes(error.to_string(), &error);
            assert!(error.contains("longer than"), "{error}");
        }
        // A length within the bound that is wrong takes no memory.
        let short = [&MAX_EVENT_BYTES.to_be_bytes()[4..], b"abc"].concat();
        let end = next(Encoding::Protobuf, &short[..]).await;
        assert!(matches!(end, Ok(None)), "{end:?}");
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
            let opened = open(&client, request.body(Vec::new()).expect("a request")).await;
            let mut events = opened.unwrap_or_else(|error| panic!("{framing:?}: {error}"));
            let line = events.next().await.expect("a line");
            assert!(
                matches!(line, Some(Payload::Json(text)) if text == "abc\n"),
                "{framing:?}"
            );
            let end = events.next().await;
            assert!(matches!(end, Ok(None)), "{framing:?}: {end:?}");
            serving.await.expect("no panic");
        }
    }
}
