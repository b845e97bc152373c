//! Admits calls before their messages are read: drain, load shedding, deadline. Wraps their responses in a [`ResponseBody`].

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::Service;

use crate::{
    admission::Admission,
    client::{Client, Key},
    config::Config,
    fair_share::FairShare,
    methods::{self, Class},
    pool::Pool,
    refusal,
    response_body::{ResponseBody, Timeouts},
    route::Router,
    service,
};

/// The tower service in front of the methods.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionService {
    router: Router,
    pool: Pool,
    memory: FairShare,
    draining: CancellationToken,
    longest_call: Duration,
    transfer_timeout: Duration,
}

impl AdmissionService {
    /// Admits calls to `service`.
    pub(crate) fn new(service: &service::Service, config: &Config) -> Self {
        Self {
            router: Router::new(service.clone(), config),
            pool: service.pool().clone(),
            memory: service.memory().clone(),
            draining: service.draining().clone(),
            longest_call: config.longest_call,
            transfer_timeout: config.transfer_timeout,
        }
    }

    /// The earlier of the client's deadline and the longest call. Only the client's deadline bounds a stream.
    fn deadline(&self, headers: &HeaderMap, class: Class) -> Option<Instant> {
        let asked = headers.get("grpc-timeout").and_then(timeout);
        let longest = (class != Class::Stream).then_some(self.longest_call);
        let time = match (asked, longest) {
            (Some(asked), Some(longest)) => asked.min(longest),
            (asked, longest) => asked.or(longest)?,
        };
        Instant::now().checked_add(time)
    }
}

impl NamedService for AdmissionService {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<Request<Body>> for AdmissionService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let class = methods::class(request.uri().path());
        if self.draining.is_cancelled() {
            return answer(refusal::draining());
        }
        let client = request.extensions().get::<Client>().cloned();
        let key = client.as_ref().map_or(Key::Unknown, Client::key);
        let permit = match class {
            Class::Planning => match self.pool.try_enter(&key) {
                None => return answer(refusal::saturated()),
                permit => permit,
            },
            Class::Stream | Class::Cheap => None,
        };
        let memory = Arc::new(self.memory.empty(&key));
        let deadline = self.deadline(request.headers(), class);
        let admission = Admission {
            client: client.clone(),
            permit,
            memory: Arc::clone(&memory),
            deadline,
        };
        let (path, start) = (request.uri().path().to_owned(), Instant::now());
        // The client of a stream may process one response before it reads the next.
        let timeouts = Timeouts {
            chunk: match class {
                Class::Stream => self.longest_call,
                Class::Planning | Class::Cheap => self.transfer_timeout,
            },
            message: self.longest_call.max(self.transfer_timeout),
        };
        let response = self.router.clone().answer(request, admission);
        Box::pin(async move {
            let response = match deadline {
                Some(deadline) => match tokio::time::timeout_at(deadline, response).await {
                    Ok(response) => response,
                    Err(_) => refusal::deadline_exceeded().into_http(),
                },
                None => response.await,
            };
            // An error before the first response message is in the headers. Otherwise the call has succeeded so far.
            let code = response
                .headers()
                .get(Status::GRPC_STATUS)
                .map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()));
            let who = client.as_ref().map(tracing::field::display);
            tracing::debug!(path, client = who, ?code, took = ?start.elapsed(), "answered");
            Ok(response.map(|body| Body::new(ResponseBody::new(body, timeouts, client, memory))))
        })
    }
}

fn answer(status: Status) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    Box::pin(std::future::ready(Ok(status.into_http())))
}

/// Parses `grpc-timeout`: at most eight digits and a unit. An invalid value counts as absent.
fn timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_hours(count)),
        "M" => Some(Duration::from_mins(count)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_timeouts_are_parsed() {
        let table = [
            ("2H", Some(Duration::from_hours(2))),
            ("3M", Some(Duration::from_mins(3))),
            ("4S", Some(Duration::from_secs(4))),
            ("250m", Some(Duration::from_millis(250))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("1n", Some(Duration::from_nanos(1))),
            ("", None),
            ("S", None),
            ("100000000S", None),
            ("1s", None),
            ("-1S", None),
            ("1,5S", None),
        ];
        for (text, expected) in table {
            assert_eq!(timeout(&HeaderValue::from_static(text)), expected, "{text}");
        }
        assert_eq!(timeout(&HeaderValue::from_bytes("1é".as_bytes()).unwrap()), None);
    }
}
