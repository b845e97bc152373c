//! Test doubles: a service and an apiserver that follow a script and record their calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use nodewise_client::{Answer, BuildRequest, Method, PlanService, ServiceError};
use nodewise_projection::{OwnershipSelector, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::workload::HASH_LABEL;
use nodewise_proto::{Timestamp, v1};
use nodewise_runtime::{
    Resource,
    actuator::{
        Actuator, ActuatorError, Eviction, ObjectKey, Patch, Preconditions, Refusal, WorkloadEvent, Written,
    },
};
use serde_json::{Value, json};

use crate::daemon_set::DaemonSets;
use crate::plan_check::NODE_NAME_POINTER;
use crate::state::{ReconciledKind, State};

pub(crate) use nodewise_runtime::testing::{
    HASH, current_revision, daemon_set, first_lists, key, listed, node, owner, pod,
};

type Script<T> = Mutex<VecDeque<Result<T, ServiceError>>>;
pub(crate) type Hook = Box<dyn FnMut() + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A service with scripted responses. After the last one it answers with NOOP plans and empty report responses.
#[derive(Default)]
pub(crate) struct ScriptedService {
    plans: Script<v1::Plan>,
    reports: Script<v1::ReportResponse>,
    pub(crate) requests: Mutex<Vec<v1::PlanRequest>>,
    pub(crate) reported: Mutex<Vec<v1::ReportRequest>>,
    /// Calls of this method are never answered.
    hangs: Option<Method>,
    /// The time until a plan request is answered.
    takes: Duration,
    /// Called during each plan request.
    meanwhile: Mutex<Option<Hook>>,
}

impl ScriptedService {
    pub(crate) fn then_plan(self, plan: v1::Plan) -> Self {
        lock(&self.plans).push_back(Ok(plan));
        self
    }

    pub(crate) fn then_fail(self, error: ServiceError) -> Self {
        lock(&self.plans).push_back(Err(error));
        self
    }

    pub(crate) fn that_hangs(self, method: Method) -> Self {
        Self {
            hangs: Some(method),
            ..self
        }
    }

    pub(crate) fn that_takes(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    pub(crate) fn then_answer_report(self, answer: Result<v1::ReportResponse, ServiceError>) -> Self {
        lock(&self.reports).push_back(answer);
        self
    }

    pub(crate) fn meanwhile(&self, hook: impl FnMut() + Send + 'static) {
        *lock(&self.meanwhile) = Some(Box::new(hook));
    }

    pub(crate) fn plans_asked(&self) -> usize {
        lock(&self.requests).len()
    }

    pub(crate) fn snapshot(&self, index: usize) -> v1::Snapshot {
        lock(&self.requests)[index]
            .snapshot
            .clone()
            .expect("a request has a snapshot")
    }
}

impl PlanService for ScriptedService {
    async fn plan(&self, _: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let request = build(&Receiver::EMPTY);
        lock(&self.requests).push(request);
        let hook = lock(&self.meanwhile).take();
        if let Some(mut hook) = hook {
            hook();
            *lock(&self.meanwhile) = Some(hook);
        }
        if self.hangs == Some(Method::Plan) {
            return std::future::pending().await;
        }
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        let plan = lock(&self.plans).pop_front().unwrap_or_else(|| Ok(noop()))?;
        Ok(Answer { plan, request: 0 })
    }

    async fn report(&self, report: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        lock(&self.reported).push(report);
        if self.hangs == Some(Method::Report) {
            return std::future::pending().await;
        }
        let default = || {
            Ok(v1::ReportResponse {
                requeue: v1::Requeue::None.into(),
                ..Default::default()
            })
        };
        lock(&self.reports).pop_front().unwrap_or_else(default)
    }
}

/// An apiserver that accepts everything except the scripted refusals, and calls a hook before each write.
#[derive(Default)]
pub(crate) struct ScriptedActuator {
    pub(crate) calls: Mutex<Vec<String>>,
    /// Refusals, by the start of the call's description.
    pub(crate) refusals: Mutex<Vec<(String, Refusal)>>,
    /// The response to every read. Empty: not found.
    pub(crate) live: Mutex<Bytes>,
    /// The items of every list.
    pub(crate) listed: Mutex<Vec<Value>>,
    pub(crate) before_write: Mutex<Option<Hook>>,
    pub(crate) observes_only: bool,
    pub(crate) emitted: Mutex<Vec<WorkloadEvent>>,
    /// If set, each write waits for a permit.
    pub(crate) gate: Option<Arc<tokio::sync::Semaphore>>,
    /// The duration of each write.
    pub(crate) latency: std::time::Duration,
}

impl ScriptedActuator {
    pub(crate) fn calls(&self) -> Vec<String> {
        lock(&self.calls).clone()
    }

    pub(crate) fn events(&self) -> Vec<WorkloadEvent> {
        lock(&self.emitted).clone()
    }

    pub(crate) fn before_write(&self, hook: impl FnMut() + Send + 'static) {
        *lock(&self.before_write) = Some(Box::new(hook));
    }

    pub(crate) fn refuse(&self, call: &str, refusal: Refusal) {
        lock(&self.refusals).push((call.to_owned(), refusal));
    }

    async fn call(&self, call: String) -> Result<(), ActuatorError> {
        if let Some(hook) = lock(&self.before_write).as_mut() {
            hook();
        }
        lock(&self.calls).push(call.clone());
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("the gate stays").forget();
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.refused(&call)
    }

    fn refused(&self, call: &str) -> Result<(), ActuatorError> {
        let refusals = lock(&self.refusals);
        // The call's description may be shorter or longer than the scripted start.
        let matches = |start: &str| call.starts_with(start) || start.starts_with(call);
        match refusals.iter().find(|(start, _)| matches(start)) {
            Some((start, refusal)) => Err(ActuatorError {
                refusal: *refusal,
                http_status: 409,
                message: format!("refused: {start}"),
            }),
            None => Ok(()),
        }
    }
}

impl Actuator for ScriptedActuator {
    fn writes(&self) -> bool {
        !self.observes_only
    }

    async fn create(&self, resource: Resource, _: &str, manifest: Bytes) -> Result<Written, ActuatorError> {
        let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest is JSON");
        let name = manifest["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.call(format!("create {resource} {name}")).await?;
        Ok(Written {
            name,
            resource_version: "100".into(),
        })
    }

    async fn patch(&self, key: &ObjectKey, _: Patch) -> Result<Written, ActuatorError> {
        self.call(format!("patch {key}")).await?;
        Ok(Written {
            name: key.name.clone(),
            resource_version: "100".into(),
        })
    }

    async fn patch_status(&self, key: &ObjectKey, _: Patch) -> Result<Written, ActuatorError> {
        self.call(format!("patch status of {key}")).await?;
        Ok(Written {
            name: key.name.clone(),
            resource_version: "100".into(),
        })
    }

    async fn delete(&self, key: &ObjectKey, _: Preconditions<'_>) -> Result<(), ActuatorError> {
        self.call(format!("delete {key}")).await
    }

    async fn evict(&self, key: &ObjectKey, _: &str) -> Result<Eviction, ActuatorError> {
        match self.call(format!("evict {key}")).await {
            Ok(()) => Ok(Eviction::Evicted),
            Err(error) if error.refusal == Refusal::Other => Ok(Eviction::Blocked {
                message: error.message,
                retry_after: None,
            }),
            Err(error) => Err(error),
        }
    }

    async fn replace_status(&self, key: &ObjectKey, _: Bytes) -> Result<Written, ActuatorError> {
        self.call(format!("status {key}")).await?;
        Ok(Written {
            name: key.name.clone(),
            resource_version: "100".into(),
        })
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        self.refused(&format!("read {key}"))?;
        let live = lock(&self.live).clone();
        if live.is_empty() {
            return Err(ActuatorError {
                refusal: Refusal::NotFound,
                http_status: 404,
                message: format!("{key} is not found"),
            });
        }
        Ok(live)
    }

    async fn list(
        &self,
        resource: Resource,
        _: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        self.call(format!("list {resource}")).await?;
        lock(&self.listed)
            .iter()
            .for_each(|object| take(&object.to_string()));
        Ok(())
    }

    fn emit(&self, event: WorkloadEvent) {
        lock(&self.emitted).push(event);
    }
}

/// The workload with the label that [`owned`] selects.
pub(crate) fn labelled(version: &str) -> Workload {
    let label = v1::Label {
        key: "owned".into(),
        value: "yes".into(),
    };
    Workload {
        labels: vec![label],
        ..daemon_set("u1", version)
    }
}

/// Selects the DaemonSets with that label.
pub(crate) fn owned() -> OwnershipSelector {
    "owned=yes".parse().expect("a selector")
}

/// A state that owns only these.
pub(crate) fn selective_state() -> State {
    let options = v1::PlanOptions::default();
    let mut state = State::new(1, &options);
    state.add_kind(ReconciledKind::new::<DaemonSets>(&options, owned()));
    state
}

/// The reference to the workload in plans.
pub(crate) fn reference() -> v1::WorkloadReference {
    v1::WorkloadReference {
        kind: "DaemonSet".into(),
        namespace: "ns".into(),
        name: "foo".into(),
        uid: "u1".into(),
        resource_version: "10".into(),
    }
}

pub(crate) fn noop() -> v1::Plan {
    v1::Plan {
        workload: Some(reference()),
        verdict: v1::Verdict::Noop.into(),
        plan_id: "noop".into(),
        ..Default::default()
    }
}

/// A plan that creates these pods on these nodes, with expectations for them.
pub(crate) fn creating(pods: &[(&str, &str)]) -> v1::Plan {
    let metadata = json!({"labels": {HASH_LABEL: HASH}, "ownerReferences": [owner()]});
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]});
    let required = json!({"nodeSelectorTerms": [term]});
    let spec =
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
    let manifest = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let creates = pods.iter().map(|(pod_name, node_name)| v1::CreatePod {
        pod_name: (*pod_name).into(),
        node_name: (*node_name).into(),
    });
    let actions = creates.map(v1::action::Kind::CreatePod).collect();
    let expected = pods.iter().map(|(pod_name, node_name)| v1::ExpectedCreate {
        pod_name: (*pod_name).into(),
        node_name: (*node_name).into(),
    });
    v1::Plan {
        pod_manifest: manifest.to_string().into(),
        node_name_pointers: vec![NODE_NAME_POINTER.to_owned()],
        state: Some(v1::ReconcileState {
            expectations: Some(v1::Expectations {
                set_at: Some(Timestamp { seconds: 1, nanos: 0 }),
                creates: expected.collect(),
                delete_uids: Vec::new(),
            }),
            ..Default::default()
        }),
        ..with_actions(v1::PhaseKind::Creates, actions)
    }
}

/// A plan for the workload of these tests, with one batch.
pub(crate) fn with_actions(phase: v1::PhaseKind, actions: Vec<v1::action::Kind>) -> v1::Plan {
    v1::Plan {
        workload: Some(reference()),
        ..nodewise_runtime::testing::with_actions(phase, actions)
    }
}
