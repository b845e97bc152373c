//! The five methods.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};
use nodewise_proto::v1::{self, plan_stream_response};
use nodewise_telemetry::grpc::code_name;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Extensions, Request, Response, Status};
use tracing::{Instrument as _, field::Empty};

use crate::{
    answer::{Caller, Needs},
    capabilities,
    client::{Client, Key},
    config::Config,
    engine::Engine,
    gate::Deadline,
    intake::{Intake, Room},
    pool::{Place, Pool},
    refusal::{self, Refusal, Violation},
    shares::{Alone, Share, Shares},
    stream::{self, Admitted, Terms},
    streams::Streams,
};

/// The service. Planning happens on the pool's threads; what is here only waits.
#[derive(Debug, Clone)]
pub struct Service {
    engine: Arc<Engine>,
    pool: Pool,
    /// Bytes for requests, from their arrival to the end of their answers.
    memory: Shares,
    draining: CancellationToken,
    /// Open streams. Each may have a question in memory for which there is no place yet.
    streams: Streams,
    config: Config,
}

/// A method of the engine.
type Work<Q, A> = fn(&Engine, Q, Caller<'_>) -> Result<A, Refusal>;

/// Does the work for a request, and holds memory for what follows from it. What the share holds already is for the request.
fn within<A>(
    memory: Option<&Share>,
    stop: &dyn Fn() -> bool,
    work: impl FnOnce(Caller<'_>) -> Result<A, Refusal>,
) -> Result<A, Refusal> {
    let Some(memory) = memory else {
        return work(Caller::unbounded(stop));
    };
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
    /// A service that is ready.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            engine: Arc::new(Engine::new(config.limits, config.bucket_cache_size)),
            pool: Pool::new(config.max_concurrent_plans, config.max_queued_plans),
            memory: Shares::new(config.max_request_memory.as_usize(), Alone::HALF),
            draining: CancellationToken::new(),
            streams: Streams::new(
                config.max_streams,
                config.stream_idle_timeout,
                config.transfer_timeout,
            ),
            config: config.clone(),
        }
    }

    /// Answers UNAVAILABLE to new requests from now on. Those that have a place are still answered.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn memory(&self) -> &Shares {
        &self.memory
    }

    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// The place that the gate took for this call, or a new one where there is no gate.
    fn place(&self, extensions: &mut Extensions) -> Result<Arc<Place>, Status> {
        if let Some(place) = extensions.remove::<Arc<Place>>() {
            return Ok(place);
        }
        if self.draining.is_cancelled() {
            return Err(refusal::draining());
        }
        self.pool
            .try_enter(&Key::Unknown)
            .map(Arc::new)
            .ok_or_else(refusal::saturated)
    }

    /// Answers a request on the pool.
    async fn answer<Q: Send + 'static, A: Send + 'static>(
        &self,
        mut request: Request<Q>,
        work: Work<Q, A>,
    ) -> Result<Response<A>, Status> {
        let place = self.place(request.extensions_mut())?;
        let deadline = request
            .extensions()
            .get::<Deadline>()
            .map(|deadline| deadline.0.into_std());
        let engine = Arc::clone(&self.engine);
        // Held until the work has really ended, also when its caller has gone.
        let memory = request.extensions_mut().remove::<Arc<Share>>();
        let message = request.into_inner();
        self.pool
            .run(place, deadline, move |stop| {
                within(memory.as_deref(), stop, |caller| work(&engine, message, caller))
            })
            .await
            .map(Response::new)
    }

    /// Answers one question of a stream.
    pub(crate) async fn answer_one(self, admitted: Admitted) -> v1::PlanStreamResponse {
        let Admitted {
            question: v1::PlanStreamRequest { id, request },
            memory,
            deadline,
            place,
            in_work: _in_work,
        } = admitted;
        let span = tracing::debug_span!(
            "question",
            nodewise.question.id = id,
            rpc.response.status_code = Empty
        );
        let answer = self.plan_one(&id, request, memory, deadline, place);
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
        place: Option<Place>,
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
        let place = Arc::new(place.ok_or_else(refusal::deadline_exceeded)?);
        let engine = Arc::clone(&self.engine);
        self.pool
            .run(place, Some(deadline.into_std()), move |stop| {
                within(Some(&memory), stop, |caller| engine.plan_for(request, caller))
            })
            .await
    }
}

/// The methods of the contract.
impl Service {
    /// One plan.
    pub async fn plan(
        &self,
        request: Request<v1::PlanRequest>,
    ) -> Result<Response<v1::PlanResponse>, Status> {
        self.answer(request, Engine::plan_for).await
    }

    /// Many of them.
    pub(crate) fn plan_stream(
        &self,
        extensions: &Extensions,
        questions: Intake<v1::PlanStreamRequest>,
    ) -> Result<Response<BoxStream<'static, Result<v1::PlanStreamResponse, Status>>>, Status> {
        let client = extensions.get::<Arc<Share>>();
        let client = client.map_or(Key::Unknown, |share| share.client().clone());
        let connection = extensions.get::<Client>().cloned();
        let open = self.streams.open(&client, connection, Instant::now());
        let open = Arc::new(open.ok_or_else(refusal::too_many_streams)?);
        let terms = Terms {
            most: self.config.max_plans_per_stream,
            deadline: extensions.get::<Deadline>().map(|deadline| deadline.0),
            longest_call: self.config.longest_call,
            draining: self.draining.clone(),
            open: Arc::clone(&open),
        };
        let service = self.clone();
        let pool = self.pool.clone();
        let room = Room {
            memory: self.memory.clone(),
            client,
            patience: self.config.longest_call,
        };
        let questions = questions.all(room);
        let answers = stream::answers(questions.boxed(), pool, terms, move |admitted| {
            // Also until the answers to the last questions are made.
            let _open = &open;
            service.clone().answer_one(admitted)
        });
        Ok(Response::new(answers.boxed()))
    }

    /// What follows from what an executor did.
    pub async fn report(
        &self,
        request: Request<v1::ReportRequest>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        self.answer(request, Engine::report_for).await
    }

    /// What this server takes.
    #[must_use]
    pub fn capabilities(&self) -> v1::GetCapabilitiesResponse {
        capabilities::of(&self.config)
    }

    /// Why the workload runs on its nodes, or does not.
    pub async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        self.answer(request, Engine::explain_for).await
    }
}
