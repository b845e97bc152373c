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

mod objects;
mod phases;
mod policies;

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
        tokio::time::sleep(Duration::from_millis(5)).await;
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

/// A live pod whose controller has the uid of the workload.
fn controlled_by(kind: &str, name: &str) -> Value {
    let mut pod = live_pod("uid-agent", "node-p", "h1");
    pod["metadata"]["ownerReferences"][0]["kind"] = kind.into();
    pod["metadata"]["ownerReferences"][0]["name"] = name.into();
    pod
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

use v1::{PhaseKind as P, Result as R};

// D-66, D-68: each pod gets its name and its node, and nothing else changes. R-31: each create causes an event.
#[tokio::test(start_paused = true)]
async fn manifests_are_rendered_per_pod() {
    let script = Script::default();
    let plan = plan(vec![phase(
        P::Creates,
        vec![vec![create_pod("a")], vec![create_pod("b")], vec![create_pod("")]],
    )]);
    let applied = run(&script, &plan).await;
    assert_eq!(results(&applied), [R::Succeeded; 3]);
    let bodies = script.bodies.lock().expect("lock").clone();
    for (body, (name, node)) in bodies.iter().zip([
        (json!("a"), "node-a"),
        (json!("b"), "node-b"),
        (Value::Null, "node-"),
    ]) {
        assert_eq!(
            (&body["metadata"]["name"], &body["spec"]["affinity"]["values"][0]),
            (&name, &json!(node))
        );
        assert_eq!(
            (&body["metadata"]["generateName"], &body["spec"]["note"]),
            (&json!("agent-"), &json!("{node}"))
        );
    }
    assert_eq!(
        script.events()[2],
        (
            "Normal SuccessfulCreate".to_owned(),
            "Created pod: generated".to_owned()
        )
    );
}

// D-77: a batch runs concurrently, the next one waits for all of it; D-76: creates end before deletes begin.
#[tokio::test(start_paused = true)]
async fn batches_run_one_after_the_other() {
    let script = Script::default();
    let creates = [1, 2, 4]
        .map(|size| (0..size).map(|i| create_pod(&format!("p{size}{i}"))).collect())
        .to_vec();
    let plan = plan(vec![
        phase(P::Creates, creates),
        phase(P::Deletes, vec![vec![delete_pod("x"), delete_pod("y")]]),
    ]);
    let applied = run(&script, &plan).await;
    assert_eq!(applied.batches, 4);
    assert_eq!(script.most_under_way.load(Ordering::SeqCst), 4);
    let calls = script.calls();
    let batch_of = |call: &String| {
        call.chars()
            .nth("create p".len())
            .filter(|_| call.starts_with("create"))
    };
    let order: Vec<_> = calls.iter().map(batch_of).collect();
    assert!(order.is_sorted_by_key(|size| size.unwrap_or('9')), "{calls:?}");
    assert!(!applied.failed);
    assert_eq!(
        applied
            .outcomes
            .iter()
            .map(|outcome| outcome.action_id)
            .collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_bounded() {
    let script = Script::default();
    let plan = plan(vec![phase(
        P::Creates,
        vec![(0..20).map(|i| create_pod(&i.to_string())).collect()],
    )]);
    let options = Options {
        concurrency: 3,
        ..Options::default()
    };
    apply(
        &script,
        &plan,
        (DAEMON_SETS, &cached()),
        &LeftOut::new(),
        &options,
    )
    .await;
    assert_eq!(script.most_under_way.load(Ordering::SeqCst), 3);
    assert_eq!(script.calls().len(), 20);
}

// D-78, D-79: 100 creates, and the quota admits 10: 15 calls, 85 skipped. The deletes still run.
#[tokio::test(start_paused = true)]
async fn slow_start_stops_after_a_failed_batch() {
    let quota = error(Refusal::Other, 403);
    let script = Script::default().refuse("create", &[&vec![none(); 10][..], &[quota]].concat());
    let sizes = [1_usize, 2, 4, 8, 16, 32, 37];
    let mut names = (0..100).map(|i| create_pod(&i.to_string()));
    let batches = sizes
        .iter()
        .map(|size| names.by_ref().take(*size).collect())
        .collect();
    let plan = plan(vec![
        phase(P::Creates, batches),
        phase(P::Deletes, vec![vec![delete_pod("x")]]),
    ]);
    let applied = run(&script, &plan).await;
    let count = |result| applied.count(result);
    assert_eq!(
        (count(R::Succeeded), count(R::Failed), count(R::Skipped)),
        (11, 5, 85)
    );
    assert!(applied.failed);
    assert_eq!((applied.batches, script.calls().len()), (5, 16));
    let skipped = &applied.outcomes[99];
    assert!(
        matches!(&skipped.subject, Some(v1::outcome::Subject::CreatedPod(pod)) if pod.node_name == "node-99")
    );
}

// D-79, D-82: any error of a create counts as failed and causes an Event.
#[tokio::test(start_paused = true)]
async fn a_failed_create_causes_an_event() {
    for failure in [
        error(Refusal::Invalid, 422),
        error(Refusal::Other, 504),
        ActuatorError::unclear("timed out"),
    ] {
        let script = Script::default().refuse("create", std::slice::from_ref(&failure));
        let applied = run(
            &script,
            &plan(vec![phase(P::Creates, vec![vec![create_pod("a")]])]),
        )
        .await;
        let outcome = &applied.outcomes[0];
        assert_eq!(
            (outcome.result(), &outcome.message),
            (R::Failed, &failure.message)
        );
        assert_eq!(outcome.http_status, u32::from(failure.http_status));
        let expected = (
            "Warning FailedCreate".to_owned(),
            format!("Error creating: {failure}"),
        );
        assert_eq!(script.events(), [expected]);
    }
}

// D-80: a terminating namespace causes no Event, stops no batch and is no failure.
#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_causes_no_event() {
    let script = Script::default().refuse("create", &[error(Refusal::NamespaceTerminating, 403)]);
    let batches = vec![
        vec![create_pod("a")],
        vec![create_pod("b"), create_pod("c")],
        vec![create_pod("d")],
    ];
    let applied = run(&script, &plan(vec![phase(P::Creates, batches)])).await;
    assert_eq!(results(&applied), [R::NamespaceTerminating; 4]);
    assert!(!applied.failed && script.events().is_empty());
}

// Idempotent creates: a taken name counts as done only if the live pod is the one that the create would have made.
#[tokio::test(start_paused = true)]
async fn a_taken_name_is_read_live() {
    for (name, live, expected) in [
        ("ours", live_pod("uid-agent", "node-p", "h1"), R::AlreadyExists),
        ("other owner", live_pod("uid-other", "node-p", "h1"), R::NameTaken),
        ("other kind", controlled_by("ReplicaSet", "agent"), R::NameTaken),
        ("other name", controlled_by("DaemonSet", "other"), R::NameTaken),
        ("other node", live_pod("uid-agent", "node-q", "h1"), R::NameTaken),
        (
            "other revision",
            live_pod("uid-agent", "node-p", "h0"),
            R::NameTaken,
        ),
        (
            "odd managed fields",
            with_deep_fields(live_pod("uid-other", "node-p", "h1")),
            R::NameTaken,
        ),
        (
            "ours with odd managed fields",
            with_deep_fields(live_pod("uid-agent", "node-p", "h1")),
            R::AlreadyExists,
        ),
    ] {
        let script = Script::default()
            .refuse("create", &[error(Refusal::AlreadyExists, 409)])
            .live("p", live);
        let applied = run(
            &script,
            &plan(vec![phase(P::Creates, vec![vec![create_pod("p")]])]),
        )
        .await;
        assert_eq!(results(&applied), [expected], "{name}");
        assert!(
            !applied.failed && script.events().is_empty(),
            "{name}: no failure"
        );
        assert_eq!(applied.name_taken, expected == R::NameTaken, "{name}");
        assert!(applied.writes.is_empty(), "nothing was written");
    }
    let script = Script::default().refuse("create", &[error(Refusal::AlreadyExists, 409)]);
    let applied = run(
        &script,
        &plan(vec![phase(P::Creates, vec![vec![create_pod("p")]])]),
    )
    .await;
    assert_eq!(
        results(&applied),
        [R::Failed],
        "it may be ours, and cannot be read"
    );
    assert_eq!(script.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_stops_no_batch() {
    let script = Script::default()
        .refuse("create", &[error(Refusal::AlreadyExists, 409)])
        .live("a", live_pod("uid-other", "node-a", "h1"))
        .live("b", live_pod("uid-other", "node-b", "h1"));
    let phases = vec![
        phase(P::Creates, vec![vec![create_pod("a")], vec![create_pod("b")]]),
        phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(v1::UpdateStatus::default())]],
        ),
    ];
    let applied = run(&script, &plan(phases)).await;
    assert_eq!(results(&applied)[..2], [R::NameTaken; 2]);
    assert!(!results(&applied).contains(&R::Skipped), "{applied:?}");
    assert!(applied.name_taken && !applied.aborted);
}

// D-81: 404 is no error and causes no Event; any other error is and does. Q-16, D-81: the uid is a precondition.
#[tokio::test(start_paused = true)]
async fn deletes() {
    let gone = live_pod("uid-agent", "node", "h1");
    for (failure, result, events) in [
        (
            none(),
            R::Succeeded,
            vec![("Normal SuccessfulDelete".to_owned(), "Deleted pod: p".to_owned())],
        ),
        (error(Refusal::NotFound, 404), R::NotFound, vec![]),
        (error(Refusal::Conflict, 409), R::NotFound, vec![]),
        (
            error(Refusal::Other, 403),
            R::Failed,
            vec![(
                "Warning FailedDelete".to_owned(),
                "Error deleting: Other".to_owned(),
            )],
        ),
    ] {
        let script = Script::default()
            .refuse("delete", &[failure])
            .live("p", gone.clone());
        let applied = run(
            &script,
            &plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]),
        )
        .await;
        assert_eq!((results(&applied), script.events()), (vec![result], events));
        assert_eq!(applied.failed, result == R::Failed);
        assert_eq!(script.calls()[0], "delete p uid-p");
        let subject = v1::outcome::Subject::DeletedPodUid("uid-p".to_owned());
        assert_eq!(applied.outcomes[0].subject, Some(subject));
    }
    // A conflict is a failure if the pod with this uid still exists.
    let mut same = gone;
    same["metadata"]["uid"] = json!("uid-p");
    let script = Script::default()
        .refuse("delete", &[error(Refusal::Conflict, 409)])
        .live("p", same);
    let applied = run(
        &script,
        &plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Failed]);
    // After a call without an answer, a pod that is being deleted counts as deleted. Otherwise no expectation would
    // wait for it (D-73).
    for (status, deleting, result) in [
        (0, true, R::Succeeded),
        (504, true, R::Succeeded),
        (0, false, R::Failed),
        (429, true, R::Failed),
    ] {
        let mut live = json!({"metadata": {"uid": "uid-p"}});
        if deleting {
            live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let script = Script::default()
            .refuse("delete", &[error(Refusal::Other, status)])
            .live("p", with_deep_fields(live));
        let deletes = plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]);
        let applied = run(&script, &deletes).await;
        assert_eq!(results(&applied), [result], "{status} {deleting}");
    }
    // Without the precondition, the delete is by name alone.
    let mut by_name = plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]);
    if let Some(Kind::DeletePod(delete)) = &mut by_name.phases[0].batches[0].actions[0].kind {
        delete.uid_precondition = false;
    }
    let script = Script::default();
    run(&script, &by_name).await;
    assert_eq!(script.calls(), ["delete p -"]);
}

