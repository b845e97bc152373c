//! Which calls to the apiserver are recorded as spans.

use nodewise_telemetry::traces;

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
