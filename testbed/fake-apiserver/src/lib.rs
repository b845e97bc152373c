//! A fake apiserver for unit tests of several crates: it records every request and sends scripted responses. It answers calls of a
//! `kube::Client` in the process, without a socket.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, header};
use kube::{Client, client::Body};
use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Method and path with query, such as `GET /api/v1/pods?limit=1`.
    pub line: String,
    /// The header Content-Type; empty if absent.
    pub content_type: String,
    /// The header Accept; empty if absent.
    pub accept: String,
    /// The header User-Agent; empty if absent.
    pub user_agent: String,
    /// The header traceparent; empty if absent.
    pub traceparent: String,
    /// The body.
    pub body: Bytes,
}

impl RecordedRequest {
    /// Returns the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// All requests so far.
pub type Requests = Arc<Mutex<Vec<RecordedRequest>>>;

/// Returns a client of a fake apiserver, and its requests. `answer` returns the status and the body; after `None` the request
/// gets no response.
///
/// # Panics
/// Panics if a request cannot be recorded because another thread panicked.
pub fn apiserver(
    answer: impl Fn(&RecordedRequest) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (Client, Requests) {
    let (requests, answer) = (Requests::default(), Arc::new(answer));
    let noted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let text = |name| {
                let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let asked = RecordedRequest {
                line: format!("{} {}", parts.method, parts.uri),
                content_type: text(header::CONTENT_TYPE),
                accept: text(header::ACCEPT),
                user_agent: text(header::USER_AGENT),
                traceparent: text(header::HeaderName::from_static("traceparent")),
                body: body.collect_bytes().await?,
            };
            noted.lock().expect("lock").push(asked.clone());
            let Some((code, body)) = answer(&asked) else {
                std::future::pending().await
            };
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            Ok::<_, kube::Error>(response.expect("a response"))
        }
    });
    (Client::new(service, "default"), requests)
}

/// Returns a Status as the apiserver sends it for a failure, with these causes.
#[must_use]
pub fn failure(code: u16, reason: &str, causes: &[&str]) -> (u16, Value) {
    let causes: Vec<_> = causes
        .iter()
        .map(|reason| serde_json::json!({"reason": reason}))
        .collect();
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("{reason} it is"), "details": {"causes": causes},
    });
    (code, body)
}
