//! The cluster: its objects, its time, and what is counted.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    counts::Counter,
    objects::{Change, Objects},
    pod,
    refusal::{Reason, Refusal},
    resource::{ObjectKey, Resource},
    workload_counts::WorkloadCounts,
};

/// The speed of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ticks from a pod's binding until it is ready.
    pub start_ticks: u64,
    /// Ticks from a pod's deletion until it is gone.
    pub stop_ticks: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            start_ticks: 2,
            stop_ticks: 1,
        }
    }
}

/// The validation of a resource's objects: an error says what is wrong.
pub type Validate = fn(Resource, &Value) -> Result<(), String>;

/// A cluster in memory.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) config: Config,
    pub(crate) objects: Objects,
    pub(crate) counter: Counter,
    validate: Validate,
    /// Number of ticks so far.
    pub(crate) tick: u64,
    /// Number of pods that the scheduler has placed by its own choice.
    pub(crate) placed: usize,
    /// The time, for timestamps.
    pub(crate) now: Timestamp,
    /// The pods that change by themselves: the tick, the namespace and the name.
    pub(crate) due: BTreeSet<(u64, String, String)>,
}

impl Cluster {
    /// Creates an empty cluster with this time.
    #[must_use]
    pub fn new(config: Config, now: Timestamp) -> Self {
        Self {
            config,
            objects: Objects::default(),
            counter: Counter::default(),
            validate: |_, _| Ok(()),
            tick: 0,
            placed: 0,
            now,
            due: BTreeSet::new(),
        }
    }

    /// Refuses objects that are not valid. Without this function, every object with metadata and a name is valid.
    #[must_use]
    pub fn validated_by(mut self, validate: Validate) -> Self {
        self.validate = validate;
        self
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the time. Nothing else happens.
    pub fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Runs one step of the scheduler and of all kubelets, and sets the time to `now`. A pod changes at most once in a step.
    pub fn tick(&mut self, now: Timestamp) {
        self.tick += 1;
        self.now = now;
        let due = self.pods_with_work();
        for (key, pod) in due {
            self.work_on(&key, pod);
        }
    }

    /// Does what is due: the pod is gone, becomes ready, or is bound.
    pub(crate) fn work_on(&mut self, key: &ObjectKey, pod: Arc<Value>) {
        if pod["metadata"]["deletionTimestamp"].is_string() {
            self.remove_pod(key);
        } else if pod["spec"]["nodeName"].is_string() {
            self.write_ready(key, Arc::unwrap_or_clone(pod), true);
        } else {
            self.bind(key, Arc::unwrap_or_clone(pod));
        }
    }

    /// An object; `None` if it does not exist.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Every object of a resource, ordered by namespace and name.
    pub fn list(&self, resource: Resource) -> impl Iterator<Item = &Value> {
        self.objects.all(resource).map(|(_, object)| &**object)
    }

    /// The resourceVersion of the last change; 0 if nothing has changed yet.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.objects.version()
    }

    /// The changes after this version, oldest first, apart from those that [`Self::compact`] removed.
    pub fn changes_after(&self, version: u64) -> impl Iterator<Item = &Change> {
        self.objects.changes_after(version)
    }

    /// Forgets the changes up to this version. The objects stay.
    pub fn compact(&mut self, version: u64) {
        self.objects.compact(version);
    }

    /// The counts of a DaemonSet or a Deployment; all are 0 if it does not exist.
    #[must_use]
    pub fn counts(&self, key: &ObjectKey) -> WorkloadCounts {
        self.objects
            .get(key)
            .and_then(|workload| self.counter.of(workload, &self.objects))
            .unwrap_or_default()
    }

    /// Resets the counts of created and deleted pods and the maxima. Duplicates are never reset.
    pub fn reset_counts(&mut self) {
        self.counter.reset();
    }

    pub(crate) fn validated(&self, resource: Resource, object: &Value) -> Result<(), Refusal> {
        (self.validate)(resource, object).map_err(|message| Refusal::new(Reason::Invalid, message))
    }

    /// Stores a pod and updates the counts.
    pub(crate) fn put_pod(&mut self, key: &ObjectKey, pod: Value) {
        self.counter.pod_changed(&key.name, &pod, true);
        self.forget_due(key);
        if let Some(due) = pod::due(&pod) {
            self.due.insert((due, key.namespace.clone(), key.name.clone()));
        }
        self.objects.put(key, pod);
    }

    fn forget_due(&mut self, key: &ObjectKey) {
        if let Some(due) = self.objects.get(key).and_then(pod::due) {
            self.due.remove(&(due, key.namespace.clone(), key.name.clone()));
        }
    }

    pub(crate) fn remove_pod(&mut self, key: &ObjectKey) {
        self.forget_due(key);
        if let Some(pod) = self.objects.remove(key) {
            self.counter.pod_changed(&key.name, &pod, false);
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Value> {
        self.objects.get(&ObjectKey::new(Resource::Nodes, "", name))
    }

    /// The pods for which this holds.
    pub(crate) fn pods_where(&self, is_wanted: impl Fn(&Value) -> bool) -> Vec<(ObjectKey, Arc<Value>)> {
        self.objects
            .all(Resource::Pods)
            .filter(|(_, pod)| is_wanted(pod))
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect()
    }
}
