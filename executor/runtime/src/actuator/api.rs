//! The actuator for an apiserver.

use std::{
    collections::BTreeMap,
    fmt::Display,
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use kube::{Client, core::Status};
use nodewise_projection::WRITER;
use nodewise_telemetry::in_short;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, Span};

use super::{
    Actuator, ActuatorError, Eviction, ObjectKey, Patch, Preconditions, Refusal, WorkloadEvent, Written,
    call::{self, Call, EVICTION, JSON},
};
use crate::resource::Resource;
use crate::{
    encoding::Payload,
    events::EventRecorder,
    list::{ListPager, Page},
    metrics::Metrics,
    response::{self, ObjectIdentity},
};

/// Writes through a Kubernetes client. Bodies are sent unchanged. Of the response to a write, only the name and the
/// resourceVersion are read.
#[derive(Clone)]
pub struct KubeActuator {
    client: Client,
    /// The URL of the apiserver, for spans.
    server: Option<Uri>,
    call_timeout: Duration,
    rate_limit: Option<Arc<RateLimiter>>,
    /// An additional limit for pod creates.
    create_rate_limit: Option<Arc<RateLimiter>>,
    /// `None` without leader election.
    lease: Option<LeaseCheck>,
    metrics: Metrics,
    recorder: EventRecorder,
}

/// Returns whether this process certainly holds the lease at the moment of the call.
pub type LeaseCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Limits the rate of calls to one per interval. Only calls for plans are limited, not watches or renewals of the lease.
#[derive(Debug)]
struct RateLimiter {
    interval: Duration,
    next: Mutex<Instant>,
}

impl RateLimiter {
    fn new(per_second: NonZeroU64) -> Arc<Self> {
        Arc::new(Self {
            interval: Duration::from_nanos(1_000_000_000 / per_second),
            next: Mutex::new(Instant::now()),
        })
    }

    async fn wait(&self) {
        let permitted_at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let permitted_at = (*next).max(Instant::now());
            *next = permitted_at + self.interval;
            permitted_at
        };
        sleep_until(permitted_at).await;
    }
}

impl KubeActuator {
    /// Creates an actuator that gives every call at most `call_timeout`.
    ///
    /// The client must not retry by itself: a create that timed out may have happened.
    #[must_use]
    pub fn new(client: Client, call_timeout: Duration, metrics: Metrics, recorder: EventRecorder) -> Self {
        Self {
            client,
            server: None,
            call_timeout,
            rate_limit: None,
            create_rate_limit: None,
            lease: None,
            metrics,
            recorder,
        }
    }

    /// Emits Events with another recorder. The limits are shared with this actuator.
    #[must_use]
    pub fn with_recorder(&self, recorder: EventRecorder) -> Self {
        Self {
            recorder,
            ..self.clone()
        }
    }

    /// Sets the URL of the apiserver, for spans.
    #[must_use]
    pub fn with_server(self, server: Option<Uri>) -> Self {
        Self { server, ..self }
    }

    /// Limits the calls per second. The timeout of a call starts after its wait.
    #[must_use]
    pub fn with_most_calls_per_second(self, most: Option<NonZeroU64>) -> Self {
        Self {
            rate_limit: most.map(RateLimiter::new),
            ..self
        }
    }

    /// Limits the pod creates per second. Other calls are not affected.
    #[must_use]
    pub fn with_most_creates_per_second(self, most: Option<NonZeroU64>) -> Self {
        Self {
            create_rate_limit: most.map(RateLimiter::new),
            ..self
        }
    }

    /// Sends writes only while `lease` returns true; reads are always sent. A process that was paused or starved may continue
    /// its work before it notices that its lease has expired, and the apiserver does not reject such writes. The check is
    /// made right before the request is sent, because a call may wait long for the rate limit.
    #[must_use]
    pub fn with_lease_check(self, lease: Option<LeaseCheck>) -> Self {
        Self { lease, ..self }
    }

    fn leads(&self) -> bool {
        self.lease.as_ref().is_none_or(|leads| leads())
    }

