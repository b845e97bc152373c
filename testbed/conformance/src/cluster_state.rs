//! The state that a change of owner must not alter: the DaemonSets with their status, their revisions and their pods,
//! as the apiserver stores them, and the position in the audit log at that time.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use nodewise_testbed::AuditEvent;
use serde_json::{Value, json};

use crate::{audit::AuditPosition, fixture::Fixture};

/// Objects by kind and name, with all their fields, and the position in the audit log.
#[derive(Debug)]
pub(crate) struct ClusterState {
    objects: BTreeMap<String, Object>,
    audited: AuditPosition,
    touches: usize,
}

#[derive(Debug)]
struct Object {
    kind: &'static str,
    /// The name of the DaemonSet that the object is or belongs to.
    of: String,
    value: Value,
}

/// The resources of a DaemonSet.
const RESOURCES: [(&str, &str, &str); 3] = [
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "ControllerRevision", "controllerrevisions"),
    ("", "Pod", "pods"),
];

impl Fixture {
    /// Reads the state of these DaemonSets.
    pub(crate) async fn cluster_state(&self, names: &[&str]) -> Result<ClusterState> {
        // The position is read first, so that a write between the two reads counts twice and is not missed.
        let audited = self.audit_position().await?;
        let mut objects = BTreeMap::new();
        for (group, kind, plural) in RESOURCES {
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
            objects,
            audited,
            touches: 0,
        })
    }

    /// Changes an annotation of a DaemonSet, which enqueues it but leaves nothing to do, and updates the recorded
    /// state.
    pub(crate) async fn touch(&self, state: &mut ClusterState, name: &str) -> Result<()> {
        state.touches += 1;
        // A new value each time: a patch that changes nothing causes no event.
        let now = jiff::Timestamp::now().to_string();
        let annotation = json!({ "example.com/touched": now });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotation } }));
        let [(group, kind, plural), ..] = RESOURCES;
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

    /// Fails unless these DaemonSets, their revisions and their pods are still the same versions of the same objects.
    pub(crate) async fn expect_same(&self, state: &ClusterState, names: &[&str]) -> Result<()> {
        let now = self.cluster_state(names).await?.objects;
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

    /// Fails if, since then, any client tried to write a DaemonSet, a revision or a pod (even if it was rejected;
    /// patches by [`Fixture::touch`] do not count), or if `owner` tried to write anything.
    pub(crate) async fn expect_no_writes(&self, state: &ClusterState, owner: &str) -> Result<()> {
        let wrote = |event: &&AuditEvent| {
            let concerned = RESOURCES.iter().any(|(.., plural)| *plural == event.resource);
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
                && event.resource == "daemonsets"
                && event.subresource.is_empty()
                && event.user != owner
        };
        let (touches, writes): (Vec<_>, Vec<_>) = events.iter().filter(wrote).partition(is_touch);
        ensure!(writes.is_empty(), "there were writes: {writes:#?}");
        ensure!(
            touches.len() == state.touches,
            "somebody else changed DaemonSets, too: {touches:#?}"
        );
        Ok(())
    }

    /// The audit events of this namespace since then.
    pub(crate) async fn audit_since(&self, state: &ClusterState) -> Result<Vec<AuditEvent>> {
        self.audited(state.audited, |_| true).await
    }
}

impl ClusterState {
    /// The number of objects of this kind.
    #[must_use]
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
    }

    /// The longest minReadySeconds of the DaemonSets.
    #[must_use]
    pub(crate) fn longest_min_ready(&self) -> Duration {
        let seconds = self.objects.values().filter_map(|object| {
            let of_daemon_set = object.kind == RESOURCES[0].1;
            of_daemon_set
                .then(|| object.value["spec"]["minReadySeconds"].as_u64())
                .flatten()
        });
        Duration::from_secs(seconds.max().unwrap_or(0))
    }
}
