//! The storage of the simulated apiserver: objects as JSON, one increasing resourceVersion, and watches of all objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodewise_projection::{Key, Node, Pod, Revision, Workload};
use nodewise_runtime::{
    Delta, Resource,
    actuator::{ActuatorError, ObjectKey, Refusal},
};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use crate::daemon_set::DAEMON_SETS;
use nodewise_runtime::event::ClusterEvent;

/// The annotation that counts changes of the template (D-118).
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// All stored objects. The keys of nodes have an empty namespace.
#[derive(Debug)]
pub(super) struct Objects {
    stored: BTreeMap<(&'static str, String, String), Value>,
    version: u64,
    uids: u64,
    watchers: Vec<mpsc::UnboundedSender<ClusterEvent>>,
    versions: watch::Sender<u64>,
}

fn index(key: &ObjectKey) -> (&'static str, String, String) {
    (key.resource.plural, key.namespace.clone(), key.name.clone())
}

impl Objects {
    pub(super) fn new() -> (Self, watch::Receiver<u64>) {
        let (versions, receiver) = watch::channel(0);
        (
            Self {
                stored: BTreeMap::new(),
                version: 0,
                uids: 0,
                watchers: Vec::new(),
                versions,
            },
            receiver,
        )
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.stored.get(&index(key))
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Result<&Value, ActuatorError> {
        self.get(key)
            .ok_or_else(|| refuse(Refusal::NotFound, 404, format!("{key} not found")))
    }

    /// Every object of a resource, ordered by namespace and name.
    pub(super) fn all(&self, resource: Resource) -> impl Iterator<Item = &Value> {
        let from = (resource.plural, String::new(), String::new());
        self.stored
            .range(from..)
            .take_while(move |((plural, _, _), _)| *plural == resource.plural)
            .map(|(_, object)| object)
    }

    /// Sends the existing objects to a new watcher, and from then on every change.
    pub(super) fn subscribe(&mut self, watcher: mpsc::UnboundedSender<ClusterEvent>) {
        // The objects were all parsed before they were stored.
        let version = self.version;
        for event in [
            ClusterEvent::Workloads(
                DAEMON_SETS,
                listed(self.all(DAEMON_SETS), Workload::daemon_set_from_json, version),
            ),
            ClusterEvent::Pods(listed(self.all(Resource::PODS), Pod::from_json, version)),
            ClusterEvent::Nodes(listed(self.all(Resource::NODES), Node::from_json, version)),
            ClusterEvent::Revisions(listed(
                self.all(Resource::REVISIONS),
                Revision::from_json,
                version,
            )),
        ] {
            let _ = watcher.send(event);
        }
        self.watchers.push(watcher);
    }

    /// Creates an object: sets its name if it has none, its uid, creation time and version.
    pub(super) fn create(
        &mut self,
        resource: Resource,
        namespace: &str,
        mut object: Value,
        now: Timestamp,
    ) -> Result<ObjectKey, ActuatorError> {
        self.uids += 1;
        let number = self.uids;
        let metadata = metadata(&mut object)?;
        let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) => format!("{prefix}{number:05}"),
            _ => {
                return Err(refuse(
                    Refusal::Invalid,
                    422,
                    "metadata.name is required".to_owned(),
                ));
            }
        };
        let key = ObjectKey::new(resource, namespace, &name);
        if self.get(&key).is_some() {
            return Err(refuse(
                Refusal::AlreadyExists,
                409,
                format!("{key} already exists"),
            ));
        }
        metadata["name"] = json!(name);
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        metadata["uid"] = json!(format!("00000000-0000-4000-8000-{number:012x}"));
        metadata["creationTimestamp"] = json!(seconds(now));
        self.put(&key, object)?;
        Ok(key)
    }

    /// Stores a new state of an object with the next version, and notifies all watchers.
    pub(super) fn put(&mut self, key: &ObjectKey, mut object: Value) -> Result<(), ActuatorError> {
        object["metadata"]["resourceVersion"] = json!((self.version + 1).to_string());
        let event = event(key.resource, &object, false)?;
        self.stored.insert(index(key), object);
        self.notify(&event);
        Ok(())
    }

