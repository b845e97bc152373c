//! One HTTP/1.1 call: a POST over a connection of its own. No redirect is followed, and of a long answer no more is read than is
//! needed to know that it is too long (L-32).

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use nodewise_telemetry::with_causes;
use nodewise_tls::client::Protocol;

use super::address::Address;
use super::credentials::Token;
use super::dial::Dialer;

/// The most bytes of an answer.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The most bytes of a measured value as JSON, which is what the service takes.
const MOST_VALUE_BYTES: usize = 64 << 10;

/// The most bytes of the headers of an answer.
const MOST_HEADER_BYTES: usize = 64 << 10;

/// The name of this program and its version.
pub(super) const AGENT: &str = concat!("nodewise-executor/", env!("CARGO_PKG_VERSION"));

/// What is sent.
#[derive(Debug)]
pub(super) struct Post<'a> {
    pub(super) address: &'a Address,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    pub(super) token: Option<Token>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Answer {
    /// Why the status is none of success.
    pub(super) fn refused(&self) -> String {
        let hint = if self.status.is_redirection() {
            ", and no redirect is followed"
        } else {
            ""
        };
        format!("it answered {}{hint}", self.status)
    }
}

/// Checks the length of a value. Whoever is asked chooses it, and read as JSON, a value takes up to a hundred times as much.
pub(super) fn check_value(bytes: usize) -> Result<(), String> {
    if bytes > MOST_VALUE_BYTES {
        return Err(format!(
            "the value has {bytes} bytes; at most {MOST_VALUE_BYTES} are taken"
        ));
    }
    Ok(())
}

/// Makes the call. The caller limits its time.
pub(super) async fn post(dialer: &Dialer, post: Post<'_>) -> Result<Answer, String> {
    let request = request(&post)?;
    let stream = dialer.connect(post.address, Protocol::Http1).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MOST_HEADER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| broken(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                format!("its answer is longer than {MOST_BYTES} bytes")
            } else {
                with_causes(error.to_string(), &*error)
            }
        })?;
        let body = body.to_bytes();
        Ok(Answer { status, body })
    };
    // The connection ends with this future. If it ends first, the exchange says why.
    let driver = async {
        drop(connection.await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = exchange => answer,
        () = driver => Err("the connection has ended".to_owned()),
    }
}

fn request(post: &Post<'_>) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(post.path)
        .header(HOST, post.address.host_header())
        .header(USER_AGENT, HeaderValue::from_static(AGENT))
        .header(ACCEPT, HeaderValue::from_static("application/json"))
        .header(CONTENT_TYPE, HeaderValue::from_static(post.content_type));
    if let Some(token) = &post.token {
        request = request.header(AUTHORIZATION, token.clone());
    }
    let request = request.body(Full::new(post.body.clone()));
    request.map_err(|error| format!("no request can be made: {error}"))
}

fn broken(error: &hyper::Error) -> String {
    with_causes(error.to_string(), error)
}
