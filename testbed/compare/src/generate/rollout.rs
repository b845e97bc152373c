//! The pods of a cluster: for each node a state, with probabilities that depend on the scenario.

use super::cluster::Cluster;
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::strategy::Kind;

/// The pods on one node.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// No pod.
    Nothing,
    /// A former version, available.
    Old,
    /// A former version, not available.
    OldUnready,
    /// A former version, terminating.
    OldLeaving,
    /// The present version, available.
    New,
    /// The present version, not available.
    NewUnready,
    /// The present version, terminating.
    NewLeaving,
    /// One of each, both available.
    BothReady,
    /// One of each, the new one not available.
    BothNewUnready,
    /// One of each, the old one not available.
    BothOldUnready,
    /// An old pod that is terminating, and its replacement.
    HandedOver,
    /// Failed pods.
    Failed,
    /// A failed pod and a running one.
    FailedAndNew,
    /// A succeeded pod.
    Succeeded,
    /// Any pods.
    Any,
}

use Content::{
    Any, BothNewUnready, BothOldUnready, BothReady, Failed, FailedAndNew, HandedOver, New, NewLeaving,
    NewUnready, Nothing, Old, OldLeaving, OldUnready, Succeeded,
};

/// The weights of the states.
type Table = &'static [(u32, Content)];

const SETTLED: Table = &[(94, New), (2, Nothing), (2, NewUnready), (2, NewLeaving)];
const CHANGED: Table = &[(84, Old), (10, OldUnready), (4, Nothing), (2, OldLeaving)];
const DELETE_FIRST: Table = &[
    (30, Old),
    (9, OldUnready),
    (7, OldLeaving),
    (32, New),
    (8, NewUnready),
    (8, Nothing),
    (2, NewLeaving),
    (2, BothReady),
    (2, BothNewUnready),
];
const CREATE_FIRST: Table = &[
    (26, Old),
    (9, OldUnready),
    (22, New),
    (7, NewUnready),
    (9, BothReady),
    (12, BothNewUnready),
    (4, BothOldUnready),
    (5, HandedOver),
    (2, OldLeaving),
    (2, Failed),
    (2, Nothing),
];
const FAILING: Table = &[
    (40, New),
    (28, Failed),
    (12, FailedAndNew),
    (10, Succeeded),
    (5, Old),
    (5, Any),
];
const CHAOS: Table = &[
    (10, Nothing),
    (45, Any),
    (10, Old),
    (10, New),
    (10, BothReady),
    (5, Failed),
    (5, Succeeded),
];

/// Generates the pods of all nodes.
pub(super) fn populate(rng: &mut CaseRng, cluster: &mut Cluster) {
    let rolling = if cluster.setup.set.kind == Kind::Surge {
        CREATE_FIRST
    } else {
        DELETE_FIRST
    };
    let table = match cluster.setup.scenario {
        Scenario::Fresh => return,
        Scenario::Settled => SETTLED,
        Scenario::Changed => CHANGED,
        Scenario::Rollout | Scenario::RolledBack => rolling,
        Scenario::Failing => FAILING,
        Scenario::Chaos => CHAOS,
    };
    // Nodes that should have no pod mostly stay empty, but one in six clusters has pods everywhere.
    let everywhere = rng.in_hundred(16);
    for index in 0..cluster.setup.nodes.len() {
        let node = &cluster.setup.nodes[index];
        if !node.plain && !everywhere && rng.in_hundred(50) {
            continue;
        }
        let name = node.name.clone();
        let content = rng.weighted(table);
        add(rng, cluster, &name, content);
    }
}

fn add(rng: &mut CaseRng, cluster: &mut Cluster, node: &str, content: Content) {
    let old = |rng: &mut CaseRng, cluster: &mut Cluster, ready: bool| {
        let version = cluster.setup.former(rng);
        push(rng, cluster, version, node, ready);
    };
    let new = |rng: &mut CaseRng, cluster: &mut Cluster, ready: bool| {
        let version = cluster.setup.present();
        push(rng, cluster, version, node, ready);
    };
    match content {
        Nothing => {}
        Old => old(rng, cluster, true),
        OldUnready => old(rng, cluster, false),
        New => new(rng, cluster, true),
        NewUnready => new(rng, cluster, false),
        OldLeaving => {
            old(rng, cluster, true);
            leave(rng, cluster);
        }
        NewLeaving => {
            new(rng, cluster, true);
            leave(rng, cluster);
        }
        HandedOver => {
            old(rng, cluster, true);
            leave(rng, cluster);
            let ready = rng.in_hundred(50);
            new(rng, cluster, ready);
        }
        BothReady | BothNewUnready | BothOldUnready => {
            old(rng, cluster, !matches!(content, BothOldUnready));
            let ready = match content {
                BothReady => true,
                BothNewUnready => false,
                _ => rng.in_hundred(50),
            };
            new(rng, cluster, ready);
        }
        Failed | FailedAndNew => {
            for _ in 0..rng.weighted(&[(7, 1), (2, 2), (1, 3)]) {
                fail(rng, cluster, node, "Failed");
            }
            if matches!(content, FailedAndNew) {
                let ready = rng.in_hundred(70);
                new(rng, cluster, ready);
            }
        }
        Succeeded => fail(rng, cluster, node, "Succeeded"),
        Any => {
            for _ in 0..=rng.below(3) {
                anything(rng, cluster, node);
            }
        }
    }
}

