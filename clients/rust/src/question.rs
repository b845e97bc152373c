//! The calls that carry a snapshot of a workload: what is sent, and what comes back.

use std::time::Duration;

use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_telemetry::grpc::ClientCall;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use crate::observer::{Method, Observer};

type Client = ReconcileServiceClient<Channel>;

/// A request with a snapshot.
pub(super) trait Question: Message + Sized + 'static {
    /// What the service answers.
    type Response: Send;
    /// What is of use in it.
    type Answer: Send;
    /// The call.
    const METHOD: Method;

    fn snapshot(&self) -> Option<&v1::Snapshot>;
    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot>;

    fn ask(
        client: Client,
        request: Request<Self>,
    ) -> impl Future<Output = Result<Response<Self::Response>, Status>> + Send;

    fn read(response: Self::Response) -> Result<Self::Answer, Status>;

    /// What a trace shows of an answer.
    fn describe(_call: &ClientCall, _answer: &Self::Answer) {}

    /// Tells the observer of an answer to a request of so many bytes.
    fn answered(_observer: &dyn Observer, _took: Duration, _bytes: usize, _answer: &Self::Answer) {}

    /// Tells the observer of a call that failed.
    fn failed(_observer: &dyn Observer, _took: Duration, _code: Code) {}
}

impl Question for v1::PlanRequest {
    type Response = v1::PlanResponse;
    type Answer = v1::Plan;
    const METHOD: Method = Method::Plan;

    fn snapshot(&self) -> Option<&v1::Snapshot> {
        self.snapshot.as_ref()
    }

    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot> {
        self.snapshot.as_mut()
    }

    async fn ask(mut client: Client, request: Request<Self>) -> Result<Response<v1::PlanResponse>, Status> {
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

    fn answered(observer: &dyn Observer, took: Duration, bytes: usize, plan: &v1::Plan) {
        observer.plan_answered(took, bytes, plan);
    }

    fn failed(observer: &dyn Observer, took: Duration, code: Code) {
        observer.plan_failed(took, code);
    }
}

impl Question for v1::ExplainRequest {
    type Response = v1::ExplainResponse;
    type Answer = v1::ExplainResponse;
    const METHOD: Method = Method::Explain;

    fn snapshot(&self) -> Option<&v1::Snapshot> {
        self.snapshot.as_ref()
    }

    fn snapshot_mut(&mut self) -> Option<&mut v1::Snapshot> {
        self.snapshot.as_mut()
    }

    async fn ask(
        mut client: Client,
        request: Request<Self>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        client.explain(request).await
    }

    fn read(response: v1::ExplainResponse) -> Result<v1::ExplainResponse, Status> {
        Ok(response)
    }
}
