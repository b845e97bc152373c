//! Nodes: labels, taints, and fields that a plan must ignore (conditions, `unschedulable`).

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::rng::CaseRng;

/// Values of the label `n` and operands for it: integers, and strings that look like integers.
pub(super) const NUMBERS: &[&str] = &[
    "0",
    "4",
    "5",
    "6",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1e3",
    "abc",
    "",
];

/// Values of the taint `level`: canonical decimals, and unusual ones.
pub(super) const TAINT_NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "10",
    "-1",
    "-0",
    "+1",
    "007",
    "1.5",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "x",
    "",
];

/// Taints: weight, key, value, effect.
const TAINTS: &[(u32, (&str, &str, &str))] = &[
    (4, ("node.kubernetes.io/not-ready", "", "NoSchedule")),
    (3, ("node.kubernetes.io/not-ready", "", "NoExecute")),
    (2, ("node.kubernetes.io/unreachable", "", "NoSchedule")),
    (2, ("node.kubernetes.io/unreachable", "", "NoExecute")),
    (1, ("node.kubernetes.io/disk-pressure", "", "NoSchedule")),
    (1, ("node.kubernetes.io/memory-pressure", "", "NoSchedule")),
    (1, ("node.kubernetes.io/pid-pressure", "", "NoSchedule")),
    (2, ("node.kubernetes.io/network-unavailable", "", "NoSchedule")),
    (
        1,
        ("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute"),
    ),
    (5, ("dedicated", "user1", "NoSchedule")),
    (3, ("dedicated", "user1", "NoExecute")),
    (2, ("dedicated", "user2", "NoSchedule")),
    (2, ("dedicated", "user1", "PreferNoSchedule")),
    (1, ("dedicated", "", "NoSchedule")),
];

/// A node, and whether a DaemonSet without restrictions runs on it.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) object: Value,
    pub(super) plain: bool,
}

/// The names of a cluster's nodes.
pub(super) fn names(rng: &mut CaseRng) -> Vec<String> {
    let count = match rng.below(1000) {
        0 => 300,
        1..=90 => 8 + rng.below(13),
        _ => rng.weighted(&[
            (2, 0),
            (10, 1),
            (20, 2),
            (24, 3),
            (18, 4),
            (13, 5),
            (8, 6),
            (5, 7),
        ]),
    };
    let form = rng.below(10);
    (0..count)
        .map(|number| match form {
            0 => format!("ip-10-0-0-{number}.internal.example"),
            _ => format!("node-{number}"),
        })
        .collect()
}

/// The taints of the nodes in a cluster.
#[derive(Clone, Copy)]
pub(super) enum Health {
    /// No taints.
    Fine,
    /// Some have taints.
    Mixed,
    /// Some have taints with numbers.
    Numeric,
}

/// Generates nodes with these names.
pub(super) fn draw(rng: &mut CaseRng, names: &[String], health: Health, clock: &Clock) -> Vec<Node> {
    let mut nodes: Vec<_> = names.iter().map(|name| node(rng, name, health, clock)).collect();
    rng.shuffle(&mut nodes);
    nodes
}

fn node(rng: &mut CaseRng, name: &str, health: Health, clock: &Clock) -> Node {
    let mut taints = Vec::new();
    let mut cordoned = false;
    let tainted = match health {
        Health::Fine => 0,
        Health::Mixed => 40,
        Health::Numeric => 70,
    };
    if rng.in_hundred(tainted) {
        for _ in 0..=rng.below(2) {
            add_taint(&mut taints, taint(rng, health, clock));
        }
    }
    if rng.in_hundred(if tainted > 0 { 10 } else { 2 }) {
        cordoned = true;
        if rng.in_hundred(80) {
            let key = "node.kubernetes.io/unschedulable";
            add_taint(&mut taints, json!({"key": key, "effect": "NoSchedule"}));
        }
    }
    let mut spec = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]});
    if cordoned {
        spec["unschedulable"] = true.into();
    }
    let plain = taints
        .iter()
        .all(|taint| taint["key"] == "node.kubernetes.io/unschedulable");
    if !taints.is_empty() {
        spec["taints"] = taints.into();
    }
    let ready = rng.pick(&["True", "True", "True", "False", "Unknown"]);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": rng.uid(),
            "resourceVersion": rng.version(),
            "creationTimestamp": clock.before(rng.between(100_000..=9_000_000)),
            "labels": labels(rng, name),
        },
        "spec": spec,
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": rng.pick(&["110", "0"])},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{
                "type": "Ready",
                "status": ready,
                "reason": "KubeletReady",
                "message": "",
                "lastHeartbeatTime": clock.before(10),
                "lastTransitionTime": clock.before(1000),
            }],
        },
    });
    Node {
        name: name.to_owned(),
        object,
        plain,
    }
}

