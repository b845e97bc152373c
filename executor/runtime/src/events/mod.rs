//! Kubernetes Events, sent asynchronously and best effort. A caller never waits and never fails.

use std::time::Duration;

use http::{Method, Request, header};
use jiff::Timestamp;
use kube::Client;
use nodewise_projection::WRITER;
use nodewise_proto::v1;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    actuator::{ActuatorError, Refusal, WorkloadEvent},
    metrics::Metrics,
    resource::Resource,
};

mod correlate;
#[cfg(test)]
mod tests;

use correlate::{Correlator, Decision, Identity};

/// Most Events that wait to be sent. Further ones are dropped.
const QUEUE_SIZE: usize = 1000;
/// Timeout of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Tries of one call without a response.
const TRIES: u32 = 3;

/// An Event to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// The source component.
    pub component: &'static str,
    /// The object that the Event is about. Its kind determines the apiVersion.
    pub object: v1::WorkloadReference,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The reason in CamelCase, for programs.
    pub reason: String,
    /// The message for users.
    pub message: String,
    /// The end of the name of the Event, if it is to be created only once although other processes send it as well.
    pub once: Option<String>,
}

/// Accepts Events and queues them. Clones share the queue.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<EventNote>,
    component: &'static str,
    metrics: Metrics,
}

impl EventRecorder {
    /// Creates a recorder for Events of this component, and the task that sends them. The task ends when all clones of the
    /// recorder are dropped and the queue is empty.
    pub fn new(
        client: Client,
        component: &'static str,
        metrics: Metrics,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, notes) = mpsc::channel(QUEUE_SIZE);
        let sender = Sender {
            client,
            metrics: metrics.clone(),
            correlator: Correlator::default(),
        };
        (
            Self {
                queue,
                component,
                metrics,
            },
            sender.run(notes),
        )
    }

    /// Queues an Event about a workload. Drops it if the queue is full.
    pub fn emit(&self, event: WorkloadEvent) {
        self.record(EventNote {
            component: self.component,
            object: event.workload,
            kind: event.kind,
            reason: event.reason,
            message: event.message,
            once: event.once,
        });
    }

    /// Queues an Event. Drops it if the queue is full.
    pub fn record(&self, note: EventNote) {
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
    async fn run(mut self, mut notes: mpsc::Receiver<EventNote>) {
        while let Some(note) = notes.recv().await {
            let fate = self.send(&note).await;
            self.metrics.event(fate);
        }
    }

    /// Sends one Event. Returns the result for the metric.
    async fn send(&mut self, note: &EventNote) -> &'static str {
        match self.correlator.correlate(note, Instant::now()) {
            (_, Decision::Filtered) => "filtered",
            (identity, Decision::Create { message }) => self.create(note, &identity, &message).await,
            (identity, Decision::Patch { name, message, count }) => {
                let patch =
                    json!({"count": count, "message": message, "lastTimestamp": seconds(Timestamp::now())});
                let uri = format!("{}/{name}", collection(note));
                match self
                    .call(Method::PATCH, uri, "application/merge-patch+json", &patch)
                    .await
                {
                    Ok(_) => "patched",
                    // The apiserver deletes Events after about an hour. Counting starts again with a new one.
                    Err(error) if error.refusal == Refusal::NotFound => {
                        self.correlator.sent(&identity, "");
                        self.create(note, &identity, &message).await
                    }
                    Err(error) => failed(note, &error),
                }
            }
        }
    }

    async fn create(&mut self, note: &EventNote, identity: &Identity, message: &str) -> &'static str {
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
            // Another process has sent it.
            Err(error) if note.once.is_some() && error.refusal == Refusal::AlreadyExists => "filtered",
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

fn failed(note: &EventNote, error: &ActuatorError) -> &'static str {
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

fn collection(note: &EventNote) -> String {
    format!("/api/v1/namespaces/{}/events", note.object.namespace)
}

/// A v1 Event.
fn event(note: &EventNote, message: &str, now: Timestamp) -> Value {
    let object = &note.object;
    let api_version = match &*object.kind {
        "Lease" => "coordination.k8s.io/v1".to_owned(),
        kind if kind == Resource::ROLLOUT_POLICIES.kind => Resource::ROLLOUT_POLICIES.api_version(),
        _ => "apps/v1".to_owned(),
    };
    let name = match &note.once {
        Some(once) => format!("{}.{once}", object.name),
        // The name has the object and the time in nanoseconds, as in client-go.
        None => format!("{}.{:x}", object.name, now.as_nanosecond()),
    };
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
