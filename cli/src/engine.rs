//! Who answers: the planner in this binary, or a planning service.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use nodewise_client::{ClientConfig, Digest, PlanClient, PlanService as _, ServiceError, target::Target};
use nodewise_proto::v1;
use nodewise_server::{ByteSize, Limits, Refusal, never};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic_types::{FieldViolation, StatusExt as _};

use crate::{args::EngineArgs, question::Question};

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
    Remote(Remote),
}

/// A planning service.
pub(crate) struct Remote {
    client: Arc<PlanClient>,
    /// Longest wait for one answer, over all servers that are asked for it.
    timeout: Duration,
    _tending: AbortOnDropHandle<()>,
}

impl Engine {
    pub(crate) fn new(args: &EngineArgs) -> anyhow::Result<Self> {
        if args.server.is_empty() {
            return Ok(Self::InProcess(nodewise_server::Engine::new(UNLIMITED, NO_CACHE)));
        }
        Ok(Self::Remote(Remote::new(args)?))
    }

    pub(crate) async fn plan(&self, question: &Question<'_>) -> anyhow::Result<v1::Plan> {
        let mut request = |knows: &dyn Fn(&Digest) -> bool| v1::PlanRequest {
            snapshot: Some(question.snapshot(knows)),
            options: Some(question.options.clone()),
            undelivered_reports: Vec::new(),
        };
        match self {
            Self::InProcess(engine) => {
                let answer = engine.plan(request(&|_| false), &never);
                let answer = answer.map_err(|refusal| refused(question, refusal))?;
                let nothing = || anyhow!("an answer without a plan for {}", question.title());
                answer.plan.ok_or_else(nothing)
            }
            Self::Remote(remote) => {
                let answer = remote.client.plan(question.uid(), &mut request).await;
                Ok(answer.map_err(|error| remote.failed(question, &error))?.plan)
            }
        }
    }

    /// `node` restricts the answer to one node.
    pub(crate) async fn explain(
        &self,
        question: &Question<'_>,
        node: Option<&str>,
    ) -> anyhow::Result<Vec<v1::NodeExplanation>> {
        let mut request = |knows: &dyn Fn(&Digest) -> bool| v1::ExplainRequest {
            snapshot: Some(question.snapshot(knows)),
            options: Some(question.options.clone()),
            node_name: node.unwrap_or_default().to_owned(),
        };
        let answer = match self {
            Self::InProcess(engine) => engine
                .explain(request(&|_| false), &never)
                .map_err(|refusal| refused(question, refusal))?,
            Self::Remote(remote) => {
                let answer = remote.client.explain(question.uid(), &mut request).await;
                answer.map_err(|error| remote.failed(question, &error))?
            }
        };
        Ok(answer.nodes)
    }
}

/// What the planner in this binary finds wrong, in one line.
fn refused(question: &Question<'_>, refusal: Refusal) -> anyhow::Error {
    let status = Status::from(refusal);
    let details = status.get_error_details();
    let violations = details.bad_request().map(|request| &*request.field_violations);
    complaint(question, violations.unwrap_or_default())
        .unwrap_or_else(|| anyhow!("{}: {}", question.title(), status.message()))
}

/// The place in the input of what is wrong with a request, if it is known.
fn complaint(question: &Question<'_>, violations: &[FieldViolation]) -> Option<anyhow::Error> {
    let violation = violations.first()?;
    let complaint = question.complaint(&violation.field, &violation.description);
    Some(anyhow!("{complaint} ({})", question.title()))
}

impl Remote {
    fn new(args: &EngineArgs) -> anyhow::Result<Self> {
        let targets = args
            .server
            .iter()
            .map(|text| text.parse().map_err(|error| anyhow!("--server {text}: {error}")))
            .collect::<Result<Vec<Target>, _>>()?;
        let config = ClientConfig {
            timeout: args.timeout,
            max_message_bytes: usize::MAX,
            // A saturated service is asked once more.
            min_attempts: 2,
            tls: args.tls.client(&targets)?,
            plaintext: args.tls.plaintext,
            ..ClientConfig::default()
        };
        let client = PlanClient::discovering(targets, None, config, Arc::new(()))?;
        let client = Arc::new(client);
        let tended = Arc::clone(&client);
        Ok(Self {
            client,
            timeout: args.timeout,
            _tending: AbortOnDropHandle::new(tokio::spawn(async move { tended.tend().await })),
        })
    }

    /// One line: the place in the input and what is wrong there, or who said what.
    fn failed(&self, question: &Question<'_>, error: &ServiceError) -> anyhow::Error {
        let title = question.title();
        match error {
            ServiceError::Refused(refusal) => {
                complaint(question, &refusal.violations).unwrap_or_else(|| anyhow!("{title}: {error}"))
            }
            ServiceError::Unreachable(_) => anyhow!(
                "{title}: {error} (--server says where to ask, and --timeout for how long: {:?})",
                self.timeout
            ),
        }
    }
}
