//! The trace of a reconcile: its triggers, its links to other traces, and which of its calls get spans.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use nodewise_projection::{Key, Workload};
use nodewise_runtime::{Delta, Resource};
use nodewise_telemetry::{propagation, traces};
use opentelemetry::{
    KeyValue,
    trace::{SpanContext, Status},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use nodewise_runtime::event::ClusterEvent;

/// Maximum number of triggers that are recorded for one reconcile.
const MAX_TRIGGERS: usize = 8;

/// A watch event that enqueued workloads.
#[derive(Debug)]
pub struct Trigger {
    resource: Resource,
    /// The object's name, with its namespace if it has one; `None` if the event is about several objects.
    name: Option<String>,
    at: SystemTime,
    /// The trace that the object's annotation names.
    link: Option<SpanContext>,
}

impl Trigger {
    /// The trigger that an event is; `None` if tracing is off.
    #[must_use]
    pub fn of(event: &ClusterEvent) -> Option<Arc<Self>> {
        if !traces::is_on() {
            return None;
        }
        let (name, link) = match event {
            ClusterEvent::Workloads(_, Delta::Applied(object) | Delta::Deleted(object)) => {
                (Some(object.key.to_string()), None)
            }
            ClusterEvent::Pods(Delta::Applied(pod) | Delta::Deleted(pod)) => {
                let name = format!("{}/{}", pod.namespace, pod.projection.name);
                (Some(name), pod.traceparent.as_deref())
            }
            ClusterEvent::Nodes(Delta::Applied(node) | Delta::Deleted(node)) => {
                (Some(node.projection.name.clone()), None)
            }
            ClusterEvent::Revisions(Delta::Applied(object) | Delta::Deleted(object)) => {
                (Some(format!("{}/{}", object.namespace, object.name)), None)
            }
            ClusterEvent::Policies(Delta::Applied(object) | Delta::Deleted(object)) => {
                (Some(format!("{}/{}", object.namespace, object.name)), None)
            }
            _ => (None, None),
        };
        Some(Arc::new(Self {
            resource: event.resource(),
            name,
            at: SystemTime::now(),
            link: link.and_then(propagation::read_traceparent),
        }))
    }

    fn show(&self, span: &Span) {
        let mut attributes = vec![KeyValue::new("nodewise.trigger.resource", self.resource.plural)];
        let name = self.name.clone();
        attributes.extend(name.map(|name| KeyValue::new("nodewise.trigger.name", name)));
        span.add_event_with_timestamp("trigger", self.at, attributes);
    }
}

fn link_to(span: &Span, context: SpanContext, kind: &'static str) {
    span.add_link_with_attributes(context, vec![KeyValue::new("nodewise.link", kind)]);
}

/// State that is kept between reconciles, so that their traces can be linked. Empty if tracing is off.
#[derive(Debug, Default)]
pub struct Origins(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The events that enqueued workloads which were not reconciled since.
    triggers: HashMap<Key, Vec<Arc<Trigger>>>,
    /// The last reconcile of each workload.
    previous: HashMap<Key, Previous>,
}

#[derive(Debug)]
struct Previous {
    uid: Arc<str>,
    generation: i64,
    context: SpanContext,
}

impl Origins {
    /// Records that an event enqueued a workload.
    pub fn woke(&self, key: &Key, trigger: &Arc<Trigger>) {
        let mut kept = self.lock();
        let triggers = kept.triggers.entry(key.clone()).or_default();
        if triggers.len() < MAX_TRIGGERS {
            triggers.push(Arc::clone(trigger));
        }
    }

    /// Starts the root span of a reconcile. `waited` is the time in the queue.
    #[must_use]
    pub fn begin(&self, key: &Key, waited: Duration) -> Span {
        // The span has the highest level, so that every log line inside it names the workload, whatever the log filter
        // is.
        let span = tracing::error_span!(parent: None, "reconcile", kind = key.kind, %key);
        if traces::is_on() {
            span.set_attribute("k8s.namespace.name", key.namespace.to_string());
            span.set_attribute(attribute(key.kind, "name"), key.name.to_string());
            span.set_attribute("nodewise.queue.duration", waited.as_secs_f64());
            let triggers = self.lock().triggers.remove(key);
            // Pods of one batch name the same trace.
            let mut links = Vec::new();
            for trigger in triggers.iter().flatten() {
                trigger.show(&span);
                if let Some(link) = &trigger.link
                    && !links.contains(&link)
                {
                    link_to(&span, link.clone(), "trigger");
                    links.push(link);
                }
            }
        }
        span
    }

    /// Records that the current reconcile is of this workload, and adds links to earlier traces.
    pub fn is_of(&self, workload: &Workload) {
        let context = propagation::current();
        // A span that is not sampled cannot be the target of a link.
        if !context.is_sampled() {
            return;
        }
        let (uid, generation) = (&workload.uid, workload.generation);
        let here = Previous {
            uid: Arc::clone(uid),
            generation,
            context: context.clone(),
        };
        let before = self.lock().previous.insert(workload.key.clone(), here);
        if before.as_ref().is_some_and(|before| before.context == context) {
            return;
        }
        let span = Span::current();
        span.set_attribute(attribute(workload.key.kind, "uid"), uid.to_string());
        if let Some(cause) = workload
            .traceparent
            .as_deref()
            .and_then(propagation::read_traceparent)
        {
            link_to(&span, cause, "trigger");
        }
        if let Some(before) = before.filter(|before| before.uid == *uid && before.generation == generation) {
            link_to(&span, before.context, "previous");
        }
    }

    /// Forgets a workload that is gone.
    pub fn forget(&self, key: &Key) {
        if traces::is_on() {
            self.lock().previous.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attribute of a workload, named as in the semantic conventions, such as `k8s.daemonset.name`.
fn attribute(kind: &str, field: &str) -> String {
    format!("k8s.{}.{field}", kind.to_lowercase())
}

/// Records the outcome of a reconcile, and the reason of a failure.
pub fn ended(span: &Span, outcome: &'static str, failure: Option<&str>) {
    if !traces::is_on() {
        return;
    }
    span.set_attribute("nodewise.reconcile.outcome", outcome);
    if let Some(reason) = failure {
        span.set_status(Status::error(reason.to_owned()));
    }
}

#[cfg(test)]
mod tests;
