//! What is assumed about the pods of a workload, and where it is from.

use std::time::Duration;

use jiff::Timestamp;
use nodewise_forecast::{Assumptions, Bounds};
use nodewise_proto::v1;
use serde_json::Value;

use super::args::AssumptionArgs;
use crate::{
    input::{Cluster, Served},
    kind::Kind,
};

/// The grace period of a template that names none, as the apiserver sets it.
const DEFAULT_GRACE: u64 = 30;

/// The shortest time of a play.
const SHORTEST: Duration = Duration::from_secs(1);

/// The assumptions about one workload, and the bounds of its play.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assumed {
    pub(crate) pods: Assumptions,
    pub(crate) bounds: Bounds,
    /// Where the time until a pod is ready is from.
    pub(crate) ready_origin: String,
    /// Where the time until a pod is gone is from.
    pub(crate) gone_origin: String,
}

impl Assumed {
    /// As the command line says, and what it does not say from the workload and its pods.
    pub(crate) fn about(args: &AssumptionArgs, cluster: &Cluster, workload: &Served) -> Self {
        let (ready_after, ready_origin) = ready_after(args, cluster, workload);
        let (gone_after, gone_origin) = match args.gone_after {
            Some(given) => (given, "as given"),
            None => (grace_period(workload), "its grace period; many pods end sooner"),
        };
        Self {
            pods: Assumptions {
                ready_after,
                gone_after,
                failing: args.failing,
                seed: args.seed,
            },
            bounds: Bounds {
                time: args.max_time,
                steps: args.max_steps,
                nodes: args.max_nodes,
            },
            ready_origin,
            gone_origin: gone_origin.to_owned(),
        }
    }
}

impl Assumed {
    /// For a planning service.
    pub(crate) fn messages(&self) -> (v1::SimulationAssumptions, v1::SimulationBounds) {
        let duration = |duration: Duration| nodewise_proto::Duration {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
        };
        let assumptions = v1::SimulationAssumptions {
            ready_after: Some(duration(self.pods.ready_after)),
            gone_after: Some(duration(self.pods.gone_after)),
            failing_share: self.pods.failing,
            seed: self.pods.seed,
        };
        let bounds = v1::SimulationBounds {
            time: Some(duration(self.bounds.time)),
            steps: u32::try_from(self.bounds.steps).unwrap_or(u32::MAX),
        };
        (assumptions, bounds)
    }
}

/// How long pods take to become ready: as given, else the median of the ready pods, else 10 s.
fn ready_after(args: &AssumptionArgs, cluster: &Cluster, workload: &Served) -> (Duration, String) {
    if let Some(after) = args.ready_after {
        return (after, "as given".to_owned());
    }
    let owners = owners(cluster, workload);
    let pods = cluster.pods_in(&workload.namespace).iter().map(|pod| &pod.object);
    let own = pods.filter(|pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| owners.contains(&owner.uid.as_str()))
    });
    let mut times: Vec<Duration> = own.filter_map(time_until_ready).collect();
    times.sort_unstable();
    // A time in the API has whole seconds, so a pod may look ready at once.
    let times: Vec<Duration> = times.into_iter().map(|time| time.max(SHORTEST)).collect();
    match (times.get(times.len() / 2), times.len()) {
        (Some(median), 1) => (*median, "as the ready pod did".to_owned()),
        (Some(median), pods) => (*median, format!("the median of {pods} ready pods")),
        (None, _) => (
            Assumptions::default().ready_after,
            "the default, because no pod is ready".to_owned(),
        ),
    }
}

/// The uids of the controllers of a workload's pods.
fn owners<'a>(cluster: &'a Cluster, workload: &'a Served) -> Vec<&'a str> {
    if workload.kind != Kind::Deployment {
        return vec![&workload.uid];
    }
    let sets = cluster.workloads_in(Kind::ReplicaSet, &workload.namespace);
    sets.filter(|set| set.controller.as_deref() == Some(&workload.uid))
        .map(|set| set.uid.as_str())
        .collect()
}

/// The time from a pod's creation until it became ready; `None` if it is not ready.
fn time_until_ready(pod: &v1::Pod) -> Option<Duration> {
    let is_ready = pod.ready() == v1::ConditionStatus::True;
    let time = |time: &Option<_>| {
        let time: &nodewise_proto::Timestamp = time.as_ref()?;
        Timestamp::new(time.seconds, time.nanos).ok()
    };
    let (created, ready) = (time(&pod.creation_time)?, time(&pod.ready_transition_time)?);
    Duration::try_from(ready.duration_since(created))
        .ok()
        .filter(|_| is_ready)
}

/// The longest time that a pod of the template has to end.
fn grace_period(workload: &Served) -> Duration {
    let object: Value = serde_json::from_str(workload.json.get()).unwrap_or_default();
    let seconds = &object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    Duration::from_secs(seconds.as_u64().unwrap_or(DEFAULT_GRACE))
}
