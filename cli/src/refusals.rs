//! What Events tell about workloads: creates that the apiserver refused, and pods that somebody else deleted.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client, api::ListParams};
use nodewise_projection::{moment, timestamp};
use nodewise_proto::v1;
use nodewise_status::span;

use crate::{args::SourceArgs, input::Served, input::connect, kind::Kind};

/// The reason of the Events of pods that could not be created.
const FAILED_CREATE: &str = "FailedCreate";
/// The reason of the Events with which an executor tells of pods that somebody else deleted.
const DELETED: &str = "PodsDeletedByAnother";
/// Such an Event is told for so long.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

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
        let of_all = match namespaces.len() {
            0 => return Self::default(),
            1 => None,
            _ => events(Api::all(client.clone())).await,
        };
        let events = if let Some(found) = of_all {
            found
        } else {
            let of_namespace = |namespace: &&str| events(Api::namespaced(client.clone(), namespace));
            let found = join_all(namespaces.iter().map(of_namespace)).await;
            found.into_iter().flatten().flatten().collect()
        };
        let told = workloads
            .into_iter()
            .map(|one| (one.uid.clone(), Told::of(one.kind, &one.uid, &events)));
        Self(told.collect())
    }

    /// What the Events of a workload tell, as this client may see them.
    pub(crate) async fn told(client: &Client, kind: Kind, namespace: &str, uid: &str) -> Told {
        let events = events(Api::namespaced(client.clone(), namespace)).await;
        Told::of(kind, uid, &events.unwrap_or_default())
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

/// The Events with one of the reasons. `None` without the right to list them. The apiserver reads Events from its store, so it is not asked
/// for the Events of each workload.
async fn events(api: Api<Event>) -> Option<Vec<Event>> {
    let with = |reason: &str| ListParams::default().fields(&format!("reason={reason}"));
    let (refused, deleted) = (with(FAILED_CREATE), with(DELETED));
    let (refused, deleted) = futures::future::try_join(api.list(&refused), api.list(&deleted))
        .await
        .ok()?;
    Some(refused.items.into_iter().chain(deleted.items).collect())
}

impl Told {
    fn of(kind: Kind, uid: &str, events: &[Event]) -> Self {
        let with = |reason: &'static str| {
            events.iter().filter(move |event| {
                event.reason.as_deref() == Some(reason) && event.involved_object.uid.as_deref() == Some(uid)
            })
        };
        let deleted = with(DELETED).filter_map(|event| Some((event.message.clone()?, last_time(event)?)));
        // The status of a Deployment and of a ReplicaSet has its own refusal.
        let refused = || with(FAILED_CREATE).filter(|_| kind == Kind::DaemonSet);
        let since = refused().filter_map(first_time).min();
        let refusal = refused()
            .max_by_key(|event| last_time(event))
            .map(|newest| v1::Refusal {
                at: last_time(newest).map(timestamp),
                since: since.map(timestamp),
                message: newest.message.clone().unwrap_or_default(),
            });
        Self {
            refusal,
            deleted: deleted.max_by_key(|(_, at)| *at),
        }
    }
}

/// When what an Event says happened first.
fn first_time(event: &Event) -> Option<Timestamp> {
    let first = event.first_timestamp.as_ref().map(|time| time.0);
    first.or(event.event_time.as_ref().map(|time| time.0))
}

/// When it happened last.
fn last_time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let observed = series.and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let last = observed.map(|time| time.0).or(last);
    last.or(event.event_time.as_ref().map(|time| time.0))
}
