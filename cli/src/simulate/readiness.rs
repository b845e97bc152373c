//! How long pods take to become ready.

use std::time::Duration;

use jiff::Timestamp;
use nodewise_forecast::Assumptions;
use nodewise_proto::v1;

use super::report::Readiness;
use crate::input::{Cluster, Served};

/// How long pods take to become ready: as given, else the median of the ready pods, else 10 s.
pub(super) fn of(given: Option<Duration>, cluster: &Cluster, workload: &Served) -> Readiness {
    if let Some(after) = given {
        return Readiness {
            after,
            observed: None,
            is_given: true,
        };
    }
    let pods = cluster.pods_in(&workload.namespace).iter().map(|pod| &pod.object);
    let own = pods.filter(|pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == workload.uid)
    });
    let mut times: Vec<Duration> = own.filter_map(time_until_ready).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied();
    Readiness {
        after: median.unwrap_or(Assumptions::default().ready_after),
        observed: median.map(|_| times.len()),
        is_given: false,
    }
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
