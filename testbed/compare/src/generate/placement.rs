//! The placement fields of a template: node name, node selector, affinity, tolerations.

use serde_json::{Map, Value, json};

use super::node::{NUMBERS, TAINT_NUMBERS};
use super::rng::CaseRng;

/// Adds placement fields to a pod spec; most pods get few.
pub(super) fn add(rng: &mut CaseRng, spec: &mut Value, nodes: &[String], numeric: bool) {
    if rng.in_hundred(12) {
        spec["nodeSelector"] = node_selector(rng);
    }
    if rng.in_hundred(3) {
        spec["nodeName"] = node_name(rng, nodes).into();
    }
    if rng.in_hundred(22) {
        spec["affinity"] = affinity(rng, nodes);
    }
    if numeric || rng.in_hundred(35) {
        let count = 1 + rng.below(3);
        let tolerations: Vec<_> = (0..count).map(|_| toleration(rng, numeric)).collect();
        spec["tolerations"] = tolerations.into();
    }
}

fn node_name(rng: &mut CaseRng, nodes: &[String]) -> String {
    match rng.maybe(nodes) {
        Some(name) if rng.in_hundred(80) => name.clone(),
        _ => "no-such-node".to_owned(),
    }
}

fn node_selector(rng: &mut CaseRng) -> Value {
    let mut selector = Map::new();
    for _ in 0..=rng.below(2) {
        let (key, value) = rng.weighted(&[
            (6, ("kubernetes.io/os", "linux")),
            (4, ("color", "blue")),
            (2, ("color", "")),
            (3, ("zone", "a")),
            (1, ("missing", "")),
            (1, ("n", "007")),
        ]);
        selector.insert(key.to_owned(), value.into());
    }
    selector.into()
}

fn affinity(rng: &mut CaseRng, nodes: &[String]) -> Value {
    let mut affinity = Map::new();
    let mut node_affinity = Map::new();
    if rng.in_hundred(75) {
        let terms = match rng.below(40) {
            0 => json!([]),
            1 => Value::Null,
            _ => (0..=rng.below(3)).map(|_| term(rng, nodes)).collect(),
        };
        node_affinity.insert(
            "requiredDuringSchedulingIgnoredDuringExecution".into(),
            json!({ "nodeSelectorTerms": terms }),
        );
    }
    if rng.in_hundred(30) {
        node_affinity.insert(
            "preferredDuringSchedulingIgnoredDuringExecution".into(),
            json!([{"weight": rng.between(1..=100), "preference": {"matchExpressions": [expression(rng)]}}]),
        );
    }
    if !node_affinity.is_empty() || rng.in_hundred(30) {
        affinity.insert("nodeAffinity".into(), node_affinity.into());
    }
    if rng.in_hundred(15) {
        let kind = rng.pick(&["podAffinity", "podAntiAffinity"]);
        affinity.insert(
            kind.into(),
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": "kubernetes.io/hostname"},
            ]}),
        );
    }
    affinity.into()
}

fn term(rng: &mut CaseRng, nodes: &[String]) -> Value {
    let mut term = Map::new();
    let (expressions, fields) = rng.weighted(&[
        (10, (1, 0)),
        (5, (2, 0)),
        (4, (0, 1)),
        (2, (1, 1)),
        (1, (0, 2)),
        (1, (0, 0)),
    ]);
    if expressions > 0 {
        let all: Vec<_> = (0..expressions).map(|_| expression(rng)).collect();
        term.insert("matchExpressions".into(), all.into());
    }
    if fields > 0 {
        let all: Vec<_> = (0..fields).map(|_| field(rng, nodes)).collect();
        term.insert("matchFields".into(), all.into());
    }
    term.into()
}

/// A requirement; without `values` if empty, as an apiserver serves it.
fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    if values.is_empty() {
        json!({"key": key, "operator": operator})
    } else {
        json!({"key": key, "operator": operator, "values": values})
    }
}

fn expression(rng: &mut CaseRng) -> Value {
    if rng.in_hundred(15) {
        return invalid_expression(rng);
    }
    let key = rng.pick(&["kubernetes.io/os", "color", "zone", "missing"]);
    let values: &[&str] = rng.pick(&[
        &["linux"][..],
        &["blue"],
        &["blue", "green", ""],
        &["a", "linux"],
        &[""],
    ]);
    match rng.below(8) {
        0 | 1 => requirement(key, "In", values),
        2 | 3 => requirement(key, "NotIn", values),
        4 => requirement(key, "Exists", &[]),
        5 => requirement(key, "DoesNotExist", &[]),
        6 => requirement("n", "Gt", &[rng.pick(NUMBERS)]),
        _ => requirement("n", "Lt", &[rng.pick(NUMBERS)]),
    }
}

