//! Selectors, and labels that match them.

use serde_json::{Map, Value, json};

use super::rng::CaseRng;

/// A selector and matching labels of the template.
pub(super) struct Selector {
    pub(super) object: Value,
    pub(super) labels: Map<String, Value>,
}

/// The label in most selectors.
pub(super) const APP: &str = "app";

pub(super) fn draw(rng: &mut CaseRng) -> Selector {
    let mut labels = Map::new();
    labels.insert(APP.into(), "agent".into());
    if rng.in_hundred(40) {
        labels.insert("tier".into(), rng.pick(&["node", ""]).into());
    }
    if rng.in_hundred(78) {
        let object = json!({"matchLabels": {APP: "agent"}});
        return Selector { object, labels };
    }
    let expressions = match rng.below(20) {
        0..=3 => json!([{"key": APP, "operator": "In", "values": ["agent", "daemon"]}]),
        4..=6 => json!([
            {"key": APP, "operator": "Exists"},
            {"key": APP, "operator": "NotIn", "values": ["other"]},
        ]),
        7..=9 => json!([
            {"key": APP, "operator": "In", "values": ["agent"]},
            {"key": "left-out", "operator": "DoesNotExist"},
        ]),
        10..=12 => {
            labels.insert("track".into(), "".into());
            let object = json!({
                "matchLabels": {APP: "agent"},
                "matchExpressions": [{"key": "track", "operator": "In", "values": ["", "stable"]}],
            });
            return Selector { object, labels };
        }
        13 | 14 => {
            // Only negative requirements, which also match objects without labels.
            if rng.in_hundred(50) {
                labels.clear();
            }
            json!([{"key": APP, "operator": "NotIn", "values": ["other"]}])
        }
        15 => {
            labels.clear();
            json!([{"key": "left-out", "operator": "DoesNotExist"}])
        }
        16 => return unusual(labels, json!({})),
        17 => return unusual(labels, json!({"matchLabels": {}})),
        18 => return unusual(labels, json!({"matchLabels": {}, "matchExpressions": []})),
        _ => json!([{"key": APP, "operator": rng.pick(&["Near", "Gt", "in"]), "values": ["agent"]}]),
    };
    let object = json!({ "matchExpressions": expressions });
    Selector { object, labels }
}

fn unusual(labels: Map<String, Value>, object: Value) -> Selector {
    Selector { object, labels }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, items, set};

    fn selector(case: &Case) -> &Value {
        &set(case)["spec"]["selector"]
    }

    fn has(case: &Case, operator: &str) -> bool {
        let expressions = items(&selector(case)["matchExpressions"]);
        expressions
            .iter()
            .any(|expression| expression["operator"] == operator)
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("labels", |case| selector(case)["matchLabels"][APP].is_string()),
        ("In", |case| has(case, "In")),
        ("NotIn", |case| has(case, "NotIn")),
        ("Exists", |case| has(case, "Exists")),
        ("DoesNotExist", |case| has(case, "DoesNotExist")),
        ("labels and expressions", |case| {
            has(case, "In") && selector(case)["matchLabels"].is_object()
        }),
        ("an unknown operator", |case| has(case, "Near")),
        ("only exclusions, and no labels", |case| {
            selector(case)["matchLabels"].is_null()
                && !has(case, "In")
                && !has(case, "Exists")
                && case.pods.iter().any(|pod| pod["metadata"]["labels"].is_null())
        }),
        ("everything", |case| *selector(case) == json!({})),
        ("everything, spelled out", |case| {
            *selector(case) == json!({"matchLabels": {}})
        }),
    ];
}
