//! Metrics of the replicas of the service.

use nodewise_client::ReplicaCounts;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The metric families.
#[derive(Default)]
pub(super) struct Service {
    replicas: Family<State, Gauge>,
    pub(super) calls: Family<Call, Counter>,
    pub(super) evictions: Family<Cause, Counter>,
    pub(super) hedges: Family<Hedge, Counter>,
    pub(super) elsewhere: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Cause {
    pub(super) cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Hedge {
    pub(super) outcome: &'static str,
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
        let help =
            "Known replicas of the service, by state: ready, evicted, draining, unknown (not called yet)";
        own.register("replicas", help, self.replicas.clone());
        let help = "Calls to replicas, by outcome: answered, lacks_buckets, refused (the request is wrong or too large), saturated, failed, timed_out, cancelled (another replica answered first)";
        own.register("replica_calls", help, self.calls.clone());
        let help = "Replicas that are asked last for a while, by cause: failed, timed_out (also if another replica answered first too often), health (a health check failed), draining";
        own.register("replica_evictions", help, self.evictions.clone());
        let help = "Plan requests that were sent to two replicas, by outcome: won (the second replica answered first), lost, failed (neither answered)";
        own.register("plan_hedges", help, self.hedges.clone());
        let help = "Plans that came from another replica than the first one in the workload's order";
        own.register("plans_elsewhere", help, self.elsewhere.clone());
    }
}
