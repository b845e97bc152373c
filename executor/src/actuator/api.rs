//! Writes to a real apiserver.

use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use kube::Client;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, Span};

use super::{
    Actuator, ActuatorError, ObjectKey, Patch, Refusal, WRITER, WorkloadEvent, Written,
    call::{self, Call, JSON},
};
use crate::{
    answer,
    event::Resource,
    events::EventRecorder,
    list::{Page, Pages},
    metrics::Metrics,
    watch::{completed, page_size},
};

/// Writes through a Kubernetes client: bodies go out as they are given, answers are read no further than their identity.
#[derive(Clone)]
pub struct KubeActuator {
    client: Client,
    /// Where it is, for traces.
    server: Option<Uri>,
    call_timeout: Duration,
    pace: Option<Arc<Pace>>,
    /// Of creates of pods, besides.
    create_pace: Option<Arc<Pace>>,
    /// Absent where there is no election.
    lease: Option<LeaseCheck>,
    metrics: Metrics,
    recorder: EventRecorder,
}

/// Tells whether this process holds the lease for certain at the moment it is called.
pub type LeaseCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Lets one call pass per interval. Only what plans cause is slowed down: watches must not be late, nor renewals of the lease.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    fn new(per_second: NonZeroU64) -> Arc<Self> {
        Arc::new(Self {
            interval: Duration::from_nanos(1_000_000_000 / per_second),
            next: Mutex::new(Instant::now()),
        })
    }

    async fn keep(&self) {
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = (*next).max(Instant::now());
            *next = turn + self.interval;
            turn
        };
        sleep_until(turn).await;
    }
}

impl KubeActuator {
    /// Writes through `client`, giving every call at most `call_timeout`.
    ///
    /// The client must not retry by itself: a create that timed out may have happened.
    #[must_use]
    pub fn new(client: Client, call_timeout: Duration, metrics: Metrics, recorder: EventRecorder) -> Self {
        Self {
            client,
            server: None,
            call_timeout,
            pace: None,
            create_pace: None,
            lease: None,
            metrics,
            recorder,
        }
    }

    /// Tells traces where the apiserver is.
    #[must_use]
    pub fn with_server(self, server: Option<Uri>) -> Self {
        Self { server, ..self }
    }

    /// Makes at most so many calls per second. What waits for its turn is not yet under way: it does not time out.
    #[must_use]
    pub fn with_most_calls_per_second(self, most: Option<NonZeroU64>) -> Self {
        Self {
            pace: most.map(Pace::new),
            ..self
        }
    }

    /// Creates at most so many pods per second, whatever else is written meanwhile.
    #[must_use]
    pub fn with_most_creates_per_second(self, most: Option<NonZeroU64>) -> Self {
        Self {
            create_pace: most.map(Pace::new),
            ..self
        }
    }

    /// Writes only while `lease` says that this process leads; reads go on. A process that was stopped for a while, or starved,
    /// may go on with its work before it learns that its lease has run out, and the apiserver does not refuse such writes
    /// (M-12). What counts is the moment when a request goes out: it may have waited long for its turn.
    #[must_use]
    pub fn with_lease_check(self, lease: Option<LeaseCheck>) -> Self {
        Self { lease, ..self }
    }

    fn leads(&self) -> bool {
        self.lease.as_ref().is_none_or(|leads| leads())
    }

    /// Waits until the call may be made.
    async fn turn(&self, call: &Call) -> Result<(), ActuatorError> {
        let refuse = || {
            Err(ActuatorError::unclear(
                "not written: the lease was not renewed in time, and another executor may lead",
            ))
        };
        let writes = call.method != Method::GET;
        // A write that will be refused must not use up a turn.
        if writes && !self.leads() {
            return refuse();
        }
        let creates = call.verb == "create" && call.resource == Resource::Pods;
        for pace in self.create_pace.iter().filter(|_| creates).chain(&self.pace) {
            pace.keep().await;
        }
        // The lease may have run out while the call waited.
        if writes && !self.leads() {
            return refuse();
        }
        Ok(())
    }

    /// Makes a call, and has `read` take what is answered.
    async fn call<T>(
        &self,
        call: Call,
        read: impl FnOnce(&Self, String) -> Result<T, ActuatorError>,
    ) -> Result<T, ActuatorError> {
        self.turn(&call).await?;
        let (verb, resource) = (call.verb, call.resource.plural());
        let span = call.span(self.server.as_ref());
        let started = Instant::now();
        let sent = tokio::time::timeout(self.call_timeout, self.send(call)).instrument(span.clone());
        let (result, without_answer) = if let Ok(answer) = sent.await {
            (answer, "connection")
        } else {
            let message = format!("no answer within {:?}", self.call_timeout);
            (Err(ActuatorError::unclear(message)), "timeout")
        };
        let code = result
            .as_ref()
            .map_or_else(|error| error.http_status, |(code, _)| *code);
        span.in_scope(|| {
            call::ended(&span, &result, without_answer);
            self.metrics.api_call(verb, resource, code, started.elapsed());
            result.and_then(|(_, text)| read(self, text))
        })
    }

