//! The state that a change of owner must not alter: the workloads with their status, their revisions and their pods,
//! as the apiserver stores them, and the position in the audit log at that time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use nodewise_testbed::AuditEvent;
use serde_json::{Value, json};

use crate::{
    audit::AuditPosition,
    fixture::{Fixture, IDLE_TIME},
};

/// Objects by kind and name, with all their fields, and the position in the audit log.
#[derive(Debug)]
pub(crate) struct ClusterState {
    resources: Resources,
    objects: BTreeMap<String, Object>,
    audited: AuditPosition,
    touches: usize,
}

#[derive(Debug)]
struct Object {
    kind: &'static str,
    /// The name of the workload that the object is or belongs to.
    of: String,
    value: Value,
}

/// Resources by group, kind and plural: first that of the workloads, then those of what they own.
pub(crate) type Resources = &'static [(&'static str, &'static str, &'static str)];

/// The resources of DaemonSets.
pub(crate) const DAEMON_SETS: Resources = &[
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "ControllerRevision", "controllerrevisions"),
    ("", "Pod", "pods"),
];

/// The resources of Deployments.
pub(crate) const DEPLOYMENTS: Resources = &[
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("", "Pod", "pods"),
];

/// The resources of ReplicaSets.
pub(crate) const REPLICA_SETS: Resources = &[("apps", "ReplicaSet", "replicasets"), ("", "Pod", "pods")];

impl Fixture {
    /// Reads the state of these workloads.
    pub(crate) async fn cluster_state(&self, resources: Resources, names: &[&str]) -> Result<ClusterState> {
        // The position is read first, so that a write between the two reads counts twice and is not missed.
        let audited = self.audit_position().await?;
        let mut objects = BTreeMap::new();
        for (group, kind, plural) in resources {
            for object in self.objects(group, kind, plural).await? {
                let name = object.metadata.name.clone().unwrap_or_default();
                let label = object
                    .metadata
                    .labels
                    .as_ref()
                    .and_then(|labels| labels.get("app"));
                let of = label.unwrap_or(&name).clone();
                if names.contains(&of.as_str()) {
                    let value = serde_json::to_value(object)?;
                    objects.insert(format!("{kind} {name}"), Object { kind, of, value });
                }
            }
        }
        Ok(ClusterState {
            resources,
            objects,
            audited,
            touches: 0,
        })
    }

    /// Changes a label of a workload, which enqueues it but leaves nothing to do, and updates the recorded state.
    pub(crate) async fn touch(&self, state: &mut ClusterState, name: &str) -> Result<()> {
        state.touches += 1;
        // A new value each time: a patch that changes nothing causes no event.
        let now = jiff::Timestamp::now().as_nanosecond().to_string();
        let label = json!({ "example.com/touched": now });
        let patch = Patch::Merge(json!({ "metadata": { "labels": label } }));
        let (group, kind, plural) = state.resources[0];
        let api = self.resource_api(group, kind, plural);
        let mut touched = api.patch(name, &PatchParams::default(), &patch).await?;
        // As in `objects`.
        touched.types = None;
        let shown = state.objects.get_mut(&format!("{kind} {name}"));
        shown
            .with_context(|| format!("the recorded state has no {name}"))?
            .value = serde_json::to_value(touched)?;
        Ok(())
    }

    async fn objects(&self, group: &str, kind: &str, plural: &str) -> Result<Vec<DynamicObject>> {
        let list = self
            .resource_api(group, kind, plural)
            .list(&ListParams::default())
            .await;
        let mut items = list.with_context(|| format!("listing {plural}"))?.items;
        // Not every response repeats the types, and they are known.
        for object in &mut items {
            object.types = None;
        }
        Ok(items)
    }

    fn resource_api(&self, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: if group.is_empty() {
                "v1".to_owned()
            } else {
                format!("{group}/v1")
            },
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::namespaced_with(self.client(), self.namespace(), &resource)
    }

    /// Fails unless these workloads, their revisions and their pods are still the same versions of the same objects.
    pub(crate) async fn expect_same(&self, state: &ClusterState, names: &[&str]) -> Result<()> {
        let now = self.cluster_state(state.resources, names).await?.objects;
        let before = || {
            state
                .objects
                .iter()
                .filter(|(_, object)| names.contains(&object.of.as_str()))
        };
        for (name, Object { value, .. }) in before() {
            let found = &now.get(name).with_context(|| format!("{name} is gone"))?.value;
            ensure!(found == value, "{name} was {value:#} and is {found:#}");
        }
        ensure!(
            now.len() == before().count(),
            "there are new ones among {:?}",
            now.keys()
        );
        Ok(())
    }

    /// Waits until these workloads have not changed for a while. Their owner may still try to write what the apiserver refuses,
    /// so their state is read after that owner has stopped.
    pub(crate) async fn wait_until_unchanged(&self, resources: Resources, names: &[&str]) -> Result<()> {
        let (mut state, mut since) = (self.cluster_state(resources, names).await?, Instant::now());
        self.eventually("the workloads to stop changing", async || {
            let same = self.expect_same(&state, names).await;
            if same.is_err() {
                (state, since) = (self.cluster_state(resources, names).await?, Instant::now());
                return same;
            }
            ensure!(since.elapsed() > IDLE_TIME, "they changed a moment ago");
            Ok(())
        })
        .await
    }

    /// Fails if, since then, any client tried to write a workload, a revision or a pod (even if it was rejected;
    /// patches by [`Fixture::touch`] do not count), or if `owner` tried to write anything.
    pub(crate) async fn expect_no_writes(&self, state: &ClusterState, owner: &str) -> Result<()> {
        let wrote = |event: &&AuditEvent| {
            let concerned = state
                .resources
                .iter()
                .any(|(.., plural)| *plural == event.resource);
            event.is_write() && (concerned || event.user == owner)
        };
        // The owner also reads outside this namespace.
        self.cluster()
            .audited(state.audited, |event| event.user == owner)
            .await?
            .first()
            .with_context(|| format!("the audit log does not know {owner} since the state was recorded"))?;
        let events = self.audit_since(state).await?;
        let is_touch = |event: &&AuditEvent| {
            event.verb == "patch"
                && event.resource == state.resources[0].2
                && event.subresource.is_empty()
                && event.user != owner
        };
        let (touches, writes): (Vec<_>, Vec<_>) = events.iter().filter(wrote).partition(is_touch);
        ensure!(writes.is_empty(), "there were writes: {writes:#?}");
        ensure!(
            touches.len() == state.touches,
            "somebody else changed workloads, too: {touches:#?}"
        );
        Ok(())
    }

    /// The audit events of this namespace since then.
    pub(crate) async fn audit_since(&self, state: &ClusterState) -> Result<Vec<AuditEvent>> {
        self.audited(state.audited, |_| true).await
    }
}

impl ClusterState {
    /// The position in the audit log at which this state was recorded.
    pub(crate) fn audited(&self) -> AuditPosition {
        self.audited
    }

    /// The kind of the workloads.
    #[must_use]
    pub(crate) fn kind(&self) -> &'static str {
        self.resources[0].1
    }

    /// The number of objects of this kind.
    #[must_use]
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
    }

    /// The longest minReadySeconds of the workloads.
    #[must_use]
    pub(crate) fn longest_min_ready(&self) -> Duration {
        let seconds = self.objects.values().filter_map(|object| {
            let is_workload = object.kind == self.kind();
            is_workload
                .then(|| object.value["spec"]["minReadySeconds"].as_u64())
                .flatten()
        });
        Duration::from_secs(seconds.max().unwrap_or(0))
    }
}