fn labels(rng: &mut CaseRng, name: &str) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("kubernetes.io/hostname".into(), name.into());
    labels.insert("kubernetes.io/os".into(), "linux".into());
    let mut maybe = |times, key: &str, values: &[&str]| {
        if rng.in_hundred(times) {
            labels.insert(key.to_owned(), rng.pick(values).into());
        }
    };
    maybe(70, "color", &["blue", "blue", "green", ""]);
    maybe(70, "zone", &["a", "a", "b", "c"]);
    maybe(60, "n", NUMBERS);
    labels
}

fn taint(rng: &mut CaseRng, health: Health, clock: &Clock) -> Value {
    let (key, value, effect) = match health {
        Health::Numeric if rng.in_hundred(75) => {
            let value = rng.pick(TAINT_NUMBERS);
            (
                "level",
                value,
                rng.pick(&["NoSchedule", "NoSchedule", "NoExecute"]),
            )
        }
        _ => rng.weighted(TAINTS),
    };
    let mut taint = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        taint["value"] = value.into();
    }
    if effect == "NoExecute" && rng.in_hundred(60) {
        taint["timeAdded"] = clock.before(rng.between(0..=3600)).into();
    }
    taint
}

/// An apiserver rejects two taints with the same key and effect.
fn add_taint(taints: &mut Vec<Value>, taint: Value) {
    let is_same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
    if !taints.iter().any(is_same) {
        taints.push(taint);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, items, name};

    fn taints(case: &Case) -> impl Iterator<Item = &Value> {
        case.nodes.iter().flat_map(|node| items(&node["spec"]["taints"]))
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("no nodes", |case| case.nodes.is_empty()),
        ("one node", |case| case.nodes.len() == 1),
        ("eight nodes or more", |case| (8..=20).contains(&case.nodes.len())),
        ("300 nodes", |case| case.nodes.len() == 300),
        ("a taint against scheduling", |case| {
            taints(case).any(|taint| taint["effect"] == "NoSchedule")
        }),
        ("a taint against running", |case| {
            taints(case).any(|taint| taint["effect"] == "NoExecute")
        }),
        ("a taint that asks", |case| {
            taints(case).any(|taint| taint["effect"] == "PreferNoSchedule")
        }),
        ("a node that is not ready", |case| {
            taints(case).any(|taint| taint["key"] == "node.kubernetes.io/not-ready")
        }),
        ("a node that is unreachable", |case| {
            taints(case).any(|taint| taint["key"] == "node.kubernetes.io/unreachable")
        }),
        ("a cordoned node", |case| {
            taints(case).any(|taint| taint["key"] == "node.kubernetes.io/unschedulable")
        }),
        ("a cordoned node without its taint", |case| {
            case.nodes
                .iter()
                .any(|node| node["spec"]["unschedulable"] == true && node["spec"]["taints"].is_null())
        }),
        ("a taint with a negative number", |case| {
            taints(case).any(|taint| taint["value"] == "-1")
        }),
        ("a taint with an odd number", |case| {
            taints(case).any(|taint| taint["value"] == "007")
        }),
        ("a node with several taints", |case| {
            case.nodes
                .iter()
                .any(|node| items(&node["spec"]["taints"]).len() > 1)
        }),
        ("a label with a number", |case| {
            case.nodes
                .iter()
                .any(|node| node["metadata"]["labels"]["n"] == "007")
        }),
    ];

    /// With more than eight nodes, upstream has too many random outcomes to find them all.
    #[test]
    fn most_clusters_have_at_most_eight_nodes() {
        const SEEDS: usize = 1500;
        let nodes = |case: &Case| {
            let mut names: BTreeSet<_> = case.nodes.iter().map(|node| name(node).to_owned()).collect();
            for pod in &case.pods {
                names.extend(pod["spec"]["nodeName"].as_str().map(str::to_owned));
            }
            names.len()
        };
        let few = (0..SEEDS as u64)
            .filter(|seed| nodes(&crate::generate::case(*seed)) <= 8)
            .count();
        assert!(few * 10 >= SEEDS * 9, "{few} of {SEEDS}");
    }
}
