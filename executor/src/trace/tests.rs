//! Spans, as an SDK in this process receives them.

use nodewise_fake_apiserver::{RecordedRequest, Requests, apiserver, failure};
use nodewise_runtime::{
    actuator::{Actuator as _, KubeActuator, ObjectKey, Preconditions},
    events::EventRecorder,
    kind::Kind as _,
};
use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tracing::{Instrument as _, subscriber::DefaultGuard};
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::*;
use nodewise_runtime::apply;
use nodewise_runtime::trace::ANNOTATION;

use crate::{
    daemon_set::{DAEMON_SETS, DaemonSets},
    metrics::Metrics,
    testing::{self},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Records the spans of this thread while it lives.
struct Recording {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
    _guard: DefaultGuard,
}

impl Recording {
    fn start() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layers = tracing_subscriber::registry().with(traces::layer(&provider));
        Self {
            _guard: layers.set_default(),
            exporter,
            provider,
        }
    }

    /// The spans that have ended.
    fn spans(&self) -> Vec<SpanData> {
        self.provider.force_flush().expect("flushes");
        self.exporter.get_finished_spans().expect("spans")
    }

    /// The only span of that name.
    fn span(&self, name: &str) -> SpanData {
        let mut spans = self.spans();
        spans.retain(|span| span.name == name);
        assert_eq!(spans.len(), 1, "one span {name} among {:?}", names(&self.spans()));
        spans.remove(0)
    }
}

fn names(spans: &[SpanData]) -> Vec<String> {
    spans.iter().map(|span| span.name.to_string()).collect()
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|found| found.key.as_str() == name)?;
    Some(found.value.to_string())
}

/// Trace id and span id in the form of a `traceparent` header.
fn context(span: &SpanData, flags: &str) -> String {
    let context = &span.span_context;
    format!("00-{}-{}-{flags}", context.trace_id(), context.span_id())
}

fn actuator(
    answer: impl Fn(&RecordedRequest) -> Option<(u16, serde_json::Value)> + Send + Sync + 'static,
) -> (KubeActuator, Requests) {
    let ((client, requests), metrics) = (apiserver(answer), Metrics::new());
    let (recorder, _sender) = EventRecorder::new(
        client.clone(),
        DaemonSets::EVENT_SOURCE,
        metrics.runtime().clone(),
    );
    let actuator = KubeActuator::new(
        client,
        Duration::from_secs(5),
        metrics.runtime().clone(),
        recorder,
    );
    let server = "https://10.0.0.1:6443".parse().expect("a URL");
    (actuator.with_server(Some(server)), requests)
}

fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::new(Resource::PODS, "demo", name)
}

