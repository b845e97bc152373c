//! The status of the DaemonSet: the right one, so that the sync need not write it, or another.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::owner::Owner;
use super::pod::{GENERATION_LABEL, HASH_LABEL, Pod, Ready, Target};
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::selector::APP;

/// The counts in a status.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    desired: i64,
    current: i64,
    misscheduled: i64,
    ready: i64,
    available: i64,
    updated: i64,
}

/// Generates the status.
pub(super) fn draw(rng: &mut CaseRng, cluster: &Cluster) -> Value {
    let mut counts = match rng.below(10) {
        _ if cluster.setup.scenario == Scenario::Fresh && rng.in_hundred(70) => Counts::default(),
        0 => Counts::default(),
        1 => Counts {
            desired: rng.between(0..=9),
            current: rng.between(0..=9),
            misscheduled: rng.between(0..=3),
            ready: rng.between(0..=9),
            available: rng.between(0..=9),
            updated: rng.between(0..=9),
        },
        _ => counted(cluster),
    };
    if rng.in_hundred(15) {
        let count = match rng.below(6) {
            0 => &mut counts.desired,
            1 => &mut counts.current,
            2 => &mut counts.misscheduled,
            3 => &mut counts.ready,
            4 => &mut counts.available,
            _ => &mut counts.updated,
        };
        *count = (*count + rng.between(-1..=1)).max(0);
    }
    let mut unavailable = (counts.desired - counts.available).max(0);
    if rng.in_hundred(3) {
        unavailable += 1;
    }
    object(rng, cluster, counts, unavailable)
}

/// The status as an apiserver writes it, with four counts even if they are zero.
fn object(rng: &mut CaseRng, cluster: &Cluster, counts: Counts, unavailable: i64) -> Value {
    let mut status = json!({
        "currentNumberScheduled": counts.current,
        "numberMisscheduled": counts.misscheduled,
        "desiredNumberScheduled": counts.desired,
        "numberReady": counts.ready,
    });
    let others = [
        ("observedGeneration", cluster.setup.set.observed),
        ("updatedNumberScheduled", counts.updated),
        ("numberAvailable", counts.available),
        ("numberUnavailable", unavailable),
    ];
    for (name, number) in others {
        if number != 0 {
            status[name] = number.into();
        }
    }
    if let Some(collisions) = cluster.setup.set.collisions {
        status["collisionCount"] = collisions.into();
    }
    if rng.in_hundred(4) {
        status["conditions"] = json!([{
            "type": "Healthy",
            "status": "True",
            "reason": "ByHand",
            "message": "a <b> & c",
            "lastTransitionTime": cluster.setup.clock.before(1000),
        }]);
    }
    status
}

/// The counts that a sync will find, if every node may run a pod; approximate otherwise.
fn counted(cluster: &Cluster) -> Counts {
    let mut counts = Counts::default();
    let present = &cluster.setup.versions[cluster.setup.present()];
    let generation = cluster
        .setup
        .set
        .template_generation
        .map(|number| Value::from(number.to_string()));
    for node in &cluster.setup.nodes {
        let on_node = |pod: &&Pod| pod.node() == Some(&node.name) && is_counted(pod);
        let first = cluster
            .pods
            .iter()
            .filter(on_node)
            .min_by_key(|pod| (matches!(pod.target, Target::Meant(_)), -pod.age, &pod.name));
        if !cluster.setup.plain && !node.plain {
            counts.misscheduled += i64::from(first.is_some());
            continue;
        }
        counts.desired += 1;
        let Some(pod) = first else {
            continue;
        };
        let is_hash = pod
            .labels
            .get(HASH_LABEL)
            .is_some_and(|hash| *hash == present.hash);
        let is_updated =
            is_hash || (generation.is_some() && pod.labels.get(GENERATION_LABEL) == generation.as_ref());
        counts.current += 1;
        counts.updated += i64::from(is_updated);
        counts.ready += i64::from(is_ready(pod));
        counts.available += i64::from(is_available(pod, cluster.setup.set.min_ready));
    }
    counts
}

/// Whether the DaemonSet controls or will adopt the pod, and the pod counts for the status.
fn is_counted(pod: &Pod) -> bool {
    let claimed = match pod.owner {
        Owner::Ours => true,
        Owner::Nobody | Owner::Mentioned => !pod.deleting,
        Owner::Former | Owner::Neighbour | Owner::Other => false,
    };
    let matches = pod.labels.get(APP).is_none_or(|app| app != "other");
    claimed && matches && !pod.elsewhere && !(pod.is_finished() && pod.deleting)
}

fn is_ready(pod: &Pod) -> bool {
    matches!(
        pod.ready,
        Ready::Since(_) | Ready::Undated | Ready::Twice("True", _)
    )
}

fn is_available(pod: &Pod, min_ready: i64) -> bool {
    match pod.ready {
        Ready::Since(seconds) => min_ready == 0 || seconds >= min_ready,
        Ready::Undated => min_ready == 0,
        Ready::Twice(first, _) => first == "True",
        Ready::Missing | Ready::Not(_) => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, is_deleting, set};

    fn status(case: &Case) -> &Value {
        &set(case)["status"]
    }

    /// Whether each of several untainted nodes has one available pod of the present version.
    fn settled(case: &Case) -> bool {
        let is_fine = |pod: &Value| {
            pod["metadata"]["labels"][HASH_LABEL] == "@hash"
                && pod["status"]["conditions"][1]["status"] == "True"
                && pod["status"]["phase"] == "Running"
                && !is_deleting(pod)
        };
        let spec = &set(case)["spec"]["template"]["spec"];
        case.nodes.len() > 1
            && case.pods.len() == case.nodes.len()
            && case.pods.iter().all(is_fine)
            && case.nodes.iter().all(|node| node["spec"]["taints"].is_null())
            && ["nodeName", "nodeSelector", "affinity"]
                .iter()
                .all(|field| spec[*field].is_null())
            && set(case)["spec"]["minReadySeconds"].is_null()
    }

    /// Whether the status says that all pods are available and updated.
    fn is_said(case: &Case) -> bool {
        let names = [
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberReady",
            "numberAvailable",
            "updatedNumberScheduled",
        ];
        names.iter().all(|name| status(case)[*name] == case.nodes.len())
    }

    fn is_observed(case: &Case) -> bool {
        status(case)["observedGeneration"] == set(case)["metadata"]["generation"]
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("nothing to write", |case| {
            settled(case) && is_said(case) && is_observed(case)
        }),
        ("only the generation to write", |case| {
            settled(case) && is_said(case) && !is_observed(case)
        }),
        ("counts to write", |case| {
            settled(case) && !is_said(case) && is_observed(case)
        }),
        ("a random status", |case| {
            status(case)["numberAvailable"].as_i64() > status(case)["desiredNumberScheduled"].as_i64()
        }),
        ("conditions", |case| status(case)["conditions"].is_array()),
        ("misscheduled pods", |case| {
            status(case)["numberMisscheduled"].as_i64() > Some(0)
        }),
        ("no status", |case| {
            status(case)["desiredNumberScheduled"] == 0 && !case.nodes.is_empty()
        }),
    ];
}
