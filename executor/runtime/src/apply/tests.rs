//! Plans against a scripted apiserver.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::actuator::{
    ActuatorError, Eviction, ObjectKey, Patch, Preconditions, Refusal, WorkloadEvent, Written,
};
use serde_json::{Value, json};

use super::*;
use crate::testing::DAEMON_SETS;
use v1::{PhaseKind as P, Result as R};

mod batches;
mod claims;
mod creates;
mod deletes;
mod objects;
mod phases;
mod policies;
mod statuses;
mod window;

/// An apiserver that records every call as one line and refuses the scripted calls.
#[derive(Default)]
struct Script {
    calls: Mutex<Vec<String>>,
    /// By the call's line or its first word. The last refusal is repeated.
    refusals: Mutex<HashMap<String, Vec<ActuatorError>>>,
    /// The objects that reads return, by name.
    live: HashMap<String, Value>,
    bodies: Mutex<Vec<Value>>,
    events: Mutex<Vec<(String, String)>>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    /// How many calls are under way when each call begins, that call included.
    beginnings: Mutex<Vec<usize>>,
    /// Whether each call takes longer than the one before, so that no two end together.
    is_uneven: bool,
}

impl Script {
    fn refuse(self, call: &str, errors: &[ActuatorError]) -> Self {
        self.refusals
            .lock()
            .expect("lock")
            .insert(call.to_owned(), errors.to_vec());
        self
    }

    fn live(mut self, name: &str, object: Value) -> Self {
        self.live.insert(name.to_owned(), object);
        self
    }

    async fn call(&self, line: String) -> Result<Written, ActuatorError> {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(now, Ordering::SeqCst);
        let number = {
            let mut beginnings = self.beginnings.lock().expect("lock");
            beginnings.push(now);
            beginnings.len()
        };
        let more = if self.is_uneven { number * number } else { 0 };
        tokio::time::sleep(Duration::from_millis(5 + more as u64)).await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        let mut words = line.split(' ');
        let (verb, name) = (
            words.next().unwrap_or_default().to_owned(),
            words.next().unwrap_or_default().to_owned(),
        );
        self.calls.lock().expect("lock").push(line.clone());
        let mut refusals = self.refusals.lock().expect("lock");
        let key = if refusals.contains_key(&line) { line } else { verb };
        match refusals.get_mut(&key).map(|errors| {
            if errors.len() > 1 {
                errors.remove(0)
            } else {
                errors[0].clone()
            }
        }) {
            Some(error) if error.message != "none" => Err(error),
            _ => Ok(Written {
                name,
                resource_version: "7".to_owned(),
            }),
        }
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().expect("lock").clone()
    }

    fn events(&self) -> Vec<(String, String)> {
        self.events.lock().expect("lock").clone()
    }
}

impl Actuator for Script {
    async fn create(&self, _: Resource, _: &str, manifest: Bytes) -> Result<Written, ActuatorError> {
        let object: Value = serde_json::from_slice(&manifest).expect("JSON");
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or("generated")
            .to_owned();
        self.bodies.lock().expect("lock").push(object);
        self.call(format!("create {name}")).await
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let kind = if matches!(patch, Patch::Merge(_)) {
            "merge"
        } else {
            "strategic"
        };
        self.call(format!("patch {} {kind}", key.name)).await
    }

    async fn patch_status(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (Patch::Merge(body) | Patch::Strategic(body)) = patch;
        self.bodies
            .lock()
            .expect("lock")
            .push(serde_json::from_slice(&body).expect("JSON"));
        self.call(format!("patch-status {}", key.name)).await
    }

    async fn delete(&self, key: &ObjectKey, preconditions: Preconditions<'_>) -> Result<(), ActuatorError> {
        let Preconditions {
            uid,
            resource_version,
        } = preconditions;
        let version = resource_version.map(|version| format!(" at {version}"));
        self.call(format!(
            "delete {} {}{}",
            key.name,
            uid.unwrap_or("-"),
            version.unwrap_or_default()
        ))
        .await
        .map(drop)
    }

    async fn evict(&self, key: &ObjectKey, uid: &str) -> Result<Eviction, ActuatorError> {
        match self.call(format!("evict {} {uid}", key.name)).await {
            Ok(_) => Ok(Eviction::Evicted),
            Err(error) if error.http_status == 429 => Ok(Eviction::Blocked {
                message: error.message,
                retry_after: Some(Duration::from_secs(7)),
            }),
            Err(error) => Err(error),
        }
    }

    async fn replace_status(&self, key: &ObjectKey, object: Bytes) -> Result<Written, ActuatorError> {
        self.bodies
            .lock()
            .expect("lock")
            .push(serde_json::from_slice(&object).expect("JSON"));
        self.call(format!("status {}", key.name)).await
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        self.call(format!("read {}", key.name)).await?;
        self.live
            .get(&key.name)
            .map(|object| object.to_string().into())
            .ok_or_else(|| error(Refusal::NotFound, 404))
    }

    async fn list(
        &self,
        _: Resource,
        _: &str,
        _: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        Err(error(Refusal::Other, 500))
    }