#[tokio::test]
async fn a_call_has_a_span_that_is_propagated() {
    let recording = Recording::start();
    let (actuator, requests) = actuator(|_| {
        Some((
            201,
            json!({"metadata": {"name": "agent-1", "resourceVersion": "7"}}),
        ))
    });
    let manifest = json!({"metadata": {"name": "agent-1"}}).to_string();
    let created = actuator.create(Resource::PODS, "demo", manifest.into());
    created
        .instrument(tracing::debug_span!("batch"))
        .await
        .expect("created");
    let (batch, call) = (
        recording.span("batch"),
        recording.span("POST /api/v1/namespaces/{namespace}/pods"),
    );
    assert_eq!(call.parent_span_id, batch.span_context.span_id());
    assert_eq!(call.span_kind, SpanKind::Client);
    let url = "https://10.0.0.1:6443/api/v1/namespaces/demo/pods?fieldManager=nodewise-executor&fieldValidation=Ignore";
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.response.status_code", "201"),
        ("url.template", "/api/v1/namespaces/{namespace}/pods"),
        ("url.full", url),
        ("server.address", "10.0.0.1"),
        ("server.port", "6443"),
        ("k8s.namespace.name", "demo"),
        ("k8s.pod.name", "agent-1"),
    ] {
        assert_eq!(attribute(&call, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(attribute(&call, "error.type"), None);
    assert_eq!(
        requests.lock().expect("lock")[0].traceparent,
        context(&call, "01")
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_says_how() {
    for (answer, kind, status) in [
        (Some(failure(409, "Conflict", &[])), "409", Some("409")),
        (None, "timeout", None),
    ] {
        let recording = Recording::start();
        let (actuator, _) = actuator(move |_| answer.clone());
        actuator
            .delete(&pod_key("agent-1"), Preconditions::NONE)
            .await
            .expect_err("refused");
        let call = recording.span("DELETE /api/v1/namespaces/{namespace}/pods/{name}");
        assert_eq!(attribute(&call, "error.type").as_deref(), Some(kind));
        assert_eq!(attribute(&call, "http.response.status_code").as_deref(), status);
        assert!(matches!(call.status, Status::Error { .. }), "{:?}", call.status);
        assert_eq!(attribute(&call, "k8s.pod.name").as_deref(), Some("agent-1"));
    }
}

// A batch beyond the limit gets one span, and its requests to the apiserver are not sampled.
#[tokio::test]
async fn a_large_batch_is_one_span() {
    for (limit, calls, flags) in [(3, 3, "01"), (2, 0, "00")] {
        let recording = Recording::start();
        let (actuator, requests) = actuator(|_| {
            Some((
                201,
                json!({"metadata": {"name": "agent-1", "resourceVersion": "7"}}),
            ))
        });
        let plan = testing::creating(&[("a", "n1"), ("b", "n2"), ("c", "n3")]);
        let options = apply::Options {
            traced_calls: limit,
            ..apply::Options::default()
        };
        let applied = apply::apply(
            &actuator,
            &plan,
            (DAEMON_SETS, &"{}".into()),
            &apply::LeftOut::new(),
            &options,
        )
        .await;
        assert!(!applied.failed, "{applied:?}");
        let spans = recording.spans();
        assert_eq!(spans.len(), calls + 1, "{:?}", names(&spans));
        let batch = recording.span("batch");
        for (name, value) in [
            ("nodewise.phase", "CREATES"),
            ("nodewise.batch.actions", "3"),
            ("nodewise.batch.create_pod", "3"),
            ("nodewise.batch.succeeded", "3"),
            ("nodewise.batch.failed", "0"),
        ] {
            assert_eq!(attribute(&batch, name).as_deref(), Some(value), "{name}");
        }
        let requests = requests.lock().expect("lock");
        let asked = requests.iter().filter(|asked| asked.line.starts_with("POST"));
        for asked in asked {
            assert!(asked.traceparent.ends_with(flags), "{asked:?}");
            let id = batch.span_context.span_id().to_string();
            assert_eq!(
                asked.traceparent.contains(&id),
                limit < 3,
                "the batch's own context"
            );
        }
    }
}

#[tokio::test]
async fn created_pods_are_annotated_if_enabled() {
    for trace_annotations in [true, false] {
        let recording = Recording::start();
        let (actuator, requests) =
            actuator(|_| Some((201, json!({"metadata": {"name": "a", "resourceVersion": "7"}}))));
        let options = apply::Options {
            trace_annotations,
            ..apply::Options::default()
        };
        let plan = testing::creating(&[("a", "n1")]);
        apply::apply(
            &actuator,
            &plan,
            (DAEMON_SETS, &"{}".into()),
            &apply::LeftOut::new(),
            &options,
        )
        .await;
        let body = requests.lock().expect("lock")[0].json();
        let expected = trace_annotations.then(|| context(&recording.span("batch"), "01"));
        let annotation = body["metadata"]["annotations"][ANNOTATION].as_str();
        assert_eq!(annotation, expected.as_deref());
    }
}

fn pod_event(name: &str, traceparent: Option<&str>) -> ClusterEvent {
    let mut pod = testing::pod(name, "11");
    pod.traceparent = traceparent.map(str::to_owned);
    ClusterEvent::Pods(Delta::Applied(pod))
}

fn workload(uid: &str, generation: i64, traceparent: Option<&str>) -> Workload {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": "foo", "uid": uid, "generation": generation,
            "annotations": traceparent.map(|text| json!({ANNOTATION: text, "other": "x"})),
        },
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// Runs one reconcile of `workload` and returns its root span.
fn reconcile(recording: &Recording, origins: &Origins, workload: &Workload) -> SpanData {
    recording.exporter.reset();
    let span = origins.begin(&testing::key(), Duration::from_millis(250));
    span.in_scope(|| origins.is_of(workload));
    ended(&span, "settled", None);
    drop(span);
    recording.span("reconcile")
}

fn links(span: &SpanData) -> Vec<(String, String)> {
    let links = span.links.iter().map(|link| {
        let kind = link.attributes[0].value.to_string();
        (kind, link.span_context.span_id().to_string())
    });
    links.collect()
}

#[test]
fn a_reconcile_records_its_triggers() {
    let (recording, origins, key) = (Recording::start(), Origins::default(), testing::key());
    for number in 0..10 {
        let parent = (number < 3).then_some(PARENT);
        let trigger = Trigger::of(&pod_event(&format!("p{number}"), parent)).expect("traced");
        origins.woke(&key, &trigger);
    }
    let first = reconcile(&recording, &origins, &workload("u1", 1, None));
    assert_eq!(first.parent_span_id, SpanId::INVALID, "it is a root");
    for (name, value) in [
        ("k8s.namespace.name", "ns"),
        ("k8s.daemonset.name", "foo"),
        ("k8s.daemonset.uid", "u1"),
        ("nodewise.queue.duration", "0.25"),
        ("nodewise.reconcile.outcome", "settled"),
    ] {
        assert_eq!(attribute(&first, name).as_deref(), Some(value), "{name}");
    }
    let events: Vec<_> = first.events.iter().collect();
    assert_eq!(events.len(), MAX_TRIGGERS);
    assert_eq!(events[0].name, "trigger");
    let values = events[0].attributes.iter().map(|found| found.value.to_string());
    assert_eq!(values.collect::<Vec<_>>(), ["pods", "ns/p0"]);
    assert!(
        events[0].timestamp <= first.start_time,
        "when the watch showed it"
    );
    assert_eq!(
        links(&first),
        [("trigger".to_owned(), "b7ad6b7169203331".to_owned())]
    );

    let second = reconcile(&recording, &origins, &workload("u1", 1, None));
    assert!(second.events.is_empty(), "the triggers were of the first one");
    let previous = first.span_context.span_id().to_string();
    assert_eq!(links(&second), [("previous".to_owned(), previous)]);
}

#[test]
fn links_to_the_previous_reconcile_end_with_the_rollout() {
    let (recording, origins) = (Recording::start(), Origins::default());
    reconcile(&recording, &origins, &workload("u1", 1, None));
    for other in [workload("u1", 2, None), workload("u2", 2, None)] {
        assert_eq!(links(&reconcile(&recording, &origins, &other)), []);
    }
    origins.forget(&testing::key());
    assert_eq!(
        links(&reconcile(&recording, &origins, &workload("u2", 2, None))),
        []
    );
    let by_pipeline = reconcile(&recording, &origins, &workload("u3", 1, Some(PARENT)));
    let expected = [("trigger".to_owned(), "b7ad6b7169203331".to_owned())];
    assert_eq!(links(&by_pipeline), expected, "whoever changed the DaemonSet");
    let garbage = workload("u4", 1, Some("garbage"));
    assert_eq!(links(&reconcile(&recording, &origins, &garbage)), []);
}

#[test]
fn a_failed_reconcile_says_why() {
    let (recording, origins) = (Recording::start(), Origins::default());
    let span = origins.begin(&testing::key(), Duration::ZERO);
    let reason = "the quota is used up";
    ended(&span, "failed", Some(reason));
    drop(span);
    let span = recording.span("reconcile");
    assert_eq!(span.status, Status::error(reason));
    assert_eq!(
        attribute(&span, "nodewise.reconcile.outcome").as_deref(),
        Some("failed")
    );
}
