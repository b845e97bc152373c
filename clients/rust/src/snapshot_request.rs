//! The calls that carry a snapshot, Plan, Explain and Simulate, behind one trait.

use std::time::Duration;

use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_telemetry::grpc::ClientCall;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::observer::{Method, Observer};

type Client = ReconcileServiceClient<Channel>;

/// A request with a snapshot.
pub(super) trait SnapshotRequest: Message + Sized + 'static {
    /// The response message.
    type Response: Send;
    /// The part of the response that the caller gets.
    type Answer: Send;
    /// The method of the service.
    const METHOD: Method;

    fn snapshot(&self) -> Option<&v1::Snapshot>;
    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot>;

    /// Makes the call.
    fn send(
        client: Client,
        request: Request<Self>,
    ) -> impl Future<Output = Result<Response<Self::Response>, Status>> + Send;

    /// Checks a response and takes the answer out of it.
    fn read(response: Self::Response) -> Result<Self::Answer, Status>;

    /// Adds attributes of the answer to the call's span.
    fn describe(_call: &ClientCall, _answer: &Self::Answer) {}

    /// Notifies the observer of an answer for a workload of this kind. `bytes` is the size of the request.
    fn answered(
        _observer: &dyn Observer,
        _kind: &'static str,
        _took: Duration,
        _bytes: usize,
        _answer: &Self::Answer,
    ) {
    }

    /// Notifies the observer of a failed call.
    fn failed(_observer: &dyn Observer, _kind: &'static str, _took: Duration, _code: Code) {}
}

impl SnapshotRequest for v1::PlanRequest {
    type Response = v1::PlanResponse;
    type Answer = v1::Plan;
    const METHOD: Method = Method::Plan;

    fn snapshot(&self) -> Option<&v1::Snapshot> {
        self.snapshot.as_ref()
    }

    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot> {
        self.snapshot.as_mut()
    }

    async fn send(mut client: Client, request: Request<Self>) -> Result<Response<v1::PlanResponse>, Status> {
        client.plan(request).await
    }

    fn read(response: v1::PlanResponse) -> Result<v1::Plan, Status> {
        response
            .plan
            .ok_or_else(|| Status::internal("an answer without a plan"))
    }

    fn describe(call: &ClientCall, plan: &v1::Plan) {
        call.count("nodewise.plan.actions", plan.actions().count());
        let verdict = plan.verdict().as_str_name();
        call.tell("nodewise.plan.verdict", verdict.trim_start_matches("VERDICT_"));
    }

    fn answered(observer: &dyn Observer, kind: &'static str, took: Duration, bytes: usize, plan: &v1::Plan) {
        observer.plan_answered(kind, took, bytes, plan);
    }

    fn failed(observer: &dyn Observer, kind: &'static str, took: Duration, code: Code) {
        observer.plan_failed(kind, took, code);
    }
}

impl SnapshotRequest for v1::ExplainRequest {
    type Response = v1::ExplainResponse;
    type Answer = v1::ExplainResponse;
    const METHOD: Method = Method::Explain;

    fn snapshot(&self) -> Option<&v1::Snapshot> {
        self.snapshot.as_ref()
    }

    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot> {
        self.snapshot.as_mut()
    }

    async fn send(
        mut client: Client,
        request: Request<Self>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        client.explain(request).await
    }

    fn read(response: v1::ExplainResponse) -> Result<v1::ExplainResponse, Status> {
        Ok(response)
    }
}

impl SnapshotRequest for v1::SimulateRequest {
    type Response = Streaming<v1::SimulateResponse>;
    type Answer = Streaming<v1::SimulateResponse>;
    const METHOD: Method = Method::Simulate;

    fn snapshot(&self) -> Option<&v1::Snapshot> {
        self.snapshot.as_ref()
    }

    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot> {
        self.snapshot.as_mut()
    }

    async fn send(mut client: Client, request: Request<Self>) -> Result<Response<Self::Response>, Status> {
        let answer = client.simulate(request).await;
        answer.map_err(|status| or_too_old(status, Self::METHOD))
    }

    fn read(response: Self::Response) -> Result<Self::Answer, Status> {
        Ok(response)
    }
}

/// The error of a method that earlier versions lack. A replica without it is healthy, and answers other methods. Another replica of the
/// service may be newer, but a caller that waits for that sees an error now and then.
pub(super) fn or_too_old(status: Status, method: Method) -> Status {
    if status.code() != Code::Unimplemented {
        return status;
    }
    let name = method.full_name();
    let name = name.rsplit('/').next().unwrap_or(name);
    Status::invalid_argument(format!(
        "the planning service is too old: it does not have the method {name} (GetCapabilities lists its methods)"
    ))
}
