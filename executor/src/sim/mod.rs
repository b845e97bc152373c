//! A simulated cluster in memory: an apiserver, a scheduler and kubelets, as far as a DaemonSet needs them.
//!
//! It knows nothing of plans, and counts by itself what a person would watch for: how many nodes are without a ready pod
//! at once, and whether any node ever had more pods than its strategy allows. Pods become ready and go away through
//! [`SimCluster::tick`] only.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::Stream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    time::MissedTickBehavior,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::{
    actuator::{ActuatorError, ObjectKey},
    event::{ClusterEvent, Key, Resource},
};

mod actuator;
mod kubelet;
mod objects;
mod patch;
mod tally;
#[cfg(test)]
mod tests;

pub use actuator::SimActuator;
pub use tally::Picture;

use objects::Objects;
use tally::Tally;

/// How fast the simulated machines are.
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
    /// Ticks so far.
    tick: u64,
    /// The wall clock at the last tick, for timestamps.
    now: Timestamp,
}

impl SimCluster {
    /// An empty cluster whose clock shows `now`.
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

    /// Everything there is and everything that changes, as the watches of a real cluster show it.
    pub fn watch(&self) -> impl Stream<Item = ClusterEvent> + Send + Unpin + 'static {
        let (sender, events) = mpsc::unbounded_channel();
        self.state().objects.subscribe(sender);
        UnboundedReceiverStream::new(events)
    }

    /// What a plan's application writes through.
    #[must_use]
    pub fn actuator(&self) -> SimActuator {
        SimActuator::new(self.clone())
    }

    /// Changes its value whenever anything in the cluster changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.versions.clone()
    }

    /// Adds a node that is ready. An existing one of that name is replaced.
    pub fn add_node(&self, name: &str, labels: &[(&str, &str)]) {
        let state = &mut *self.state();
        state.objects.put_node(name, labels, state.now);
        state.tally.add_node(name);
    }

    /// Removes a node. Its pods stay until someone deletes them.
    pub fn remove_node(&self, name: &str) {
        let state = &mut *self.state();
        state.objects.remove(&ObjectKey::new(Resource::Nodes, "", name));
        state.tally.remove_node(name);
    }

    /// Makes a node not ready, with the taint that tells so; its pods turn not ready and stay.
    pub fn break_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.state().break_node(name)
    }

    /// Makes a node ready again; its pods follow as if they had just been started.
    pub fn recover_node(&self, name: &str) -> Result<(), ActuatorError> {
        self.state().recover_node(name)
    }

    /// Creates a DaemonSet from its manifest and fills in the defaults that matter here (D-114).
    pub fn create_daemon_set(&self, manifest: Value) -> Result<Key, ActuatorError> {
        let state = &mut *self.state();
        let key = state.objects.create_daemon_set(manifest, state.now)?;
        state.retally(&key);
        Ok(key)
    }

    /// Changes a DaemonSet's spec: its generation grows when anything changed, its template generation when the
    /// template did (D-118).
    pub fn update_daemon_set(&self, key: &Key, change: impl FnOnce(&mut Value)) -> Result<(), ActuatorError> {
        let state = &mut *self.state();
        state.objects.update_daemon_set(key, change)?;
        state.retally(key);
        Ok(())
    }

    /// A DaemonSet as it is now.
    #[must_use]
    pub fn daemon_set(&self, key: &Key) -> Option<Value> {
        let key = ObjectKey::new(Resource::DaemonSets, &*key.namespace, &*key.name);
        self.state().objects.get(&key).cloned()
    }

    /// The cluster's own view of a DaemonSet.
    #[must_use]
    pub fn picture(&self, key: &Key) -> Picture {
        self.state().picture(key)
    }

    /// Counts anew from here: pods created and deleted, and the most nodes without a ready pod. Duplicates are never
    /// forgotten.
    pub fn reset_counts(&self) {
        self.state().tally.reset();
    }

    /// Lets the scheduler and all kubelets do one step; the clock shows `now` from here on.
    pub fn tick(&self, now: Timestamp) {
        self.state().step(now);
    }

    /// Ticks at that interval, with the wall clock, until `shutdown` is cancelled.
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
