//! Creates that the apiserver refused, as the Events of DaemonSets tell. The other kinds say so in their status.

use std::collections::HashMap;

use futures::future::join_all;
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
            async move {
                Some((
                    one.uid.clone(),
                    Self::last(client, &one.namespace, &one.uid).await?,
                ))
            }
        };
        let found = join_all(daemon_sets.map(last)).await;
        Self(found.into_iter().flatten().collect())
    }

    /// The last refusal of a workload.
    pub(crate) fn of(&self, uid: &str) -> Option<&v1::Refusal> {
        self.0.get(uid)
    }

    /// The newest Event of a DaemonSet that says that a pod could not be created, as this client may see it.
    pub(crate) async fn last(client: Client, namespace: &str, uid: &str) -> Option<v1::Refusal> {
        let events: Api<Event> = Api::namespaced(client, namespace);
        let fields = format!("involvedObject.uid={uid},reason=FailedCreate");
        let events = events.list(&ListParams::default().fields(&fields)).await.ok()?;
        let time = |event: &Event| {
            let series = event
                .series
                .as_ref()
                .and_then(|series| series.last_observed_time.as_ref());
            let last = event.last_timestamp.as_ref().map(|time| time.0);
            series
                .map(|time| time.0)
                .or(last)
                .or(event.event_time.as_ref().map(|time| time.0))
        };
        let newest = events.items.into_iter().max_by_key(time)?;
        Some(v1::Refusal {
            at: time(&newest).map(timestamp),
            message: newest.message.unwrap_or_default(),
        })
    }
}
