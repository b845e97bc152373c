//! The methods of the service.

use std::sync::Arc;

use futures::{
    FutureExt as _, StreamExt as _,
    stream::{self as futures_stream, BoxStream},
};
use nodewise_proto::v1::{self, plan_stream_response};
use nodewise_telemetry::grpc::code_name;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};
use tracing::{Instrument as _, field::Empty};

use crate::{
    admission::Admission,
    capabilities,
    client::Key,
    config::Config,
    engine::Engine,
    fair_share::{FairShare, MaxShare, Share},
    pool::{Permit, Pool},
    refusal::{self, Refusal, Violation},
    request_reader::{MemorySource, RequestReader},
    response_memory::{Caller, Needs},
    stream::{self, Admitted, StreamOptions},
    streams::Streams,
};

/// The service. Requests are parsed and planned on the threads of the pool.
#[derive(Debug, Clone)]
pub struct Service {
    engine: Arc<Engine>,
    pool: Pool,
    /// Memory for requests, from their arrival until their responses are sent.
    memory: FairShare,
    draining: CancellationToken,
    /// The open streams. Each may hold memory for one request that waits for its permit.
    streams: Streams,
    config: Config,
}

/// The messages of a play that wait for the client.
const STEPS_AHEAD: usize = 4;
/// A method of the engine.
type Work<Q, A> = fn(&Engine, Q, Caller<'_>) -> Result<A, Refusal>;

/// Runs `work` with a [`Caller`] that holds memory in `memory`, which already holds the memory of the request.
fn within<A>(
    memory: &Share,
    stop: &dyn Fn() -> bool,
    work: impl FnOnce(Caller<'_>) -> Result<A, Refusal>,
) -> Result<A, Refusal> {
    let request = memory.amount();
    let hold = |needs| {
        let bytes = match needs {
            Needs::Within(bytes) => bytes.max(request),
            Needs::Besides(bytes) => bytes.saturating_add(request),
            Needs::Alone(bytes) => bytes,
        };
        if memory.resize(bytes) {
            Ok(())
        } else if bytes > memory.capacity() {
            Err(refusal::answer_too_large(bytes, memory.capacity()))
        } else {
            Err(Refusal::NoMemory)
        }
    };
    work(Caller { stop, hold: &hold })
}

impl Service {
    /// A service with this configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            engine: Arc::new(Engine::new(config.limits, config.bucket_cache_size)),
            pool: Pool::new(config.max_concurrent_plans, config.max_queued_plans),
            memory: FairShare::new(config.max_request_memory.as_usize(), MaxShare::HALF),
            draining: CancellationToken::new(),
            streams: Streams::new(
                config.max_streams,
                config.stream_idle_timeout,
                config.transfer_timeout,
            ),
            config: config.clone(),
        }
    }

    /// Starts to drain: new requests get UNAVAILABLE, admitted ones are still answered.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn memory(&self) -> &FairShare {
        &self.memory
    }

    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Answers a request on the pool. The permit and the memory are held until the work ends, even if the caller left earlier.
    pub(crate) async fn answer<Q: Send + 'static, A: Send + 'static>(
        &self,
        message: Q,
        admission: Admission,
        work: Work<Q, A>,
    ) -> Result<A, Status> {
        let Admission {
            permit,
            memory,
            deadline,
            ..
        } = admission;
        let permit = permit.ok_or_else(refusal::saturated)?;
        let engine = Arc::clone(&self.engine);
        self.pool
            .run(permit, deadline.map(Instant::into_std), move |stop| {
                within(&memory, stop, |caller| work(&engine, message, caller))
            })
            .await
    }

    /// Answers one request of a stream. Errors become part of the response.
    pub(crate) async fn answer_one(self, admitted: Admitted) -> v1::PlanStreamResponse {
        let Admitted {
            request: v1::PlanStreamRequest { id, request },
            memory,
            deadline,
            permit,
            in_progress: _in_progress,
        } = admitted;
        let span = tracing::debug_span!(
            "question",
            nodewise.question.id = id,
            rpc.response.status_code = Empty
        );
        let answer = self.plan_one(&id, request, memory, deadline, permit);
        let result = tokio::time::timeout_at(deadline, answer)
            .instrument(span.clone())
            .await
            .unwrap_or_else(|_| Err(refusal::deadline_exceeded()));
        let code = result.as_ref().err().map_or(tonic::Code::Ok, Status::code);
        span.record("rpc.response.status_code", code_name(code));
        let result = match result {
            Ok(response) => plan_stream_response::Result::Response(response),
            Err(status) => plan_stream_response::Result::Error(v1::CallError {
                code: status.code().into(),
                message: status.message().to_owned(),
                status: bytes::Bytes::copy_from_slice(status.details()),
            }),
        };
        v1::PlanStreamResponse {
            id,
            result: Some(result),
        }
    }

    async fn plan_one(
        &self,
        id: &str,
        request: Option<v1::PlanRequest>,
        memory: Arc<Share>,
        deadline: Instant,
        permit: Option<Permit>,
    ) -> Result<v1::PlanResponse, Status> {
        let required = |field: &str| {
            let violation = Violation {
                field: field.to_owned(),
                description: "is required".to_owned(),
            };
            Status::from(Refusal::Invalid {
                violations: vec![violation],
                more: 0,
            })
        };
        if id.is_empty() {
            return Err(required("id"));
        }
        let request = request.ok_or_else(|| required("request"))?;
        let admission = Admission {
            client: None,
            permit: Some(permit.ok_or_else(refusal::deadline_exceeded)?),
            memory,
            deadline: Some(deadline),
        };
        self.answer(request, admission, Engine::plan_for).await
    }
}