    /// Waits for the rate limits. Fails if the call is a write and the lease is not held.
    async fn wait_for_permit(&self, call: &Call) -> Result<(), ActuatorError> {
        let refuse = || {
            Err(ActuatorError::unclear(
                "not written: the lease was not renewed in time, and another executor may lead",
            ))
        };
        let writes = call.method != Method::GET;
        // A write that will be rejected must not use up the rate limit.
        if writes && !self.leads() {
            return refuse();
        }
        let creates = call.verb == "create" && call.resource == Resource::PODS && call.subresource.is_empty();
        for rate_limit in self
            .create_rate_limit
            .iter()
            .filter(|_| creates)
            .chain(&self.rate_limit)
        {
            rate_limit.wait().await;
        }
        // The lease may have run out while the call waited.
        if writes && !self.leads() {
            return refuse();
        }
        Ok(())
    }

    /// Makes a call and passes the response body to `read`.
    async fn call<T>(
        &self,
        call: Call,
        read: impl FnOnce(&Self, Payload) -> Result<T, ActuatorError>,
    ) -> Result<T, ActuatorError> {
        self.wait_for_permit(&call).await?;
        let (verb, resource) = (call.verb, call.label());
        let span = call.span(self.server.as_ref());
        let sent = async { Ok(self.send(call).await?) };
        let answer = self.timed(&span, verb, resource, sent).await?;
        span.in_scope(|| read(self, answer))
    }

    /// Waits for the answer to a call, at most for the timeout, and records the result in the span and the metrics.
    async fn timed<T>(
        &self,
        span: &Span,
        verb: &'static str,
        resource: &'static str,
        sent: impl Future<Output = Result<(u16, T), ActuatorError>>,
    ) -> Result<T, ActuatorError> {
        let started = Instant::now();
        let sent = tokio::time::timeout(self.call_timeout, sent).instrument(span.clone());
        let (result, without_answer) = if let Ok(answer) = sent.await {
            (answer, "connection")
        } else {
            let message = format!("no answer within {:?}", self.call_timeout);
            (Err(ActuatorError::unclear(message)), "timeout")
        };
        let code = result
            .as_ref()
            .map_or_else(|error| error.http_status, |(code, _)| *code);
        call::record_result(span, &result, without_answer);
        self.metrics.api_call(verb, resource, code, started.elapsed());
        result.map(|(_, answer)| answer)
    }

    async fn send(&self, call: Call) -> Result<(u16, Payload), kube::Error> {
        let mut request = Request::builder()
            .uri(call.uri())
            .method(call.method)
            .header(header::USER_AGENT, WRITER)
            .header(header::ACCEPT, call.accept);
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if let Some(headers) = request.headers_mut() {
            call::inject_context(headers);
        }
        let request = request.body(call.body.to_vec()).map_err(kube::Error::HttpError)?;
        let (status, answer) = response::send(&self.client, request).await?;
        Ok((status.as_u16(), answer))
    }

    /// Patches an object, or its subresource.
    async fn patch_part(
        &self,
        key: &ObjectKey,
        subresource: &'static str,
        patch: Patch,
    ) -> Result<Written, ActuatorError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body),
        };
        let call = Call {
            is_managed: true,
            content_type,
            body,
            ..Call::for_object("patch", Method::PATCH, key).with_subresource(subresource)
        };
        self.call(call, |this, answer| this.written(key.resource, answer))
            .await
    }

    /// Reads the name and resourceVersion from a response.
    fn written(&self, resource: Resource, answer: Payload) -> Result<Written, ActuatorError> {
        let unclear =
            |what: &dyn Display| ActuatorError::unclear(format!("reading the apiserver's answer: {what}"));
        let ObjectIdentity {
            name,
            resource_version,
            ..
        } = ObjectIdentity::of_metadata(answer).map_err(|error| unclear(&error))?;
        if name.is_empty() {
            return Err(unclear(&"it has no metadata.name"));
        }
        if resource == Resource::PODS {
            Span::current().record("k8s.pod.name", &*name);
        }
        self.metrics.written(resource, &resource_version);
        Ok(Written {
            name,
            resource_version,
        })
    }
}