/// Invalid expressions, which no node matches (D-14).
fn invalid_expression(rng: &mut CaseRng) -> Value {
    let long = "x".repeat(64);
    match rng.below(14) {
        0 => requirement("color", "Near", &["blue"]),
        1 => requirement("color", "In", &[]),
        2 => requirement("color", "NotIn", &[]),
        3 => requirement("color", "Exists", &["blue"]),
        4 => requirement("missing", "DoesNotExist", &["blue"]),
        5 => requirement("n", "Gt", &["1", "2"]),
        6 => requirement("n", "Lt", &["1.5"]),
        7 => requirement("n", "Gt", &["-6"]),
        8 => requirement("n", "Lt", &["9223372036854775808"]),
        9 => requirement("n", "Gt", &["+1"]),
        10 => requirement("color", "In", &["blue", "a b"]),
        11 => requirement("color", "NotIn", &[&long]),
        12 => requirement("-color", "DoesNotExist", &[]),
        _ => requirement("UPPER/color", "NotIn", &["x"]),
    }
}

fn field(rng: &mut CaseRng, nodes: &[String]) -> Value {
    let name = node_name(rng, nodes);
    let name = name.as_str();
    match rng.below(12) {
        0..=3 => requirement("metadata.name", "NotIn", &[name]),
        4..=6 => requirement("metadata.name", "In", &[name]),
        7 => requirement("metadata.name", "In", &[name, "other"]),
        8 => requirement("metadata.name", "NotIn", &[]),
        9 => requirement("metadata.name", "Exists", &[]),
        10 => requirement("metadata.namespace", "NotIn", &["x"]),
        _ => requirement("metadata.uid", "In", &[""]),
    }
}

/// A toleration; without `value` if empty, as an apiserver serves it.
fn toleration(rng: &mut CaseRng, numeric: bool) -> Value {
    let mut toleration = any_toleration(rng, numeric);
    if toleration["value"] == ""
        && let Some(members) = toleration.as_object_mut()
    {
        members.remove("value");
    }
    toleration
}

fn any_toleration(rng: &mut CaseRng, numeric: bool) -> Value {
    if rng.in_hundred(if numeric { 60 } else { 4 }) {
        let mut toleration = json!({
            "key": "level",
            "operator": rng.pick(&["Gt", "Lt"]),
            "value": rng.pick(TAINT_NUMBERS),
        });
        if rng.in_hundred(50) {
            toleration["effect"] = rng.pick(&["NoSchedule", "NoExecute"]).into();
        }
        return toleration;
    }
    let mut toleration = match rng.below(14) {
        0..=2 => json!({"key": "dedicated", "value": "user1"}),
        3 => json!({"key": "dedicated", "operator": "Equal", "value": "user1"}),
        4 | 5 => json!({"key": "dedicated", "operator": "Exists"}),
        6 => json!({"operator": "Exists"}),
        7 => json!({"operator": "Equal", "value": "user1"}),
        8 => json!({"key": "level", "operator": "Equal", "value": rng.pick(TAINT_NUMBERS)}),
        9 => json!({"key": "dedicated", "operator": "Near", "value": "user1"}),
        10 => json!({"key": "node.kubernetes.io/out-of-service", "operator": "Exists"}),
        _ => return automatic_toleration(rng),
    };
    if rng.in_hundred(70) {
        let effect = rng.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
        toleration["effect"] = effect.into();
        if effect == "NoExecute" && rng.in_hundred(40) {
            toleration["tolerationSeconds"] = rng.pick(&[0_i64, 300, -1]).into();
        }
    }
    toleration
}

