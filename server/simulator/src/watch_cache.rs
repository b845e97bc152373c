//! What a client has seen of a resource: a cache that lags behind the cluster.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    cluster::Cluster,
    resource::{ObjectKey, Resource},
};

/// The objects of one resource as a client's list and watch have shown them.
#[derive(Clone, Debug)]
pub struct WatchCache {
    resource: Resource,
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    version: u64,
}

impl WatchCache {
    /// Lists the objects of a resource as they are now.
    #[must_use]
    pub fn list(cluster: &Cluster, resource: Resource) -> Self {
        let objects = cluster.objects.all(resource);
        Self {
            resource,
            objects: objects
                .map(|(key, object)| (key.clone(), Arc::clone(object)))
                .collect(),
            version: cluster.version(),
        }
    }

    /// The objects, ordered by namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().map(|object| &**object)
    }

    /// The version that the cache has reached.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Shows the changes up to this version. An earlier version than the cache's changes nothing.
    ///
    /// The cluster must still know the changes since the cache's version: it must not have been compacted beyond.
    pub fn catch_up(&mut self, cluster: &Cluster, version: u64) {
        let changes = cluster
            .changes_after(self.version)
            .take_while(|change| change.version <= version)
            .filter(|change| change.key.resource == self.resource);
        for change in changes {
            if change.is_deleted {
                self.objects.remove(&change.key);
            } else {
                self.objects
                    .insert(change.key.clone(), Arc::clone(&change.object));
            }
        }
        self.version = self.version.max(version);
    }
}
