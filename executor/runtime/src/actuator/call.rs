//! A call to the apiserver and its span. The span follows OpenTelemetry's conventions for HTTP clients.

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use nodewise_projection::WRITER;
use nodewise_telemetry::propagation;
use tracing::{Span, field::Empty};

use super::{ActuatorError, ObjectKey};
use crate::resource::Resource;
use crate::trace;

/// A call to the apiserver.
pub(super) struct Call {
    /// The verb, as in RBAC rules.
    pub(super) verb: &'static str,
    pub(super) method: Method,
    pub(super) resource: Resource,
    pub(super) namespace: String,
    /// The name of the object; `None` for the collection.
    pub(super) name: Option<String>,
    pub(super) subresource: &'static str,
    /// Whether the body is an object, or a part of one. Then a field manager is sent with the call.
    pub(super) is_managed: bool,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
}

/// The subresource of pods for evictions.
pub(super) const EVICTION: &str = "/eviction";
pub(super) const JSON: &str = "application/json";
/// Asks for the metadata only. The rest of a written object is not needed. Protobuf costs the apiserver less than JSON.
const METADATA_ONLY: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
    application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Tells the apiserver not to look for fields that it does not know, and for fields that are there twice. It drops them in any case, and
/// only warns by default. For the Protobuf that kube-controller-manager sends there is no such check.
const NO_FIELD_VALIDATION: &str = "fieldValidation=Ignore";

impl Call {
    /// Creates a call for the collection of a resource in a namespace.
    pub(super) fn for_collection(
        verb: &'static str,
        method: Method,
        resource: Resource,
        namespace: &str,
    ) -> Self {
        Self {
            verb,
            method,
            resource,
            namespace: namespace.to_owned(),
            name: None,
            subresource: "",
            is_managed: false,
            accept: METADATA_ONLY,
            content_type: JSON,
            body: Bytes::new(),
        }
    }

    /// Creates a call for one object.
    pub(super) fn for_object(verb: &'static str, method: Method, key: &ObjectKey) -> Self {
        Self {
            name: Some(key.name.clone()),
            ..Self::for_collection(verb, method, key.resource, &key.namespace)
        }
    }

    /// Sets the subresource, such as `/status`.
    pub(super) fn with_subresource(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    /// The resource in metrics, with the subresource if that is another object than the resource's own.
    pub(super) fn label(&self) -> &'static str {
        match self.subresource {
            EVICTION => "pods/eviction",
            _ => self.resource.plural,
        }
    }

    /// Returns path and query. Names of Kubernetes objects need no escaping.
    pub(super) fn uri(&self) -> String {
        let path = self.path(&self.namespace, self.name.as_deref());
        if self.is_managed {
            format!("{path}?fieldManager={WRITER}&{NO_FIELD_VALIDATION}")
        } else {
            path
        }
    }

    fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let plural = self.resource.plural;
        let root = self.resource.api();
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{root}/namespaces/{namespace}/{plural}{name}{}", self.subresource)
    }

    /// Creates the span of this call. It is disabled if calls are not recorded here.
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
            // The URL is written without user information.
            let scheme = server.scheme_str().unwrap_or("https");
            let path = server.path().trim_end_matches('/');
            span.record(
                "url.full",
                format!("{scheme}://{host}:{port}{path}{}", self.uri()),
            );
            span.record("server.address", host);
            span.record("server.port", i64::from(port));
        }
        if let (Resource::PODS, Some(name)) = (self.resource, &self.name) {
            span.record("k8s.pod.name", name);
        }
        span
    }
}

/// Writes the context of the current span into the headers of a call. If calls are not recorded here, the context is marked
/// as not sampled, so that the apiserver does not record them either.
pub(super) fn inject_context(headers: &mut HeaderMap) {
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

/// Records the result of a call in its span. `without_answer` is the error type if there was no response.
pub(super) fn record_result<T>(
    span: &Span,
    result: &Result<(u16, T), ActuatorError>,
    without_answer: &'static str,
) {
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
