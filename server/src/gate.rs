//! What happens to a call before its message is read: draining, shedding, its deadline; and its answer's way out.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::Service;

use crate::{
    client::{Client, Key},
    config::Config,
    methods::{self, Class},
    outflow::{Outflow, Times},
    pool::Pool,
    refusal, service,
    shares::Shares,
};

/// When a call's time is up, as its handler finds it among the request's extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Instant);

/// Stands before the service.
#[derive(Debug, Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    pool: Pool,
    memory: Shares,
    draining: CancellationToken,
    longest_call: Duration,
    transfer_timeout: Duration,
}

impl<S> Gate<S> {
    /// Puts a gate before a service. No call but a stream takes longer than the configured time.
    pub(crate) fn new(inner: S, service: &service::Service, config: &Config) -> Self {
        Self {
            inner,
            pool: service.pool().clone(),
            memory: service.memory().clone(),
            draining: service.draining().clone(),
            longest_call: config.longest_call,
            transfer_timeout: config.transfer_timeout,
        }
    }

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

impl<S: NamedService> NamedService for Gate<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let class = methods::class(request.uri().path());
        if self.draining.is_cancelled() {
            return answer(refusal::draining());
        }
        let client = request.extensions().get::<Client>().cloned();
        let key = client.as_ref().map_or(Key::Unknown, Client::key);
        if class == Class::Planning {
            let Some(place) = self.pool.try_enter(&key) else {
                return answer(refusal::saturated());
            };
            request.extensions_mut().insert(Arc::new(place));
        }
        let memory = Arc::new(self.memory.nothing(&key));
        request.extensions_mut().insert(Arc::clone(&memory));
        let deadline = self.deadline(request.headers(), class);
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(Deadline(deadline));
        }
        let (path, start) = (request.uri().path().to_owned(), Instant::now());
        // A stream's reader may be busy with the last answer for as long as a call may take.
        let times = Times {
            piece: match class {
                Class::Stream => self.longest_call,
                Class::Planning | Class::Cheap => self.transfer_timeout,
            },
            message: self.longest_call.max(self.transfer_timeout),
        };
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = match deadline {
                Some(deadline) => match tokio::time::timeout_at(deadline, response).await {
                    Ok(response) => response?,
                    Err(_) => refusal::deadline_exceeded().into_http(),
                },
                None => response.await?,
            };
            // An error that is known before the first answer is in the headers; without one the call went well so far.
            let code = response
                .headers()
                .get(Status::GRPC_STATUS)
                .map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()));
            let who = client.as_ref().map(tracing::field::display);
            tracing::debug!(path, client = who, ?code, took = ?start.elapsed(), "answered");
            Ok(response.map(|body| Body::new(Outflow::new(body, times, client, memory))))
        })
    }
}

fn answer(status: Status) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    Box::pin(std::future::ready(Ok(status.into_http())))
}

/// Reads `grpc-timeout`: at most eight digits and a unit. One that cannot be read counts as absent.
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
    fn timeouts_are_read_as_the_protocol_writes_them() {
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