// D-23, D-27: the meaning of refused adoptions and releases. D-109: the gate waits for adoptions, not for releases.
#[tokio::test(start_paused = true)]
async fn claims() {
    let adopt = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: Some(reference("p")),
            patch: "{}".into(),
        })
    };
    let release = || {
        Kind::ReleasePod(v1::ReleasePod {
            pod: Some(reference("p")),
            patch: "{}".into(),
        })
    };
    for (kind, failure, result, writes) in [
        (adopt(), none(), R::Succeeded, 1),
        (adopt(), error(Refusal::NotFound, 404), R::NotFound, 0),
        (adopt(), error(Refusal::Invalid, 422), R::Failed, 0),
        (release(), none(), R::Succeeded, 0),
        (release(), error(Refusal::NotFound, 404), R::NotFound, 0),
        (release(), error(Refusal::Invalid, 422), R::NotFound, 0),
        (release(), error(Refusal::Other, 500), R::Failed, 0),
    ] {
        let script = Script::default().refuse("patch", &[failure]);
        let applied = run(&script, &plan(vec![phase(P::Claims, vec![vec![kind]])])).await;
        assert_eq!((results(&applied), applied.writes.len()), (vec![result], writes));
        assert_eq!(script.calls(), ["patch p strategic"]);
    }
}

