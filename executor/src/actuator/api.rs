//! Writes to a real apiserver.

use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, header};
use kube::Client;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;

use super::{Actuator, ActuatorError, ObjectKey, Patch, Refusal, WRITER, WorkloadEvent, Written};
use crate::{answer, event::Resource, events::EventRecorder, metrics::Metrics};

/// Writes through a Kubernetes client: bodies go out as they are given, answers are read no further than their identity.
#[derive(Clone)]
pub struct KubeActuator {
    client: Client,
    call_timeout: Duration,
    pace: Option<Arc<Pace>>,
    /// Of creates of pods, besides.
    create_pace: Option<Arc<Pace>>,
    metrics: Metrics,
    recorder: EventRecorder,
}

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
            call_timeout,
            pace: None,
            create_pace: None,
            metrics,
            recorder,
        }
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

    async fn call(&self, call: Call) -> Result<String, ActuatorError> {
        let creates = call.verb == "create" && call.resource == Resource::Pods;
        for pace in self.create_pace.iter().filter(|_| creates).chain(&self.pace) {
            pace.keep().await;
        }
        let (verb, resource) = (call.verb, call.resource.plural());
        let span = tracing::debug_span!("api_call", verb, resource, path = call.path);
        let started = Instant::now();
        let result = match tokio::time::timeout(self.call_timeout, self.send(call))
            .instrument(span)
            .await
        {
            Ok(answer) => answer,
            Err(_) => Err(ActuatorError::unclear(format!(
                "no answer within {:?}",
                self.call_timeout
            ))),
        };
        let code = result.as_ref().map_or_else(|error| error.http_status, |_| 200);
        self.metrics.api_call(verb, resource, code, started.elapsed());
        result
    }

    async fn send(&self, call: Call) -> Result<String, ActuatorError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::USER_AGENT, WRITER)
            .header(header::ACCEPT, call.accept);
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        let request = request
            .body(call.body.to_vec())
            .map_err(|error| ActuatorError::unclear(error.to_string()))?;
        Ok(answer::text(&self.client, request).await?)
    }
}

/// One call to the apiserver.
struct Call {
    /// As in RBAC rules.
    verb: &'static str,
    method: Method,
    resource: Resource,
    path: String,
    accept: &'static str,
    content_type: &'static str,
    body: Bytes,
}

impl Call {
    fn new(verb: &'static str, method: Method, resource: Resource, path: String) -> Self {
        Self {
            verb,
            method,
            resource,
            path,
            accept: IDENTITY_ONLY,
            content_type: JSON,
            body: Bytes::new(),
        }
    }
}

const JSON: &str = "application/json";
/// Of what was written only the metadata is of interest.
const IDENTITY_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

impl Actuator for KubeActuator {
    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let path = format!("{}?fieldManager={WRITER}", collection(resource, namespace));
        let call = Call {
            body: manifest,
            ..Call::new("create", Method::POST, resource, path)
        };
        written(&self.call(call).await?)
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body),
        };
        let uri = format!("{}?fieldManager={WRITER}", object(key));
        let call = Call {
            content_type,
            body,
            ..Call::new("patch", Method::PATCH, key.resource, uri)
        };
        written(&self.call(call).await?)
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        let body = uid.map_or_else(Bytes::new, |uid| {
            serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})
                .to_string()
                .into()
        });
        let call = Call {
            body,
            ..Call::new("delete", Method::DELETE, key.resource, object(key))
        };
        self.call(call).await.map(drop)
    }

    async fn replace_status(&self, key: &ObjectKey, body: Bytes) -> Result<Written, ActuatorError> {
        let path = format!("{}/status?fieldManager={WRITER}", object(key));
        let call = Call {
            body,
            ..Call::new("update", Method::PUT, key.resource, path)
        };
        written(&self.call(call).await?)
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        let call = Call {
            accept: JSON,
            ..Call::new("get", Method::GET, key.resource, object(key))
        };
        self.call(call).await.map(Bytes::from)
    }

    fn emit(&self, event: WorkloadEvent) {
        self.recorder.record(event.into());
    }
}

/// The path of a resource's collection in a namespace.
fn collection(resource: Resource, namespace: &str) -> String {
    let root = match resource.group() {
        "" => "/api/v1".to_owned(),
        group => format!("/apis/{group}/v1"),
    };
    format!("{root}/namespaces/{namespace}/{}", resource.plural())
}

/// The path of one object. Names of Kubernetes objects need no escaping.
fn object(key: &ObjectKey) -> String {
    format!("{}/{}", collection(key.resource, &key.namespace), key.name)
}

/// Reads the identity in an answer.
fn written(answer: &str) -> Result<Written, ActuatorError> {
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
    Ok(Written {
        name: metadata.name,
        resource_version: metadata.resource_version,
    })
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
