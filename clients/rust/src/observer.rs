//! Callbacks of the client, for metrics. They have no name of a replica, which would be a label without bound. The log names
//! replicas that fail.

use std::fmt::Debug;
use std::time::Duration;

use nodewise_proto::v1;
use tonic::Code;

/// A method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `Plan`.
    Plan,
    /// `Report`.
    Report,
    /// `Explain`.
    Explain,
    /// `Simulate`.
    Simulate,
    /// `EvaluateNodes`.
    EvaluateNodes,
    /// `GetCapabilities`.
    GetCapabilities,
}

impl Method {
    /// `package.Service/Method`, the name of the span.
    #[must_use]
    pub fn full_name(self) -> &'static str {
        match self {
            Self::Plan => "nodewise.v1.ReconcileService/Plan",
            Self::Report => "nodewise.v1.ReconcileService/Report",
            Self::Explain => "nodewise.v1.ReconcileService/Explain",
            Self::Simulate => "nodewise.v1.ReconcileService/Simulate",
            Self::EvaluateNodes => "nodewise.v1.ReconcileService/EvaluateNodes",
            Self::GetCapabilities => "nodewise.v1.ReconcileService/GetCapabilities",
        }
    }
}

/// The outcome of one call to one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The replica answered.
    Answered,
    /// The replica lacked buckets (FAILED_PRECONDITION). The client repeats the request.
    LacksBuckets,
    /// The replica rejected the request: it is wrong or too large.
    Refused,
    /// The replica was saturated (RESOURCE_EXHAUSTED with RetryInfo).
    Saturated,
    /// There was no answer before the deadline.
    TimedOut,
    /// The call failed in another way.
    Failed,
    /// The client cancelled the call because another replica answered first.
    Cancelled,
}

/// Why a replica was evicted: it gets calls only if no other replica answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evicted {
    /// A call was not answered in time.
    TimedOut,
    /// A call failed.
    Failed,
    /// A health probe failed, or the health watch ended.
    Health,
    /// The replica reported that it is draining.
    Draining,
}

/// The outcome of a request that was sent to two replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hedge {
    /// The second replica answered first.
    Won,
    /// The first replica answered first.
    Lost,
    /// Neither replica answered.
    Failed,
}

/// Gives each variant its value of a metric label.
macro_rules! names {
    ($type:ident { $($value:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// The value of the metric label.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $name),+ }
            }
        }
    };
}

names!(Method {
    Plan => "plan",
    Report => "report",
    Explain => "explain",
    Simulate => "simulate",
    EvaluateNodes => "evaluate_nodes",
    GetCapabilities => "get_capabilities",
});
names!(Fate {
    Answered => "answered",
    LacksBuckets => "lacks_buckets",
    Refused => "refused",
    Saturated => "saturated",
    TimedOut => "timed_out",
    Failed => "failed",
    Cancelled => "cancelled",
});
names!(Evicted { TimedOut => "timed_out", Failed => "failed", Health => "health", Draining => "draining" });
names!(Hedge { Won => "won", Lost => "lost", Failed => "failed" });

/// The number of replicas in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Not called yet.
    pub unknown: usize,
    /// Serving.
    pub ready: usize,
    /// Evicted.
    pub evicted: usize,
    /// Draining.
    pub draining: usize,
}

/// Receives the events of a client. Every method does nothing by default.
pub trait Observer: Debug + Send + Sync {
    /// A replica answered a Plan request of this many bytes, for a workload of this kind.
    fn plan_answered(&self, _kind: &'static str, _took: Duration, _request_bytes: usize, _plan: &v1::Plan) {}

    /// A Plan request for a workload of this kind failed or had no answer.
    fn plan_failed(&self, _kind: &'static str, _took: Duration, _code: Code) {}

    /// A call to a replica ended.
    fn call(&self, _method: Method, _outcome: Fate) {}

    /// The set of replicas or their states may have changed.
    fn replicas(&self, _counts: &ReplicaCounts) {}

    /// A replica was evicted.
    fn replica_evicted(&self, _cause: Evicted) {}

    /// A request that was sent to two replicas ended.
    fn hedged(&self, _outcome: Hedge) {}

    /// The answer came from another replica than the first one in the workload's order.
    fn planned_elsewhere(&self) {}
}

/// Ignores all events.
impl Observer for () {}