// D-23: the plan assumed that the orphan exists, so the rest of the plan is not run.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_gone_ends_the_plan_without_a_failure() {
    let object = Some(reference("p"));
    let patch = || Bytes::from_static(b"{}");
    let adopt_pod = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: object.clone(),
            patch: patch(),
        })
    };
    let adopt_revision = || {
        Kind::AdoptRevision(v1::AdoptRevision {
            revision: object.clone(),
            patch: patch(),
        })
    };
    let release = || {
        Kind::ReleasePod(v1::ReleasePod {
            pod: object.clone(),
            patch: patch(),
        })
    };
    for (kind, vanished) in [
        (adopt_pod(), Some(Resource::PODS)),
        (adopt_revision(), Some(Resource::REVISIONS)),
        (release(), None),
    ] {
        let script = Script::default().refuse("patch", &[error(Refusal::NotFound, 404)]);
        let phases = vec![
            phase(P::Revisions, vec![vec![kind], vec![create_pod("a")]]),
            phase(P::Creates, vec![vec![create_pod("b")]]),
        ];
        let applied = run(&script, &plan(phases)).await;
        let after = if vanished.is_some() {
            R::Skipped
        } else {
            R::Succeeded
        };
        assert_eq!(results(&applied), [R::NotFound, after, after]);
        assert_eq!((applied.failed, applied.aborted), (false, vanished.is_some()));
        let gone: Vec<_> = applied
            .vanished
            .iter()
            .map(|key| (key.resource, &*key.name))
            .collect();
        assert_eq!(gone, Vec::from_iter(vanished.map(|resource| (resource, "p"))));
    }
}

