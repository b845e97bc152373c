//! PlanStream: questions in, answers out, in any order.
//!
//! Nothing runs that nobody asks for: the answers are a stream that reads a question when there is room for one more in
//! work, so a slow reader or a full pool slows the sender down through HTTP/2's flow control.

use std::{
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

use futures::{Stream, StreamExt as _, stream};
use nodewise_proto::v1;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{gate, refusal};

/// Answers `questions` with `answer`, at most `most` at a time, until they end, the deadline passes or the server drains.
/// What is in work then is still answered; after that the stream ends, with an error unless the questions just ended.
pub(crate) fn answers<Q, F, A>(
    questions: Q,
    most: NonZeroUsize,
    deadline: Option<Instant>,
    draining: CancellationToken,
    answer: A,
) -> impl Stream<Item = Result<v1::PlanStreamResponse, Status>> + Send + 'static
where
    Q: Stream<Item = Result<v1::PlanStreamRequest, Status>> + Send + Unpin + 'static,
    F: Future<Output = v1::PlanStreamResponse> + Send + 'static,
    A: Fn(v1::PlanStreamRequest) -> F + Send + 'static,
{
    let ending = Arc::new(OnceLock::new());
    let source = Source {
        questions,
        deadline,
        draining,
        ending: Arc::clone(&ending),
    };
    let last = stream::once(async move { ending.get().cloned() })
        .filter_map(|ending| std::future::ready(ending.map(Err)));
    stream::unfold(source, Source::next)
        .map(answer)
        .buffer_unordered(most.get())
        .map(Ok)
        .chain(last)
}

struct Source<Q> {
    questions: Q,
    deadline: Option<Instant>,
    draining: CancellationToken,
    /// The error that the stream is to end with.
    ending: Arc<OnceLock<Status>>,
}

impl<Q: Stream<Item = Result<v1::PlanStreamRequest, Status>> + Unpin> Source<Q> {
    async fn next(mut self) -> Option<(v1::PlanStreamRequest, Self)> {
        let late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            () = self.draining.cancelled() => refusal::draining(),
            () = late => refusal::deadline_exceeded(),
            question = self.questions.next() => match question? {
                Ok(question) => return Some((question, self)),
                Err(status) => gate::too_large_as_the_contract_says(status),
            },
        };
        // Set once: nothing is asked for after the end.
        let _ = self.ending.set(error);
        None
    }
}
