//! What is assumed about the pods of a workload and about its RolloutPolicy, and where it is from.

use std::time::Duration;

use jiff::Timestamp;
use nodewise_forecast::{Assumptions, Bounds};
use nodewise_proto::v1;
use nodewise_status::{PolicyFacts, WorkloadFacts};
use serde_json::Value;

use super::args::AssumptionArgs;
use crate::{
    input::{Cluster, Served},
    kind::Kind,
    text::names,
    view,
};

/// The grace period of a template that names none, as the apiserver sets it.
const DEFAULT_GRACE: u64 = 30;

/// The shortest time of a play.
const SHORTEST: Duration = Duration::from_secs(1);

/// A pod that became ready later than this was probably ready before. It is the time after which a Deployment counts as stuck by default.
const LONGEST_START: Duration = Duration::from_mins(10);

/// The assumptions about one workload, and the bounds of its play.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assumed {
    pub(crate) pods: Assumptions,
    pub(crate) bounds: Bounds,
    /// Where the time until a pod is ready is from.
    pub(crate) ready_origin: String,
    /// Where the time until a pod is gone is from.
    pub(crate) gone_origin: String,
    /// What is assumed about the RolloutPolicy, in sentences. In a play nobody approves a stage, and no check is made.
    pub(crate) policy: Vec<String>,
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
            policy: about_policy(cluster, workload),
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

/// What is assumed about the policy that counts for the workload. Nothing is said about what it does not ask for.
fn about_policy(cluster: &Cluster, workload: &Served) -> Vec<String> {
    let policies = view::policies(cluster, workload);
    let facts = WorkloadFacts::of(workload.kind.name(), workload.json.get());
    let Some(policy) = PolicyFacts::in_charge(&policies, &facts) else {
        return Vec::new();
    };
    let mut said = Vec::new();
    let approvals: Vec<&str> = policy.approvals().collect();
    if !approvals.is_empty() {
        said.push(format!(
            "every approval is given at once (of {})",
            names::shorten(approvals)
        ));
    }
    let checks: Vec<String> = policy
        .checks()
        .map(|(stage, check)| format!("{check} of {stage}"))
        .collect();
    if !checks.is_empty() {
        let checks = names::shorten(checks.iter().map(String::as_str));
        said.push(format!(
            "no host is asked, and every measurement of a check passes ({checks})"
        ));
    }
    if policy.evicts {
        said.push("no PodDisruptionBudget refuses an eviction".to_owned());
    }
    said
}

/// How long pods take to become ready: as given, else as the ready pods did, else 10 s.
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
    let facts = cluster.facts.as_ref();
    let has_restarted = |pod: &v1::Pod| {
        pod.restarts > 0
            || pod.sidecar_restarts > 0
            || facts.is_some_and(|facts| facts.has_restarted(&pod.uid))
    };
    typical(own.filter_map(|pod| {
        Some(Start {
            took: time_until_ready(pod)?,
            has_restarted: has_restarted(pod),
        })
    }))
}

/// How a pod that is ready became so.
struct Start {
    /// From its creation until its last change to ready.
    took: Duration,
    /// Whether one of its containers was restarted.
    has_restarted: bool,
}

/// The median of pods that became ready once, and where it is from. A pod says only when it became ready the last time: after a restart
/// or an outage of its node that may be days after its creation. So pods that have restarted do not count, nor do those that took longer
/// than [`LONGEST_START`].
fn typical(starts: impl Iterator<Item = Start>) -> (Duration, String) {
    let (once, again): (Vec<Start>, Vec<Start>) =
        starts.partition(|start| !start.has_restarted && start.took <= LONGEST_START);
    // A time in the API has whole seconds, so a pod may look ready at once.
    let mut times: Vec<Duration> = once.iter().map(|start| start.took.max(SHORTEST)).collect();
    times.sort_unstable();
    let default = Assumptions::default().ready_after;
    match (times.get(times.len() / 2), times.len()) {
        (Some(median), 1) => (*median, "as the ready pod did".to_owned()),
        (Some(median), pods) => (*median, format!("the median of {pods} ready pods")),
        (None, _) if again.is_empty() => (default, "the default, because no pod is ready".to_owned()),
        (None, _) => (
            default,
            "the default, because every ready pod has restarted or has become ready again later".to_owned(),
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

/// The time from a pod's creation until it became ready the last time; `None` if it is not ready.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds that each pod took and whether it has restarted; what is expected.
    type Case = (&'static [(u64, bool)], u64, &'static str);

    #[test]
    fn only_pods_that_became_ready_once_tell_how_long_that_takes() {
        const DAYS: u64 = 72 * 3_600;
        let default = Assumptions::default().ready_after.as_secs();
        let table: [Case; 7] = [
            (&[], default, "the default, because no pod is ready"),
            (&[(0, false)], 1, "as the ready pod did"),
            (
                &[(40, false), (20, false), (30, false)],
                30,
                "the median of 3 ready pods",
            ),
            // The node was away, and its pods became ready again.
            (
                &[(DAYS, false), (20, false), (DAYS, false)],
                20,
                "as the ready pod did",
            ),
            (
                &[(20, true), (40, false), (50, false)],
                50,
                "the median of 2 ready pods",
            ),
            (&[(600, false), (601, false)], 600, "as the ready pod did"),
            (
                &[(DAYS, false), (20, true)],
                default,
                "the default, because every ready pod has restarted or has become ready again later",
            ),
        ];
        for (pods, seconds, origin) in table {
            let starts = pods.iter().map(|(seconds, has_restarted)| Start {
                took: Duration::from_secs(*seconds),
                has_restarted: *has_restarted,
            });
            assert_eq!(
                typical(starts),
                (Duration::from_secs(seconds), origin.to_owned()),
                "{pods:?}"
            );
        }
    }
}
