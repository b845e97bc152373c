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
    capabilities,
    client::Key,
    config::Config,
    engine::Engine,
    gate::Deadline,
    intake::{Intake, Room},
    pool::{Place, Pool},
    refusal::{self, Refusal, Violation},
    shares::{Alone, Share, Shares},
    stream::{self, Admitted, Terms},
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
    streams: Shares,
    config: Config,
}

/// A method of the engine.
type Work<Q, A> = fn(&Engine, Q, &dyn Fn() -> bool) -> Result<A, Refusal>;

impl Service {
    /// A service that is ready.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            engine: Arc::new(Engine::new(config.limits, config.bucket_cache_size)),
            pool: Pool::new(config.max_concurrent_plans, config.max_queued_plans),
            memory: Shares::new(config.max_request_memory.as_usize(), Alone::HALF),
            draining: CancellationToken::new(),
            streams: Shares::new(config.max_streams, Alone::FOUR_FIFTHS),
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
                let _memory = memory;
                work(&engine, message, stop)
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
                let _memory = memory;
                engine.plan(request, stop)
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
        self.answer(request, Engine::plan).await
    }

    /// Many of them.
    pub(crate) fn plan_stream(
        &self,
        extensions: &Extensions,
        questions: Intake<v1::PlanStreamRequest>,
    ) -> Result<Response<BoxStream<'static, Result<v1::PlanStreamResponse, Status>>>, Status> {
        let client = extensions.get::<Arc<Share>>();
        let client = client.map_or(Key::Unknown, |share| share.client().clone());
        let open = self.streams.take(&client, 1);
        let open = open.ok_or_else(refusal::too_many_streams)?;
        let terms = Terms {
            most: self.config.max_plans_per_stream,
            deadline: extensions.get::<Deadline>().map(|deadline| deadline.0),
            longest_call: self.config.longest_call,
            draining: self.draining.clone(),
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
            // Held as long as the stream lasts.
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
        self.answer(request, Engine::report).await
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
        self.answer(request, Engine::explain).await
    }
}
