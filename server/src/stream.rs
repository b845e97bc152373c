//! PlanStream: a stream of requests, answered in any order.
//!
//! The server reads the next request only when it may have one more in progress. So a full pool, or a client that reads its
//! responses slowly, slows the client down through HTTP/2 flow control.

use std::{
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{Stream, StreamExt as _, stream};
use nodewise_proto::v1;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::Status;
use tracing::Instrument as _;

use crate::{
    fair_share::Share,
    pool::{Permit, Pool},
    refusal,
    request_reader::Held,
    streams::{InProgress, OpenStream},
};

/// The limits and signals of one stream.
pub(crate) struct StreamOptions {
    /// Most requests in progress at the same time.
    pub(crate) most: NonZeroUsize,
    /// The deadline of the whole stream.
    pub(crate) deadline: Option<Instant>,
    /// Longest time of one request, from its arrival.
    pub(crate) longest_call: Duration,
    /// Cancelled when the server drains: no further request is read.
    pub(crate) draining: CancellationToken,
    /// The entry of the stream among the open streams.
    pub(crate) open: Arc<OpenStream>,
}

/// A request that was read from a stream.
pub(crate) struct Admitted {
    pub(crate) request: v1::PlanStreamRequest,
    /// Held for the request until the transport takes the response.
    pub(crate) memory: Arc<Share>,
    /// The deadline of the request.
    pub(crate) deadline: Instant,
    /// `None` if no permit was free before the deadline.
    pub(crate) permit: Option<Permit>,
    /// While this exists, the stream is not idle.
    pub(crate) in_progress: InProgress,
}

/// Answers `requests` with `answer` until they end, the deadline passes, the stream is evicted or the server drains. Requests in
/// progress are still answered. Then the stream ends, with an error unless the client ended the stream.
pub(crate) fn answers<Q, F, A>(
    requests: Q,
    pool: Pool,
    options: StreamOptions,
    answer: A,
) -> impl Stream<Item = Result<v1::PlanStreamResponse, Status>> + Send + 'static
where
    Q: Stream<Item = Result<Held<v1::PlanStreamRequest>, Status>> + Send + Unpin + 'static,
    F: Future<Output = v1::PlanStreamResponse> + Send + 'static,
    A: Fn(Admitted) -> F + Send + 'static,
{
    let ending = Arc::new(OnceLock::new());
    let most = options.most.get();
    let source = Source {
        requests,
        pool,
        options,
        ending: Arc::clone(&ending),
    };
    let last = stream::once(async move { ending.get().cloned() })
        .filter_map(|ending| std::future::ready(ending.map(Err)));
    stream::unfold(source, Source::next)
        .map(move |admitted| {
            let memory = Arc::clone(&admitted.memory);
            // In a task of its own: the transport does not poll this stream while the client reads nothing, and the work must go on
            // to free its slot.
            let answer = AbortOnDropHandle::new(tokio::spawn(answer(admitted).in_current_span()));
            async move { (answer.await.expect("an answer does not panic"), memory) }
        })
        .buffer_unordered(most)
        // Hold the memory until the transport polls for the next response, and so has taken this one.
        .scan(None, |held, (answer, memory)| {
            *held = Some(memory);
            std::future::ready(Some(Ok(answer)))
        })
        .chain(last)
}

struct Source<Q> {
    requests: Q,
    pool: Pool,
    options: StreamOptions,
    /// The error with which the stream will end.
    ending: Arc<OnceLock<Status>>,
}

impl<Q: Stream<Item = Result<Held<v1::PlanStreamRequest>, Status>> + Unpin> Source<Q> {
    /// Reads the next request and waits for its permit. Only one request waits at a time, since a waiting request takes memory.
    async fn next(mut self) -> Option<(Admitted, Self)> {
        let Held {
            message: request,
            memory,
        } = self.read().await?;
        let in_progress = self.options.open.begin();
        let longest = Instant::now() + self.options.longest_call;
        let deadline = self.options.deadline.map_or(longest, |end| end.min(longest));
        let permit = tokio::time::timeout_at(deadline, self.pool.enter(memory.client()))
            .await
            .ok();
        let admitted = Admitted {
            request,
            memory,
            deadline,
            permit,
            in_progress,
        };
        Some((admitted, self))
    }

    async fn read(&mut self) -> Option<Held<v1::PlanStreamRequest>> {
        let late = async {
            match self.options.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            () = self.options.draining.cancelled() => refusal::draining(),
            () = late => refusal::deadline_exceeded(),
            idle = self.options.open.eviction().wait() => refusal::idle_stream(idle),
            request = self.requests.next() => match request? {
                Ok(request) => return Some(request),
                Err(status) => status,
            },
        };
        // Set once: nothing is read after an error.
        let _ = self.ending.set(error);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{
        client::Key,
        fair_share::{FairShare, MaxShare},
        streams::Streams,
    };

    fn held(message: v1::PlanStreamRequest) -> Held<v1::PlanStreamRequest> {
        let memory = FairShare::new(1, MaxShare::HALF);
        Held {
            message,
            memory: Arc::new(memory.empty(&Key::Unknown)),
        }
    }

    fn open() -> Arc<OpenStream> {
        let streams = Streams::new(1, Duration::from_mins(1), Duration::from_secs(10));
        let open = streams.open(&Key::Unknown, None, Instant::now());
        Arc::new(open.expect("there is room"))
    }

    /// Answers ten requests. The id of a response says whether its request got a permit. `read` counts the requests that were read.
    fn ten(
        pool: &Pool,
        longest_call: Duration,
        read: &Arc<AtomicUsize>,
    ) -> impl Stream<Item = Result<v1::PlanStreamResponse, Status>> + use<> {
        let read = Arc::clone(read);
        let requests = stream::iter(0..10).map(move |_| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok(held(v1::PlanStreamRequest::default()))
        });
        let options = StreamOptions {
            most: NonZeroUsize::new(16).expect("16 is not 0"),
            deadline: None,
            longest_call,
            draining: CancellationToken::new(),
            open: open(),
        };
        let id = |admitted: Admitted| {
            if admitted.permit.is_some() {
                "permitted"
            } else {
                "late"
            }
        };
        answers(requests, pool.clone(), options, move |admitted| {
            std::future::ready(v1::PlanStreamResponse {
                id: id(admitted).to_owned(),
                result: None,
            })
        })
    }

    #[tokio::test]
    async fn no_request_is_read_before_the_last_one_has_its_permit() {
        let pool = Pool::new(1, 0);
        let taken = pool.try_enter(&Key::Unknown).expect("the only permit");
        let read = Arc::default();
        let answers = ten(&pool, Duration::from_hours(1), &read);
        tokio::pin!(answers);
        assert!(futures::poll!(answers.next()).is_pending());
        assert_eq!(read.load(Ordering::Relaxed), 1);
        drop(taken);
        let answers: Vec<_> = answers.map(|answer| answer.expect("no error").id).collect().await;
        assert_eq!(answers, ["permitted"; 10]);
    }

    #[tokio::test]
    async fn a_request_waits_for_a_permit_until_its_deadline() {
        let pool = Pool::new(1, 0);
        let _taken = pool.try_enter(&Key::Unknown).expect("the only permit");
        let answers = ten(&pool, Duration::from_millis(5), &Arc::default());
        let answers: Vec<_> = answers.map(|answer| answer.expect("no error").id).collect().await;
        assert_eq!(answers, ["late"; 10]);
    }

    #[tokio::test]
    async fn answers_come_in_any_order() {
        let pool = Pool::new(2, 3);
        let options = StreamOptions {
            most: NonZeroUsize::new(2).expect("2 is not 0"),
            deadline: None,
            longest_call: Duration::from_hours(1),
            draining: CancellationToken::new(),
            open: open(),
        };
        let request = |id: &str| {
            Ok(held(v1::PlanStreamRequest {
                id: id.to_owned(),
                request: None,
            }))
        };
        let requests = stream::iter([request("slow"), request("quick")]);
        // The first request is not answered before the response to the second was received.
        let quick_is_out = CancellationToken::new();
        let awaited = quick_is_out.clone();
        let answers = answers(
            requests,
            pool,
            options,
            move |Admitted { request, permit, .. }| {
                let awaited = awaited.clone();
                async move {
                    if request.id == "slow" {
                        awaited.cancelled().await;
                    }
                    drop(permit);
                    v1::PlanStreamResponse {
                        id: request.id,
                        result: None,
                    }
                }
            },
        );
        tokio::pin!(answers);
        let mut next = async || {
            let answer = tokio::time::timeout(Duration::from_secs(20), answers.next()).await;
            answer.expect("in time").expect("an answer").expect("no error").id
        };
        assert_eq!(next().await, "quick");
        quick_is_out.cancel();
        assert_eq!(next().await, "slow");
    }
}
