//! The storage of the apiserver: objects as JSON, one increasing resourceVersion, uids, and the history of changes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    refusal::{Reason, Refusal},
    resource::{ObjectKey, Resource},
};

/// A change of an object, as a watch shows it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resourceVersion of the change.
    pub version: u64,
    /// The object's key.
    pub key: ObjectKey,
    /// The object after the change. If it was deleted, its last state with the version of the deletion.
    pub object: Arc<Value>,
    /// Whether the object was deleted.
    pub is_deleted: bool,
}

/// All stored objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    stored: BTreeMap<ObjectKey, Arc<Value>>,
    /// The version of the last change.
    version: u64,
    /// The number of uids so far.
    uids: u64,
    /// The latest changes, oldest first, with ascending versions.
    history: VecDeque<Change>,
}

impl Objects {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.stored.get(key).map(|object| &**object)
    }

    pub(crate) fn find(&self, key: &ObjectKey) -> Result<&Value, Refusal> {
        self.get(key)
            .ok_or_else(|| Refusal::new(Reason::NotFound, format!("{key} not found")))
    }

    /// Every object of a resource, ordered by namespace and name.
    pub(crate) fn all(&self, resource: Resource) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        self.stored
            .range(ObjectKey::new(resource, "", "")..)
            .take_while(move |(key, _)| key.resource == resource)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The changes after this version, oldest first.
    pub(crate) fn changes_after(&self, version: u64) -> impl Iterator<Item = &Change> {
        let from = self.history.partition_point(|change| change.version <= version);
        self.history.range(from..)
    }

    /// Forgets the changes up to this version.
    pub(crate) fn compact(&mut self, version: u64) {
        let count = self.history.partition_point(|change| change.version <= version);
        self.history.drain(..count);
    }

    /// Prepares a new object: sets its name if it has none, its namespace, uid and creation time.
    pub(crate) fn prepare(
        &mut self,
        resource: Resource,
        namespace: &str,
        object: &mut Value,
        now: Timestamp,
    ) -> Result<ObjectKey, Refusal> {
        self.uids += 1;
        let number = self.uids;
        let metadata = metadata(object)?;
        let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) => format!("{prefix}{number:05}"),
            _ => return Err(Refusal::new(Reason::Invalid, "metadata.name is required")),
        };
        let key = ObjectKey::new(resource, namespace, &name);
        if self.get(&key).is_some() {
            return Err(Refusal::new(
                Reason::AlreadyExists,
                format!("{key} already exists"),
            ));
        }
        metadata["name"] = json!(name);
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        metadata["uid"] = json!(format!("00000000-0000-4000-8000-{number:012x}"));
        metadata["creationTimestamp"] = json!(seconds(now));
        Ok(key)
    }

    /// Stores a new state of an object with the next version.
    pub(crate) fn put(&mut self, key: &ObjectKey, mut object: Value) {
        self.set_next_version(&mut object);
        let object = Arc::new(object);
        self.stored.insert(key.clone(), Arc::clone(&object));
        self.record(key, object, false);
    }

    /// Removes an object, and returns its last state.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Value>> {
        let mut object = Arc::unwrap_or_clone(self.stored.remove(key)?);
        self.set_next_version(&mut object);
        let object = Arc::new(object);
        self.record(key, Arc::clone(&object), true);
        Some(object)
    }

    /// Removes an object without a change that a watch would show, so that another one can replace it.
    pub(crate) fn take_out(&mut self, key: &ObjectKey) {
        self.stored.remove(key);
    }

    fn set_next_version(&mut self, object: &mut Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    fn record(&mut self, key: &ObjectKey, object: Arc<Value>, is_deleted: bool) {
        self.history.push_back(Change {
            version: self.version,
            key: key.clone(),
            object,
            is_deleted,
        });
    }
}

/// The metadata of an object; an error if there is none.
pub(crate) fn metadata(object: &mut Value) -> Result<&mut Value, Refusal> {
    let metadata = &mut object["metadata"];
    if metadata.is_object() {
        Ok(metadata)
    } else {
        Err(Refusal::new(Reason::Invalid, "metadata is required"))
    }
}

/// A metav1.Time: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
