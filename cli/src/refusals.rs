//! Creates that the apiserver refused, as the Events of DaemonSets tell. The other kinds say so in their status.

use std::collections::HashMap;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client, api::ListParams};
use nodewise_projection::timestamp;
use nodewise_proto::v1;

use crate::{args::SourceArgs, input::Served, input::connect, kind::Kind};

/// The last refusal of each workload, by uid.
#[derive(Debug, Default)]
pub(crate) struct Refusals(HashMap<String, v1::Refusal>);

impl Refusals {
    /// Connects, and reads the Events of the DaemonSets among these workloads. A file has none.
    pub(crate) async fn read<'a>(source: &SourceArgs, workloads: impl Iterator<Item = &'a Served>) -> Self {
        if !source.files.is_empty() {
            return Self::default();
        }
        match connect(source.kubeconfig.as_deref(), source.context.as_deref()).await {
            Ok((client, _)) => Self::ask(&client, workloads).await,
            Err(_) => Self::default(),
        }
    }

    /// Reads the Events of the DaemonSets among these workloads. Without the right to read Events there are none: the status then does
    /// not say why a pod is missing.
    pub(crate) async fn ask<'a>(client: &Client, workloads: impl Iterator<Item = &'a Served>) -> Self {
        let daemon_sets = workloads.filter(|one| one.kind == Kind::DaemonSet);
        let last = |one: &'a Served| {
            let client = client.clone();
            async move { Some((one.uid.clone(), last(client, one).await?)) }
        };
        let found = join_all(daemon_sets.map(last)).await;
        Self(found.into_iter().flatten().collect())
    }

    /// The last refusal of a DaemonSet, as this client may see it.
    pub(crate) async fn last(client: &Client, workload: &Served) -> Option<v1::Refusal> {
        last(client.clone(), workload).await
    }

    /// The last refusal of a workload.
    pub(crate) fn of(&self, uid: &str) -> Option<&v1::Refusal> {
        self.0.get(uid)
    }
}

/// What the Events of a DaemonSet say about pods that could not be created: the newest message, and since when there are such Events.
async fn last(client: Client, workload: &Served) -> Option<v1::Refusal> {
    let events: Api<Event> = Api::namespaced(client, &workload.namespace);
    let fields = format!("involvedObject.uid={},reason=FailedCreate", workload.uid);
    let events = events
        .list(&ListParams::default().fields(&fields))
        .await
        .ok()?
        .items;
    let since = events.iter().filter_map(first_time).min();
    let newest = events.into_iter().max_by_key(last_time)?;
    Some(v1::Refusal {
        at: last_time(&newest).map(timestamp),
        since: since.map(timestamp),
        message: newest.message.unwrap_or_default(),
    })
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
