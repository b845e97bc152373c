//! Gathers everything that a plan changes of one ReplicaSet, so that there is one write of it (P-3, P-4).

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::{
    core::{
        canonical,
        plan::{
            Action, ActionKind, Event, EventType, ObjectRef, PatchType, Reason, Resource, Subresource,
            WriteEvents,
        },
    },
    deployment::workload::Set,
};

/// The one write of a ReplicaSet.
#[derive(Debug)]
pub(crate) struct SetWrite<'a> {
    /// The ReplicaSet as in the snapshot.
    pub(crate) set: &'a Set,
    /// spec.minReadySeconds after the plan.
    pub(crate) min_ready_seconds: i32,
    /// The size after the plan.
    replicas: i32,
    /// The changed annotations.
    annotations: BTreeMap<&'a str, String>,
    /// Whether the changes are a reason to write the set.
    required: bool,
    events: Vec<Event>,
    resized: Option<Reason>,
    messages: Vec<String>,
}

impl<'a> SetWrite<'a> {
    fn new(set: &'a Set) -> Self {
        Self {
            set,
            min_ready_seconds: set.min_ready_seconds,
            replicas: set.replicas,
            annotations: BTreeMap::new(),
            required: false,
            events: Vec::new(),
            resized: None,
            messages: Vec::new(),
        }
    }

    /// Sets an annotation. The write is not required for that alone.
    pub(crate) fn annotate(&mut self, key: &'a str, value: String) {
        if self.set.annotation(key) == Some(&value) {
            self.annotations.remove(key);
        } else {
            self.annotations.insert(key, value);
        }
    }

    /// Whether any annotation changes.
    pub(crate) fn changes_annotations(&self) -> bool {
        !self.annotations.is_empty()
    }

    /// Requires the write.
    pub(crate) fn require(&mut self) {
        self.required = true;
    }

    /// Requires the write, and says why.
    pub(crate) fn explain(&mut self, message: String) {
        self.require();
        self.messages.push(message);
    }

    /// Changes the size. An Event says so after the write.
    pub(crate) fn resize(&mut self, replicas: i32, reason: Reason, message: String) {
        let direction = if replicas > self.replicas { "up" } else { "down" };
        self.events
            .push(scaled(direction, &self.set.name, self.replicas, replicas));
        self.replicas = replicas;
        self.resized = Some(reason);
        self.explain(message);
    }

    /// The action; `None` if nothing requires a write. `adopted` is whether the plan adopts the set before.
    fn action(self, adopted: bool) -> Option<Action> {
        if !self.required {
            return None;
        }
        Some(Action {
            reason: self.resized.unwrap_or(Reason::MetadataChanged),
            message: self.message(),
            kind: ActionKind::PatchObject {
                resource: Resource::ReplicaSets,
                object: reference(self.set),
                subresource: Subresource::None,
                patch_type: PatchType::Merge,
                patch: canonical::to_bytes(&self.patch(adopted)),
                failure_pointer: String::new(),
                claim: None,
                events: Box::new(WriteEvents {
                    success: self.events,
                    failure: None,
                }),
            },
        })
    }

    /// Why the set is written.
    fn message(&self) -> String {
        if self.messages.is_empty() {
            self.followed()
        } else {
            self.messages.join("; ")
        }
    }

    /// A sentence about a write that changes no size.
    fn followed(&self) -> String {
        let mut changes: Vec<_> = self.annotations.keys().map(|key| (*key).to_owned()).collect();
        if self.min_ready_seconds != self.set.min_ready_seconds {
            changes.push(format!("minReadySeconds {}", self.min_ready_seconds));
        }
        format!("{} follows the Deployment: {}", self.set.name, changes.join(", "))
    }

    /// The merge patch. The resourceVersion makes the apiserver refuse the write if the set has changed since. An adoption in the
    /// same plan changes it, too, so the patch of an adopted set has none.
    fn patch(&self, adopted: bool) -> Value {
        let mut metadata = metadata(&self.set.uid, &self.set.resource_version);
        if adopted {
            metadata.remove("resourceVersion");
        }
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(self.annotations));
        }
        let mut spec = Map::new();
        if self.replicas != self.set.replicas {
            spec.insert("replicas".to_owned(), self.replicas.into());
        }
        if self.min_ready_seconds != self.set.min_ready_seconds {
            spec.insert("minReadySeconds".to_owned(), self.min_ready_seconds.into());
        }
        let mut patch = json!({"metadata": metadata});
        if !spec.is_empty() {
            patch["spec"] = spec.into();
        }
        patch
    }
}

/// The metadata of a patch for one state of one object.
pub(crate) fn metadata(uid: &str, resource_version: &str) -> Map<String, Value> {
    [("uid", uid), ("resourceVersion", resource_version)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// A reference to a ReplicaSet.
pub(crate) fn reference(set: &Set) -> ObjectRef {
    ObjectRef {
        name: set.name.clone(),
        uid: set.uid.clone(),
    }
}

/// The Event about a changed size.
pub(crate) fn scaled(direction: &str, name: &str, from: i32, to: i32) -> Event {
    Event {
        event_type: EventType::Normal,
        reason: "ScalingReplicaSet",
        message: format!("Scaled {direction} replica set {name} from {from} to {to}"),
    }
}

/// The writes of one phase, in the order in which the sets first needed one.
#[derive(Debug, Default)]
pub(crate) struct SetWrites<'a> {
    writes: Vec<SetWrite<'a>>,
    /// The indices of `writes` in the order of the writes. Looking at a set is no reason to write it before others.
    order: Vec<usize>,
    /// Where the write of a set is, by the set's address.
    places: HashMap<*const Set, usize>,
}

impl<'a> SetWrites<'a> {
    /// The write of a set.
    pub(crate) fn of(&mut self, set: &'a Set) -> &mut SetWrite<'a> {
        let place = *self.places.entry(std::ptr::from_ref(set)).or_insert_with(|| {
            self.writes.push(SetWrite::new(set));
            self.writes.len() - 1
        });
        if !self.writes[place].required {
            self.order.retain(|other| *other != place);
            self.order.push(place);
        }
        &mut self.writes[place]
    }

    /// Whether any write is required.
    pub(crate) fn is_required(&self) -> bool {
        self.writes.iter().any(|write| write.required)
    }

    /// Why a set is written; `None` if it is not.
    pub(crate) fn message(&self, set: &Set) -> Option<String> {
        let write = &self.writes[*self.places.get(&std::ptr::from_ref(set))?];
        write.required.then(|| write.message())
    }

    /// The actions for the writes that are required.
    pub(crate) fn into_actions(self) -> Vec<Action> {
        let mut writes: Vec<_> = self.writes.into_iter().map(Some).collect();
        let ordered = self.order.into_iter().filter_map(|place| writes[place].take());
        ordered
            .filter_map(|write| {
                let adopted = write.set.controller.is_none();
                write.action(adopted)
            })
            .collect()
    }
}
