//! Tests of the fault proxy.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::{Stream, StreamExt as _, stream};
use nodewise_conformance::{
    FaultProxy,
    proxy::{Fault, Mark, Method},
};
use nodewise_proto::v1::{
    self,
    plan_stream_response::Result as PlanResult,
    reconcile_service_client::ReconcileServiceClient,
    reconcile_service_server::{ReconcileService, ReconcileServiceServer},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tonic::{
    Code, Request, Response, Status, Streaming,
    transport::{Channel, Server, server::TcpIncoming},
};
use tonic_types::StatusExt as _;

/// A service that counts the calls it gets. The id of a plan is the number of plan calls so far.
#[derive(Debug, Clone, Default)]
struct Counting {
    plans: Arc<AtomicUsize>,
    /// The `traceparent` header of the last plan call.
    trace: Arc<Mutex<Option<String>>>,
}

impl Counting {
    fn next(&self, request: &v1::PlanRequest) -> Result<v1::PlanResponse, Status> {
        let count = self.plans.fetch_add(1, Ordering::Relaxed) + 1;
        if request.snapshot.is_none() {
            let details = tonic_types::ErrorDetails::with_bad_request_violation("snapshot", "is required");
            return Err(Status::with_error_details(
                Code::InvalidArgument,
                "no snapshot",
                details,
            ));
        }
        Ok(v1::PlanResponse {
            plan: Some(v1::Plan {
                plan_id: count.to_string(),
                ..v1::Plan::default()
            }),
        })
    }
}

#[tonic::async_trait]
impl ReconcileService for Counting {
    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanResponse>, Status> {
        let trace = request.metadata().get("traceparent");
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) =
            trace.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        self.next(request.get_ref()).map(Response::new)
    }

    type PlanStreamStream = Pin<Box<dyn Stream<Item = Result<v1::PlanStreamResponse, Status>> + Send>>;

    async fn plan_stream(
        &self,
        request: Request<Streaming<v1::PlanStreamRequest>>,
    ) -> Result<Response<Self::PlanStreamStream>, Status> {
        let service = self.clone();
        let answers = request.into_inner().map(move |asked| {
            let asked = asked?;
            let response = service.next(&asked.request.unwrap_or_default())?;
            Ok(v1::PlanStreamResponse {
                id: asked.id,
                result: Some(PlanResult::Response(response)),
            })
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn report(&self, _: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        Ok(Response::new(v1::ReportResponse::default()))
    }

    async fn get_capabilities(
        &self,
        _: Request<v1::GetCapabilitiesRequest>,
    ) -> Result<Response<v1::GetCapabilitiesResponse>, Status> {
        Ok(Response::new(v1::GetCapabilitiesResponse::default()))
    }

    async fn evaluate_nodes(
        &self,
        _: Request<v1::EvaluateNodesRequest>,
    ) -> Result<Response<v1::EvaluateNodesResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    type SimulateStream = futures::stream::Empty<Result<v1::SimulateResponse, Status>>;

    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<Self::SimulateStream>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

/// A service, a proxy in front of it, and a client of the proxy.
struct Setup {
    service: Counting,
    proxy: FaultProxy,
    client: ReconcileServiceClient<Channel>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Setup {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address: SocketAddr = listener.local_addr()?;
        let service = Counting::default();
        let serving = Server::builder()
            .add_service(ReconcileServiceServer::new(service.clone()))
            .serve_with_incoming(TcpIncoming::from(listener));
        let proxy = FaultProxy::to(address).await?;
        let channel = Channel::from_shared(proxy.url())?.connect_lazy();
        Ok(Self {
            service,
            proxy,
            client: ReconcileServiceClient::new(channel),
            serving: tokio::spawn(serving),
        })
    }

    fn heard(&self) -> usize {
        self.service.plans.load(Ordering::Relaxed)
    }

    /// Calls `Plan` and returns the id of the plan.
    async fn plan(&self) -> Result<String, Status> {
        let answer = self.client.clone().plan(request()).await?;
        Ok(answer.into_inner().plan.unwrap_or_default().plan_id)
    }

    /// Sends three questions on one stream. Returns the responses until the stream ends, and its error.
    async fn stream(&self) -> (Vec<v1::PlanStreamResponse>, Option<Status>) {
        let questions = ["a", "b", "c"].map(|id| v1::PlanStreamRequest {
            id: id.to_owned(),
            request: Some(request()),
        });
        let mut client = self.client.clone();
        let mut answers = match client.plan_stream(stream::iter(questions)).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (Vec::new(), Some(status)),
        };
        let mut all = Vec::new();
        loop {
            match answers.message().await {
                Ok(Some(answer)) => all.push(answer),
                Ok(None) => return (all, None),
                Err(status) => return (all, Some(status)),
            }
        }
    }

    /// The codes in the log.
    fn logged(&self) -> Vec<Code> {
        let calls = self.proxy.calls_since(Mark::BEGINNING);
        calls.iter().map(|call| call.code).collect()
    }
}

fn request() -> v1::PlanRequest {
    let object = r#"{"metadata":{"namespace":"tools","name":"agent"}}"#;
    let workload = v1::Workload {
        kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: object.into(),
            ..v1::DaemonSet::default()
        })),
    };
    let inline = v1::Bucket {
        data: Some("x".into()),
        digest: "y".into(),
        ..Default::default()
    };
    let named = v1::Bucket {
        data: None,
        digest: "y".into(),
        ..Default::default()
    };
    v1::PlanRequest {
        snapshot: Some(v1::Snapshot {
            workload: Some(workload),
            node_buckets: vec![inline],
            pod_buckets: vec![named.clone(), named],
            ..v1::Snapshot::default()
        }),
        ..v1::PlanRequest::default()
    }
}

