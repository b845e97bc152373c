//! Who answers: the planner in this binary, or a planning service.

use std::time::Duration;

use anyhow::{anyhow, bail};
use nodewise_client::{
    ClientConfig,
    target::{Address, Target},
};
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::{ByteSize, Limits, Refusal, never};
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_types::StatusExt as _;

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

type Client = ReconcileServiceClient<Channel>;

/// Answers questions.
pub(crate) enum Engine {
    InProcess(nodewise_server::Engine),
    Remote(Remote),
}

/// A planning service.
pub(crate) struct Remote {
    url: String,
    client: Client,
    /// Longest wait for one answer, a second attempt included.
    timeout: Duration,
}

impl Engine {
    /// The first service that can be reached, where any is named.
    pub(crate) async fn new(args: &EngineArgs) -> anyhow::Result<Self> {
        if args.server.is_empty() {
            return Ok(Self::InProcess(nodewise_server::Engine::new(UNLIMITED, NO_CACHE)));
        }
        let addresses: Vec<_> = args
            .server
            .iter()
            .map(|url| address(url))
            .collect::<Result<_, _>>()?;
        let targets: Vec<_> = addresses.iter().cloned().map(Target::Fixed).collect();
        let config = ClientConfig {
            tls: args.tls.client(&targets)?,
            plaintext: args.tls.plaintext,
            ..ClientConfig::default()
        };
        let mut failures = Vec::new();
        for (url, address) in args.server.iter().zip(addresses) {
            match Remote::connect(url, address, &config, args.timeout).await {
                Ok(remote) => return Ok(Self::Remote(remote)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        bail!(failures.join("; "))
    }

    pub(crate) async fn plan(&self, question: &Question<'_>) -> anyhow::Result<v1::Plan> {
        let request = v1::PlanRequest {
            snapshot: Some(question.snapshot.clone()),
            options: Some(question.options.clone()),
            undelivered_reports: Vec::new(),
        };
        let response = self
            .ask(
                question,
                request,
                |engine, request| engine.plan(request, &never),
                async |mut client, request| client.plan(request).await,
            )
            .await?;
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
        let response = self
            .ask(
                question,
                request,
                |engine, request| engine.explain(request, &never),
                async |mut client, request| client.explain(request).await,
            )
            .await?;
        Ok(response.nodes)
    }

    /// Has a request answered: `here` by the planner in this binary, or `there` by the service.
    async fn ask<Q: Clone, A>(
        &self,
        question: &Question<'_>,
        request: Q,
        here: impl FnOnce(&nodewise_server::Engine, Q) -> Result<A, Refusal>,
        there: impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> anyhow::Result<A> {
        let answer = match self {
            Self::InProcess(engine) => here(engine, request).map_err(Status::from),
            Self::Remote(remote) => remote.ask(request, there).await,
        };
        answer.map_err(|status| self.refused(question, &status))
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
        match self {
            Self::InProcess(_) => anyhow!("{}: {}", question.title(), said(status)),
            Self::Remote(remote) => remote.refused(&question.title(), status),
        }
    }
}

/// Names are not looked up for a question or two.
fn address(url: &str) -> anyhow::Result<Address> {
    match url.parse() {
        Ok(Target::Fixed(address)) => Ok(address),
        _ => bail!("--server {url}: expected a URL such as http://127.0.0.1:7443"),
    }
}

impl Remote {
    async fn connect(
        url: &str,
        address: Address,
        config: &ClientConfig,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let channel = nodewise_client::connect(address, config)
            .await
            .map_err(|error| anyhow!("--server {url}: {}", innermost(&error)))?;
        Ok(Self {
            url: url.to_owned(),
            client: Client::new(channel).max_decoding_message_size(usize::MAX),
            timeout,
        })
    }

    /// Asks once more where a saturated service says when that may help, and there is time until then.
    async fn ask<Q: Clone, A>(
        &self,
        request: Q,
        call: impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Status> {
        let deadline = Instant::now() + self.timeout;
        let first = self.attempt(request.clone(), deadline, &call).await;
        let Some(delay) = first.as_ref().err().and_then(retry_delay) else {
            return first;
        };
        if delay >= deadline.saturating_duration_since(Instant::now()) {
            return first;
        }
        tokio::time::sleep(delay).await;
        self.attempt(request, deadline, &call).await
    }

    /// The deadline is told to the service, and kept also where nothing answers at all.
    async fn attempt<Q, A>(
        &self,
        request: Q,
        deadline: Instant,
        call: &impl AsyncFn(Client, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Status> {
        let mut request = Request::new(request);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        match tokio::time::timeout_at(deadline, call(self.client.clone(), request)).await {
            // tonic keeps the deadline too, and calls what it ends cancelled, but not only that.
            Ok(Err(status)) if status.code() == Code::Cancelled && Instant::now() >= deadline => {
                Err(self.late())
            }
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(self.late()),
        }
    }

    fn late(&self) -> Status {
        let timeout = self.timeout;
        Status::deadline_exceeded(format!(
            "no answer within {timeout:?}; --timeout sets how long to wait"
        ))
    }

    fn refused(&self, title: &str, status: &Status) -> anyhow::Error {
        let url = &self.url;
        let message = said(status);
        if is_foreign(status) {
            return anyhow!("--server {url}: does not answer as a nodewise-server: {message}");
        }
        match status.code() {
            Code::Unavailable => anyhow!("--server {url}: not available: {message}"),
            _ => anyhow!("--server {url}: {title}: {message}"),
        }
    }
}

/// When a saturated service wants to be asked again.
fn retry_delay(status: &Status) -> Option<Duration> {
    let saturated = status.code() == Code::ResourceExhausted;
    let info = status.get_details_retry_info().filter(|_| saturated)?;
    info.retry_delay
}

/// Whether the answer is none that a nodewise-server gives: a gRPC server of something else says UNIMPLEMENTED, and from
/// what speaks no gRPC tonic makes a status of its own, which has a cause or is known by its words only.
fn is_foreign(status: &Status) -> bool {
    let words = ["grpc-status header missing", "protocol error: "];
    match status.code() {
        Code::Unimplemented | Code::Unknown => true,
        Code::Internal | Code::Cancelled if std::error::Error::source(status).is_some() => true,
        _ => words.iter().any(|words| status.message().starts_with(words)),
    }
}

/// A status in words.
fn said(status: &Status) -> String {
    match std::error::Error::source(status) {
        // tonic's own message is "transport error", whatever happened.
        Some(cause) => innermost(cause),
        None if status.message().is_empty() => status.code().description().to_owned(),
        None => status.message().to_owned(),
    }
}

/// The innermost cause says most; transport errors repeat themselves on the way.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
