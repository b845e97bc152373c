//! Loads a cluster that exists, and moves virtual time from one change to the next.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Cluster, ObjectKey, Resource,
    objects::metadata,
    pod::{self, DUE},
    refusal::{Reason, Refusal},
};

/// The tick of something that never happens.
const NEVER: u64 = u64::MAX;

impl Cluster {
    /// Stores an object that exists already, with the uid, the creation time and the status that it has.
    ///
    /// Fails if it has no name or no uid, or if its name is taken.
    pub fn load(
        &mut self,
        resource: Resource,
        namespace: &str,
        mut object: Value,
    ) -> Result<ObjectKey, Refusal> {
        let metadata = metadata(&mut object)?;
        let missing = ["name", "uid"]
            .into_iter()
            .find(|field| metadata[*field].as_str().is_none_or(str::is_empty));
        if let Some(field) = missing {
            return Err(Refusal::new(
                Reason::Invalid,
                format!("metadata.{field} is required"),
            ));
        }
        let key = ObjectKey::new(resource, namespace, metadata["name"].as_str().unwrap_or_default());
        if self.objects.get(&key).is_some() {
            return Err(Refusal::new(
                Reason::AlreadyExists,
                format!("{key} already exists"),
            ));
        }
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        match resource {
            Resource::Pods => self.put_pod(&key, object),
            Resource::ReplicaSets => {
                self.counter.replicas.read_set(&object);
                self.objects.put(&key, object);
            }
            _ => self.objects.put(&key, object),
        }
        Ok(key)
    }

    /// Says after how many ticks a pod becomes ready, or is gone if it is being deleted. `None`: never.
    ///
    /// Fails if the pod does not exist.
    pub fn set_due(&mut self, key: &ObjectKey, ticks: Option<u64>) -> Result<(), Refusal> {
        let mut pod = self.objects.find(key)?.clone();
        pod["status"][DUE] = json!(ticks.map_or(NEVER, |ticks| self.tick.saturating_add(ticks)));
        self.put_pod(key, pod);
        Ok(())
    }

    /// The number of ticks until the next pod becomes ready or is gone; `None` if no pod ever does by itself.
    #[must_use]
    pub fn ticks_to_next_change(&self) -> Option<u64> {
        let waiting = self.due.range((self.tick + 1, String::new(), String::new())..);
        let mut pods = waiting.filter(|(due, namespace, name)| {
            let key = ObjectKey::new(Resource::Pods, namespace.as_str(), name.as_str());
            *due != NEVER && self.objects.get(&key).is_some_and(|pod| self.will_change(pod))
        });
        pods.next().map(|(due, ..)| due - self.tick)
    }

    /// Lets this many ticks pass at once, and sets the time to `now`. Pods that become ready or are gone in between do so at the
    /// end; see [`Self::ticks_to_next_change`].
    pub fn skip(&mut self, ticks: u64, now: Timestamp) {
        self.tick = self.tick.saturating_add(ticks);
        self.now = now;
        let until = (self.tick.saturating_add(1), String::new(), String::new());
        let due: Vec<ObjectKey> = self
            .due
            .range(..until)
            .map(|(_, namespace, name)| ObjectKey::new(Resource::Pods, namespace.as_str(), name.as_str()))
            .collect();
        for key in due {
            let Some(pod) = self.objects.get(&key).filter(|pod| self.has_work(pod)) else {
                continue;
            };
            self.work_on(&key, Arc::new(pod.clone()));
        }
    }

    /// Whether a pod becomes ready or is gone by itself, at some time.
    fn will_change(&self, pod: &Value) -> bool {
        let node = pod["spec"]["nodeName"].as_str();
        match (pod::is_deleting(pod), node) {
            (true, node) => node.is_none_or(|node| !self.is_broken(node)),
            (false, Some(node)) => !self.is_broken(node) && self.node(node).is_some(),
            (false, None) => false,
        }
    }
}
