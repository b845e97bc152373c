//! What a trace shows of a reconcile: what brought it about, what it belongs to, and which of its calls are recorded.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use nodewise_proto::v1;
use nodewise_telemetry::{propagation, traces};
use opentelemetry::{
    KeyValue,
    trace::{SpanContext, Status},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    apply,
    event::{ClusterEvent, DaemonSet, Delta, Key, Resource},
    reconcile::Ending,
};

/// The annotation that holds a W3C `traceparent`: of the batch that created a pod, or of whoever changed a DaemonSet.
pub const ANNOTATION: &str = "nodewise.dev/traceparent";

/// Calls of one batch that are recorded, unless told otherwise: those of a larger batch are only summed up.
pub const DEFAULT_TRACED_CALLS: usize = 32;

/// Triggers of one reconcile that are recorded.
const MOST_TRIGGERS: usize = 8;

/// A watch event that woke workloads.
#[derive(Debug)]
pub struct Trigger {
    resource: Resource,
    /// Of the object, with its namespace where it has one; none where the event shows several.
    name: Option<String>,
    at: SystemTime,
    /// The trace that the object names.
    link: Option<SpanContext>,
}

impl Trigger {
    /// What an event is to the workloads that it wakes; none where nothing is traced.
    #[must_use]
    pub fn of(event: &ClusterEvent) -> Option<Arc<Self>> {
        if !traces::is_on() {
            return None;
        }
        let (name, link) = match event {
            ClusterEvent::DaemonSets(Delta::Applied(object) | Delta::Deleted(object)) => {
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
        let mut attributes = vec![KeyValue::new("nodewise.trigger.resource", self.resource.plural())];
        let name = self.name.clone();
        attributes.extend(name.map(|name| KeyValue::new("nodewise.trigger.name", name)));
        span.add_event_with_timestamp("trigger", self.at, attributes);
    }
}

fn link_to(span: &Span, context: SpanContext, kind: &'static str) {
    span.add_link_with_attributes(context, vec![KeyValue::new("nodewise.link", kind)]);
}

/// What is kept between reconciles, so that their traces lead to one another. Nothing where nothing is traced.
#[derive(Debug, Default)]
pub struct Origins(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// What woke workloads that have not had their turn yet.
    triggers: HashMap<Key, Vec<Arc<Trigger>>>,
    /// The last reconcile of each workload, and what it worked on.
    previous: HashMap<Key, Previous>,
}

#[derive(Debug)]
struct Previous {
    uid: Arc<str>,
    generation: i64,
    context: SpanContext,
}

impl Origins {
    /// An event woke a workload.
    pub fn woke(&self, key: &Key, trigger: &Arc<Trigger>) {
        let mut kept = self.lock();
        let triggers = kept.triggers.entry(key.clone()).or_default();
        if triggers.len() < MOST_TRIGGERS {
            triggers.push(Arc::clone(trigger));
        }
    }

    /// The root span of a reconcile whose workload waited so long.
    #[must_use]
    pub fn begin(&self, key: &Key, waited: Duration) -> Span {
        // Of the highest level, so that each line of the log within names the workload, whatever lines are wanted.
        let span = tracing::error_span!(parent: None, "reconcile", %key);
        if traces::is_on() {
            span.set_attribute("k8s.namespace.name", key.namespace.to_string());
            span.set_attribute("k8s.daemonset.name", key.name.to_string());
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

    /// The reconcile that is under way here is of this workload.
    pub fn is_of(&self, workload: &DaemonSet) {
        let context = propagation::current();
        // One that is not recorded is nothing that a link could lead to.
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
        span.set_attribute("k8s.daemonset.uid", uid.to_string());
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

    /// A workload is gone.
    pub fn forget(&self, key: &Key) {
        if traces::is_on() {
            self.lock().previous.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows how a reconcile ended.
pub fn ended(span: &Span, ending: &Ending) {
    if !traces::is_on() {
        return;
    }
    span.set_attribute("nodewise.reconcile.outcome", ending.name());
    if let Ending::Failed { reason, .. } = ending {
        span.set_status(Status::error(reason.clone()));
    }
}

/// The span of a batch, with how many actions of each kind it has.
#[must_use]
pub fn batch(phase: v1::PhaseKind, batch: &v1::Batch) -> Span {
    let span = tracing::debug_span!("batch");
    if traces::is_on() {
        let phase = phase.as_str_name().trim_start_matches("PHASE_KIND_");
        span.set_attribute("nodewise.phase", phase);
        count(&span, "nodewise.batch.actions", batch.actions.len());
        let mut kinds = HashMap::new();
        for action in &batch.actions {
            *kinds.entry(apply::kind_name(action)).or_default() += 1;
        }
        for (kind, actions) in kinds {
            count(&span, format!("nodewise.batch.{}", snake_case(kind)), actions);
        }
    }
    span
}

/// Shows a count.
pub fn count(span: &Span, name: impl Into<opentelemetry::Key>, count: usize) {
    span.set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
}

/// `create_pod` for `CreatePod`.
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

tokio::task_local! {
    static ARE_RECORDED: bool;
}

/// Runs a batch whose calls to the apiserver have spans of their own, or have none and ask the apiserver to record nothing.
pub async fn with_calls<T>(are_recorded: bool, batch: impl Future<Output = T>) -> T {
    ARE_RECORDED.scope(are_recorded, batch).await
}

/// Whether a call that is made here has a span of its own.
#[must_use]
pub fn is_call_recorded() -> bool {
    traces::is_on() && ARE_RECORDED.try_get().unwrap_or(true)
}

#[cfg(test)]
mod tests;
