//! What a client tells about its calls, for metrics. No name of a replica is among it: they come and go, and the log names those
//! that fail.

use std::fmt::Debug;
use std::time::Duration;

use nodewise_proto::v1;
use tonic::Code;

/// A call that is made to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// For a plan.
    Plan,
    /// To say what became of one.
    Report,
    /// For why a workload runs, or does not run, on nodes.
    Explain,
}

impl Method {
    /// `package.Service/Method`, as traces have it.
    #[must_use]
    pub fn full_name(self) -> &'static str {
        match self {
            Self::Plan => "nodewise.v1.ReconcileService/Plan",
            Self::Report => "nodewise.v1.ReconcileService/Report",
            Self::Explain => "nodewise.v1.ReconcileService/Explain",
        }
    }
}

/// What became of a call to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It was answered.
    Answered,
    /// The replica lacked buckets, and was asked again.
    LacksBuckets,
    /// The request was refused.
    Refused,
    /// The replica had too much to do.
    Saturated,
    /// There was no answer in time.
    TimedOut,
    /// It failed in another way.
    Failed,
    /// Another replica was quicker.
    Cancelled,
}

/// Why a replica is asked no more for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evicted {
    /// A call was not answered in time.
    TimedOut,
    /// A call failed.
    Failed,
    /// A probe failed, or the connection on which its health is followed.
    Health,
    /// It said that it is about to end.
    Draining,
}

/// What became of a plan that two replicas were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hedge {
    /// The one that was asked later was quicker.
    Won,
    /// The first one was, after all.
    Lost,
    /// Neither answered.
    Failed,
}

/// Gives each value the name that it has as a label of a metric.
macro_rules! names {
    ($type:ident { $($value:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// The name, as metrics have it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $name),+ }
            }
        }
    };
}

names!(Method { Plan => "plan", Report => "report", Explain => "explain" });
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

/// How many replicas stand how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Not asked yet.
    pub unknown: usize,
    /// Serving.
    pub ready: usize,
    /// Not answering.
    pub evicted: usize,
    /// About to end.
    pub draining: usize,
}

/// Somebody who is told what happens. What is not asked for is not told to anybody.
pub trait Observer: Debug + Send + Sync {
    /// A replica answered a request of so many bytes with a plan.
    fn plan_answered(&self, _took: Duration, _request_bytes: usize, _plan: &v1::Plan) {}

    /// A replica answered a request for a plan with an error, or not at all.
    fn plan_failed(&self, _took: Duration, _code: Code) {}

    /// A call to a replica came to its end.
    fn call(&self, _method: Method, _outcome: Fate) {}

    /// So many replicas are known.
    fn replicas(&self, _counts: &ReplicaCounts) {}

    /// A replica is asked no more for a while.
    fn replica_evicted(&self, _cause: Evicted) {}

    /// Two replicas were asked for a plan.
    fn hedged(&self, _outcome: Hedge) {}

    /// A plan came from another replica than the one that the workload belongs to.
    fn planned_elsewhere(&self) {}
}

/// Nobody is told.
impl Observer for () {}
