//! What happens to a call before its message is read: draining, shedding, its deadline.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::Service;

use crate::{
    config::Config,
    connection::Client,
    methods::{self, Class},
    pool::Pool,
    refusal,
};

/// When a call's time is up, as its handler finds it among the request's extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Instant);

/// Stands before the service.
#[derive(Debug, Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    pool: Pool,
    draining: CancellationToken,
    longest_call: Duration,
    receive_timeout: Duration,
}

impl<S> Gate<S> {
    /// Puts a gate before a service. No call but a stream takes longer than the configured time.
    pub(crate) fn new(inner: S, pool: Pool, draining: CancellationToken, config: &Config) -> Self {
        Self {
            inner,
            pool,
            draining,
            longest_call: config.longest_call,
            receive_timeout: config.receive_timeout,
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
        if class == Class::Planning {
            let Some(place) = self.pool.try_enter() else {
                return answer(refusal::saturated(RETRY_AFTER));
            };
            request.extensions_mut().insert(Arc::new(place));
            request = request.map(|body| Body::new(Timely::new(body, self.receive_timeout)));
        }
        let deadline = self.deadline(request.headers(), class);
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(Deadline(deadline));
        }
        let (path, start) = (request.uri().path().to_owned(), Instant::now());
        let client = request.extensions().get::<Client>().cloned();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = match deadline {
                Some(deadline) => match tokio::time::timeout_at(deadline, response).await {
                    Ok(response) => response?,
                    Err(_) => refusal::deadline_exceeded().into_http(),
                },
                None => response.await?,
            };
            let response = as_the_contract_says(response);
            // An error that is known before the first answer is in the headers; without one the call went well so far.
            let code = response
                .headers()
                .get(Status::GRPC_STATUS)
                .map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()));
            let client = client.map(tracing::field::display);
            tracing::debug!(path, client, ?code, took = ?start.elapsed(), "answered");
            Ok(response)
        })
    }
}

/// A message that must have come within a time.
struct Timely {
    inner: Body,
    within: Duration,
    late: Pin<Box<Sleep>>,
}

impl Timely {
    fn new(inner: Body, within: Duration) -> Self {
        Self {
            inner,
            within,
            late: Box::pin(tokio::time::sleep(within)),
        }
    }
}

impl http_body::Body for Timely {
    type Data = <Body as http_body::Body>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        // Also when a frame has come: else one byte now and then would hold the place.
        let ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        if !ended && self.late.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(refusal::not_received(self.within))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// How long a client that was shed is asked to wait: a few times what a plan takes.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(100);

fn answer(status: Status) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    Box::pin(std::future::ready(Ok(status.into_http())))
}

/// The transport answers OUT_OF_RANGE to a message over the limit, the contract (and every other gRPC implementation)
/// RESOURCE_EXHAUSTED. The service itself never answers OUT_OF_RANGE.
fn as_the_contract_says(mut response: Response<Body>) -> Response<Body> {
    let status = response.headers_mut().get_mut(Status::GRPC_STATUS);
    if let Some(status) = status.filter(|status| Code::from_bytes(status.as_bytes()) == Code::OutOfRange) {
        *status = HeaderValue::from(Code::ResourceExhausted as i32);
    }
    response
}

/// The same for a stream's message.
pub(crate) fn too_large_as_the_contract_says(status: Status) -> Status {
    if status.code() == Code::OutOfRange {
        Status::resource_exhausted(status.message())
    } else {
        status
    }
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