    /// Removes an object and notifies all watchers.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Value> {
        let mut object = self.stored.remove(&index(key))?;
        object["metadata"]["resourceVersion"] = json!((self.version + 1).to_string());
        if let Ok(event) = event(key.resource, &object, true) {
            self.notify(&event);
        }
        Some(object)
    }

    fn notify(&mut self, event: &ClusterEvent) {
        self.version += 1;
        self.watchers
            .retain(|watcher| watcher.send(event.clone()).is_ok());
        self.versions.send_replace(self.version);
    }

    #[cfg(test)]
    pub(super) fn watcher_count(&self) -> usize {
        self.watchers.len()
    }

    pub(super) fn put_node(&mut self, name: &str, labels: &[(&str, &str)], now: Timestamp) {
        let labels: Map<String, Value> = labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let key = ObjectKey::new(Resource::NODES, "", name);
        self.stored.remove(&index(&key));
        // This manifest is always valid.
        let _ = self.create(Resource::NODES, "", node, now);
    }

    pub(super) fn create_daemon_set(
        &mut self,
        mut manifest: Value,
        now: Timestamp,
    ) -> Result<Key, ActuatorError> {
        let namespace = manifest["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default")
            .to_owned();
        let metadata = metadata(&mut manifest)?;
        metadata["generation"] = json!(1);
        set_template_generation(metadata, 1);
        default_daemon_set(&mut manifest);
        let key = self.create(DAEMON_SETS, &namespace, manifest, now)?;
        Ok(Key::new(DAEMON_SETS.kind, &key.namespace, &key.name))
    }

    pub(super) fn update_daemon_set(
        &mut self,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ActuatorError> {
        let key = ObjectKey::new(DAEMON_SETS, &*key.namespace, &*key.name);
        let before = self.find(&key)?.clone();
        let mut after = before.clone();
        change(&mut after["spec"]);
        default_daemon_set(&mut after);
        if after["spec"] == before["spec"] {
            return Ok(());
        }
        let template_changed = after["spec"]["template"] != before["spec"]["template"];
        let metadata = metadata(&mut after)?;
        metadata["generation"] = json!(metadata["generation"].as_i64().unwrap_or(0) + 1);
        if template_changed {
            let generation = metadata["annotations"][TEMPLATE_GENERATION]
                .as_str()
                .and_then(|text| text.parse().ok());
            set_template_generation(metadata, generation.unwrap_or(0) + 1);
        }
        self.put(&key, after)
    }
}

/// The metadata of an object; an error if there is none.
fn metadata(object: &mut Value) -> Result<&mut Value, ActuatorError> {
    let metadata = &mut object["metadata"];
    if metadata.is_object() {
        Ok(metadata)
    } else {
        Err(refuse(Refusal::Invalid, 422, "metadata is required".to_owned()))
    }
}

fn set_template_generation(metadata: &mut Value, generation: i64) {
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][TEMPLATE_GENERATION] = json!(generation.to_string());
}

/// The defaults that plans rely on (D-114).
fn default_daemon_set(object: &mut Value) {
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("DaemonSet");
    let spec = &mut object["spec"];
    if spec["revisionHistoryLimit"].is_null() {
        spec["revisionHistoryLimit"] = json!(10);
    }
    let strategy = &mut spec["updateStrategy"];
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        for (field, default) in [("maxUnavailable", 1), ("maxSurge", 0)] {
            if rolling[field].is_null() {
                rolling[field] = json!(default);
            }
        }
    }
}

fn listed<'a, T, E>(
    objects: impl Iterator<Item = &'a Value>,
    read: impl Fn(&Value) -> Result<T, E>,
    version: u64,
) -> Delta<T> {
    let objects = objects.filter_map(|object| read(object).ok()).collect();
    Delta::Listed {
        objects,
        resource_version: version.to_string(),
    }
}

fn event(resource: Resource, object: &Value, deleted: bool) -> Result<ClusterEvent, ActuatorError> {
    fn delta<T>(object: T, deleted: bool) -> Delta<T> {
        if deleted {
            Delta::Deleted(object)
        } else {
            Delta::Applied(object)
        }
    }
    match resource {
        DAEMON_SETS => Workload::daemon_set_from_json(object)
            .map(|o| ClusterEvent::Workloads(DAEMON_SETS, delta(o, deleted))),
        Resource::PODS => Pod::from_json(object).map(|o| ClusterEvent::Pods(delta(o, deleted))),
        Resource::NODES => Node::from_json(object).map(|o| ClusterEvent::Nodes(delta(o, deleted))),
        Resource::REVISIONS => {
            Revision::from_json(object).map(|o| ClusterEvent::Revisions(delta(o, deleted)))
        }
        _ => {
            return Err(refuse(
                Refusal::NotFound,
                404,
                format!("no such resource: {resource}"),
            ));
        }
    }
    .map_err(|error| refuse(Refusal::Invalid, 422, error.to_string()))
}

/// An error as the apiserver would return it.
pub(super) fn refuse(refusal: Refusal, http_status: u16, message: String) -> ActuatorError {
    ActuatorError {
        refusal,
        http_status,
        message,
    }
}

/// A metav1.Time: whole seconds.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
