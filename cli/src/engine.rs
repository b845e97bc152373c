//! Who answers: the planner in this binary, or a planning service.

use anyhow::anyhow;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::{ByteSize, Limits, never};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::question::Question;

/// Whoever owns the machine may plan for whatever fits into its memory.
const UNLIMITED: Limits = Limits {
    nodes: u32::MAX,
    pods: u32::MAX,
    buckets: u32::MAX,
    revisions: u32::MAX,
};
/// Buckets are given inline and asked about once.
const NO_CACHE: ByteSize = ByteSize::mib(0);

/// Answers questions.
pub(crate) enum Engine {
    InProcess(nodewise_server::Engine),
    Remote {
        url: String,
        client: ReconcileServiceClient<Channel>,
    },
}

impl Engine {
    pub(crate) async fn new(server: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = server else {
            return Ok(Self::InProcess(nodewise_server::Engine::new(UNLIMITED, NO_CACHE)));
        };
        let endpoint = tonic::transport::Endpoint::from_shared(url.to_owned())
            .map_err(|_| anyhow!("--server {url}: expected a URL such as http://127.0.0.1:7443"))?;
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| anyhow!("--server {url}: {}", causes(&error)))?;
        let client = ReconcileServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Self::Remote {
            url: url.to_owned(),
            client,
        })
    }

    pub(crate) async fn plan(&self, question: &Question<'_>) -> anyhow::Result<v1::Plan> {
        let request = v1::PlanRequest {
            snapshot: Some(question.snapshot.clone()),
            options: Some(question.options.clone()),
            undelivered_reports: Vec::new(),
        };
        let answer = match self {
            Self::InProcess(engine) => engine.plan(request, &never).map_err(Status::from),
            Self::Remote { client, .. } => client
                .clone()
                .plan(request)
                .await
                .map(tonic::Response::into_inner),
        };
        let response = answer.map_err(|status| self.refused(question, &status))?;
        response
            .plan
            .ok_or_else(|| anyhow!("the service answered without a plan for {}", question.title()))
    }

    /// `node` restricts the answer to one node.
    pub(crate) async fn explain(
        &self,
        question: &Question<'_>,
        node: Option<&str>,
    ) -> anyhow::Result<Vec<v1::NodeExplanation>> {
        let request = v1::ExplainRequest {
            snapshot: Some(question.snapshot.clone()),
            options: Some(question.options.clone()),
            node_name: node.unwrap_or_default().to_owned(),
        };
        let answer = match self {
            Self::InProcess(engine) => engine.explain(request, &never).map_err(Status::from),
            Self::Remote { client, .. } => client
                .clone()
                .explain(request)
                .await
                .map(tonic::Response::into_inner),
        };
        Ok(answer.map_err(|status| self.refused(question, &status))?.nodes)
    }

    /// One line: the place in the input and what is wrong there, or what the service said.
    fn refused(&self, question: &Question<'_>, status: &Status) -> anyhow::Error {
        let details = status.get_error_details();
        if let Some(violation) = details
            .bad_request()
            .and_then(|request| request.field_violations.first())
        {
            let complaint = question.complaint(&violation.field, &violation.description);
            return anyhow!("{complaint} ({})", question.title());
        }
        let message = if status.message().is_empty() {
            status.code().description()
        } else {
            status.message()
        };
        match self {
            Self::InProcess(_) => anyhow!("{}: {message}", question.title()),
            Self::Remote { url, .. } if status.code() == Code::Unavailable => {
                anyhow!("--server {url}: not available: {message}")
            }
            Self::Remote { url, .. } => anyhow!("--server {url}: {}: {message}", question.title()),
        }
    }
}

/// The innermost cause says most; transport errors repeat themselves on the way.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
