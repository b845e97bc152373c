//! What is counted about the replicas of the service. No label names a replica: they come and go, and the log names those
//! that fail.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// A call that is made to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// For a plan.
    Plan,
    /// To say what became of one.
    Report,
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

/// Gives each value the name that it has as a label.
macro_rules! label {
    ($type:ident { $($value:ident => $name:literal),+ $(,)? }) => {
        impl EncodeLabelValue for $type {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                match self { $(Self::$value => $name),+ }.encode(encoder)
            }
        }
    };
}

label!(Method { Plan => "plan", Report => "report" });
label!(Fate {
    Answered => "answered",
    LacksBuckets => "lacks_buckets",
    Refused => "refused",
    Saturated => "saturated",
    TimedOut => "timed_out",
    Failed => "failed",
    Cancelled => "cancelled",
});
label!(Evicted { TimedOut => "timed_out", Failed => "failed", Health => "health", Draining => "draining" });
label!(Hedge { Won => "won", Lost => "lost", Failed => "failed" });

/// The families.
#[derive(Default)]
pub(super) struct Service {
    replicas: Family<State, Gauge>,
    pub(super) calls: Family<Call, Counter>,
    pub(super) evictions: Family<Cause, Counter>,
    pub(super) hedges: Family<HedgeOutcome, Counter>,
    pub(super) elsewhere: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) outcome: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Cause {
    pub(super) cause: Evicted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HedgeOutcome {
    pub(super) outcome: Hedge,
}

impl Service {
    pub(super) fn set_replicas(&self, counts: &ReplicaCounts) {
        for (state, count) in [
            ("unknown", counts.unknown),
            ("ready", counts.ready),
            ("evicted", counts.evicted),
            ("draining", counts.draining),
        ] {
            let gauge = self.replicas.get_or_create(&State { state });
            gauge.set(super::gauge(count));
        }
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Replicas of the service that are known, by how they stand";
        own.register("replicas", help, self.replicas.clone());
        let help = "Calls to replicas of the service, by what became of them";
        own.register("replica_calls", help, self.calls.clone());
        let help = "How often a replica was not asked any more for a while, by cause";
        own.register("replica_evictions", help, self.evictions.clone());
        let help = "Plans that two replicas were asked for, by whether the second was quicker";
        own.register("plan_hedges", help, self.hedges.clone());
        let help = "Plans that came from another replica than the one the workload belongs to";
        own.register("plans_elsewhere", help, self.elsewhere.clone());
    }
}