/// The body of a delete with these preconditions.
fn delete_options(preconditions: Preconditions<'_>) -> String {
    let Preconditions {
        uid,
        resource_version,
    } = preconditions;
    let members = [("uid", uid), ("resourceVersion", resource_version)];
    let members = members
        .into_iter()
        .filter_map(|(member, value)| Some((member, value?)));
    let preconditions: BTreeMap<_, _> = members.collect();
    serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})
        .to_string()
}

/// The body of an eviction.
fn eviction(key: &ObjectKey, uid: &str) -> String {
    serde_json::json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    })
    .to_string()
}

/// An eviction that was refused with 429. The causes name the budget, and say what it needs.
fn blocked(status: &Status) -> Eviction {
    let details = status.details.as_ref();
    let causes = details.into_iter().flat_map(|details| &details.causes);
    let mut message = status.message.clone();
    for cause in causes.filter(|cause| !cause.message.is_empty()) {
        message.push(' ');
        message.push_str(&cause.message);
    }
    let seconds = details.map_or(0, |details| details.retry_after_seconds);
    Eviction::Blocked {
        message: in_short(&message),
        retry_after: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
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
            ..Call::for_collection("create", Method::POST, resource, namespace)
        };
        self.call(call, |this, answer| this.written(resource, answer))
            .await
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        self.patch_part(key, "", patch).await
    }

    async fn patch_status(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        self.patch_part(key, "/status", patch).await
    }

    async fn delete(&self, key: &ObjectKey, preconditions: Preconditions<'_>) -> Result<(), ActuatorError> {
        let body = if preconditions == Preconditions::NONE {
            Bytes::new()
        } else {
            delete_options(preconditions).into()
        };
        let call = Call {
            body,
            ..Call::for_object("delete", Method::DELETE, key)
        };
        self.call(call, |_, _| Ok(())).await
    }

    async fn evict(&self, key: &ObjectKey, uid: &str) -> Result<Eviction, ActuatorError> {
        let call = Call {
            body: eviction(key, uid).into(),
            ..Call::for_object("create", Method::POST, key).with_subresource(EVICTION)
        };
        self.wait_for_permit(&call).await?;
        let (verb, resource) = (call.verb, call.label());
        let span = call.span(self.server.as_ref());
        let sent = async {
            match self.send(call).await {
                Ok((code, _)) => Ok((code, Eviction::Evicted)),
                Err(kube::Error::Api(status)) if status.code == 429 => Ok((429, blocked(&status))),
                Err(error) => Err(error.into()),
            }
        };
        self.timed(&span, verb, resource, sent).await
    }

    async fn replace_status(&self, key: &ObjectKey, body: Bytes) -> Result<Written, ActuatorError> {
        let call = Call {
            is_managed: true,
            body,
            ..Call::for_object("update", Method::PUT, key).with_subresource("/status")
        };
        self.call(call, |this, answer| this.written(key.resource, answer))
            .await
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        let call = Call {
            accept: JSON,
            ..Call::for_object("get", Method::GET, key)
        };
        self.call(call, |_, answer| Ok(answer.into_json()?.into())).await
    }

    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        let call = || Call::for_collection("list", Method::GET, resource, namespace);
        let mut pager = ListPager::new(call().uri(), resource.page_size);
        loop {
            let call = call();
            self.wait_for_permit(&call).await?;
            let span = call.span(self.server.as_ref());
            let page = async { Ok((200, pager.next(&self.client).await?)) };
            let Some(text) = self.timed(&span, call.verb, call.label(), page).await? else {
                continue;
            };
            let page = Page::read(&text)?;
            for item in page.items.into_iter().flatten() {
                take(&resource.completed(item.get()));
            }
            if !pager.advance(&page.metadata) {
                return Ok(());
            }
        }
    }

    fn emit(&self, event: WorkloadEvent) {
        if self.leads() {
            self.recorder.emit(event);
        }
    }
}

impl Refusal {
    /// Classifies a Status by its code, its reason, and the reasons of its causes.
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
