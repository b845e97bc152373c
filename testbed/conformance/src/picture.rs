//! Everything that a change of owner must leave as it is: the DaemonSets with their status, the revisions and the pods, as the
//! apiserver holds them, and how much was asked of the apiserver by then.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use nodewise_testbed::AuditEvent;
use serde_json::{Value, json};

use crate::{audit::Place, scene::Scene};

/// Objects by kind and name, with all their fields, and the place in the audit log.
#[derive(Debug)]
pub(crate) struct Picture {
    objects: BTreeMap<String, Object>,
    audited: Place,
    touches: usize,
}

#[derive(Debug)]
struct Object {
    kind: &'static str,
    /// The name of the DaemonSet that it is or belongs to.
    of: String,
    value: Value,
}

/// The resources that belong to a DaemonSet.
const RESOURCES: [(&str, &str, &str); 3] = [
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "ControllerRevision", "controllerrevisions"),
    ("", "Pod", "pods"),
];

impl Scene {
    /// Takes the picture of these DaemonSets.
    pub(crate) async fn picture(&self, names: &[&str]) -> Result<Picture> {
        // The log first: what is written between the two is then seen twice, and not missed.
        let audited = self.place().await?;
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
        Ok(Picture {
            objects,
            audited,
            touches: 0,
        })
    }

    /// Changes a DaemonSet in a way that wakes its owner and leaves it nothing to do, and corrects the picture by that.
    pub(crate) async fn touch(&self, picture: &mut Picture, name: &str) -> Result<()> {
        picture.touches += 1;
        // Another value than any before, also those of an earlier picture: a patch that changes nothing is no event.
        let now = jiff::Timestamp::now().to_string();
        let annotation = json!({ "example.com/touched": now });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotation } }));
        let [(group, kind, plural), ..] = RESOURCES;
        let api = self.resource_api(group, kind, plural);
        let mut touched = api.patch(name, &PatchParams::default(), &patch).await?;
        // As in `objects`.
        touched.types = None;
        let shown = picture.objects.get_mut(&format!("{kind} {name}"));
        shown.with_context(|| format!("the picture has no {name}"))?.value = serde_json::to_value(touched)?;
        Ok(())
    }

    async fn objects(&self, group: &str, kind: &str, plural: &str) -> Result<Vec<DynamicObject>> {
        let list = self
            .resource_api(group, kind, plural)
            .list(&ListParams::default())
            .await;
        let mut items = list.with_context(|| format!("listing {plural}"))?.items;
        // Not every answer repeats them, and they are known.
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

    /// Fails unless these DaemonSets, their revisions and their pods are the very same objects in the very same version as in
    /// the picture.
    pub(crate) async fn expect_same(&self, picture: &Picture, names: &[&str]) -> Result<()> {
        let now = self.picture(names).await?.objects;
        let before = || {
            picture
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

    /// Fails if anybody has asked for a change of a DaemonSet, a revision or a pod since the picture, also if it was refused and
    /// not counting those by [`Scene::touch`], or if `owner` has asked for any change at all.
    pub(crate) async fn expect_no_writes(&self, picture: &Picture, owner: &str) -> Result<()> {
        let wrote = |event: &&AuditEvent| {
            let concerned = RESOURCES.iter().any(|(.., plural)| *plural == event.resource);
            event.is_write() && (concerned || event.user == owner)
        };
        // The owner asks about more than this namespace.
        self.cluster()
            .audited(picture.audited, |event| event.user == owner)
            .await?
            .first()
            .with_context(|| format!("the audit log does not know {owner} since the picture"))?;
        let events = self.audit_since(picture).await?;
        let is_touch = |event: &&AuditEvent| {
            event.verb == "patch"
                && event.resource == "daemonsets"
                && event.subresource.is_empty()
                && event.user != owner
        };
        let (touches, writes): (Vec<_>, Vec<_>) = events.iter().filter(wrote).partition(is_touch);
        ensure!(writes.is_empty(), "there were writes: {writes:#?}");
        ensure!(
            touches.len() == picture.touches,
            "somebody else changed DaemonSets, too: {touches:#?}"
        );
        Ok(())
    }

    /// The requests about this namespace that were answered since the picture.
    pub(crate) async fn audit_since(&self, picture: &Picture) -> Result<Vec<AuditEvent>> {
        self.audited(picture.audited, |_| true).await
    }
}

impl Picture {
    /// How many objects of this kind it shows.
    #[must_use]
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
    }

    /// The longest minReadySeconds of its DaemonSets.
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