/// The methods of the contract.
impl Service {
    /// Plans for a caller in this process. Memory is not bounded.
    ///
    /// # Errors
    ///
    /// The statuses of the method `Plan`.
    pub async fn plan(&self, request: v1::PlanRequest) -> Result<v1::PlanResponse, Status> {
        if self.draining.is_cancelled() {
            return Err(refusal::draining());
        }
        let permit = self
            .pool
            .try_enter(&Key::Unknown)
            .ok_or_else(refusal::saturated)?;
        let engine = Arc::clone(&self.engine);
        self.pool
            .run(permit, None, move |stop| {
                engine.plan_for(request, Caller::unbounded(stop))
            })
            .await
    }

    /// The method `PlanStream`.
    pub(crate) fn plan_stream(
        &self,
        admission: &Admission,
        requests: RequestReader<v1::PlanStreamRequest>,
    ) -> Result<Response<BoxStream<'static, Result<v1::PlanStreamResponse, Status>>>, Status> {
        let client = admission.key().clone();
        let open = self
            .streams
            .open(&client, admission.client.clone(), Instant::now());
        let open = Arc::new(open.ok_or_else(refusal::too_many_streams)?);
        let options = StreamOptions {
            most: self.config.max_plans_per_stream,
            deadline: admission.deadline,
            longest_call: self.config.longest_call,
            draining: self.draining.clone(),
            open: Arc::clone(&open),
        };
        let service = self.clone();
        let pool = self.pool.clone();
        let memory_source = MemorySource {
            memory: self.memory.clone(),
            client,
            timeout: self.config.longest_call,
        };
        let requests = requests.all(memory_source);
        let answers = stream::answers(requests.boxed(), pool, options, move |admitted| {
            // Keeps the stream open until the last requests are answered.
            let _open = &open;
            service.clone().answer_one(admitted)
        });
        Ok(Response::new(answers.boxed()))
    }

    /// The method `Simulate`. The play runs on the pool and waits while the client has not read what was sent. It ends when the client
    /// has left, at the deadline, and when its memory would not suffice.
    /// An error before the first step is the error of the call, as for unary methods.
    pub(crate) async fn simulate(
        &self,
        message: v1::SimulateRequest,
        admission: Admission,
    ) -> Result<BoxStream<'static, Result<v1::SimulateResponse, Status>>, Status> {
        let Admission {
            permit,
            memory,
            deadline,
            ..
        } = admission;
        let permit = permit.ok_or_else(refusal::saturated)?;
        let (engine, pool) = (Arc::clone(&self.engine), self.pool.clone());
        let (sender, receiver) = tokio::sync::mpsc::channel(STEPS_AHEAD);
        let results = sender.clone();
        let play = async move {
            let deadline = deadline.map(Instant::into_std);
            let played = pool.run(permit, deadline, move |stop| {
                within(&memory, stop, |caller| {
                    engine.simulate_for(message, caller, &mut |response| {
                        // The client's leaving drops the receiver, and so does a timeout of its reading.
                        sender.blocking_send(Ok(response)).is_ok()
                    })
                })
            });
            if let Err(status) = played.await {
                // Nobody may wait for it any more.
                let _ = results.send(Err(status)).await;
            }
        };
        // The client's leaving drops the stream, and with it the play.
        let play = futures_stream::once(play.boxed()).filter_map(|()| std::future::ready(None));
        let answers = futures_stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|answer| (answer, receiver))
        });
        let mut answers = futures_stream::select(answers, play).boxed();
        let first = answers.next().await.transpose()?;
        let first = futures_stream::iter(first.map(Ok));
        Ok(first.chain(answers).boxed())
    }

    /// The method `GetCapabilities`.
    #[must_use]
    pub fn capabilities(&self) -> v1::GetCapabilitiesResponse {
        capabilities::of(&self.config)
    }
}
