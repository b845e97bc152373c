//! Everything that a change of owner must leave as it is: the DaemonSets with their status, the revisions and the pods, as the
//! apiserver holds them, and how much was asked of the apiserver by then.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use nodewise_testbed::AuditEvent;
use serde_json::Value;

use crate::rig::Rig;

/// Objects by kind and name, with all their fields, and the place in the audit log.
#[derive(Debug)]
pub struct Picture {
    objects: BTreeMap<String, Object>,
    audited: usize,
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

impl Rig {
    /// Takes the picture of these DaemonSets of namespace `default`.
    pub async fn picture(&self, names: &[&str]) -> Result<Picture> {
        // The log first: what is written between the two is then seen twice, and not missed.
        let audited = self.audit(|_| true).await?.len();
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
        Ok(Picture { objects, audited })
    }

    async fn objects(&self, group: &str, kind: &str, plural: &str) -> Result<Vec<DynamicObject>> {
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
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), "default", &resource);
        let list = api.list(&ListParams::default()).await;
        Ok(list.with_context(|| format!("listing {plural}"))?.items)
    }

    /// Fails unless these DaemonSets, their revisions and their pods are the very same objects in the very same version as in
    /// the picture.
    pub async fn expect_same(&self, picture: &Picture, names: &[&str]) -> Result<()> {
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

    /// Fails if anybody has asked for a change of a DaemonSet, a revision or a pod since the picture, also if it was refused, or
    /// if `owner` has asked for any change at all.
    pub async fn expect_no_writes(&self, picture: &Picture, owner: &str) -> Result<()> {
        let wrote = |event: &&AuditEvent| {
            let concerned = RESOURCES.iter().any(|(.., plural)| *plural == event.resource);
            event.is_write() && (concerned || event.user == owner)
        };
        let events = self.audit_since(picture).await?;
        ensure!(
            events.iter().any(|event| event.user == owner),
            "the audit log does not know {owner} since the picture"
        );
        let writes: Vec<_> = events.iter().filter(wrote).collect();
        ensure!(writes.is_empty(), "there were writes: {writes:#?}");
        Ok(())
    }

    /// The requests that were answered since the picture.
    pub async fn audit_since(&self, picture: &Picture) -> Result<Vec<AuditEvent>> {
        Ok(self.audit(|_| true).await?.split_off(picture.audited))
    }
}

impl Picture {
    /// How many objects of this kind it shows.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
    }
}