// A revision that a client stored in another form than the apiserver's can never be patched. The next plan works
// without it.
#[tokio::test(start_paused = true)]
async fn a_revision_that_cannot_be_changed_ends_the_plan_and_is_named() {
    let invalid = |field: &str| ActuatorError {
        message: format!(
            "ControllerRevision.apps \"r\" is invalid: {field}: Invalid value: 1: field is immutable"
        ),
        ..error(Refusal::Invalid, 422)
    };
    let update = || {
        Kind::UpdateRevision(v1::UpdateRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
            ..Default::default()
        })
    };
    let adopt = || {
        Kind::AdoptRevision(v1::AdoptRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    let release = || {
        Kind::ReleaseRevision(v1::ReleaseRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    let adopt_pod = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    for (kind, field, sealed) in [
        (update(), "data", true),
        (adopt(), "data", true),
        (release(), "data", true),
        (
            update(),
            "[metadata.uid: Invalid value: 2: field is immutable, data",
            true,
        ),
        (update(), "metadata", false),
        (update(), "metadata.uid", false),
        (adopt_pod(), "data", false),
    ] {
        let script = Script::default().refuse("patch", &[invalid(field)]);
        let phases = vec![phase(P::Revisions, vec![vec![kind], vec![create_pod("a")]])];
        let applied = run(&script, &plan(phases)).await;
        let result = if sealed { R::NotFound } else { R::Failed };
        assert_eq!(results(&applied), [result, R::Skipped], "{field}");
        assert_eq!(
            (applied.failed, applied.sealed.len()),
            (!sealed, usize::from(sealed)),
            "{field}"
        );
        let named = |(reason, message): &(String, String)| {
            reason == "Warning SealedRevision" && message.contains("/r,")
        };
        assert_eq!(
            script.events().iter().filter(|event| named(event)).count(),
            usize::from(sealed),
            "{field}"
        );
    }
}

// Anyone who may create pods and revisions may make them too large to be patched. The next plan works without the
// change.
#[tokio::test(start_paused = true)]
async fn oversized_objects_are_named_and_not_changed() {
    let answers = [
        (413, "Request entity too large: limit is 3145728", true),
        (500, "etcdserver: request is too large", true),
        (
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)",
            true,
        ),
        (
            422,
            "Pod \"r\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
            true,
        ),
        (
            422,
            "Pod \"r\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
            false,
        ),
        (500, "etcdserver: leader changed", false),
    ];
    let (object, patch) = (|| Some(reference("r")), || Bytes::from("{}"));
    let (revision, pod) = (object, object);
    let update = Kind::UpdateRevision(v1::UpdateRevision {
        revision: revision(),
        patch: patch(),
        ..Default::default()
    });
    let adopt = Kind::AdoptRevision(v1::AdoptRevision {
        revision: revision(),
        patch: patch(),
    });
    let adopt_pod = Kind::AdoptPod(v1::AdoptPod {
        pod: pod(),
        patch: patch(),
    });
    let relabel = Kind::RelabelPod(v1::RelabelPod {
        pod: pod(),
        patch: patch(),
    });
    let release = Kind::ReleasePod(v1::ReleasePod {
        pod: pod(),
        patch: patch(),
    });
    // (kind, whether a plan without the change is possible, what the next plan leaves out)
    for (kind, is_spared, resource) in [
        (update, true, Some(Resource::REVISIONS)),
        (adopt, true, Some(Resource::REVISIONS)),
        (adopt_pod, true, Some(Resource::PODS)),
        // The pod is the workload's own: it keeps its label, and the plan continues.
        (relabel, true, None),
        (release, false, None),
    ] {
        for (status, message, too_large) in answers {
            let refusal = if status == 422 {
                Refusal::Invalid
            } else {
                Refusal::Other
            };
            let said = ActuatorError {
                message: message.to_owned(),
                ..error(refusal, status)
            };
            let script = Script::default().refuse("patch", &[said]);
            let phases = vec![phase(P::Claims, vec![vec![kind.clone()], vec![create_pod("a")]])];
            let applied = run(&script, &plan(phases)).await;
            let (is_spared, left_out) = (is_spared && too_large, resource.filter(|_| too_large));
            let result = match (is_spared, left_out) {
                (true, None) => [R::NotFound, R::Succeeded],
                (true, Some(_)) => [R::NotFound, R::Skipped],
                // Another pod has the name now.
                (false, _) if status == 422 && matches!(kind, Kind::ReleasePod(_)) => {
                    [R::NotFound, R::Succeeded]
                }
                (false, _) => [R::Failed, R::Skipped],
            };
            assert_eq!(results(&applied), result, "{kind:?} {message}");
            let sealed = applied.sealed.iter().map(|key| (key.resource, &*key.name));
            assert!(sealed.eq(left_out.map(|resource| (resource, "r"))), "{message}");
            assert_eq!(applied.failed, result[0] == R::Failed, "{message}");
            let told = script.events();
            let told = told.iter().filter(|(reason, text)| {
                reason == "Warning ObjectTooLarge" && text.contains("/r ") && text.contains(message)
            });
            assert_eq!(told.count(), usize::from(is_spared), "{message}");
        }
    }
}

// D-27: before an adoption, the executor checks that the workload exists, has the same uid and is not being deleted.
#[tokio::test(start_paused = true)]
async fn adoption_reads_the_workload_first() {
    let mut deleting = live_workload(None);
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut other = live_workload(None);
    other["metadata"]["uid"] = json!("uid-of-another");
    for (live, expected) in [
        (Some(live_workload(None)), R::Succeeded),
        (Some(deleting), R::Failed),
        (Some(other), R::Failed),
        (None, R::Failed),
    ] {
        let mut script = Script::default();
        script.live.extend(live.map(|live| ("agent".to_owned(), live)));
        let adopt = |name: &str| {
            Kind::AdoptPod(v1::AdoptPod {
                pod: Some(reference(name)),
                patch: "{}".into(),
            })
        };
        let release = Kind::ReleasePod(v1::ReleasePod {
            pod: Some(reference("r")),
            patch: "{}".into(),
        });
        let mut claims = phase(P::Claims, vec![vec![release, adopt("p"), adopt("q")]]);
        claims.batches[0].confirm_workload = true;
        claims.aborts_on_failure = true;
        let applied = run(
            &script,
            &plan(vec![claims, phase(P::Creates, vec![vec![create_pod("a")]])]),
        )
        .await;
        let after = if expected == R::Failed {
            R::Skipped
        } else {
            R::Succeeded
        };
        // D-23.4: a release does not need that check.
        assert_eq!(results(&applied), [R::Succeeded, expected, expected, after]);
        let reads = script
            .calls()
            .iter()
            .filter(|call| call.starts_with("read"))
            .count();
        assert_eq!(
            (reads, script.calls().len()),
            (1, if expected == R::Failed { 2 } else { 5 })
        );
    }
}

// D-71: phases after a failed one: an aborting phase ends the plan, clean-up needs success, status always runs.
#[tokio::test(start_paused = true)]
async fn phases_after_a_failure() {
    let cleanup = || v1::Phase {
        requires_success: true,
        ..phase(
            P::Cleanup,
            vec![vec![Kind::DeleteRevision(v1::DeleteRevision {
                revision: Some(reference("r")),
                revision_number: 1,
            })]],
        )
    };
    let status = || {
        phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(v1::UpdateStatus::default())]],
        )
    };
    for (aborts, expected) in [
        (false, [R::Failed, R::Skipped, R::Succeeded]),
        (true, [R::Failed, R::Skipped, R::Skipped]),
    ] {
        let script = Script::default().refuse("create", &[error(Refusal::Other, 500)]);
        let creates = v1::Phase {
            aborts_on_failure: aborts,
            ..phase(P::Creates, vec![vec![create_pod("a")]])
        };
        let applied = run(&script, &plan(vec![creates, cleanup(), status()])).await;
        assert_eq!(results(&applied), expected);
    }
    let applied = run(&Script::default(), &plan(vec![cleanup(), status()])).await;
    assert_eq!(results(&applied), [R::Succeeded; 2]);
    // D-63: a missing old revision shows that the snapshot is behind.
    let script = Script::default().refuse("delete", &[error(Refusal::NotFound, 404)]);
    let applied = run(&script, &plan(vec![cleanup(), status()])).await;
    assert_eq!(results(&applied), [R::Failed, R::Succeeded]);
    assert!(applied.failed && !applied.aborted);
}

