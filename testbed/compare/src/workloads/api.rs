//! The fake API for plans about ReplicaSets and Deployments. It answers as the case says, and records every write.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use nodewise_planner::plan::{Event, EventType};
use serde_json::{Map, Value};

use super::read::text;
use crate::case::{Case, Fault, Kind};
use crate::outcome::{self, Call, Stored};

/// The longest object name that the API accepts.
const MAX_NAME: usize = 253;

/// Members of an object that every write changes, or that only one side has.
const SILENT: [&str; 8] = [
    "apiVersion",
    "kind",
    "creationTimestamp",
    "generation",
    "managedFields",
    "namespace",
    "resourceVersion",
    "uid",
];

/// Counts whose absence means something else than 0.
const COUNTS: [&str; 2] = ["collisionCount", "terminatingReplicas"];

/// A resource and a name.
type Key = (String, String);

/// An error of the API.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The HTTP status.
    pub(super) code: u16,
    /// The reason.
    pub(super) reason: String,
    /// The reason of the first cause.
    cause: String,
}

impl Refusal {
    fn new(code: u16, reason: &str) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            cause: String::new(),
        }
    }

    /// The message, as both fake APIs write it.
    pub(super) fn message(&self) -> String {
        format!("{} ({})", self.reason, self.code)
    }

    /// Whether the namespace is terminating.
    pub(super) fn is_namespace_terminating(&self) -> bool {
        self.cause == "NamespaceTerminating"
    }

    /// Whether the name is taken.
    pub(super) fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }
}

/// The API of one case.
#[derive(Debug)]
pub(super) struct Api {
    objects: BTreeMap<Key, Value>,
    /// The objects at the start that were written; `None` for those that did not exist.
    before: BTreeMap<Key, Option<Value>>,
    /// The faults, with the number of calls that each has rejected.
    faults: Vec<(Fault, u32)>,
    version: u64,
    /// The number of creates of pods. Their names in outcomes and faults are these numbers.
    pods: u64,
    /// All writes, in order.
    pub(super) calls: Vec<Call>,
    /// All events, in order.
    pub(super) events: Vec<outcome::Event>,
}

