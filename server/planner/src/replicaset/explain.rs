//! Explains how many pods a ReplicaSet has and wants, and in which order its pods would be deleted.

use crate::{
    core::{
        cancellation::Cancellation,
        expectations,
        snapshot::{PodView, Snapshot, Target},
        staleness,
    },
    replicaset::{
        bucket_summary::Role,
        scale::{self, Scale},
        set_view,
        sync::{self, Inactive},
        victims,
        workload::ReplicaSet,
    },
};

/// The explanation of a ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// How many pods there are and how many are wanted, and what happens next.
    pub message: String,
    /// The pods: first those that count, in the order in which they would be deleted; then the others, by name.
    pub pods: Vec<PodExplanation>,
}

/// One pod of a ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodExplanation {
    /// The pod's name.
    pub pod_name: String,
    /// The node that the pod is bound to; empty if there is none.
    pub node_name: String,
    /// The pod's place in the order of deletion, from 1; `None` if the pod does not count.
    pub place: Option<usize>,
    /// One sentence for people: why the pod goes before the next one, or why it does not count.
    pub message: String,
}

/// Explains a ReplicaSet.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn explain(snapshot: &Snapshot<ReplicaSet>) -> Explanation {
    explain_until(snapshot, &|| false).expect("nothing asks to stop")
}

/// Like [`explain()`], but returns `None` soon after `stop` returns true.
#[must_use]
pub fn explain_until(snapshot: &Snapshot<ReplicaSet>, stop: &dyn Fn() -> bool) -> Option<Explanation> {
    let cancellation = Cancellation::new(stop);
    let own = match sync::inactive(snapshot) {
        // An empty selector would select every pod.
        Some(Inactive::NoSelector) => Vec::new(),
        _ => set_view::own_pods(snapshot, cancellation)?,
    };
    let is_active = |role: &Role| matches!(role, Role::Active(_));
    let (active, mut others): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, role)| is_active(role));
    let active: Vec<_> = active.into_iter().map(|(pod, _)| pod).collect();
    others.sort_by_key(|(pod, _)| pod.name());
    let message = message(snapshot, active.len(), &others);
    let ranked = victims::rank(snapshot, active, cancellation)?;
    let places = ranked
        .iter()
        .enumerate()
        .map(|(index, candidate)| PodExplanation {
            pod_name: candidate.pod.name().to_owned(),
            node_name: node_name(candidate.pod),
            place: Some(index + 1),
            message: match ranked.get(index + 1) {
                Some(next) => format!(
                    "It is deleted before {}: {}.",
                    next.pod.name(),
                    candidate.difference(next).sentence()
                ),
                None => "It is deleted last.".to_owned(),
            },
        });
    let others = others.into_iter().map(|(pod, role)| PodExplanation {
        pod_name: pod.name().to_owned(),
        node_name: node_name(pod),
        place: None,
        message: match role {
            Role::Terminating => "It is being deleted, and does not count.".to_owned(),
            _ if pod.deleting() => "It has finished and is being deleted, and does not count.".to_owned(),
            _ => "It has finished, and does not count. The ReplicaSet leaves it alone.".to_owned(),
        },
    });
    Some(Explanation {
        message,
        pods: places.chain(others).collect(),
    })
}

fn node_name(pod: PodView<'_>) -> String {
    match pod.target() {
        Target::Bound(node) => node.to_owned(),
        Target::Meant(_) | Target::Nowhere => String::new(),
    }
}

fn message(snapshot: &Snapshot<ReplicaSet>, active: usize, others: &[(PodView<'_>, Role)]) -> String {
    let rs = &snapshot.workload;
    let mut sentences = vec![format!("{} has {active} of {} pods.", rs.name, rs.replicas)];
    let leaving = others
        .iter()
        .filter(|(_, role)| *role == Role::Terminating)
        .count();
    if leaving > 0 {
        sentences.push(format!("{leaving} more are being deleted; they do not count."));
    }
    sentences.extend(next(snapshot, active));
    sentences.join(" ")
}

/// What happens next.
fn next(snapshot: &Snapshot<ReplicaSet>, active: usize) -> Option<String> {
    let rs = &snapshot.workload;
    match sync::inactive(snapshot) {
        Some(Inactive::NoSelector) => {
            return Some("Its selector is absent or empty, so nothing is done.".to_owned());
        }
        Some(Inactive::OtherController) => return Some("Another controller manages it.".to_owned()),
        None => {}
    }
    if let Some(behind) = staleness::stale(&snapshot.own_writes) {
        return Some(format!(
            "Nothing is done until the caches show the last writes: {behind}."
        ));
    }
    if rs.deleting {
        return Some("It is being deleted, so no pods are created or deleted.".to_owned());
    }
    let expected = snapshot.state.expectations.as_ref();
    if let (Some(_), Some(expected)) = (expectations::pending(expected, snapshot.now), expected) {
        return Some(format!(
            "The caches do not show {} creates and {} deletes of earlier plans yet.",
            expected.creates.len(),
            expected.delete_uids.len()
        ));
    }
    let burst = |wanted: usize, most: usize| match wanted.min(most) {
        all if all == wanted => String::new(),
        some => format!(", {some} of them in the next plan"),
    };
    match Scale::of(rs.replicas, active) {
        Scale::Enough => None,
        Scale::Missing(missing) => {
            let first = burst(missing, scale::most_creates(&snapshot.options));
            Some(format!("{missing} must be created{first}."))
        }
        Scale::Excess(excess) => {
            let first = burst(excess, snapshot.options.burst);
            Some(format!("{excess} must be deleted{first}."))
        }
    }
}