// D-62: the object with the taken name is read and returned. D-59: the manifest is sent unchanged.
#[tokio::test(start_paused = true)]
async fn a_taken_revision_name_is_read() {
    let create = || {
        let manifest = json!({"metadata": {"name": "agent-h1"}, "data": {}})
            .to_string()
            .into();
        Kind::CreateRevision(v1::CreateRevision {
            name: "agent-h1".to_owned(),
            manifest,
        })
    };
    let revisions = || v1::Phase {
        aborts_on_failure: true,
        ..phase(P::Revisions, vec![vec![create()]])
    };
    let live = json!({"metadata": {"name": "agent-h1"}, "revision": 3});
    let script = Script::default()
        .refuse("create", &[error(Refusal::AlreadyExists, 409)])
        .live("agent-h1", live.clone());
    let applied = run(
        &script,
        &plan(vec![revisions(), phase(P::Creates, vec![vec![create_pod("a")]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Failed, R::Skipped]);
    let colliding = Colliding {
        resource: Resource::REVISIONS,
        object: live.to_string().into(),
    };
    assert_eq!(applied.colliding, [colliding]);
    let applied = run(&Script::default(), &plan(vec![revisions()])).await;
    assert_eq!(
        (results(&applied), applied.colliding.len(), applied.writes.len()),
        (vec![R::Succeeded], 0, 0)
    );
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

// D-91: at most two PUTs with one GET between them.
#[tokio::test(start_paused = true)]
async fn status_is_written_twice_at_most() {
    let conflict = error(Refusal::Conflict, 409);
    for (refusals, live, result, calls) in [
        (vec![none()], true, R::Succeeded, vec!["status agent"]),
        (
            vec![conflict.clone(), none()],
            true,
            R::Succeeded,
            vec!["status agent", "read agent", "status agent"],
        ),
        (
            vec![conflict.clone()],
            true,
            R::Failed,
            vec!["status agent", "read agent", "status agent"],
        ),
        (
            vec![conflict.clone()],
            false,
            R::Failed,
            vec!["status agent", "read agent"],
        ),
    ] {
        let mut script = Script::default().refuse("status", &refusals);
        if live {
            script = script.live("agent", live_workload(None));
        }
        let plan = plan(vec![phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(new_status())]],
        )]);
        let applied = run(&script, &plan).await;
        assert_eq!(
            (results(&applied), script.calls()),
            (vec![result], calls.iter().map(ToString::to_string).collect())
        );
        // D-109
        assert_eq!(applied.writes.len(), usize::from(result == R::Succeeded));
    }
}

// A workload that was replaced under its name gets neither the status nor the collision count of its predecessor,
// whatever the plan says.
#[tokio::test(start_paused = true)]
async fn status_of_a_replaced_workload() {
    let mut replaced = live_workload(None);
    replaced["metadata"]["uid"] = json!("uid-of-another");
    let counted = v1::UpdateStatus {
        collision_count: Some(1),
        ..Default::default()
    };
    for (update, calls) in [
        (new_status(), &["status agent", "read agent"][..]),
        (counted, &["read agent"]),
    ] {
        for uid_precondition in [true, false] {
            let script = Script::default()
                .refuse("status", &[error(Refusal::Conflict, 409), none()])
                .live("agent", replaced.clone());
            let update = Kind::UpdateStatus(v1::UpdateStatus {
                uid_precondition,
                ..update
            });
            let applied = run(&script, &plan(vec![phase(P::Status, vec![vec![update]])])).await;
            assert_eq!(results(&applied), [R::Failed]);
            assert_eq!(script.calls(), calls);
        }
    }

    // As in upstream, if the deviation is disabled.
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409), none()])
        .live("agent", replaced);
    let options = Options {
        status_with_uid: false,
        ..Options::default()
    };
    let plan = plan(vec![phase(
        P::Status,
        vec![vec![Kind::UpdateStatus(new_status())]],
    )]);
    let applied = apply(
        &script,
        &plan,
        (DAEMON_SETS, &cached()),
        &LeftOut::new(),
        &options,
    )
    .await;
    assert_eq!(results(&applied), [R::Succeeded]);
    assert_eq!(script.calls(), ["status agent", "read agent", "status agent"]);
}