    async fn send(&self, call: Call) -> Result<(u16, String), ActuatorError> {
        let mut request = Request::builder()
            .uri(call.uri())
            .method(call.method)
            .header(header::USER_AGENT, WRITER)
            .header(header::ACCEPT, call.accept);
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if let Some(headers) = request.headers_mut() {
            call::carry_context(headers);
        }
        let request = request
            .body(call.body.to_vec())
            .map_err(|error| ActuatorError::unclear(error.to_string()))?;
        let (status, text) = answer::answer(&self.client, request).await?;
        Ok((status.as_u16(), text))
    }

    /// Reads the identity in an answer.
    fn written(&self, resource: Resource, answer: &str) -> Result<Written, ActuatorError> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            name: String,
            #[serde(default)]
            resource_version: String,
        }
        let Object { metadata } = serde_json::from_str(answer)
            .map_err(|error| ActuatorError::unclear(format!("reading the apiserver's answer: {error}")))?;
        if resource == Resource::Pods {
            Span::current().record("k8s.pod.name", &*metadata.name);
        }
        self.metrics.written(resource, &metadata.resource_version);
        Ok(Written {
            name: metadata.name,
            resource_version: metadata.resource_version,
        })
    }
}

impl Actuator for KubeActuator {
    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let call = Call {
            is_managed: true,
            body: manifest,
            ..Call::to_all("create", Method::POST, resource, namespace)
        };
        self.call(call, |this, answer| this.written(resource, &answer))
            .await
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body),
        };
        let call = Call {
            is_managed: true,
            content_type,
            body,
            ..Call::to("patch", Method::PATCH, key)
        };
        self.call(call, |this, answer| this.written(key.resource, &answer))
            .await
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        let body = uid.map_or_else(Bytes::new, |uid| {
            serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})
                .to_string()
                .into()
        });
        let call = Call {
            body,
            ..Call::to("delete", Method::DELETE, key)
        };
        self.call(call, |_, _| Ok(())).await
    }

    async fn replace_status(&self, key: &ObjectKey, body: Bytes) -> Result<Written, ActuatorError> {
        let call = Call {
            is_managed: true,
            body,
            ..Call::to("update", Method::PUT, key).of("/status")
        };
        self.call(call, |this, answer| this.written(key.resource, &answer))
            .await
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        let call = Call {
            accept: JSON,
            ..Call::to("get", Method::GET, key)
        };
        self.call(call, |_, answer| Ok(answer.into())).await
    }

    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        let call = || Call::to_all("list", Method::GET, resource, namespace);
        let mut pages = Pages::new(call().uri(), page_size(resource));
        loop {
            let call = call();
            self.turn(&call).await?;
            let span = call.span(self.server.as_ref());
            let started = Instant::now();
            let next = tokio::time::timeout(self.call_timeout, pages.next(&self.client));
            let (result, without_answer) = if let Ok(page) = next.instrument(span.clone()).await {
                let page = page.map(|page| (200, page));
                (page.map_err(ActuatorError::from), "connection")
            } else {
                let message = format!("no answer within {:?}", self.call_timeout);
                (Err(ActuatorError::unclear(message)), "timeout")
            };
            let code = result
                .as_ref()
                .map_or_else(|error| error.http_status, |(code, _)| *code);
            call::ended(&span, &result, without_answer);
            self.metrics
                .api_call(call.verb, resource.plural(), code, started.elapsed());
            let (_, Some(text)) = result? else {
                continue;
            };
            let page = Page::read(&text)?;
            for item in page.items.into_iter().flatten() {
                take(&completed(resource, item.get()));
            }
            if !pages.go_on(&page.metadata) {
                return Ok(());
            }
        }
    }

    fn emit(&self, event: WorkloadEvent) {
        if self.leads() {
            self.recorder.record(event.into());
        }
    }
}

impl Refusal {
    /// What a status says: its code, its reason, and the reasons of the causes in its details.
    #[must_use]
    pub fn of<'a>(code: u16, reason: &str, causes: impl IntoIterator<Item = &'a str>) -> Self {
        let terminating = causes.into_iter().any(|cause| cause == "NamespaceTerminating");
        match (code, reason) {
            _ if terminating => Self::NamespaceTerminating,
            (409, "AlreadyExists") => Self::AlreadyExists,
            (409, _) => Self::Conflict,
            (404, _) => Self::NotFound,
            (422, _) => Self::Invalid,
            _ => Self::Other,
        }
    }
}

impl From<kube::Error> for ActuatorError {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::unclear(error.to_string());
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let causes = causes.map(|cause| cause.reason.as_str());
        Self {
            refusal: Refusal::of(status.code, &status.reason, causes),
            http_status: status.code,
            message: status.message,
        }
    }
}
