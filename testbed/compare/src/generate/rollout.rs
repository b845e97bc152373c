//! Which pods a cluster has, by its story: node for node the states in which a controller can meet them.

use super::cluster::{Cluster, Story};
use super::odds::Odds;
use super::pod::Pod;
use super::strategy::Kind;

/// The pods of one node.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// None.
    Nothing,
    /// A former one, available.
    Old,
    /// A former one, not available.
    OldUnready,
    /// A former one, terminating.
    OldLeaving,
    /// One of the present version, available.
    New,
    /// One of the present version, not available.
    NewUnready,
    /// One of the present version, terminating.
    NewLeaving,
    /// One of each, both available.
    BothReady,
    /// One of each, the new one not available.
    BothNewUnready,
    /// One of each, the old one not available.
    BothOldUnready,
    /// An old one that leaves, and its successor.
    HandedOver,
    /// Pods that failed.
    Failed,
    /// A pod that failed, and one that runs.
    FailedAndNew,
    /// A pod that succeeded.
    Succeeded,
    /// Anything.
    Any,
}

use Content::{
    Any, BothNewUnready, BothOldUnready, BothReady, Failed, FailedAndNew, HandedOver, New, NewLeaving,
    NewUnready, Nothing, Old, OldLeaving, OldUnready, Succeeded,
};

/// How often a node has what.
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

/// Fills the nodes.
pub(super) fn populate(odds: &mut Odds, cluster: &mut Cluster) {
    let rolling = if cluster.set.kind == Kind::Surge {
        CREATE_FIRST
    } else {
        DELETE_FIRST
    };
    let table = match cluster.story {
        Story::Fresh => return,
        Story::Settled => SETTLED,
        Story::Changed => CHANGED,
        Story::Rollout | Story::RolledBack => rolling,
        Story::Failing => FAILING,
        Story::Chaos => CHAOS,
    };
    // A node on which nothing runs is left alone most of the time; one in six clusters has pods everywhere.
    let everywhere = odds.in_hundred(16);
    for index in 0..cluster.nodes.len() {
        let node = &cluster.nodes[index];
        if !node.plain && !everywhere && odds.in_hundred(50) {
            continue;
        }
        let name = node.name.clone();
        let content = odds.weighted(table);
        add(odds, cluster, &name, content);
    }
}

fn add(odds: &mut Odds, cluster: &mut Cluster, node: &str, content: Content) {
    let old = |odds: &mut Odds, cluster: &mut Cluster, ready: bool| {
        let version = cluster.former(odds);
        push(odds, cluster, version, node, ready);
    };
    let new = |odds: &mut Odds, cluster: &mut Cluster, ready: bool| {
        let version = cluster.present();
        push(odds, cluster, version, node, ready);
    };
    match content {
        Nothing => {}
        Old => old(odds, cluster, true),
        OldUnready => old(odds, cluster, false),
        New => new(odds, cluster, true),
        NewUnready => new(odds, cluster, false),
        OldLeaving => {
            old(odds, cluster, true);
            leave(odds, cluster);
        }
        NewLeaving => {
            new(odds, cluster, true);
            leave(odds, cluster);
        }
        HandedOver => {
            old(odds, cluster, true);
            leave(odds, cluster);
            let ready = odds.in_hundred(50);
            new(odds, cluster, ready);
        }
        BothReady | BothNewUnready | BothOldUnready => {
            old(odds, cluster, !matches!(content, BothOldUnready));
            let ready = match content {
                BothReady => true,
                BothNewUnready => false,
                _ => odds.in_hundred(50),
            };
            new(odds, cluster, ready);
        }
        Failed | FailedAndNew => {
            for _ in 0..odds.weighted(&[(7, 1), (2, 2), (1, 3)]) {
                fail(odds, cluster, node, "Failed");
            }
            if matches!(content, FailedAndNew) {
                let ready = odds.in_hundred(70);
                new(odds, cluster, ready);
            }
        }
        Succeeded => fail(odds, cluster, node, "Succeeded"),
        Any => {
            for _ in 0..=odds.below(3) {
                anything(odds, cluster, node);
            }
        }
    }
}

fn push(odds: &mut Odds, cluster: &mut Cluster, version: usize, node: &str, ready: bool) {
    let mut pod = Pod::draw(odds, cluster, version, node);
    if !ready {
        pod = pod.unavailable(odds, cluster);
    }
    cluster.pods.push(pod);
}

/// Lets the latest pod terminate.
fn leave(odds: &mut Odds, cluster: &mut Cluster) {
    if let Some(pod) = cluster.pods.last_mut() {
        pod.deleting = true;
        pod.finalizers = odds.in_hundred(40);
    }
}

/// A pod that ended.
fn fail(odds: &mut Odds, cluster: &mut Cluster, node: &str, phase: &'static str) {
    let version = if odds.in_hundred(80) {
        cluster.present()
    } else {
        cluster.former(odds)
    };
    push(odds, cluster, version, node, true);
    if let Some(pod) = cluster.pods.last_mut() {
        pod.end(phase);
    }
}

fn anything(odds: &mut Odds, cluster: &mut Cluster, node: &str) {
    let version = odds.below(cluster.versions.len());
    let ready = odds.in_hundred(50);
    push(odds, cluster, version, node, ready);
    let ended = odds.weighted(&[(8, ""), (1, "Failed"), (1, "Succeeded")]);
    if let (Some(pod), false) = (cluster.pods.last_mut(), ended.is_empty()) {
        pod.end(ended);
    }
    if odds.in_hundred(20) {
        leave(odds, cluster);
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

    /// Whether a node has a living new pod and a living old pod for which this holds.
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

    /// Whether some living pod of which this holds runs on a tainted node.
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
