//! One call to the apiserver, and its span, named by OpenTelemetry's conventions for HTTP clients.

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use nodewise_telemetry::propagation;
use tracing::{Span, field::Empty};

use super::{ActuatorError, ObjectKey, WRITER};
use crate::{event::Resource, trace};

/// One call to the apiserver.
pub(super) struct Call {
    /// As in RBAC rules.
    pub(super) verb: &'static str,
    pub(super) method: Method,
    pub(super) resource: Resource,
    pub(super) namespace: String,
    /// None for the collection.
    pub(super) name: Option<String>,
    pub(super) subresource: &'static str,
    /// The apiserver keeps whose write it is.
    pub(super) is_managed: bool,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
}

pub(super) const JSON: &str = "application/json";
/// Of what was written only the metadata is of interest.
const IDENTITY_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

impl Call {
    /// A call about the objects of a kind in a namespace.
    pub(super) fn to_all(verb: &'static str, method: Method, resource: Resource, namespace: &str) -> Self {
        Self {
            verb,
            method,
            resource,
            namespace: namespace.to_owned(),
            name: None,
            subresource: "",
            is_managed: false,
            accept: IDENTITY_ONLY,
            content_type: JSON,
            body: Bytes::new(),
        }
    }

    /// A call about one object.
    pub(super) fn to(verb: &'static str, method: Method, key: &ObjectKey) -> Self {
        Self {
            name: Some(key.name.clone()),
            ..Self::to_all(verb, method, key.resource, &key.namespace)
        }
    }

    /// The same about a part of the object, such as `/status`.
    pub(super) fn of(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    /// Path and query. Names of Kubernetes objects need no escaping.
    pub(super) fn uri(&self) -> String {
        let path = self.path(&self.namespace, self.name.as_deref());
        if self.is_managed {
            format!("{path}?fieldManager={WRITER}")
        } else {
            path
        }
    }

    fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let plural = self.resource.plural();
        let root = match self.resource.group() {
            "" => "/api/v1".to_owned(),
            group => format!("/apis/{group}/v1"),
        };
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{root}/namespaces/{namespace}/{plural}{name}{}", self.subresource)
    }

    /// The span of this call at the apiserver of this URL; disabled where it shall have none.
    pub(super) fn span(&self, server: Option<&Uri>) -> Span {
        if !trace::is_call_recorded() {
            return Span::none();
        }
        let template = self.path("{namespace}", self.name.as_ref().map(|_| "{name}"));
        let span = tracing::debug_span!(
            "api_call",
            otel.name = format!("{} {template}", self.method),
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            http.request.method = self.method.as_str(),
            http.response.status_code = Empty,
            error.r#type = Empty,
            url.template = template,
            url.full = Empty,
            server.address = Empty,
            server.port = Empty,
            k8s.namespace.name = self.namespace,
            k8s.pod.name = Empty,
        );
        if let Some(server) = server {
            let (host, port) = (
                server.host().unwrap_or_default(),
                server.port_u16().unwrap_or(443),
            );
            // Without the user information that a URL may have.
            let scheme = server.scheme_str().unwrap_or("https");
            let path = server.path().trim_end_matches('/');
            span.record(
                "url.full",
                format!("{scheme}://{host}:{port}{path}{}", self.uri()),
            );
            span.record("server.address", host);
            span.record("server.port", i64::from(port));
        }
        if let (Resource::Pods, Some(name)) = (self.resource, &self.name) {
            span.record("k8s.pod.name", name);
        }
        span
    }
}

/// Writes the context of the span that is entered here into a call's headers. What is not recorded here is not to be recorded by
/// the apiserver either.
pub(super) fn carry_context(headers: &mut HeaderMap) {
    let span = propagation::current();
    if !span.is_valid() {
        return;
    }
    if trace::is_call_recorded() {
        propagation::inject(&span, headers);
    } else {
        propagation::inject(&propagation::unsampled(&span), headers);
    }
}

/// Shows how the call of a span ended; with the class of the error where there was no answer.
pub(super) fn ended<T>(span: &Span, result: &Result<(u16, T), ActuatorError>, without_answer: &'static str) {
    let error = match result {
        Ok((status, _)) => {
            span.record("http.response.status_code", i64::from(*status));
            return;
        }
        Err(error) => error,
    };
    if error.http_status == 0 {
        span.record("error.type", without_answer);
    } else {
        span.record("http.response.status_code", i64::from(error.http_status));
        span.record("error.type", error.http_status.to_string());
    }
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", error.to_string());
}