/// A toleration that the controller adds, or a similar one (D-18, D-19).
fn automatic_toleration(rng: &mut CaseRng) -> Value {
    match rng.below(7) {
        0 | 1 => json!({
            "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": rng.pick(&[0, 300]),
        }),
        2 => json!({
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300,
        }),
        3 => json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}),
        4 => json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}),
        5 => json!({"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}),
        _ => {
            json!({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, items, template};

    fn terms(case: &Case) -> &[Value] {
        let node = &template(case)["spec"]["affinity"]["nodeAffinity"];
        items(&node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"])
    }

    fn has(case: &Case, member: &str, key: &str, operator: &str) -> bool {
        terms(case)
            .iter()
            .flat_map(|term| items(&term[member]))
            .any(|requirement| {
                requirement["operator"] == operator && (key.is_empty() || requirement["key"] == key)
            })
    }

    fn tolerates(case: &Case, matches: impl Fn(&Value) -> bool) -> bool {
        items(&template(case)["spec"]["tolerations"]).iter().any(matches)
    }

    fn has_effect(case: &Case, effect: &str) -> bool {
        tolerates(case, |one| one["effect"] == effect)
    }

    /// Whether a node has the taint `dedicated` with this effect, and the template tolerates all such taints (or none).
    fn dedicates(case: &Case, effect: &str, tolerated: bool) -> bool {
        let taints = case.nodes.iter().flat_map(|node| items(&node["spec"]["taints"]));
        let mut dedicated = taints
            .filter(|taint| taint["key"] == "dedicated" && taint["value"] == "user1")
            .filter(|taint| taint["effect"] == effect);
        let fits = |one: &Value| one["effect"].is_null() || one["effect"] == effect;
        let is_meant = |one: &Value| one["key"] == "dedicated" && one["operator"] != "Near";
        let is_general = |one: &Value| one["key"].is_null() && one["operator"] == "Exists";
        dedicated.next().is_some()
            && tolerates(case, |one| fits(one) && (is_meant(one) || is_general(one))) == tolerated
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("a node selector", |case| {
            template(case)["spec"]["nodeSelector"].is_object()
        }),
        ("a node name", |case| {
            template(case)["spec"]["nodeName"].is_string()
        }),
        ("In", |case| has(case, "matchExpressions", "", "In")),
        ("NotIn", |case| has(case, "matchExpressions", "", "NotIn")),
        ("Exists", |case| has(case, "matchExpressions", "", "Exists")),
        ("DoesNotExist", |case| {
            has(case, "matchExpressions", "", "DoesNotExist")
        }),
        ("Gt", |case| has(case, "matchExpressions", "", "Gt")),
        ("Lt", |case| has(case, "matchExpressions", "", "Lt")),
        ("an unknown operator", |case| {
            has(case, "matchExpressions", "", "Near")
        }),
        ("an invalid key", |case| {
            has(case, "matchExpressions", "-color", "DoesNotExist")
        }),
        ("a field in", |case| {
            has(case, "matchFields", "metadata.name", "In")
        }),
        ("a field not in", |case| {
            has(case, "matchFields", "metadata.name", "NotIn")
        }),
        ("an invalid field", |case| {
            has(case, "matchFields", "metadata.name", "Exists")
        }),
        ("a foreign field", |case| {
            has(case, "matchFields", "metadata.uid", "In")
        }),
        ("an empty term", |case| {
            terms(case).iter().any(|term| *term == json!({}))
        }),
        ("several terms", |case| terms(case).len() > 1),
        ("no term", |case| {
            let node = &template(case)["spec"]["affinity"]["nodeAffinity"];
            node["requiredDuringSchedulingIgnoredDuringExecution"].is_object() && terms(case).is_empty()
        }),
        ("preferred terms", |case| {
            let node = &template(case)["spec"]["affinity"]["nodeAffinity"];
            node["preferredDuringSchedulingIgnoredDuringExecution"].is_array()
        }),
        ("an affinity between pods", |case| {
            template(case)["spec"]["affinity"]["podAntiAffinity"].is_object()
        }),
        ("an empty affinity", |case| {
            template(case)["spec"]["affinity"] == json!({})
        }),
        ("a toleration without operator", |case| {
            tolerates(case, |one| one["operator"].is_null())
        }),
        ("a toleration of all", |case| {
            tolerates(case, |one| *one == json!({"operator": "Exists"}))
        }),
        ("Equal without key", |case| {
            tolerates(case, |one| one["key"].is_null() && one["operator"] == "Equal")
        }),
        ("Equal", |case| {
            tolerates(case, |one| one["key"].is_string() && one["operator"] == "Equal")
        }),
        ("a toleration of a key", |case| {
            tolerates(case, |one| one["key"].is_string() && one["operator"] == "Exists")
        }),
        ("tolerates scheduling", |case| has_effect(case, "NoSchedule")),
        ("tolerates running", |case| has_effect(case, "NoExecute")),
        ("tolerates what asks", |case| has_effect(case, "PreferNoSchedule")),
        ("tolerates every effect", |case| {
            tolerates(case, |one| one["key"] == "dedicated" && one["effect"].is_null())
        }),
        ("tolerated against scheduling", |case| {
            dedicates(case, "NoSchedule", true)
        }),
        ("not tolerated against scheduling", |case| {
            dedicates(case, "NoSchedule", false)
        }),
        ("tolerated against running", |case| {
            dedicates(case, "NoExecute", true)
        }),
        ("not tolerated against running", |case| {
            dedicates(case, "NoExecute", false)
        }),
        ("below with their gate", |case| {
            !case.feature_gates.is_empty() && tolerates(case, |one| one["operator"] == "Lt")
        }),
        ("a toleration above", |case| {
            tolerates(case, |one| one["operator"] == "Gt")
        }),
        ("a toleration below", |case| {
            tolerates(case, |one| one["operator"] == "Lt")
        }),
        ("numbers with their gate", |case| {
            !case.feature_gates.is_empty() && tolerates(case, |one| one["operator"] == "Gt")
        }),
        ("numbers without their gate", |case| {
            case.feature_gates.is_empty() && tolerates(case, |one| one["operator"] == "Gt")
        }),
        ("an unknown toleration", |case| {
            tolerates(case, |one| one["operator"] == "Near")
        }),
        ("a toleration for no seconds", |case| {
            tolerates(case, |one| one["tolerationSeconds"] == 0)
        }),
        ("an automatic toleration with seconds", |case| {
            tolerates(case, |one| {
                one["key"] == "node.kubernetes.io/not-ready"
                    && one["effect"] == "NoExecute"
                    && one["tolerationSeconds"] == 300
            })
        }),
        ("an automatic toleration twice", |case| {
            let all = items(&template(case)["spec"]["tolerations"]);
            let is_automatic =
                |one: &&Value| one["key"] == "node.kubernetes.io/not-ready" && one["effect"] == "NoExecute";
            all.iter().filter(is_automatic).count() > 1
        }),
    ];
}