// D-88: only the named fields change: first those of the cached object with its resourceVersion, then those of the live
// one.
#[tokio::test(start_paused = true)]
async fn status_leaves_other_fields() {
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409), none()])
        .live("agent", live_workload(Some(2)));
    run(
        &script,
        &plan(vec![phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(new_status())]],
        )]),
    )
    .await;
    let bodies = script.bodies.lock().expect("lock").clone();
    for (body, version, condition) in [(&bodies[0], "5", "Theirs"), (&bodies[1], "9", "Newer")] {
        assert_eq!(body["metadata"]["resourceVersion"], version);
        let status = &body["status"];
        assert_eq!(
            (&status["numberReady"], &status["observedGeneration"]),
            (&json!(4), &json!(3))
        );
        assert_eq!(
            (&status["conditions"][0]["type"], &status["collisionCount"]),
            (&json!(condition), &json!(2))
        );
    }
    assert_eq!(bodies[0]["spec"]["unknownToUs"], json!([1.5]));
}

// D-62: the collision count is raised on the live object, unless it was raised already. D-109: the gate does not wait
// for this write.
#[tokio::test(start_paused = true)]
async fn collision_count() {
    for (live, expected, result, count) in [
        (Some(2), Some(2), R::Succeeded, Some(3)),
        (None, None, R::Succeeded, Some(1)),
        (Some(3), Some(2), R::Failed, None),
    ] {
        let script = Script::default().live("agent", live_workload(live));
        let update = v1::UpdateStatus {
            status: None,
            collision_count: count.or(Some(3)),
            expected_collision_count: expected,
            uid_precondition: true,
        };
        let applied = run(
            &script,
            &plan(vec![phase(P::Status, vec![vec![Kind::UpdateStatus(update)]])]),
        )
        .await;
        assert_eq!((results(&applied), applied.writes.len()), (vec![result], 0));
        let bodies = script.bodies.lock().expect("lock").clone();
        assert_eq!(
            bodies
                .first()
                .map(|body| body["status"]["collisionCount"].clone()),
            count.map(|count| json!(count))
        );
    }
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409)])
        .live("agent", live_workload(Some(2)));
    let update = v1::UpdateStatus {
        status: None,
        collision_count: Some(3),
        expected_collision_count: Some(2),
        uid_precondition: true,
    };
    run(
        &script,
        &plan(vec![phase(P::Status, vec![vec![Kind::UpdateStatus(update)]])]),
    )
    .await;
    assert_eq!(
        script.calls(),
        ["read agent", "status agent"],
        "not written again"
    );
}

