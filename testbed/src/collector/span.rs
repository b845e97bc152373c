//! Spans in a form that tests can read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use serde_json::Value;

/// Attributes by key. Values are JSON: a string, number, boolean, list or object. Bytes are a string of hexadecimal
/// digits.
pub type Attributes = BTreeMap<String, Value>;

/// One span from the Collector. Ids are lowercase hexadecimal digits, as in a `traceparent`.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The resource's `service.name`, or empty.
    pub service: String,
    /// The attributes of the resource.
    pub resource: Attributes,
    /// The name of the instrumentation scope, usually the library that made the span.
    pub scope: String,
    /// The trace id, 32 digits.
    pub trace_id: String,
    /// The span id, 16 digits.
    pub span_id: String,
    /// The parent's span id, `None` for a root.
    pub parent_id: Option<String>,
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: SpanKind,
    /// The start time.
    pub start: Timestamp,
    /// The end time.
    pub end: Timestamp,
    /// The status.
    pub status: SpanStatus,
    /// The attributes.
    pub attributes: Attributes,
    /// The links to other spans.
    pub links: Vec<SpanLink>,
    /// The events, in the order of the sender.
    pub events: Vec<SpanEvent>,
}

impl Span {
    /// The value of an attribute, or [`Value::Null`], so that tests can write `span.attribute("nodewise.apply.actions")
    /// == 3`.
    #[must_use]
    pub fn attribute(&self, key: &str) -> &Value {
        self.attributes.get(key).unwrap_or(&Value::Null)
    }

    /// Whether `other` is the parent.
    #[must_use]
    pub fn is_child_of(&self, other: &Self) -> bool {
        self.trace_id == other.trace_id && self.parent_id.as_ref() == Some(&other.span_id)
    }

    /// The span's context as a `traceparent` header. The sampled flag is set, because only sampled spans are exported.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace_id, self.span_id)
    }
}

/// The OpenTelemetry span kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// Not set.
    Unspecified,
    /// An operation inside a process.
    Internal,
    /// The server side of a call.
    Server,
    /// The client side of a call.
    Client,
    /// The sender of a message.
    Producer,
    /// The receiver of a message.
    Consumer,
}

/// The status of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    /// Not set, which by convention means success.
    Unset,
    /// Explicit success.
    Ok,
    /// An error with this description.
    Error(String),
}

/// A link to another span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanLink {
    /// The trace id of that span.
    pub trace_id: String,
    /// The id of that span.
    pub span_id: String,
    /// The attributes of the link.
    pub attributes: Attributes,
}

/// An event of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// The name.
    pub name: String,
    /// The time.
    pub time: Timestamp,
    /// The attributes.
    pub attributes: Attributes,
}

/// All spans of an export request, in order.
pub(super) fn read(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = attributes(of_resource.resource.unwrap_or_default().attributes);
        let service = resource
            .get("service.name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        for of_scope in of_resource.scope_spans {
            let scope = of_scope.scope.unwrap_or_default().name;
            spans.extend(
                of_scope
                    .spans
                    .into_iter()
                    .map(|it| span(it, service, &resource, &scope)),
            );
        }
    }
    spans
}

fn span(span: otlp::Span, service: &str, resource: &Attributes, scope: &str) -> Span {
    Span {
        service: service.to_owned(),
        resource: resource.clone(),
        scope: scope.to_owned(),
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)),
        kind: kind(span.kind()),
        name: span.name,
        start: timestamp(span.start_time_unix_nano),
        end: timestamp(span.end_time_unix_nano),
        status: status(span.status.unwrap_or_default()),
        attributes: attributes(span.attributes),
        links: span
            .links
            .into_iter()
            .map(|link| SpanLink {
                trace_id: hex(&link.trace_id),
                span_id: hex(&link.span_id),
                attributes: attributes(link.attributes),
            })
            .collect(),
        events: span
            .events
            .into_iter()
            .map(|event| SpanEvent {
                name: event.name,
                time: timestamp(event.time_unix_nano),
                attributes: attributes(event.attributes),
            })
            .collect(),
    }
}

fn kind(kind: otlp::span::SpanKind) -> SpanKind {
    match kind {
        otlp::span::SpanKind::Unspecified => SpanKind::Unspecified,
        otlp::span::SpanKind::Internal => SpanKind::Internal,
        otlp::span::SpanKind::Server => SpanKind::Server,
        otlp::span::SpanKind::Client => SpanKind::Client,
        otlp::span::SpanKind::Producer => SpanKind::Producer,
        otlp::span::SpanKind::Consumer => SpanKind::Consumer,
    }
}

fn status(status: otlp::Status) -> SpanStatus {
    match status.code() {
        otlp::status::StatusCode::Unset => SpanStatus::Unset,
        otlp::status::StatusCode::Ok => SpanStatus::Ok,
        otlp::status::StatusCode::Error => SpanStatus::Error(status.message),
    }
}

fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    pairs
        .into_iter()
        .map(|pair| (pair.key, value(pair.value)))
        .collect()
}

fn value(any: Option<AnyValue>) -> Value {
    match any.and_then(|any| any.value) {
        Some(any_value::Value::StringValue(text)) => text.into(),
        Some(any_value::Value::BoolValue(boolean)) => boolean.into(),
        Some(any_value::Value::IntValue(number)) => number.into(),
        Some(any_value::Value::DoubleValue(number)) => number.into(),
        Some(any_value::Value::BytesValue(bytes)) => hex(&bytes).into(),
        Some(any_value::Value::ArrayValue(list)) => {
            list.values.into_iter().map(|item| value(Some(item))).collect()
        }
        Some(any_value::Value::KvlistValue(list)) => {
            Value::Object(attributes(list.values).into_iter().collect())
        }
        // String indexes are used in profiles only.
        Some(any_value::Value::StringValueStrindex(_)) | None => Value::Null,
    }
}

/// Converts nanoseconds since 1970. 64 bits last until 2554.
fn timestamp(nanoseconds: u64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::MAX)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text grows");
        text
    })
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{ArrayValue, InstrumentationScope};
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use serde_json::json;

    use super::*;

    fn any(value: any_value::Value) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    fn pair(key: &str, value: any_value::Value) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: Some(any(value)),
            ..KeyValue::default()
        }
    }

    #[test]
    fn reads_all_parts_of_a_span() {
        let list = vec![
            any(any_value::Value::IntValue(1)),
            any(any_value::Value::BoolValue(true)),
        ];
        let sent = otlp::Span {
            trace_id: vec![0xab; 16],
            span_id: vec![1; 8],
            parent_span_id: vec![2; 8],
            name: "apply".to_owned(),
            kind: otlp::span::SpanKind::Client.into(),
            start_time_unix_nano: 1_500_000_000,
            end_time_unix_nano: 2_000_000_000,
            attributes: vec![
                pair("count", any_value::Value::IntValue(3)),
                pair("seconds", any_value::Value::DoubleValue(0.5)),
                pair("list", any_value::Value::ArrayValue(ArrayValue { values: list })),
            ],
            events: vec![otlp::span::Event {
                time_unix_nano: 1_600_000_000,
                name: "trigger".to_owned(),
                attributes: vec![pair("bytes", any_value::Value::BytesValue(vec![0, 255]))],
                ..Default::default()
            }],
            links: vec![otlp::span::Link {
                trace_id: vec![3; 16],
                span_id: vec![4; 8],
                attributes: vec![pair("kind", any_value::Value::StringValue("previous".to_owned()))],
                ..Default::default()
            }],
            status: Some(otlp::Status {
                message: "no".to_owned(),
                code: otlp::status::StatusCode::Error.into(),
            }),
            ..Default::default()
        };
        let spans = read(ExportTraceServiceRequest {
            resource_spans: vec![otlp::ResourceSpans {
                resource: Some(Resource {
                    attributes: vec![pair(
                        "service.name",
                        any_value::Value::StringValue("executor".to_owned()),
                    )],
                    ..Default::default()
                }),
                scope_spans: vec![otlp::ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "lib".to_owned(),
                        ..Default::default()
                    }),
                    spans: vec![sent],
                    ..Default::default()
                }],
                ..Default::default()
            }],
        });
        let [span] = &*spans else {
            panic!("one span was sent: {spans:?}")
        };
        assert_eq!((span.service.as_str(), span.scope.as_str()), ("executor", "lib"));
        assert_eq!(
            span.traceparent(),
            format!("00-{}-{}-01", "ab".repeat(16), "01".repeat(8))
        );
        assert_eq!(span.parent_id, Some("02".repeat(8)));
        assert_eq!(span.kind, SpanKind::Client);
        assert_eq!(
            (span.end - span.start).total(jiff::Unit::Millisecond).ok(),
            Some(500.0)
        );
        assert_eq!(span.status, SpanStatus::Error("no".to_owned()));
        assert_eq!(span.attribute("count"), 3);
        assert_eq!(span.attribute("seconds"), 0.5);
        assert_eq!(span.attribute("list"), &json!([1, true]));
        assert_eq!(span.attribute("none"), &Value::Null);
        assert_eq!(span.links[0].trace_id, "03".repeat(16));
        assert_eq!(span.links[0].attributes["kind"], "previous");
        assert_eq!(
            (span.events[0].name.as_str(), &span.events[0].attributes["bytes"]),
            ("trigger", &json!("00ff"))
        );
        assert!(!span.is_child_of(span), "nobody is its own parent");
    }
}
