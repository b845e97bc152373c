//! An apiserver that notes every request and answers as it is told.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, header};
use kube::{Client, client::Body};
use serde_json::Value;

/// A request as the apiserver got it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method and path with query, such as `GET /api/v1/pods?limit=1`.
    pub(crate) line: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) user_agent: String,
    pub(crate) traceparent: String,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// All requests so far.
pub(crate) type Requests = Arc<Mutex<Vec<Asked>>>;

/// A client of an apiserver that answers with status and body; `None` never answers.
pub(crate) fn apiserver(
    answer: impl Fn(&Asked) -> Option<(u16, Value)> + Send + Sync + 'static,
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
            let asked = Asked {
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

/// A failure as an apiserver words it, with the causes given.
pub(crate) fn failure(code: u16, reason: &str, causes: &[&str]) -> (u16, Value) {
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