fn ids(answers: &[v1::PlanStreamResponse]) -> Vec<&str> {
    answers.iter().map(|answer| answer.id.as_str()).collect()
}

#[tokio::test]
async fn without_a_fault_calls_are_forwarded_and_logged() -> Result<()> {
    let setup = Setup::start().await?;
    let mut asked = Request::new(request());
    asked.metadata_mut().insert("traceparent", "00-1-2-01".parse()?);
    let answer = setup.client.clone().plan(asked).await?.into_inner();
    assert_eq!(answer.plan.context("a plan")?.plan_id, "1");
    let trace = setup
        .service
        .trace
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    assert_eq!(trace.as_deref(), Some("00-1-2-01"));
    setup.client.clone().report(v1::ReportRequest::default()).await?;
    let (answers, error) = setup.stream().await;
    ensure!(error.is_none(), "{error:?}");
    assert_eq!(ids(&answers), ["a", "b", "c"]);

    let calls = setup.proxy.calls_since(Mark::BEGINNING);
    let methods: Vec<Method> = calls.iter().map(|call| call.method).collect();
    assert_eq!(
        methods,
        [
            Method::Plan,
            Method::Report,
            Method::Plan,
            Method::Plan,
            Method::Plan
        ]
    );
    for call in calls.iter().filter(|call| call.method == Method::Plan) {
        assert!(call.is_plan_for("tools", "agent") && !call.is_plan_for("tools", "other"));
        assert_eq!((call.inline, call.buckets, call.code), (1, 3, Code::Ok));
        assert!(call.plan.is_some());
    }
    Ok(())
}

#[tokio::test]
async fn errors_of_the_service_keep_their_details() -> Result<()> {
    let setup = Setup::start().await?;
    let error = setup.client.clone().plan(v1::PlanRequest::default()).await;
    let status = error.err().context("it is refused")?;
    assert_eq!(
        (status.code(), status.message()),
        (Code::InvalidArgument, "no snapshot")
    );
    let details = status.get_details_bad_request().context("details")?;
    assert_eq!(details.field_violations[0].field, "snapshot");
    assert_eq!(setup.logged(), [Code::InvalidArgument]);
    Ok(())
}

#[tokio::test]
async fn each_nth_call_meets_the_fault() -> Result<()> {
    let setup = Setup::start().await?;
    setup.proxy.fault(Fault::Unavailable, 3);
    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(setup.plan().await.err().map(|status| status.code()));
    }
    let met = Some(Code::Unavailable);
    assert_eq!(codes, [None, None, met, None, None, met]);
    assert_eq!(setup.heard(), 4);
    setup.proxy.heal();
    setup.plan().await?;
    Ok(())
}

