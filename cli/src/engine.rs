//! Sends requests to the planner in this process, or to a planning service with `nodewise-client`.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use nodewise_client::{
    ClientConfig, FieldViolation, PlanClient, PlanService as _, ServiceError, Simulation, target::Target,
};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1;
use nodewise_server::{ByteSize, Limits, Refusal, never};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::{args::EngineArgs, flags::ServerArgs, request::WorkloadRequest};

/// In this process only memory limits the size of a cluster.
pub(crate) const UNLIMITED: Limits = Limits {
    nodes: u32::MAX,
    pods: u32::MAX,
    buckets: u32::MAX,
    revisions: u32::MAX,
};
/// Every request has all buckets inline, so the planner needs no cache.
pub(crate) const NO_CACHE: ByteSize = ByteSize::mib(0);

/// A planner.
pub(crate) enum Engine {
    InProcess(nodewise_server::Engine),
    Remote(Remote),
}

/// A planning service.
pub(crate) struct Remote {
    client: Arc<PlanClient>,
    /// The longest time of one call, over all servers.
    timeout: Duration,
    _tending: AbortOnDropHandle<()>,
}

impl Engine {
    pub(crate) fn new(args: &EngineArgs) -> anyhow::Result<Self> {
        Self::of(&args.service)
    }

    /// The planner in this process, unless the command line names a service.
    pub(crate) fn of(args: &ServerArgs) -> anyhow::Result<Self> {
        if args.server.is_empty() {
            return Ok(Self::in_process());
        }
        Ok(Self::Remote(Remote::new(args)?))
    }

    /// The planner in this process.
    pub(crate) fn in_process() -> Self {
        Self::InProcess(nodewise_server::Engine::new(UNLIMITED, NO_CACHE))
    }

    pub(crate) async fn plan(&self, workload: &WorkloadRequest<'_>) -> anyhow::Result<v1::Plan> {
        let mut request = |receiver: &Receiver<'_>| v1::PlanRequest {
            snapshot: Some(workload.snapshot(|digest| receiver.has(digest))),
            options: Some(workload.options.clone()),
            undelivered_reports: Vec::new(),
        };
        match self {
            Self::InProcess(engine) => {
                let answer = engine.plan(request(&Receiver::EMPTY), &never);
                let answer = answer.map_err(|refusal| refused(workload, refusal))?;
                let nothing = || anyhow!("an answer without a plan for {}", workload.title());
                answer.plan.ok_or_else(nothing)
            }
            Self::Remote(remote) => {
                let answer = remote.client.plan(workload.uid(), &mut request).await;
                Ok(answer.map_err(|error| remote.failed(workload, &error))?.plan)
            }
        }
    }

    /// Explains a workload; of a DaemonSet one node, or all nodes if `node` is `None`.
    pub(crate) async fn explain(
        &self,
        workload: &WorkloadRequest<'_>,
        node: Option<&str>,
    ) -> anyhow::Result<v1::ExplainResponse> {
        let mut request = |receiver: &Receiver<'_>| v1::ExplainRequest {
            snapshot: Some(workload.snapshot(|digest| receiver.has(digest))),
            options: Some(workload.options.clone()),
            node_name: node.unwrap_or_default().to_owned(),
        };
        match self {
            Self::InProcess(engine) => engine
                .explain(request(&Receiver::EMPTY), &never)
                .map_err(|refusal| refused(workload, refusal)),
            Self::Remote(remote) => {
                let answer = remote.client.explain(workload.uid(), &mut request).await;
                answer.map_err(|error| remote.failed(workload, &error))
            }
        }
    }

    /// Asks which DaemonSets would run on nodes that need not exist.
    pub(crate) async fn evaluate_nodes(
        &self,
        request: v1::EvaluateNodesRequest,
    ) -> anyhow::Result<v1::EvaluateNodesResponse> {
        match self {
            Self::InProcess(engine) => Ok(engine.evaluate_nodes(request, &never)?),
            Self::Remote(remote) => {
                let answer = remote.client.evaluate_nodes(request).await;
                answer.map_err(|error| match error {
                    ServiceError::Refused(_) => anyhow!("{error}"),
                    ServiceError::Unreachable(_) => anyhow!(
                        "{error} (--server says where to ask, and --server-timeout for how long: {:?})",
                        remote.timeout
                    ),
                })
            }
        }
    }
}

/// The error of the planner in this process, in one line.
pub(crate) fn refused(workload: &WorkloadRequest<'_>, refusal: Refusal) -> anyhow::Error {
    let status = Status::from(refusal);
    let refusal = nodewise_client::Refusal::new(status.message().to_owned(), &status);
    first_violation(workload, &refusal.violations)
        .unwrap_or_else(|| anyhow!("{}: {}", workload.title(), refusal.reason))
}

/// The first violation as an error about the input, if there is one.
fn first_violation(workload: &WorkloadRequest<'_>, violations: &[FieldViolation]) -> Option<anyhow::Error> {
    let violation = violations.first()?;
    let error = workload.input_error(&violation.field, &violation.description);
    Some(anyhow!("{error} ({})", workload.title()))
}

impl Remote {
    fn new(args: &ServerArgs) -> anyhow::Result<Self> {
        let targets = args
            .server
            .iter()
            .map(|text| text.parse().map_err(|error| anyhow!("--server {text}: {error}")))
            .collect::<Result<Vec<Target>, _>>()?;
        let config = ClientConfig {
            timeout: args.server_timeout,
            max_message_bytes: usize::MAX,
            // Retry once if the service is saturated.
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
            timeout: args.server_timeout,
            _tending: AbortOnDropHandle::new(tokio::spawn(async move { tended.tend().await })),
        })
    }

    /// Begins a play.
    pub(crate) async fn simulate(
        &self,
        workload: &WorkloadRequest<'_>,
        (assumptions, bounds): (v1::SimulationAssumptions, v1::SimulationBounds),
    ) -> anyhow::Result<Simulation> {
        let mut request = |receiver: &Receiver<'_>| v1::SimulateRequest {
            snapshot: Some(workload.snapshot(|digest| receiver.has(digest))),
            options: Some(workload.options.clone()),
            assumptions: Some(assumptions),
            bounds: Some(bounds),
        };
        let begun = self.client.simulate(workload.uid(), &mut request).await;
        begun.map_err(|error| self.failed(workload, &error))
    }

    /// The error of a call, in one line: the position in the input and the problem, or the server and its message.
    pub(crate) fn failed(&self, workload: &WorkloadRequest<'_>, error: &ServiceError) -> anyhow::Error {
        let title = workload.title();
        match error {
            // Nothing in the input is wrong.
            ServiceError::Refused(refusal) if refusal.lacks.is_some() => anyhow!("{title}: {error}"),
            ServiceError::Refused(refusal) => {
                first_violation(workload, &refusal.violations).unwrap_or_else(|| anyhow!("{title}: {error}"))
            }
            ServiceError::Unreachable(_) => anyhow!(
                "{title}: {error} (--server says where to ask, and --server-timeout for how long: {:?})",
                self.timeout
            ),
        }
    }
}
