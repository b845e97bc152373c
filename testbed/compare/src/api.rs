//! The fake API for the executor: an actuator that answers as the case says, and records every write and event.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use nodewise_executor::daemon_set::DAEMON_SETS;
use nodewise_runtime::{
    Resource,
    actuator::{Actuator, ActuatorError, ObjectKey, Patch, Preconditions, Refusal, WorkloadEvent, Written},
};
use serde_json::{Value, json};

use crate::case::{Case, Fault};
use crate::outcome::{Call, Event};

/// The longest object name that the API accepts.
const MAX_NAME: usize = 253;

/// The API of one case.
#[derive(Debug)]
pub(crate) struct FakeApi(Mutex<Api>);

#[derive(Debug)]
struct Api {
    /// The objects as JSON, by resource and name.
    objects: BTreeMap<(&'static str, String), Value>,
    /// The faults, with the number of calls that each has rejected.
    faults: Vec<(Fault, u32)>,
    version: u64,
    calls: Vec<Call>,
    events: Vec<Event>,
}

/// The kind of a call, as in [`Fault::op`], and its object.
struct Op<'a> {
    op: &'static str,
    name: &'a str,
}

impl FakeApi {
    /// An API with the objects in the caches of `case`, changed as its `live` says.
    ///
    /// # Errors
    /// A revision's data is not JSON.
    pub(crate) fn new(case: &Case) -> Result<Self> {
        let mut objects = BTreeMap::new();
        let mut put = |resource: Resource, object: Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            objects.insert((resource.plural, name), object);
        };
        let cached = case.subject()?;
        match &case.live.subject {
            Some(None) => {}
            Some(Some(live)) => put(DAEMON_SETS, live.clone()),
            None => put(DAEMON_SETS, cached.clone()),
        }
        for pod in &case.pods {
            if pod["metadata"]["namespace"] == cached["metadata"]["namespace"] {
                put(Resource::PODS, pod.clone());
            }
        }
        for stored in case.revisions.iter().chain(&case.live.revisions) {
            if stored.object["metadata"]["namespace"] == cached["metadata"]["namespace"] {
                put(Resource::REVISIONS, stored.served()?);
            }
        }
        for gone in &case.live.gone {
            let (resource, name) = gone.split_once('/').context("live.gone: not RESOURCE/NAME")?;
            objects.retain(|(plural, present), _| *plural != resource || present != name);
        }
        Ok(Self(Mutex::new(Api {
            objects,
            faults: case.faults.iter().map(|fault| (fault.clone(), 0)).collect(),
            version: 1_000_000,
            calls: Vec::new(),
            events: Vec::new(),
        })))
    }

    /// All writes so far, in order.
    #[must_use]
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.api().calls.clone()
    }

    /// All events so far, sorted.
    #[must_use]
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.api().events.clone();
        events.sort_unstable();
        events
    }

    fn api(&self) -> MutexGuard<'_, Api> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Api {
    /// Answers a write and records it.
    fn write(
        &mut self,
        op: &Op<'_>,
        body: &[u8],
        answer: impl FnOnce(&mut Self) -> Result<Written, ActuatorError>,
    ) -> Result<Written, ActuatorError> {
        let answered = self.fault(op).and_then(|()| answer(self));
        let (done, body) = (
            if op.op.starts_with("create") { 201 } else { 200 },
            String::from_utf8_lossy(body),
        );
        self.calls.push(Call {
            op: op.op.to_owned(),
            name: op.name.to_owned(),
            body: body.into_owned(),
            code: answered.as_ref().map_or_else(|error| error.http_status, |_| done),
        });
        answered
    }

    /// Rejects a call if the case has a fault for it.
    fn fault(&mut self, op: &Op<'_>) -> Result<(), ActuatorError> {
        let Some((fault, seen)) = self.matching(op) else {
            return Ok(());
        };
        *seen += 1;
        Err(refuse(fault.code, &fault.reason, &fault.cause))
    }

    /// The fault for a call, with the number of calls that it has rejected.
    fn matching(&mut self, op: &Op<'_>) -> Option<&mut (Fault, u32)> {
        self.faults.iter_mut().find(|(fault, seen)| {
            fault.op == op.op
                && (fault.name.is_empty() || fault.name == op.name)
                && (fault.times == 0 || *seen < fault.times)
        })
    }

    fn written(&mut self, name: &str) -> Written {
        self.version += 1;
        Written {
            name: name.to_owned(),
            resource_version: self.version.to_string(),
        }
    }

    fn find(&self, resource: Resource, name: &str) -> Result<&Value, ActuatorError> {
        self.objects
            .get(&(resource.plural, name.to_owned()))
            .ok_or_else(|| refuse(404, "NotFound", ""))
    }

    fn create_revision(&mut self, name: &str, mut object: Value) -> Result<Written, ActuatorError> {
        if name.len() > MAX_NAME {
            return Err(refuse(422, "Invalid", ""));
        }
        if self.find(Resource::REVISIONS, name).is_ok() {
            return Err(refuse(409, "AlreadyExists", ""));
        }
        object["metadata"]["uid"] = format!("uid of {name}").into();
        self.objects
            .insert((Resource::REVISIONS.plural, name.to_owned()), object);
        Ok(self.written(name))
    }

    /// One sync creates at most one pod per node, so a name made from the node is unique.
    fn create_pod(&mut self, node: &str, object: Value) -> Result<Written, ActuatorError> {
        let metadata = &object["metadata"];
        let generated = || format!("{}@{node}", metadata["generateName"].as_str().unwrap_or_default());
        let name = metadata["name"].as_str().map_or_else(generated, str::to_owned);
        if self.find(Resource::PODS, &name).is_ok() {
            return Err(refuse(409, "AlreadyExists", ""));
        }
        self.objects.insert((Resource::PODS.plural, name.clone()), object);
        Ok(self.written(&name))
    }

    fn replace_status(&mut self, name: &str, object: &Value) -> Result<Written, ActuatorError> {
        let live = self.find(DAEMON_SETS, name)?;
        if live["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(refuse(409, "Conflict", ""));
        }
        let written = self.written(name);
        let mut stored = self.find(DAEMON_SETS, name)?.clone();
        stored["status"] = object["status"].clone();
        stored["metadata"]["resourceVersion"] = written.resource_version.as_str().into();
        self.objects.insert((DAEMON_SETS.plural, name.to_owned()), stored);
        Ok(written)
    }
}