/// How often the service gets a call, and what the client gets.
#[tokio::test]
async fn faults_of_calls() -> Result<()> {
    let delay = Duration::from_millis(100);
    for (fault, heard, id) in [
        (Fault::ResetBefore, 0, None),
        (Fault::ResetAfter, 1, None),
        (Fault::Delay(delay), 1, Some("1")),
        (Fault::Twice, 2, Some("2")),
        (Fault::Unavailable, 0, None),
        (Fault::Exhausted, 0, None),
    ] {
        let setup = Setup::start().await?;
        setup.proxy.fault(fault, 1);
        let began = Instant::now();
        let answer = setup.plan().await;
        assert_eq!(answer.as_deref().ok(), id, "{fault:?}: {answer:?}");
        assert_eq!(setup.heard(), heard, "{fault:?}");
        if fault == Fault::Delay(delay) {
            assert!(began.elapsed() >= delay);
        }
        if let (Fault::Exhausted, Err(status)) = (fault, &answer) {
            assert_eq!(status.code(), Code::ResourceExhausted);
            let retry = status.get_details_retry_info().context("RetryInfo")?;
            assert!(retry.retry_delay.is_some());
        }
        let logged = setup.proxy.calls_since(Mark::BEGINNING);
        assert_eq!(logged.len(), 1, "{fault:?}");
        assert_eq!(logged[0].plan.is_some(), id.is_some(), "{fault:?}");
        assert!(logged[0].is_plan_for("tools", "agent"), "{fault:?}");
        setup.proxy.heal();
        setup.plan().await.with_context(|| format!("after {fault:?}"))?;
    }
    Ok(())
}

/// The same for the second of three questions on a stream.
#[tokio::test]
async fn faults_of_questions_on_a_stream() -> Result<()> {
    let delay = Duration::from_millis(100);
    for (fault, heard, answered) in [
        (Fault::Delay(delay), 3, &["a", "b", "c"][..]),
        (Fault::Twice, 3, &["a", "b", "b", "c"]),
        (Fault::Unavailable, 2, &["a", "b", "c"]),
        (Fault::Exhausted, 2, &["a", "b", "c"]),
    ] {
        let setup = Setup::start().await?;
        setup.proxy.fault(fault, 2);
        let (answers, error) = setup.stream().await;
        ensure!(error.is_none(), "{fault:?}: {error:?}");
        let mut ids = ids(&answers);
        ids.sort_unstable();
        assert_eq!(ids, answered, "{fault:?}");
        assert_eq!(setup.heard(), heard, "{fault:?}");
        let refused = answers
            .iter()
            .filter(|answer| matches!(answer.result, Some(PlanResult::Error(_))))
            .count();
        assert_eq!(refused, 3 - heard, "{fault:?}");
    }
    for fault in [Fault::ResetBefore, Fault::ResetAfter] {
        let setup = Setup::start().await?;
        setup.proxy.fault(fault, 2);
        let (answers, error) = setup.stream().await;
        ensure!(error.is_some(), "{fault:?}: {answers:?}");
        assert!(answers.len() < 3, "{fault:?}: {answers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn hanging_call_does_not_block_others() -> Result<()> {
    let setup = Setup::start().await?;
    setup.proxy.fault(Fault::Hang, 1);
    let hanging = tokio::time::timeout(Duration::from_millis(200), setup.plan()).await;
    ensure!(hanging.is_err(), "{hanging:?}");
    assert_eq!(setup.heard(), 0);
    setup.proxy.heal();
    setup.plan().await?;
    Ok(())
}

#[tokio::test]
async fn cut_proxy_forwards_nothing_until_healed() -> Result<()> {
    let setup = Setup::start().await?;
    setup.plan().await?;
    setup.proxy.cut();
    for _ in 0..3 {
        let answer = setup.plan().await;
        ensure!(answer.is_err(), "{answer:?}");
    }
    assert!(setup.proxy.refused() > 0);
    assert_eq!(setup.heard(), 1);
    setup.proxy.heal();
    setup.plan().await?;
    assert_eq!(setup.heard(), 2);
    Ok(())
}
