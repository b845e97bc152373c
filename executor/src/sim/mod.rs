//! A simulated cluster for the executor: `nodewise-simulator` with watches, an [actuator](SimActuator) and ticks on tokio.
//!
//! The simulator has the model: the apiserver, the scheduler, the kubelets, and the counts of pods. This module translates its
//! changes into [`ClusterEvent`]s and its refusals into [`ActuatorError`]s. Pods become ready and are removed only in
//! [`SimCluster::tick`].

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::Stream;
use jiff::Timestamp;
use nodewise_projection::Key;
use nodewise_runtime::{actuator::ActuatorError, event::ClusterEvent};
use nodewise_simulator::{Cluster, ObjectKey, Resource};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    time::MissedTickBehavior,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::{daemon_set::DAEMON_SETS, deployment::DEPLOYMENTS};

mod actuator;
mod events;
#[cfg(test)]
mod tests;

pub use actuator::SimActuator;
pub use nodewise_simulator::{Config as SimConfig, WorkloadCounts};

use actuator::error;

/// A handle on a simulated cluster. Clones share it.
#[derive(Clone, Debug)]
pub struct SimCluster {
    state: Arc<Mutex<State>>,
    versions: watch::Receiver<u64>,
}

#[derive(Debug)]
struct State {
    cluster: Cluster,
    watchers: Vec<mpsc::UnboundedSender<ClusterEvent>>,
    /// The version of the last change that was sent to the watchers.
    versions: watch::Sender<u64>,
}

impl State {
    /// Sends the changes since the last call to all watchers.
    fn publish(&mut self) {
        let sent = *self.versions.borrow();
        for change in self.cluster.changes_after(sent) {
            if let Ok(event) = events::of_change(change) {
                self.watchers
                    .retain(|watcher| watcher.send(event.clone()).is_ok());
            }
        }
        let version = self.cluster.version();
        self.cluster.compact(version);
        if version != sent {
            self.versions.send_replace(version);
        }
    }
}

impl SimCluster {
    /// Creates an empty cluster with this time.
    #[must_use]
    pub fn new(config: SimConfig, now: Timestamp) -> Self {
        let (sender, versions) = watch::channel(0);
        let state = State {
            cluster: Cluster::new(config, now).validated_by(events::validate),
            watchers: Vec::new(),
            versions: sender,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            versions,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the cluster, and sends the changes to all watchers.
    fn change<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        let state = &mut *self.state();
        let result = change(&mut state.cluster);
        state.publish();
        result
    }

    /// A stream of the existing objects as first lists, and then of every change, like the watches of a real cluster.
    pub fn watch(&self) -> impl Stream<Item = ClusterEvent> + Send + Unpin + 'static {
        let (sender, events) = mpsc::unbounded_channel();
        let state = &mut *self.state();
        for list in events::lists(&state.cluster) {
            let _ = sender.send(list);
        }
        state.watchers.push(sender);
        UnboundedReceiverStream::new(events)
    }

    /// An actuator that writes to this cluster.
    #[must_use]
    pub fn actuator(&self) -> SimActuator {
        SimActuator::new(self.clone())
    }

    /// A counter that changes whenever anything in the cluster changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.versions.clone()
    }

    /// Adds a node that is ready. A node of the same name is replaced.
    pub fn add_node(&self, name: &str, labels: &[(&str, &str)]) {
        self.change(|cluster| cluster.add_node(name, labels));
    }

    /// Removes a node. Its pods stay until someone deletes them.
    pub fn remove_node(&self, name: &str) {
        self.change(|cluster| cluster.remove_node(name));
    }

    /// Makes a node not ready, with the matching taint. Its pods become not ready and stay.
    ///
    /// Fails if the node does not exist.
    pub fn break_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.change(|cluster| cluster.break_node(name)).map_err(error)
    }

    /// Makes a node ready again. Its pods become ready as if they had just been started.
    ///
    /// Fails if the node does not exist.
    pub fn recover_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.change(|cluster| cluster.recover_node(name)).map_err(error)
    }

    /// Creates a DaemonSet from its manifest and sets the defaults that plans rely on (D-114).
    pub fn create_daemon_set(&self, manifest: Value) -> Result<Key, ActuatorError> {
        let key = self
            .change(|cluster| cluster.create_daemon_set(manifest))
            .map_err(error)?;
        Ok(Key::new(DAEMON_SETS.kind, &key.namespace, &key.name))
    }

    /// Changes a DaemonSet's spec. Its generation increases if anything changed, its template generation if the
    /// template did (D-118).
    pub fn update_daemon_set(&self, key: &Key, change: impl FnOnce(&mut Value)) -> Result<(), ActuatorError> {
        self.change(|cluster| cluster.update_daemon_set(&workload(key), change))
            .map_err(error)
    }

    /// Creates a Deployment from its manifest and sets the defaults that plans rely on.
    pub fn create_deployment(&self, manifest: Value) -> Result<Key, ActuatorError> {
        let key = self
            .change(|cluster| cluster.create_deployment(manifest))
            .map_err(error)?;
        Ok(Key::new(DEPLOYMENTS.kind, &key.namespace, &key.name))
    }

    /// Changes a Deployment's spec. Its generation increases if anything changed.
    pub fn update_deployment(&self, key: &Key, change: impl FnOnce(&mut Value)) -> Result<(), ActuatorError> {
        self.change(|cluster| cluster.update_deployment(&workload(key), change))
            .map_err(error)
    }

    /// The JSON of a DaemonSet or a Deployment; `None` if it does not exist.
    #[must_use]
    pub fn workload(&self, key: &Key) -> Option<Value> {
        self.state().cluster.get(&workload(key)).cloned()
    }

    /// The counts of a DaemonSet or a Deployment.
    #[must_use]
    pub fn counts(&self, key: &Key) -> WorkloadCounts {
        self.state().cluster.counts(&workload(key))
    }

    /// Resets the counts of created and deleted pods and the maxima. Duplicates are never reset.
    pub fn reset_counts(&self) {
        self.state().cluster.reset_counts();
    }

    /// Runs one step of the scheduler and of all kubelets, and sets the time to `now`.
    pub fn tick(&self, now: Timestamp) {
        self.change(|cluster| cluster.tick(now));
    }

    /// Ticks at this interval, with the current time, until `shutdown` is cancelled.
    pub async fn run(&self, interval: Duration, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => self.tick(Timestamp::now()),
            }
        }
    }
}

/// The simulator's key of a DaemonSet or a Deployment.
fn workload(key: &Key) -> ObjectKey {
    let resource = if key.kind == DEPLOYMENTS.kind {
        Resource::Deployments
    } else {
        Resource::DaemonSets
    };
    ObjectKey::new(resource, &*key.namespace, &*key.name)
}
