//! Kubernetes Events: asynchronous and best effort. Whoever emits one never waits and never fails (M-36).

use std::time::Duration;

use http::{Method, Request, header};
use jiff::Timestamp;
use kube::Client;
use nodewise_proto::v1;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    actuator::{ActuatorError, Refusal, WRITER, WorkloadEvent},
    metrics::Metrics,
};

mod correlate;
#[cfg(test)]
mod tests;

use correlate::{Correlator, Identity, Verdict};

/// The component that events about DaemonSets come from: the name that people and tools look for.
pub const DAEMON_SET_COMPONENT: &str = "daemonset-controller";

/// Events that may wait to be sent; further ones are dropped.
const QUEUE: usize = 1000;
/// Time for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Tries of one call whose fate is unclear.
const TRIES: u32 = 3;

/// One event to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Who says it.
    pub component: &'static str,
    /// What it is about; the kind decides the apiVersion.
    pub object: v1::WorkloadReference,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// CamelCase, for machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl From<WorkloadEvent> for Note {
    fn from(event: WorkloadEvent) -> Self {
        let WorkloadEvent {
            workload,
            kind,
            reason,
            message,
        } = event;
        Self {
            component: DAEMON_SET_COMPONENT,
            object: workload,
            kind,
            reason,
            message,
        }
    }
}

/// Where events are dropped in. Clones share the queue.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<Note>,
    metrics: Metrics,
}

impl EventRecorder {
    /// A recorder, and the task that sends what it is given: it ends once all clones of the recorder are gone and the
    /// queue is empty.
    pub fn new(client: Client, metrics: Metrics) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, notes) = mpsc::channel(QUEUE);
        let sender = Sender {
            client,
            metrics: metrics.clone(),
            correlator: Correlator::default(),
        };
        (Self { queue, metrics }, sender.run(notes))
    }

    /// Says something, unless too much waits already.
    pub fn record(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            self.metrics.event("dropped");
        }
    }
}

struct Sender {
    client: Client,
    metrics: Metrics,
    correlator: Correlator,
}

impl Sender {
    async fn run(mut self, mut notes: mpsc::Receiver<Note>) {
        while let Some(note) = notes.recv().await {
            let fate = self.send(&note).await;
            self.metrics.event(fate);
        }
    }

    /// Sends one event and says what became of it.
    async fn send(&mut self, note: &Note) -> &'static str {
        match self.correlator.correlate(note, Instant::now()) {
            (_, Verdict::Filtered) => "filtered",
            (identity, Verdict::Create { message }) => self.create(note, &identity, &message).await,
            (identity, Verdict::Patch { name, message, count }) => {
                let patch =
                    json!({"count": count, "message": message, "lastTimestamp": seconds(Timestamp::now())});
                let uri = format!("{}/{name}", collection(note));
                match self
                    .call(Method::PATCH, uri, "application/merge-patch+json", &patch)
                    .await
                {
                    Ok(_) => "patched",
                    // Events live for an hour or so; the counting starts again with a new one.
                    Err(error) if error.refusal == Refusal::NotFound => {
                        self.correlator.sent(&identity, "");
                        self.create(note, &identity, &message).await
                    }
                    Err(error) => failed(note, &error),
                }
            }
        }
    }

    async fn create(&mut self, note: &Note, identity: &Identity, message: &str) -> &'static str {
        let event = event(note, message, Timestamp::now());
        match self
            .call(Method::POST, collection(note), "application/json", &event)
            .await
        {
            Ok(_) => {
                self.correlator
                    .sent(identity, event["metadata"]["name"].as_str().unwrap_or_default());
                "created"
            }
            Err(error) => failed(note, &error),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: &Value,
    ) -> Result<String, ActuatorError> {
        let mut pause = Duration::from_secs(1);
        for last in (1..=TRIES).map(|attempt| attempt == TRIES) {
            let request = Request::builder()
                .method(method.clone())
                .uri(&path)
                .header(header::USER_AGENT, WRITER)
                .header(header::CONTENT_TYPE, content_type)
                .body(body.to_string().into_bytes())
                .map_err(|error| ActuatorError::unclear(error.to_string()))?;
            let answer = tokio::time::timeout(CALL_TIMEOUT, self.client.request_text(request)).await;
            match answer {
                Ok(Ok(text)) => return Ok(text),
                Ok(Err(kube::Error::Api(status))) => return Err(kube::Error::Api(status).into()),
                Ok(Err(error)) if last => return Err(error.into()),
                Err(_) if last => break,
                Ok(Err(_)) | Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        Err(ActuatorError::unclear(format!(
            "no answer within {CALL_TIMEOUT:?}"
        )))
    }
}

fn failed(note: &Note, error: &ActuatorError) -> &'static str {
    let object = &note.object;
    tracing::debug!(
        namespace = object.namespace,
        name = object.name,
        reason = note.reason,
        %error,
        "an event could not be sent"
    );
    "failed"
}

fn collection(note: &Note) -> String {
    format!("/api/v1/namespaces/{}/events", note.object.namespace)
}

/// A v1 Event.
fn event(note: &Note, message: &str, now: Timestamp) -> Value {
    let object = &note.object;
    let api_version = if object.kind == "Lease" {
        "coordination.k8s.io/v1"
    } else {
        "apps/v1"
    };
    // Unique enough: the object and the time in nanoseconds, as everywhere in Kubernetes.
    let name = format!("{}.{:x}", object.name, now.as_nanosecond());
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": object.namespace},
        "involvedObject": {
            "apiVersion": api_version,
            "kind": object.kind,
            "namespace": object.namespace,
            "name": object.name,
            "uid": object.uid,
            "resourceVersion": object.resource_version,
        },
        "type": note.kind,
        "reason": note.reason,
        "message": message,
        "source": {"component": note.component},
        "reportingComponent": note.component,
        "reportingInstance": "",
        "firstTimestamp": seconds(now),
        "lastTimestamp": seconds(now),
        "count": 1,
    })
}

/// A metav1.Time: whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
