//! A simulated cluster in memory: an apiserver, a scheduler and kubelets, as far as DaemonSets need them.
//!
//! The simulation does not know plans. It counts by itself how many nodes are without a ready pod at once, and whether
//! a node ever had more pods than the DaemonSet's strategy allows. Pods become ready and are removed only in
//! [`SimCluster::tick`].

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::Stream;
use jiff::Timestamp;
use nodewise_projection::Key;
use nodewise_runtime::{
    Resource,
    actuator::{ActuatorError, ObjectKey},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    time::MissedTickBehavior,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::daemon_set::DAEMON_SETS;
use nodewise_runtime::event::ClusterEvent;

mod actuator;
mod kubelet;
mod objects;
mod patch;
mod tally;
#[cfg(test)]
mod tests;

pub use actuator::SimActuator;
pub use tally::PodCounts;

use objects::Objects;
use tally::Tally;

/// The speed of the simulated nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Ticks from a pod's binding until it is ready.
    pub start_ticks: u64,
    /// Ticks from a pod's deletion until it is gone.
    pub stop_ticks: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            start_ticks: 2,
            stop_ticks: 1,
        }
    }
}

/// A handle on a simulated cluster. Clones share it.
#[derive(Clone, Debug)]
pub struct SimCluster {
    state: Arc<Mutex<State>>,
    versions: watch::Receiver<u64>,
}

#[derive(Debug)]
struct State {
    config: SimConfig,
    objects: Objects,
    tally: Tally,
    /// Number of ticks so far.
    tick: u64,
    /// The wall clock at the last tick, for timestamps.
    now: Timestamp,
}

impl SimCluster {
    /// Creates an empty cluster with this time.
    #[must_use]
    pub fn new(config: SimConfig, now: Timestamp) -> Self {
        let (objects, versions) = Objects::new();
        let state = State {
            config,
            objects,
            tally: Tally::default(),
            tick: 0,
            now,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            versions,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of the existing objects as first lists, and then of every change, like the watches of a real cluster.
    pub fn watch(&self) -> impl Stream<Item = ClusterEvent> + Send + Unpin + 'static {
        let (sender, events) = mpsc::unbounded_channel();
        self.state().objects.subscribe(sender);
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
        let state = &mut *self.state();
        state.objects.put_node(name, labels, state.now);
        state.tally.add_node(name);
    }

    /// Removes a node. Its pods stay until someone deletes them.
    pub fn remove_node(&self, name: &str) {
        let state = &mut *self.state();
        state.objects.remove(&ObjectKey::new(Resource::NODES, "", name));
        state.tally.remove_node(name);
    }

    /// Makes a node not ready, with the matching taint. Its pods become not ready and stay.
    ///
    /// Fails if the node does not exist.
    pub fn break_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.state().break_node(name)
    }

    /// Makes a node ready again. Its pods become ready as if they had just been started.
    ///
    /// Fails if the node does not exist.
    pub fn recover_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.state().recover_node(name)
    }

    /// Creates a DaemonSet from its manifest and sets the defaults that plans rely on (D-114).
    pub fn create_daemon_set(&self, manifest: Value) -> Result<Key, ActuatorError> {
        let state = &mut *self.state();
        let key = state.objects.create_daemon_set(manifest, state.now)?;
        state.retally(&key);
        Ok(key)
    }

    /// Changes a DaemonSet's spec. Its generation increases if anything changed, its template generation if the
    /// template did (D-118).
    pub fn update_daemon_set(&self, key: &Key, change: impl FnOnce(&mut Value)) -> Result<(), ActuatorError> {
        let state = &mut *self.state();
        state.objects.update_daemon_set(key, change)?;
        state.retally(key);
        Ok(())
    }

    /// The JSON of a DaemonSet; `None` if it does not exist.
    #[must_use]
    pub fn daemon_set(&self, key: &Key) -> Option<Value> {
        let key = ObjectKey::new(DAEMON_SETS, &*key.namespace, &*key.name);
        self.state().objects.get(&key).cloned()
    }

    /// The counts of a DaemonSet.
    #[must_use]
    pub fn pod_counts(&self, key: &Key) -> PodCounts {
        self.state().pod_counts(key)
    }

    /// Resets the counts of created and deleted pods and the maxima. Duplicates are never reset.
    pub fn reset_counts(&self) {
        self.state().tally.reset();
    }

    /// Runs one step of the scheduler and of all kubelets, and sets the time to `now`.
    pub fn tick(&self, now: Timestamp) {
        self.state().step(now);
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
