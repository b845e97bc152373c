//! Shrinks a case while the problem remains: delta debugging on the case's JSON, first whole objects, then their parts.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::Case;

/// How long to search for a smaller case.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Members that every served object has. They are never removed, because upstream's behaviour without them does not
/// matter.
const NEEDED: [&str; 19] = [
    "seed",
    "object",
    "metadata",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "spec",
    "replicas",
    "selector",
    "strategy",
    "template",
    "containers",
    "resources",
    "updateStrategy",
    "type",
    "revisionHistoryLimit",
];

/// The same, but only within a list or object of this name. Elsewhere these names mean something else.
const NEEDED_IN: [(&str, &[&str]); 17] = [
    ("ownerReferences", &["apiVersion", "kind"]),
    ("matchExpressions", &["key", "operator", "values"]),
    ("matchFields", &["key", "operator", "values"]),
    // Without `operator` a toleration means `Equal` and needs a key.
    ("tolerations", &["key", "operator"]),
    ("taints", &["key", "effect"]),
    ("conditions", &["status"]),
    ("containers", &["image"]),
    ("initContainers", &["image"]),
    ("ports", &["containerPort"]),
    ("volumeMounts", &["mountPath"]),
    ("pods", &["status"]),
    ("status", &["phase"]),
    ("updateStrategy", &["rollingUpdate"]),
    ("strategy", &["rollingUpdate"]),
    ("rollingUpdate", &["maxUnavailable", "maxSurge"]),
    (
        "preferredDuringSchedulingIgnoredDuringExecution",
        &["preference", "weight"],
    ),
    // In pod affinity.
    ("requiredDuringSchedulingIgnoredDuringExecution", &["topologyKey"]),
];

/// The smallest case found for which `shows` is true. It must be true for `case`.
pub fn shrink(case: &Case, mut shows: impl FnMut(&Case) -> bool) -> Case {
    let Ok(mut smallest) = serde_json::to_value(case) else {
        return case.clone();
    };
    let end = Instant::now() + TIME_LIMIT;
    loop {
        let before = smallest.clone();
        for depth in 1.. {
            // Backwards, so that a removal does not change the paths that follow.
            let paths = paths(&smallest, depth);
            if paths.is_empty() || Instant::now() > end {
                break;
            }
            for path in paths.iter().rev() {
                let mut smaller = smallest.clone();
                if Instant::now() < end
                    && !is_needed(path)
                    && remove(&mut smaller, path)
                    && serde_json::from_value(smaller.clone()).is_ok_and(|case| shows(&case))
                {
                    smallest = smaller;
                }
            }
        }
        if smallest == before || Instant::now() > end {
            return serde_json::from_value(smallest).unwrap_or_else(|_| case.clone());
        }
    }
}

/// Whether no apiserver would serve an object without the member at `path`.
fn is_needed(path: &[Step]) -> bool {
    let mut names = path.iter().rev().filter_map(|step| match step {
        Step::Member(name) => Some(name.as_str()),
        Step::Item(_) => None,
    });
    let (Some(Step::Member(_)), Some(name)) = (path.last(), names.next()) else {
        return false;
    };
    let holder = names.next().unwrap_or_default();
    let of_holder = NEEDED_IN.iter().find(|(within, _)| *within == holder);
    NEEDED.contains(&name) || of_holder.is_some_and(|(_, needed)| needed.contains(&name))
}