    fn emit(&self, event: WorkloadEvent) {
        let about = &event.workload;
        let of_policy = if about.kind == "RolloutPolicy" {
            format!(" of {}", about.uid)
        } else {
            assert_eq!(about.name, "agent");
            String::new()
        };
        self.events.lock().expect("lock").push((
            format!("{} {}{of_policy}", event.kind, event.reason),
            event.message,
        ));
    }
}

fn error(refusal: Refusal, http_status: u16) -> ActuatorError {
    ActuatorError {
        refusal,
        http_status,
        message: format!("{refusal:?}"),
    }
}

fn none() -> ActuatorError {
    ActuatorError {
        message: "none".to_owned(),
        ..error(Refusal::Other, 0)
    }
}

fn reference(name: &str) -> v1::ObjectReference {
    v1::ObjectReference {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
    }
}

fn create_pod(name: &str) -> Kind {
    Kind::CreatePod(v1::CreatePod {
        pod_name: name.to_owned(),
        node_name: format!("node-{name}"),
    })
}

fn delete_pod(name: &str) -> Kind {
    Kind::DeletePod(v1::DeletePod {
        pod: Some(reference(name)),
        node_name: "node".to_owned(),
        uid_precondition: true,
    })
}

fn phase(kind: v1::PhaseKind, batches: Vec<Vec<Kind>>) -> v1::Phase {
    let batch = |kinds: Vec<Kind>| v1::Batch {
        actions: kinds
            .into_iter()
            .map(|kind| v1::Action {
                kind: Some(kind),
                ..v1::Action::default()
            })
            .collect(),
        confirm_workload: false,
    };
    v1::Phase {
        kind: kind.into(),
        batches: batches.into_iter().map(batch).collect(),
        ..v1::Phase::default()
    }
}

/// A plan whose actions are numbered in order.
fn plan(mut phases: Vec<v1::Phase>) -> v1::Plan {
    let actions = phases
        .iter_mut()
        .flat_map(|phase| &mut phase.batches)
        .flat_map(|batch| &mut batch.actions);
    actions.zip(1..).for_each(|(action, id)| action.id = id);
    let manifest = json!({
        "metadata": {"generateName": "agent-", "labels": {"controller-revision-hash": "h1"}},
        "spec": {"affinity": {"values": [""]}, "note": "{node}"},
    });
    v1::Plan {
        verdict: v1::Verdict::Apply.into(),
        workload: Some(v1::WorkloadReference {
            kind: "DaemonSet".into(),
            namespace: "demo".into(),
            name: "agent".into(),
            uid: "uid-agent".into(),
            resource_version: "5".into(),
        }),
        phases,
        pod_manifest: manifest.to_string().into(),
        node_name_pointers: vec!["/spec/affinity/values/0".to_owned()],
        ..v1::Plan::default()
    }
}

fn cached() -> Bytes {
    json!({
        "metadata": {"name": "agent", "uid": "uid-agent", "resourceVersion": "5"},
        "spec": {"unknownToUs": [1.5]},
        "status": {"numberReady": 1, "conditions": [{"type": "Theirs"}], "collisionCount": 2},
    })
    .to_string()
    .into()
}

fn live_workload(collisions: Option<i32>) -> Value {
    json!({
        "metadata": {"name": "agent", "uid": "uid-agent", "resourceVersion": "9"},
        "status": {"collisionCount": collisions, "conditions": [{"type": "Newer"}]},
    })
}

/// A pod as the apiserver would return it.
fn live_pod(owner: &str, node: &str, hash: &str) -> Value {
    json!({
        "metadata": {"name": "p", "uid": "uid-live", "labels": {"controller-revision-hash": hash},
                     "ownerReferences": [{"kind": "DaemonSet", "name": "agent", "uid": owner, "controller": true}]},
        "spec": {"nodeName": node},
    })
}

/// The same object with a managed field that is nested too deeply for a parser of whole objects. Anyone who may create
/// pods may write such a field.
fn with_deep_fields(mut object: Value) -> Value {
    let fields = (0..1_000).fold(json!({}), |fields, _| json!({ "f:a": fields }));
    object["metadata"]["managedFields"] =
        json!([{"manager": "m", "operation": "Update", "time": "2026-11-23T04:00:00Z", "fieldsV1": fields}]);
    object
}

async fn run(script: &Script, plan: &v1::Plan) -> Applied {
    apply(
        script,
        plan,
        (DAEMON_SETS, &cached()),
        &LeftOut::new(),
        &Options::default(),
    )
    .await
}

fn results(applied: &Applied) -> Vec<v1::Result> {
    applied.outcomes.iter().map(v1::Outcome::result).collect()
}

fn new_status() -> v1::UpdateStatus {
    let status = v1::DaemonSetStatus {
        number_ready: 4,
        observed_generation: 3,
        ..v1::DaemonSetStatus::default()
    };
    v1::UpdateStatus {
        status: Some(status),
        ..v1::UpdateStatus::default()
    }
}
