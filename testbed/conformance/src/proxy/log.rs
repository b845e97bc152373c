//! What has passed.

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
    /// Which it was.
    pub method: Method,
    /// The code that the executor got; for a lost answer, `Unknown`.
    pub code: Code,
    /// Namespace and name of the workload that was asked about. Empty for all but plans.
    pub workload: (String, String),
    /// How many buckets the snapshot had, of nodes and of pods; 0 for all but plans.
    pub buckets: usize,
    /// How many of them were sent, and not named by their digest only.
    pub inline: usize,
    /// The plan that the executor got.
    pub plan: Option<v1::Plan>,
}

impl Call {
    /// Whether it is a plan for this workload, or a try to get one.
    #[must_use]
    pub fn is_plan_for(&self, namespace: &str, name: &str) -> bool {
        self.method == Method::Plan && self.workload.0 == namespace && self.workload.1 == name
    }

    /// What the executor was to do, when it got a plan.
    #[must_use]
    pub fn verdict(&self) -> Option<v1::Verdict> {
        self.plan.as_ref().map(v1::Plan::verdict)
    }
}

/// A moment in a proxy's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(usize);

impl Mark {
    /// Before everything.
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

/// What a plan was asked for.
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
            inline: buckets().filter(|bucket| bucket.data.is_some()).count(),
        }
    }

    /// The entry of what became of it.
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
    let v1::workload::Kind::DaemonSet(daemon_set) = snapshot.workload.as_ref()?.kind.as_ref()?;
    let object: Value = serde_json::from_slice(&daemon_set.object).ok()?;
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    Some((field("namespace"), field("name")))
}

/// The entry of a unary call.
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