impl Api {
    /// The API with the objects in the caches of `case`, changed as its `live` says.
    pub(super) fn new(case: &Case) -> Result<Self> {
        let subject = case.subject()?;
        let namespace = text(subject, "/metadata/namespace");
        let mut objects = BTreeMap::new();
        let mut put = |resource: &str, object: &Value| {
            if text(object, "/metadata/namespace") == namespace {
                let name = text(object, "/metadata/name").to_owned();
                objects.insert((resource.to_owned(), name), object.clone());
            }
        };
        for set in case.replica_sets.iter().chain(&case.live.replica_sets) {
            put("replicasets", set);
        }
        for deployment in &case.deployments {
            put("deployments", deployment);
        }
        for pod in case.pods.iter().chain(&case.live.pods) {
            put("pods", pod);
        }
        if let Some(Some(live)) = &case.live.subject {
            put(subjects(case.kind), live);
        }
        if case.live.subject == Some(None) {
            let name = text(subject, "/metadata/name").to_owned();
            objects.remove(&(subjects(case.kind).to_owned(), name));
        }
        for gone in &case.live.gone {
            let (resource, name) = gone.split_once('/').context("live.gone: not RESOURCE/NAME")?;
            objects.remove(&(resource.to_owned(), name.to_owned()));
        }
        Ok(Self {
            objects,
            before: BTreeMap::new(),
            faults: case.faults.iter().map(|fault| (fault.clone(), 0)).collect(),
            version: 1_000_000,
            pods: 0,
            calls: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Emits an event.
    pub(super) fn emit(&mut self, kind: EventType, reason: &str, message: String) {
        self.events.push(outcome::Event {
            kind: match kind {
                EventType::Normal => "Normal".to_owned(),
                EventType::Warning => "Warning".to_owned(),
            },
            reason: reason.to_owned(),
            message,
        });
    }

    /// Emits the event of an action, with this text after its message.
    pub(super) fn emit_event(&mut self, event: &Event, more: &str) {
        self.emit(event.event_type, event.reason, format!("{}{more}", event.message));
    }

    /// Creates a pod, and returns its name.
    pub(super) fn create_pod(&mut self, mut pod: Value) -> Result<String, Refusal> {
        self.pods += 1;
        let number = self.pods.to_string();
        self.write("create-pod", &number.clone(), &pod.clone(), 201, |api| {
            let metadata = &mut pod["metadata"];
            if metadata["name"].is_null() {
                let prefix = text(metadata, "/generateName").to_owned();
                metadata["name"] = format!("{prefix}@{number}").into();
            }
            let name = text(metadata, "/name").to_owned();
            api.put_new("pods", &name, pod)?;
            Ok(name)
        })
    }

    /// Creates a ReplicaSet.
    pub(super) fn create_set(&mut self, name: &str, set: Value) -> Result<(), Refusal> {
        self.write("create-replicaset", name, &set.clone(), 201, |api| {
            api.put_new("replicasets", name, set)
        })
    }

    /// Deletes an object if it has this uid, and this version unless that is empty. A pod stays, as in its time of grace.
    pub(super) fn delete(
        &mut self,
        resource: &str,
        name: &str,
        uid: Option<&str>,
        version: &str,
    ) -> Result<(), Refusal> {
        let op = format!("delete-{}", noun(resource));
        let options = match uid {
            Some(uid) => serde_json::json!({"preconditions": {"uid": uid}}),
            None => serde_json::json!({}),
        };
        self.write(&op, name, &options, 200, |api| {
            let live = api.find(resource, name)?;
            let differs = uid.is_some_and(|uid| live["metadata"]["uid"] != uid)
                || !version.is_empty() && live["metadata"]["resourceVersion"] != version;
            if differs {
                return Err(Refusal::new(409, "Conflict"));
            }
            if resource != "pods" {
                api.store(resource, name, None);
            }
            Ok(())
        })
    }

    /// Applies a patch, and returns the patched object.
    pub(super) fn patch(
        &mut self,
        op: &str,
        resource: &str,
        name: &str,
        patch: &Patch,
    ) -> Result<Value, Refusal> {
        self.write(op, name, &patch.body, 200, |api| {
            let live = api.find(resource, name)?.clone();
            let wanted = &patch.body["metadata"];
            let differs =
                |member: &str| !wanted[member].is_null() && wanted[member] != live["metadata"][member];
            if differs("uid") || differs("resourceVersion") && !api.is_from_start(resource, name, wanted) {
                return Err(Refusal::new(409, "Conflict"));
            }
            let mut patched = live.clone();
            if patch.is_strategic {
                merge_owners(&mut patched, &patch.body);
            } else {
                merge(&mut patched, &patch.body);
            }
            // Each endpoint changes only its part.
            let kept: &[&str] = if patch.is_status { &["spec"] } else { &["status"] };
            for member in kept {
                if live[member].is_null() {
                    patched.as_object_mut().map(|object| object.remove(*member));
                } else {
                    patched[member] = live[member].clone();
                }
            }
            api.version += 1;
            patched["metadata"]["resourceVersion"] = api.version.to_string().into();
            api.store(resource, name, Some(patched.clone()));
            Ok(patched)
        })
    }

    /// Reads an object.
    pub(super) fn get(&mut self, op: &str, resource: &str, name: &str) -> Result<Value, Refusal> {
        self.fault(op, name)?;
        self.find(resource, name).cloned()
    }

    /// What changed of the ReplicaSets and Deployments that were written and existed before.
    pub(super) fn stored(&self) -> Vec<Stored> {
        let written = self.before.iter().filter(|((resource, _), _)| resource != "pods");
        written
            .filter_map(|((resource, name), before)| {
                let before = stripped(before.as_ref()?);
                let after = self.objects.get(&(resource.clone(), name.clone()));
                Some(Stored {
                    resource: resource.clone(),
                    name: name.clone(),
                    changes: after.map_or(Value::Null, |after| changes(&before, &stripped(after))),
                })
            })
            .collect()
    }

    /// Whether the version is that of the object at the start, and only this sync wrote it since. Upstream's fake API accepts
    /// such a write too.
    fn is_from_start(&self, resource: &str, name: &str, metadata: &Value) -> bool {
        let before = self.before.get(&(resource.to_owned(), name.to_owned()));
        let before = before.and_then(Option::as_ref);
        before.is_some_and(|before| before["metadata"]["resourceVersion"] == metadata["resourceVersion"])
    }

    fn put_new(&mut self, resource: &str, name: &str, mut object: Value) -> Result<(), Refusal> {
        // The name of a pod is shortened by the API, which makes it.
        if resource != "pods" && name.len() > MAX_NAME {
            return Err(Refusal::new(422, "Invalid"));
        }
        if self.find(resource, name).is_ok() {
            return Err(Refusal::new(409, "AlreadyExists"));
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        self.store(resource, name, Some(object));
        Ok(())
    }

    fn store(&mut self, resource: &str, name: &str, object: Option<Value>) {
        let key = (resource.to_owned(), name.to_owned());
        let before = match object {
            Some(object) => self.objects.insert(key.clone(), object),
            None => self.objects.remove(&key),
        };
        self.before.entry(key).or_insert(before);
    }

    fn find(&self, resource: &str, name: &str) -> Result<&Value, Refusal> {
        self.objects
            .get(&(resource.to_owned(), name.to_owned()))
            .ok_or_else(|| Refusal::new(404, "NotFound"))
    }

    /// Answers a write and records it.
    fn write<T>(
        &mut self,
        op: &str,
        name: &str,
        body: &Value,
        code: u16,
        answer: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let answered = self.fault(op, name).and_then(|()| answer(self));
        self.calls.push(Call {
            op: op.to_owned(),
            name: name.to_owned(),
            body: body.to_string(),
            code: answered.as_ref().map_or_else(|refusal| refusal.code, |_| code),
        });
        answered
    }

    /// Rejects a call if the case has a fault for it.
    fn fault(&mut self, op: &str, name: &str) -> Result<(), Refusal> {
        let found = self.faults.iter_mut().find(|(fault, seen)| {
            fault.op == op
                && (fault.name.is_empty() || fault.name == name)
                && (fault.times == 0 || *seen < fault.times)
        });
        let Some((fault, seen)) = found else {
            return Ok(());
        };
        *seen += 1;
        Err(Refusal {
            cause: fault.cause.clone(),
            ..Refusal::new(fault.code, &fault.reason)
        })
    }
}

/// A patch of one part of an object.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    /// The patch.
    pub(super) body: Value,
    /// Whether it is a strategic merge patch. Only those of owner references are known.
    pub(super) is_strategic: bool,
    /// Whether it changes the status, and the annotations, and nothing else.
    pub(super) is_status: bool,
}

/// The resource of the kind that is synced.
pub(super) fn subjects(kind: Kind) -> &'static str {
    match kind {
        Kind::DaemonSet => "daemonsets",
        Kind::ReplicaSet => "replicasets",
        Kind::Deployment => "deployments",
    }
}

/// The name of a resource in operations.
pub(super) fn noun(resource: &str) -> &'static str {
    match resource {
        "pods" => "pod",
        "replicasets" => "replicaset",
        _ => "deployment",
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in members {
        if value.is_null() {
            target.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// Applies a strategic merge patch of metadata.ownerReferences, which are merged by uid.
fn merge_owners(target: &mut Value, patch: &Value) {
    let mut owners = target["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for change in patch["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let at = owners.iter().position(|owner| owner["uid"] == change["uid"]);
        match (change["$patch"] == "delete", at) {
            (true, Some(at)) => {
                owners.remove(at);
            }
            (true, None) => {}
            (false, Some(at)) => merge(&mut owners[at], change),
            (false, None) => owners.push(change.clone()),
        }
    }
    target["metadata"]["ownerReferences"] = owners.into();
}

/// An object without what the API sets, and without values that equal a missing member.
#[must_use]
pub(crate) fn stripped(object: &Value) -> Value {
    match object {
        Value::Object(members) => {
            let kept = members
                .iter()
                .filter(|(name, _)| !SILENT.contains(&name.as_str()));
            let kept = kept.map(|(name, value)| {
                let is_count = COUNTS.contains(&name.as_str()) && value.is_number();
                (
                    name.clone(),
                    if is_count { value.clone() } else { stripped(value) },
                )
            });
            let kept: Map<_, _> = kept
                .filter(|(name, value)| COUNTS.contains(&name.as_str()) || !is_nothing(name, value))
                .filter(|(_, value)| !value.is_null())
                .collect();
            kept.into()
        }
        Value::Array(items) => items.iter().map(stripped).collect(),
        other => other.clone(),
    }
}

/// Whether a value equals a missing member. The empty string does so in a condition only.
fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(string) => string.is_empty() && ["message", "reason"].contains(&name),
        Value::Bool(is_true) => !is_true,
    }
}

/// The JSON merge patch from one value to another. Equal values give an empty object.
#[must_use]
pub(crate) fn changes(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match old.get(name) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(name.clone(), changes(before, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch.into()
}
