//! Writes to a real apiserver.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use kube::Client;
use serde::Deserialize;

use super::{Actuator, ActuatorError, ObjectKey, Patch, Refusal, WRITER, WorkloadEvent, Written};
use crate::event::Resource;

/// Writes through a Kubernetes client: bodies go out as they are given, answers are read no further than their identity.
#[derive(Clone)]
pub struct KubeActuator {
    client: Client,
    call_timeout: Duration,
}

impl KubeActuator {
    /// Writes through `client`, giving every call at most `call_timeout`.
    ///
    /// The client must not retry by itself: a create that timed out may have happened.
    #[must_use]
    pub fn new(client: Client, call_timeout: Duration) -> Self {
        Self { client, call_timeout }
    }

    async fn call(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: Bytes,
    ) -> Result<String, ActuatorError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, WRITER);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let request = request
            .body(body.to_vec())
            .map_err(|error| ActuatorError::unclear(error.to_string()))?;
        match tokio::time::timeout(self.call_timeout, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(ActuatorError::from),
            Err(_) => Err(ActuatorError::unclear(format!(
                "no answer within {:?}",
                self.call_timeout
            ))),
        }
    }
}

const JSON: &str = "application/json";

impl Actuator for KubeActuator {
    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let path = format!("{}?fieldManager={WRITER}", collection(resource, namespace));
        written(&self.call(Method::POST, path, JSON, manifest).await?)
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body),
        };
        let uri = format!("{}?fieldManager={WRITER}", object(key));
        written(&self.call(Method::PATCH, uri, content_type, body).await?)
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        let options = uid.map_or_else(Bytes::new, |uid| {
            serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})
                .to_string()
                .into()
        });
        self.call(Method::DELETE, object(key), JSON, options)
            .await
            .map(drop)
    }

    async fn replace_status(&self, key: &ObjectKey, body: Bytes) -> Result<Written, ActuatorError> {
        let path = format!("{}/status?fieldManager={WRITER}", object(key));
        written(&self.call(Method::PUT, path, JSON, body).await?)
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        self.call(Method::GET, object(key), JSON, Bytes::new())
            .await
            .map(Bytes::from)
    }

    fn emit(&self, event: WorkloadEvent) {
        tracing::debug!(reason = event.reason, message = event.message, "event");
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

impl From<kube::Error> for ActuatorError {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::unclear(error.to_string());
        };
        let terminating = status
            .details
            .iter()
            .flat_map(|details| &details.causes)
            .any(|cause| cause.reason == "NamespaceTerminating");
        let refusal = match (status.code, status.reason.as_str()) {
            _ if terminating => Refusal::NamespaceTerminating,
            (409, "AlreadyExists") => Refusal::AlreadyExists,
            (409, _) => Refusal::Conflict,
            (404, _) => Refusal::NotFound,
            (422, _) => Refusal::Invalid,
            _ => Refusal::Other,
        };
        Self {
            refusal,
            http_status: status.code,
            message: status.message,
        }
    }
}
