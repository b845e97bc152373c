//! The log of calls through the proxy.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use nodewise_proto::v1;
use prost::Message as _;
use serde_json::Value;
use tonic::Code;

/// A method of `ReconcileService`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `Plan`, or a question on a `PlanStream`.
    Plan,
    /// `Report`.
    Report,
    /// Any other.
    Other,
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The status code that the executor got; `Unknown` if the response was lost.
    pub code: Code,
    /// Namespace and name of the workload in the request. Empty if the call is not for a plan.
    pub workload: (String, String),
    /// How many node and pod buckets the snapshot had; 0 if the call is not for a plan.
    pub buckets: usize,
    /// How many of these buckets were sent inline, not by digest.
    pub inline: usize,
    /// The plan that the executor got, if any.
    pub plan: Option<v1::Plan>,
}

impl Call {
    /// Whether the call asked for a plan for this workload.
    #[must_use]
    pub fn is_plan_for(&self, namespace: &str, name: &str) -> bool {
        self.method == Method::Plan && self.workload.0 == namespace && self.workload.1 == name
    }

    /// The verdict of the plan that the executor got, if any.
    #[must_use]
    pub fn verdict(&self) -> Option<v1::Verdict> {
        self.plan.as_ref().map(v1::Plan::verdict)
    }
}

/// A position in the log of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(usize);

impl Mark {
    /// The start of the log.
    pub const BEGINNING: Self = Self(0);
}

#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Vec<Call>>);

impl Log {
    pub(super) fn mark(&self) -> Mark {
        Mark(self.calls().len())
    }

    pub(super) fn since(&self, mark: Mark) -> Vec<Call> {
        self.calls()[mark.0..].to_vec()
    }

    pub(super) fn push(&self, call: Call) {
        self.calls().push(call);
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts of a plan request that the log keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Question {
    workload: (String, String),
    buckets: usize,
    inline: usize,
}

impl Question {
    pub(super) fn of(request: &v1::PlanRequest) -> Self {
        let Some(snapshot) = &request.snapshot else {
            return Self::default();
        };
        let buckets = || snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
        Self {
            workload: workload(snapshot).unwrap_or_default(),
            buckets: buckets().count(),
            inline: buckets().filter(|bucket| bucket.inline().is_some()).count(),
        }
    }

    /// The log entry for the end of the call.
    pub(super) fn ended(self, code: Code, plan: Option<v1::Plan>) -> Call {
        Call {
            method: Method::Plan,
            code,
            workload: self.workload,
            buckets: self.buckets,
            inline: self.inline,
            plan,
        }
    }
}

fn workload(snapshot: &v1::Snapshot) -> Option<(String, String)> {
    let object = match snapshot.workload.as_ref()?.kind.as_ref()? {
        v1::workload::Kind::DaemonSet(daemon_set) => &daemon_set.object,
        v1::workload::Kind::ReplicaSet(replica_set) => &replica_set.object,
        v1::workload::Kind::Deployment(deployment) => &deployment.object,
    };
    let object: Value = serde_json::from_slice(object).ok()?;
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    Some((field("namespace"), field("name")))
}

/// The log entry of a unary call.
pub(super) fn unary(method: Method, request: &Bytes, answer: Result<&Bytes, Code>) -> Call {
    let code = answer.err().unwrap_or(Code::Ok);
    if method != Method::Plan {
        let entry = Question::default().ended(code, None);
        return Call { method, ..entry };
    }
    let asked = v1::PlanRequest::decode(request.clone()).unwrap_or_default();
    let plan = answer
        .ok()
        .and_then(|bytes| v1::PlanResponse::decode(bytes.clone()).ok()?.plan);
    Question::of(&asked).ended(code, plan)
}
