//! PlanStream: questions in, answers out, in any order.
//!
//! The answers are a stream that reads a question when there is room for one more in work, so a slow reader or a full pool
//! slows the sender down through HTTP/2's flow control.

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
    streams::{InWork, Open},
};

/// What a stream is told when it begins.
pub(crate) struct StreamOptions {
    /// Questions in work at the same time.
    pub(crate) most: NonZeroUsize,
    /// The end of the whole stream.
    pub(crate) deadline: Option<Instant>,
    /// Longest time of one question, from its arrival.
    pub(crate) longest_call: Duration,
    /// Ends when no further question is to be read.
    pub(crate) draining: CancellationToken,
    /// The stream's place, as long as no other stream has it.
    pub(crate) open: Arc<Open>,
}

/// A question that has come.
pub(crate) struct Admitted {
    pub(crate) question: v1::PlanStreamRequest,
    /// Held for it until somebody takes the answer.
    pub(crate) memory: Arc<Share>,
    /// When its time is up.
    pub(crate) deadline: Instant,
    /// `None`: there was none before the deadline.
    pub(crate) permit: Option<Permit>,
    /// As long as this is here the stream is not idle.
    pub(crate) in_work: InWork,
}

/// Answers `questions` with `answer` until they end, the deadline passes or the server drains. What is in work then is still
/// answered; after that the stream ends, with an error unless the questions just ended.
pub(crate) fn answers<Q, F, A>(
    questions: Q,
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
        questions,
        pool,
        options,
        ending: Arc::clone(&ending),
    };
    let last = stream::once(async move { ending.get().cloned() })
        .filter_map(|ending| std::future::ready(ending.map(Err)));
    stream::unfold(source, Source::next)
        .map(move |admitted| {
            let memory = Arc::clone(&admitted.memory);
            // In a task of its own: nobody polls this stream while its reader takes nothing, and slots are not to wait for that.
            let answer = AbortOnDropHandle::new(tokio::spawn(answer(admitted).in_current_span()));
            async move { (answer.await.expect("an answer does not panic"), memory) }
        })
        .buffer_unordered(most)
        // Held until the next one is asked for, and so this one has been handed on.
        .scan(None, |held, (answer, memory)| {
            *held = Some(memory);
            std::future::ready(Some(Ok(answer)))
        })
        .chain(last)
}

struct Source<Q> {
    questions: Q,
    pool: Pool,
    options: StreamOptions,
    /// The error that the stream is to end with.
    ending: Arc<OnceLock<Status>>,
}

impl<Q: Stream<Item = Result<Held<v1::PlanStreamRequest>, Status>> + Unpin> Source<Q> {
    /// The next question, once it has its place. None is read before: a question that waits takes memory.
    async fn next(mut self) -> Option<(Admitted, Self)> {
        let Held {
            message: question,
            memory,
        } = self.read().await?;
        let in_work = self.options.open.begin();
        let longest = Instant::now() + self.options.longest_call;
        let deadline = self.options.deadline.map_or(longest, |end| end.min(longest));
        let permit = tokio::time::timeout_at(deadline, self.pool.enter(memory.client()))
            .await
            .ok();
        let admitted = Admitted {
            question,
            memory,
            deadline,
            permit,
            in_work,
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
            idle = self.options.open.displaced().wait() => refusal::idle_stream(idle),
            question = self.questions.next() => match question? {
                Ok(question) => return Some(question),
                Err(status) => status,
            },
        };
        // Set once: nothing is asked for after the end.
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
        fair_share::{Alone, FairShare},
        streams::Streams,
    };

    fn held(message: v1::PlanStreamRequest) -> Held<v1::PlanStreamRequest> {
        let memory = FairShare::new(1, Alone::HALF);
        Held {
            message,
            memory: Arc::new(memory.nothing(&Key::Unknown)),
        }
    }

    fn open() -> Arc<Open> {
        let streams = Streams::new(1, Duration::from_mins(1), Duration::from_secs(10));
        let open = streams.open(&Key::Unknown, None, Instant::now());
        Arc::new(open.expect("there is room"))
    }

    /// Answers ten questions, all places being taken at first. Gives the answers' ids and counts what is read.
    fn ten(
        pool: &Pool,
        longest_call: Duration,
        read: &Arc<AtomicUsize>,
    ) -> impl Stream<Item = Result<v1::PlanStreamResponse, Status>> + use<> {
        let read = Arc::clone(read);
        let questions = stream::iter(0..10).map(move |_| {
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
                "placed"
            } else {
                "late"
            }
        };
        answers(questions, pool.clone(), options, move |admitted| {
            std::future::ready(v1::PlanStreamResponse {
                id: id(admitted).to_owned(),
                result: None,
            })
        })
    }

    #[tokio::test]
    async fn no_question_is_read_before_the_last_one_has_its_place() {
        let pool = Pool::new(1, 0);
        let taken = pool.try_enter(&Key::Unknown).expect("the only place");
        let read = Arc::default();
        let answers = ten(&pool, Duration::from_hours(1), &read);
        tokio::pin!(answers);
        assert!(futures::poll!(answers.next()).is_pending());
        assert_eq!(read.load(Ordering::Relaxed), 1);
        drop(taken);
        let answers: Vec<_> = answers.map(|answer| answer.expect("no error").id).collect().await;
        assert_eq!(answers, ["placed"; 10]);
    }

    #[tokio::test]
    async fn a_question_that_finds_no_place_has_the_time_of_a_call() {
        let pool = Pool::new(1, 0);
        let _taken = pool.try_enter(&Key::Unknown).expect("the only place");
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
        let question = |id: &str| {
            Ok(held(v1::PlanStreamRequest {
                id: id.to_owned(),
                request: None,
            }))
        };
        let questions = stream::iter([question("slow"), question("quick")]);
        // The first is not answered before the second was handed out.
        let quick_is_out = CancellationToken::new();
        let awaited = quick_is_out.clone();
        let answers = answers(
            questions,
            pool,
            options,
            move |Admitted { question, permit, .. }| {
                let awaited = awaited.clone();
                async move {
                    if question.id == "slow" {
                        awaited.cancelled().await;
                    }
                    drop(permit);
                    v1::PlanStreamResponse {
                        id: question.id,
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