/// The paths of all values at this depth.
fn paths(value: &Value, depth: usize) -> Vec<Vec<Step>> {
    if depth == 0 {
        return vec![Vec::new()];
    }
    let children: Vec<(Step, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, item)| (Step::Item(n), item))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (Step::Member(name.clone()), member))
            .collect(),
        _ => Vec::new(),
    };
    children
        .into_iter()
        .flat_map(|(step, child)| {
            paths(child, depth - 1).into_iter().map(move |mut path| {
                path.insert(0, step.clone());
                path
            })
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Item(usize),
    Member(String),
}

/// Removes the value at `path`. Returns false if it no longer exists.
fn remove(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Item(n) => value.get_mut(n),
        Step::Member(name) => value.get_mut(name),
    });
    // An apiserver leaves out empty lists, so the last item is removed with its list. The lists of the case itself may
    // be empty.
    let fewest = if parents.len() > 1 { 2 } else { 1 };
    match (parent, last) {
        (Some(Value::Array(items)), Step::Item(n)) if *n < items.len() && items.len() >= fewest => {
            items.remove(*n);
            true
        }
        (Some(Value::Object(members)), Step::Member(name)) if members.len() >= fewest => {
            members.remove(name).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_only_what_shows_the_problem() {
        let case: Case = serde_json::from_value(json!({
            "now": "2026-01-01T00:00:00Z",
            "daemonSets": [{"metadata": {"name": "a", "annotations": {"x": "1", "y": "2"}}}],
            "nodes": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}, {"metadata": {"name": "n3"}}],
            "burst": 250,
            "echo": true,
        }))
        .expect("a case");
        let small = shrink(&case, |case| {
            case.nodes.iter().any(|node| node["metadata"]["name"] == "n2")
        });
        assert_eq!(small.nodes, [json!({"metadata": {"name": "n2"}})]);
        assert_eq!(small.daemon_sets, [] as [Value; 0]);
        assert_eq!(small.burst, 250, "what a case must have stays");
    }

    // The rest of each object is still valid, and members that only have the name of a needed member are removed.
    #[test]
    fn keeps_required_members() {
        let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "u",
            "controller": true, "blockOwnerDeletion": true});
        let expression = json!({"key": "zone", "operator": "In", "values": ["a", "b"]});
        let toleration = json!({"key": "level", "operator": "Exists", "effect": "NoSchedule"});
        let taint = json!({"key": "level", "value": "1", "effect": "NoSchedule"});
        let condition = json!({"type": "Ready", "status": "True", "reason": "Kubelet", "message": "it is"});
        let budget = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
        let case: Case = serde_json::from_value(json!({
            "now": "2026-01-01T00:00:00Z",
            "daemonSets": [{"kind": "DaemonSet", "status": {"numberReady": 1}, "metadata": {"name": "a"},
                "spec": {"updateStrategy": budget.clone(), "tolerations": [toleration], "affinity": [expression.clone()],
                    "matchExpressions": [expression], "containers": [{"name": "c", "image": "i", "args": ["x", "y"]}]}}],
            "nodes": [{"kind": "Node", "metadata": {"name": "n", "labels": {"key": "a", "operator": "b", "image": "c"}},
                "spec": {"taints": [taint]}, "status": {"conditions": [condition]}}],
            "pods": [{"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [owner]}}],
            "burst": 1,
            "echo": true,
        }))
        .expect("a case");
        let small = shrink(&case, |case| {
            let is_there = |objects: &[Value], pointer: &str| {
                let found = objects.first().and_then(|object| object.pointer(pointer));
                found.is_some_and(|found| !found.is_null())
            };
            is_there(&case.pods, "/metadata/ownerReferences/0")
                && ["/spec/taints/0", "/status/conditions/0", "/metadata/labels/key"]
                    .iter()
                    .all(|pointer| is_there(&case.nodes, pointer))
                && [
                    "/spec/tolerations/0",
                    "/spec/matchExpressions/0",
                    "/spec/containers/0",
                ]
                .iter()
                .all(|pointer| is_there(&case.daemon_sets, pointer))
        });
        let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "u"});
        assert_eq!(
            small.pods,
            [json!({"metadata": {"name": "p", "ownerReferences": [owner]}})]
        );
        let node = json!({"metadata": {"name": "n", "labels": {"key": "a"}},
            "spec": {"taints": [{"key": "level", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(small.nodes, [node]);
        let daemon_set = json!({"metadata": {"name": "a"}, "spec": {"updateStrategy": budget,
            "tolerations": [{"key": "level", "operator": "Exists"}],
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(small.daemon_sets, [daemon_set]);
    }
}
