//! The ages of the pods that a scale-down deletes.

use std::collections::HashSet;

use nodewise_projection::Workload;
use nodewise_proto::v1::{self, action::Kind};
use nodewise_runtime::store::{Store, is_live};

/// For each ready pod that the plan deletes: its age, divided by the age of the youngest ready pod. Empty if the plan deletes all
/// live pods, since it chooses none then.
pub(super) fn ratios(store: &Store, set: &Workload, plan: &v1::Plan, now: jiff::Timestamp) -> Vec<f64> {
    let deleted: HashSet<&str> = plan.actions().filter_map(deleted).collect();
    if deleted.is_empty() {
        return Vec::new();
    }
    let live: Vec<_> = store.controlled_pods(set).filter(is_live).collect();
    if live.iter().all(|pod| deleted.contains(&*pod.uid)) {
        return Vec::new();
    }
    let age = |pod: &v1::Pod| {
        let created = pod.creation_time.as_ref().map_or(0, |time| time.seconds);
        // A pod that was created just now counts as one second old.
        f64::from(
            i32::try_from(now.as_second() - created)
                .unwrap_or(i32::MAX)
                .max(1),
        )
    };
    let ready = || live.iter().filter(|pod| pod.ready() == v1::ConditionStatus::True);
    let youngest = ready().map(age).fold(f64::INFINITY, f64::min);
    let chosen = ready().filter(|pod| deleted.contains(&*pod.uid));
    chosen.map(|pod| age(pod) / youngest).collect()
}

fn deleted(action: &v1::Action) -> Option<&str> {
    match &action.kind {
        Some(Kind::DeletePod(delete)) => delete.pod.as_ref().map(|pod| &*pod.uid),
        _ => None,
    }
}