// D-109: the gate waits for pod creates, adoptions and status writes, but not for deletes, relabels and writes of
// revisions.
#[tokio::test(start_paused = true)]
async fn own_writes() {
    let relabel = Kind::RelabelPod(v1::RelabelPod {
        pod: Some(reference("p")),
        patch: "{}".into(),
    });
    let renumber = Kind::UpdateRevision(v1::UpdateRevision {
        revision: Some(reference("r")),
        patch: "{}".into(),
        revision_number: None,
    });
    let script = Script::default();
    let kinds = vec![
        create_pod("a"),
        delete_pod("p"),
        relabel,
        renumber,
        Kind::UpdateStatus(new_status()),
    ];
    let applied = run(&script, &plan(vec![phase(P::Creates, vec![kinds])])).await;
    let version = || "7".to_owned();
    assert_eq!(
        applied.writes,
        [
            OwnWrite {
                resource: Resource::PODS,
                resource_version: version(),
                created_pod: Some("a".to_owned()),
            },
            OwnWrite {
                resource: DAEMON_SETS,
                resource_version: version(),
                created_pod: None,
            },
        ]
    );
    assert!(script.calls().contains(&"patch r merge".to_owned()));
}

// D-101: Events of the plan are emitted unchanged and never stop the plan.
#[tokio::test(start_paused = true)]
async fn events_of_the_plan() {
    let event = v1::EmitEvent {
        r#type: "Warning".into(),
        reason: "FailedDaemonPod".into(),
        message: "Found".into(),
    };
    let script = Script::default();
    let applied = run(
        &script,
        &plan(vec![phase(P::Events, vec![vec![Kind::EmitEvent(event)]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Succeeded]);
    assert_eq!(
        script.events(),
        [("Warning FailedDaemonPod".to_owned(), "Found".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_fails_alone() {
    let script = Script::default();
    let mut strange = plan(vec![phase(
        P::Creates,
        vec![vec![create_pod("a"), delete_pod("p"), create_pod("b")]],
    )]);
    strange.phases[0].batches[0].actions[2].kind = None;
    strange.pod_manifest = "not JSON".into();
    let applied = run(&script, &strange).await;
    assert_eq!(results(&applied), [R::Failed, R::Succeeded, R::Failed]);
    strange.pod_manifest = json!({"metadata": {}}).to_string().into();
    let applied = run(&script, &strange).await;
    assert!(
        applied.outcomes[0].message.contains("/spec/affinity/values/0"),
        "{}",
        applied.outcomes[0].message
    );
}

// An apiserver quotes the whole object that it refuses. The cause at the end of such a message is recognised.
#[tokio::test]
async fn a_refusal_is_truncated() {
    let quoted = "x".repeat(3_000_000);
    let message =
        format!("ControllerRevision \"a\" is invalid: [metadata: Invalid value: {quoted}, data: changed]");
    let error = ActuatorError {
        refusal: Refusal::Invalid,
        http_status: 422,
        message,
    };
    let told = error.to_string();
    assert_eq!(told.len(), 1_000 + "…".len());
    let script = Script::default().refuse("create", std::slice::from_ref(&error));
    let creates = phase(P::Creates, vec![vec![create_pod("a")]]);
    let applied = run(&script, &plan(vec![creates])).await;
    assert_eq!(applied.outcomes[0].message, told);
    assert!(patching::Seal::of(Resource::REVISIONS, None, &error).is_some());
}