fn push(rng: &mut CaseRng, cluster: &mut Cluster, version: usize, node: &str, ready: bool) {
    let mut pod = cluster.pod(rng, version, node);
    if !ready {
        pod = pod.unavailable(rng, &cluster.setup);
    }
    cluster.pods.push(pod);
}

/// Puts the last pod into deletion.
fn leave(rng: &mut CaseRng, cluster: &mut Cluster) {
    if let Some(pod) = cluster.pods.last_mut() {
        pod.deleting = true;
        pod.finalizers = rng.in_hundred(40);
    }
}

/// A finished pod.
fn fail(rng: &mut CaseRng, cluster: &mut Cluster, node: &str, phase: &'static str) {
    let version = if rng.in_hundred(80) {
        cluster.setup.present()
    } else {
        cluster.setup.former(rng)
    };
    push(rng, cluster, version, node, true);
    if let Some(pod) = cluster.pods.last_mut() {
        pod.end(phase);
    }
}

fn anything(rng: &mut CaseRng, cluster: &mut Cluster, node: &str) {
    let version = rng.below(cluster.setup.versions.len());
    let ready = rng.in_hundred(50);
    push(rng, cluster, version, node, ready);
    let ended = rng.weighted(&[(8, ""), (1, "Failed"), (1, "Succeeded")]);
    if let (Some(pod), false) = (cluster.pods.last_mut(), ended.is_empty()) {
        pod.end(ended);
    }
    if rng.in_hundred(20) {
        leave(rng, cluster);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use crate::case::Case;
    use crate::generate::census::{Situation, is_deleting, is_on_a_node, items, set};

    fn is_new(pod: &Value) -> bool {
        pod["metadata"]["labels"]["controller-revision-hash"] == "@hash"
    }

    fn is_ready(pod: &Value) -> bool {
        let conditions = items(&pod["status"]["conditions"]).iter();
        let ready = conditions.clone().find(|condition| condition["type"] == "Ready");
        ready.is_some_and(|ready| ready["status"] == "True")
    }

    fn surges(case: &Case) -> bool {
        let strategy = &set(case)["spec"]["updateStrategy"];
        strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"]["maxUnavailable"] == 0
    }

    /// Whether a node has a new and an old pod, neither in deletion, for which `is` holds.
    fn has_both(case: &Case, is: impl Fn(&Value, &Value) -> bool) -> bool {
        let living = || {
            case.pods
                .iter()
                .filter(|pod| !is_deleting(pod) && is_on_a_node(case, pod))
        };
        living().filter(|pod| is_new(pod)).any(|new| {
            let mut old =
                living().filter(|pod| !is_new(pod) && pod["spec"]["nodeName"] == new["spec"]["nodeName"]);
            old.any(|old| is(new, old))
        })
    }

    /// Whether a pod for which `is` holds, and that is not in deletion, runs on a tainted node.
    fn on_taint(case: &Case, effect: &str, is: impl Fn(&Value) -> bool) -> bool {
        case.nodes.iter().any(|node| {
            let mut taints = items(&node["spec"]["taints"]).iter();
            taints.any(|taint| taint["effect"] == effect && taint["key"] == "dedicated")
                && case.pods.iter().any(|pod| {
                    pod["spec"]["nodeName"] == node["metadata"]["name"] && !is_deleting(pod) && is(pod)
                })
        })
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("surge: both, new not ready", |case| {
            surges(case) && has_both(case, |new, _| !is_ready(new))
        }),
        ("surge: both, old not ready", |case| {
            surges(case) && has_both(case, |_, old| !is_ready(old))
        }),
        ("surge: both ready", |case| {
            surges(case) && has_both(case, |new, old| is_ready(new) && is_ready(old))
        }),
        ("no surge: both", |case| {
            !surges(case) && has_both(case, |_, _| true)
        }),
        ("surge: sunset", |case| {
            surges(case) && on_taint(case, "NoSchedule", |pod| !is_new(pod) && is_ready(pod))
        }),
        ("surge: old not ready on a taint", |case| {
            surges(case) && on_taint(case, "NoSchedule", |pod| !is_new(pod) && !is_ready(pod))
        }),
        ("no surge: old on a taint", |case| {
            !surges(case) && on_taint(case, "NoSchedule", |pod| !is_new(pod) && is_ready(pod))
        }),
        ("running where it must not", |case| {
            on_taint(case, "NoExecute", is_ready)
        }),
        ("surge on a full node", |case| {
            let full = |node: &Value| node["status"]["capacity"]["pods"] == "0";
            surges(case) && case.nodes.iter().any(full) && case.pods.len() > 1
        }),
        ("three failed on a node", |case| {
            let failed = || case.pods.iter().filter(|pod| pod["status"]["phase"] == "Failed");
            failed().any(|pod| {
                failed()
                    .filter(|other| other["spec"]["nodeName"] == pod["spec"]["nodeName"])
                    .count()
                    > 2
            })
        }),
        ("failed on a taint", |case| {
            on_taint(case, "NoSchedule", |pod| pod["status"]["phase"] == "Failed")
        }),
        ("surge: failed", |case| {
            surges(case) && case.pods.iter().any(|pod| pod["status"]["phase"] == "Failed")
        }),
    ];
}
