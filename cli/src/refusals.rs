//! What Events tell about workloads: creates that the apiserver refused, and pods that somebody else deleted.

use std::collections::{BTreeSet, HashMap};

use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use nodewise_projection::{moment, timestamp};
use nodewise_proto::v1;
use nodewise_status::span;

use crate::{
    args::SourceArgs,
    events::{self, Event},
    input::{Served, connect},
    kind::Kind,
};

/// The reason of the Events of pods that could not be created.
const FAILED_CREATE: &str = "FailedCreate";
/// What their messages begin with, from every controller.
const ERROR_CREATING: &str = "Error creating: ";
/// The reason of the Events with which an executor tells of pods that somebody else deleted.
const DELETED: &str = "PodsDeletedByAnother";
/// Such an Event is told for so long.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// The most lists of Events at a time.
const MAX_LISTS: usize = 4;

/// A workload that Events are about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    kind: Kind,
    namespace: String,
    name: String,
    uid: String,
}

impl Subject {
    pub(crate) fn of(workload: &Served) -> Self {
        Self {
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
            uid: workload.uid.clone(),
        }
    }

    /// Whether an Event is about this workload. Who may create Events in one namespace may name any uid in them, so the uid alone does not
    /// say it.
    fn is_of(&self, event: &Event) -> bool {
        let object = &event.involved_object;
        event.metadata.namespace == self.namespace
            && object.namespace == self.namespace
            && object.kind == self.kind.name()
            && object.name == self.name
            && object.uid == self.uid
    }
}

/// What the Events of each workload tell, by uid.
#[derive(Debug, Default)]
pub(crate) struct Refusals(HashMap<String, Told>);

/// What the Events of one workload tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Told {
    /// The last refused create. Only for a DaemonSet: the other kinds say so in their status.
    pub(crate) refusal: Option<v1::Refusal>,
    /// The last message about deleted pods, and its time.
    pub(crate) deleted: Option<(String, Timestamp)>,
}

impl Told {
    /// Adds to a status what Events tell about a second owner.
    pub(crate) fn add_owner(&self, status: &mut v1::WorkloadStatus) {
        let now = status.observed_at.and_then(moment);
        let (Some((message, at)), Some(now)) = (&self.deleted, now) else {
            return;
        };
        let age = now.duration_since(*at);
        if age <= RECENT {
            let sentence = format!("an Event of {} ago says: {message}", span(age.as_secs()));
            status.second_owner.push(sentence);
        }
    }
}

impl Refusals {
    /// Connects, and reads the Events of these workloads. A file has none.
    pub(crate) async fn read<'a>(source: &SourceArgs, workloads: impl Iterator<Item = &'a Served>) -> Self {
        if !source.files.is_empty() {
            return Self::default();
        }
        match connect(source.kubeconfig.as_deref(), source.context.as_deref()).await {
            Ok((client, _)) => Self::ask(&client, workloads).await,
            Err(_) => Self::default(),
        }
    }

    /// Reads the Events of these workloads. Without the right to read Events there are none: the status then does not say why a pod is
    /// missing.
    pub(crate) async fn ask<'a>(client: &Client, workloads: impl Iterator<Item = &'a Served>) -> Self {
        let workloads: Vec<&Served> = workloads.collect();
        let namespaces: BTreeSet<&str> = workloads.iter().map(|one| &*one.namespace).collect();
        // The apiserver reads Events from its store, so it is not asked for those of each workload.
        let lists = namespaces.iter().flat_map(|namespace| {
            [FAILED_CREATE, DELETED].map(|reason| events::list(client, namespace, reason, None))
        });
        let found: Vec<Vec<Event>> = stream::iter(lists).buffer_unordered(MAX_LISTS).collect().await;
        let events: Vec<Event> = found.into_iter().flatten().collect();
        let told = workloads
            .into_iter()
            .map(|one| (one.uid.clone(), Told::of(&Subject::of(one), &events)));
        Self(told.collect())
    }

    /// What the Events of a workload tell, as this client may see them.
    pub(crate) async fn told(client: &Client, subject: &Subject) -> Told {
        let list = |reason| events::list(client, &subject.namespace, reason, Some(&subject.uid));
        let (mut events, deleted) = futures::future::join(list(FAILED_CREATE), list(DELETED)).await;
        events.extend(deleted);
        Told::of(subject, &events)
    }

    /// The last refusal of a workload.
    pub(crate) fn of(&self, uid: &str) -> Option<&v1::Refusal> {
        self.0.get(uid)?.refusal.as_ref()
    }

    /// Adds to a status what Events tell about a second owner.
    pub(crate) fn add_owner(&self, status: &mut v1::WorkloadStatus) {
        if let Some(told) = self.0.get(&status.uid) {
            told.add_owner(status);
        }
    }
}

impl Told {
    fn of(subject: &Subject, events: &[Event]) -> Self {
        let with = |reason: &'static str| {
            events
                .iter()
                .filter(move |event| event.reason == reason && subject.is_of(event))
        };
        let deleted = with(DELETED).filter_map(|event| Some((event.message.clone(), event.last_time()?)));
        // The status of a Deployment and of a ReplicaSet has its own refusal.
        let refused = || with(FAILED_CREATE).filter(|_| subject.kind == Kind::DaemonSet);
        let since = refused().filter_map(Event::first_time).min();
        let refusal = refused()
            .max_by_key(|event| event.last_time())
            .map(|newest| v1::Refusal {
                at: newest.last_time().map(timestamp),
                since: since.map(timestamp),
                message: said(&newest.message),
            });
        Self {
            refusal,
            deleted: deleted.max_by_key(|(_, at)| *at),
        }
    }
}

/// What the apiserver said, from the message of an Event.
fn said(message: &str) -> String {
    message.strip_prefix(ERROR_CREATING).unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_events_about_a_workload_in_its_own_namespace_tell_of_it() {
        let subject = Subject {
            kind: Kind::DaemonSet,
            namespace: "monitoring".to_owned(),
            name: "agent".to_owned(),
            uid: "u-1".to_owned(),
        };
        let event = |pointer: &str, value: &str| -> Event {
            let mut event = json!({
                "metadata": {"namespace": "monitoring"},
                "reason": FAILED_CREATE,
                "message": "Error creating: exceeded quota",
                "involvedObject": {"kind": "DaemonSet", "namespace": "monitoring", "name": "agent", "uid": "u-1"},
                "lastTimestamp": "2026-01-01T00:00:00Z",
            });
            if let Some(place) = event.pointer_mut(pointer) {
                *place = json!(value);
            }
            serde_json::from_value(event).expect("an Event")
        };
        let refusal = |event: Event| Told::of(&subject, &[event]).refusal;
        let found = refusal(event("/none", "")).expect("the refusal");
        assert_eq!(found.message, "exceeded quota");
        for (pointer, value) in [
            ("/metadata/namespace", "shop"),
            ("/involvedObject/namespace", "shop"),
            ("/involvedObject/kind", "Deployment"),
            ("/involvedObject/name", "whatever"),
            ("/involvedObject/uid", "u-2"),
            ("/reason", "Failed"),
        ] {
            assert_eq!(refusal(event(pointer, value)), None, "{pointer}");
        }
    }
}
