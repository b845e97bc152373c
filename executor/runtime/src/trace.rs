//! The spans of batches, and which calls to the apiserver are recorded as spans.

use std::collections::HashMap;

use nodewise_proto::v1;
use nodewise_telemetry::traces;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The annotation with a W3C `traceparent`: of the batch that created a pod, or of the change of a workload.
pub const ANNOTATION: &str = "nodewise.dev/traceparent";

/// Default of the maximum size of a batch whose calls get their own spans. A larger batch gets one span with counts.
pub const DEFAULT_TRACED_CALLS: usize = 32;

tokio::task_local! {
    static ARE_RECORDED: bool;
}

/// Runs a batch of calls to the apiserver. If `are_recorded` is false, the calls get no spans, and their trace context tells
/// the apiserver not to sample.
pub async fn with_calls<T>(are_recorded: bool, batch: impl Future<Output = T>) -> T {
    ARE_RECORDED.scope(are_recorded, batch).await
}

/// Whether a call that is made in this task gets a span.
#[must_use]
pub fn is_call_recorded() -> bool {
    traces::is_on() && ARE_RECORDED.try_get().unwrap_or(true)
}

/// The span of actions that run together, with the number of actions of each kind.
#[must_use]
pub fn batch<'a>(phase: v1::PhaseKind, actions: impl Iterator<Item = &'a v1::Action>) -> Span {
    let span = tracing::debug_span!("batch");
    if traces::is_on() {
        let phase = phase.as_str_name().trim_start_matches("PHASE_KIND_");
        span.set_attribute("nodewise.phase", phase);
        let mut kinds: HashMap<_, usize> = HashMap::new();
        for action in actions {
            *kinds.entry(action.kind_name()).or_default() += 1;
        }
        count(&span, "nodewise.batch.actions", kinds.values().sum());
        for (kind, actions) in kinds {
            count(&span, format!("nodewise.batch.{}", snake_case(kind)), actions);
        }
    }
    span
}

/// Sets a count as an attribute.
pub fn count(span: &Span, name: impl Into<opentelemetry::Key>, count: usize) {
    span.set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
}

/// Converts `CreatePod` to `create_pod`.
fn snake_case(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use nodewise_proto::v1::action::Kind;

    use super::*;

    #[test]
    fn kinds_of_actions_are_named_like_fields() {
        assert_eq!(snake_case("CreatePod"), "create_pod");
        let action = v1::Action {
            kind: Some(Kind::UpdateStatus(v1::UpdateStatus::default())),
            ..v1::Action::default()
        };
        assert_eq!(snake_case(action.kind_name()), "update_status");
    }
}