impl Actuator for FakeApi {
    async fn create(
        &self,
        resource: Resource,
        _namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let object = parse(&manifest)?;
        let mut api = self.api();
        if resource == Resource::PODS {
            let node = target_node(&object);
            let op = Op {
                op: "create-pod",
                name: &node,
            };
            return api.write(&op, &manifest, |api| api.create_pod(&node, object));
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let op = Op {
            op: "create-revision",
            name: &name,
        };
        api.write(&op, &manifest, |api| api.create_revision(&name, object))
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (Patch::Merge(body) | Patch::Strategic(body)) = patch;
        let patch = parse(&body)?;
        let op = Op {
            op: patch_op(key.resource, &patch["metadata"]),
            name: &key.name,
        };
        self.api().write(&op, &body, |api| {
            let live = api.find(key.resource, &key.name)?;
            let uid = &patch["metadata"]["uid"];
            if !uid.is_null() && *uid != live["metadata"]["uid"] {
                return Err(refuse(409, "Conflict", ""));
            }
            Ok(api.written(&key.name))
        })
    }

    async fn patch_status(&self, _: &ObjectKey, _: Patch) -> Result<Written, ActuatorError> {
        Err(refuse(404, "NotFound", ""))
    }

    async fn delete(&self, key: &ObjectKey, preconditions: Preconditions<'_>) -> Result<(), ActuatorError> {
        let uid = preconditions.uid;
        let op = Op {
            op: delete_op(key.resource),
            name: &key.name,
        };
        let options = uid.map_or_else(|| json!({}), |uid| json!({"preconditions": {"uid": uid}}));
        let answered = self.api().write(&op, options.to_string().as_bytes(), |api| {
            let live = api.find(key.resource, &key.name)?;
            if uid.is_some_and(|uid| live["metadata"]["uid"] != uid) {
                return Err(refuse(409, "Conflict", ""));
            }
            Ok(api.written(&key.name))
        });
        answered.map(drop)
    }

    async fn replace_status(&self, key: &ObjectKey, object: Bytes) -> Result<Written, ActuatorError> {
        let op = Op {
            op: "update-status",
            name: &key.name,
        };
        let parsed = parse(&object)?;
        self.api()
            .write(&op, &object, |api| api.replace_status(&key.name, &parsed))
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        let op = Op {
            op: match key.resource {
                DAEMON_SETS => "get-daemonset",
                Resource::REVISIONS => "get-revision",
                _ => "get-pod",
            },
            name: &key.name,
        };
        let mut api = self.api();
        api.fault(&op)?;
        // After a failed delete, upstream does not read the pod. So Nodewise's read fails here, and both know the same.
        let delete = delete_op(key.resource);
        let went_wrong =
            |call: &Call| call.op == delete && call.name == key.name && ![200, 404].contains(&call.code);
        if api.calls.iter().any(went_wrong) {
            return Err(refuse(500, "InternalError", ""));
        }
        api.find(key.resource, &key.name)
            .map(|object| object.to_string().into())
    }

    async fn list(
        &self,
        resource: Resource,
        _namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        let objects = &self.api().objects;
        let all = objects
            .iter()
            .filter(|((plural, _), _)| *plural == resource.plural);
        all.for_each(|(_, object)| take(&object.to_string()));
        Ok(())
    }

    fn emit(&self, event: WorkloadEvent) {
        self.api().events.push(Event {
            kind: event.kind,
            reason: event.reason,
            message: event.message,
        });
    }
}

fn delete_op(resource: Resource) -> &'static str {
    match resource {
        Resource::PODS => "delete-pod",
        _ => "delete-revision",
    }
}

/// The kind of call that a patch with this metadata is.
fn patch_op(resource: Resource, metadata: &Value) -> &'static str {
    let owners = metadata["ownerReferences"].as_array();
    let released = owners
        .into_iter()
        .flatten()
        .any(|owner| owner["$patch"] == "delete");
    match (resource, owners.is_some(), released) {
        (Resource::PODS, true, true) => "release-pod",
        (Resource::PODS, true, false) => "adopt-pod",
        (Resource::PODS, false, _) => "relabel-pod",
        (_, true, true) => "release-revision",
        (_, true, false) => "adopt-revision",
        (_, false, _) => "update-revision",
    }
}

/// The node in the required affinity of a pod.
pub(crate) fn target_node(pod: &Value) -> String {
    pod.pointer(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
    )
    .and_then(Value::as_str)
    .unwrap_or_default()
    .to_owned()
}

fn parse(body: &[u8]) -> Result<Value, ActuatorError> {
    serde_json::from_slice(body).map_err(|error| ActuatorError::unclear(format!("not JSON: {error}")))
}

/// An error as the executor's client makes it from a Status.
fn refuse(code: u16, reason: &str, cause: &str) -> ActuatorError {
    ActuatorError {
        refusal: Refusal::of(code, reason, [cause]),
        http_status: code,
        message: format!("{reason} ({code})"),
    }
}
