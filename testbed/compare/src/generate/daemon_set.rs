//! The DaemonSet that is synced, and another DaemonSet.

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::owner::Names;
use super::rng::CaseRng;
use super::selector::{self, Selector};
use super::strategy::{self, Kind};
use super::template::TRICKY_STRINGS;

/// The annotation with the template generation, which the apiserver sets.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// A DaemonSet without its status.
pub(super) struct Set {
    pub(super) names: Names,
    pub(super) namespace: &'static str,
    pub(super) generation: i64,
    /// `status.observedGeneration`; 0 is left out.
    pub(super) observed: i64,
    /// The template generation, if the annotation has a number.
    pub(super) template_generation: Option<i64>,
    pub(super) annotations: Map<String, Value>,
    pub(super) selector: Selector,
    pub(super) kind: Kind,
    pub(super) strategy: Value,
    pub(super) min_ready: i64,
    pub(super) history: Option<i64>,
    pub(super) collisions: Option<i64>,
    pub(super) deleting: bool,
    version: String,
    created: String,
}

impl Set {
    /// Generates a DaemonSet. `unobserved`: the controller has not seen its latest change.
    pub(super) fn draw(rng: &mut CaseRng, clock: &Clock, unobserved: bool) -> Self {
        let generation = rng.between(1..=9);
        let observed = match rng.below(20) {
            0 => generation + 1,
            1 => 0,
            2 | 3 => generation - 1,
            _ => generation - i64::from(unobserved),
        };
        let (annotation, template_generation) = template_generation(rng, generation);
        let mut annotations = Map::new();
        if let Some(annotation) = annotation {
            annotations.insert(TEMPLATE_GENERATION.into(), annotation.into());
        }
        if rng.in_hundred(20) {
            let text = rng.pick(TRICKY_STRINGS);
            annotations.insert("example.com/note".into(), text.into());
        }
        let (kind, strategy) = strategy::draw(rng);
        Self {
            names: names(rng),
            namespace: rng.pick(&["default", "kube-system", "agents"]),
            generation,
            observed,
            template_generation,
            annotations,
            selector: selector::draw(rng),
            kind,
            strategy,
            min_ready: rng.pick(&[0, 0, 0, 0, 1, 10, 10, 30, 600]),
            history: history(rng),
            collisions: rng.weighted(&[
                (85, None),
                (4, Some(0)),
                (6, Some(1)),
                (4, Some(2)),
                (1, Some(2_147_483_646)),
            ]),
            deleting: rng.in_hundred(2),
            version: rng.version(),
            created: clock.before(rng.between(100_000..=9_000_000)),
        }
    }

    /// The object with this template and status.
    pub(super) fn object(&self, template: &Value, status: &Value) -> Value {
        let mut metadata = json!({
            "name": self.names.name,
            "namespace": self.namespace,
            "uid": self.names.uid,
            "resourceVersion": self.version,
            "generation": self.generation,
            "creationTimestamp": self.created,
        });
        if !self.annotations.is_empty() {
            metadata["annotations"] = self.annotations.clone().into();
        }
        if self.deleting {
            metadata["deletionTimestamp"] = self.created.clone().into();
            metadata["deletionGracePeriodSeconds"] = 0.into();
            metadata["finalizers"] = json!(["foregroundDeletion"]);
        }
        let mut spec = json!({
            "selector": self.selector.object,
            "template": template,
            "updateStrategy": self.strategy,
        });
        if let Some(history) = self.history {
            spec["revisionHistoryLimit"] = history.into();
        }
        if self.min_ready > 0 {
            spec["minReadySeconds"] = self.min_ready.into();
        }
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec, "status": status})
    }

    /// Another DaemonSet in the namespace, with an overlapping selector.
    pub(super) fn neighbour(&self, rng: &mut CaseRng, template: &Value) -> Value {
        let status = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
        let mut object = self.object(template, &status);
        object["metadata"]["name"] = self.names.neighbour.clone().into();
        object["metadata"]["uid"] = self.names.neighbour_uid.clone().into();
        if rng.in_hundred(30) {
            object["spec"]["selector"] =
                json!({"matchExpressions": [{"key": selector::APP, "operator": "Exists"}]});
        }
        object
    }
}

fn names(rng: &mut CaseRng) -> Names {
    let name = if rng.in_thousand(12) {
        long_name(rng)
    } else {
        rng.pick(&["agent", "ds", "node-exporter", "logs.v2", "a"])
            .to_owned()
    };
    Names {
        name,
        uid: rng.uid(),
        former: rng.uid(),
        neighbour: "neighbour".into(),
        neighbour_uid: rng.uid(),
    }
}

/// A name so long that pod names contain only part of it (63 characters), or that it is too long for the name of a
/// revision.
fn long_name(rng: &mut CaseRng) -> String {
    let length = match rng.below(12) {
        0 => 200,
        1..=5 => rng.between(40..=63),
        _ => rng.between(240..=253),
    };
    // With dots, some of them at the position where a name is cut.
    let every = rng.pick(&[11, 22, 50, 52]);
    let letter = |index| {
        if index % every == 0 && index < length {
            '.'
        } else {
            'x'
        }
    };
    (1..=length).map(letter).collect()
}

/// The annotation, and its number.
fn template_generation(rng: &mut CaseRng, generation: i64) -> (Option<String>, Option<i64>) {
    let number = generation.min(rng.between(1..=9));
    match rng.below(40) {
        0..=2 => (None, None),
        3 => (Some(format!("+{number}")), Some(number)),
        4 => (Some(format!("00{number}")), Some(number)),
        5 => (Some("-1".into()), Some(-1)),
        6 => {
            let unparsable = rng.pick(&["", "x", " 1", "1.0", "0x1", "1_0", "9223372036854775808"]);
            (Some(unparsable.into()), None)
        }
        7 => (Some("0".into()), Some(0)),
        _ => (Some(number.to_string()), Some(number)),
    }
}

fn history(rng: &mut CaseRng) -> Option<i64> {
    // Upstream crashes without a limit.
    if rng.in_thousand(2) {
        return None;
    }
    Some(rng.weighted(&[(58, 10), (14, 0), (14, 1), (14, 2)]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, current, is_deleting, is_orphan, name, set};

    fn annotation(case: &Case) -> &Value {
        &set(case)["metadata"]["annotations"][TEMPLATE_GENERATION]
    }

    fn has_label(case: &Case, same: bool) -> bool {
        case.pods.iter().any(|pod| {
            let label = &pod["metadata"]["labels"]["pod-template-generation"];
            label.is_string() && (label == annotation(case)) == same
        })
    }

    fn lags(case: &Case, by: i64) -> bool {
        let observed = set(case)["status"]["observedGeneration"].as_i64();
        observed.is_some_and(|observed| set(case)["metadata"]["generation"] == observed + by)
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("a long name", |case| (240..=253).contains(&name(set(case)).len())),
        ("a name too long for a hash", |case| name(set(case)).len() == 253),
        ("a name that fits with a short hash only", |case| {
            (243..=251).contains(&name(set(case)).len())
        }),
        ("a name that just fits with a hash", |case| {
            name(set(case)).len() == 242
        }),
        ("a name too long for a hash, and no revision", |case| {
            name(set(case)).len() > 242 && case.revisions.is_empty() && !case.nodes.is_empty()
        }),
        ("a name too long for a hash, and a node without pod", |case| {
            name(set(case)).len() > 242 && current(case).count() == 1 && case.nodes.len() > case.pods.len()
        }),
        ("a name that pods' names hold a part of", |case| {
            (53..=63).contains(&name(set(case)).len()) && case.nodes.len() > case.pods.len()
        }),
        ("a name that pods' names just hold", |case| {
            (40..=52).contains(&name(set(case)).len()) && case.nodes.len() > case.pods.len()
        }),
        ("a name of 200 letters", |case| name(set(case)).len() == 200),
        ("a name with a dot where a pod's name cuts it", |case| {
            name(set(case)).len() > 52 && name(set(case)).as_bytes()[51] == b'.'
        }),
        ("a name with a dot where a revision's name cuts it", |case| {
            name(set(case)).len() > 242 && name(set(case)).as_bytes()[241] == b'.'
        }),
        ("no template generation", |case| annotation(case).is_null()),
        ("an unparsable template generation", |case| {
            *annotation(case) == "x"
        }),
        ("a template generation with a sign", |case| {
            annotation(case)
                .as_str()
                .is_some_and(|text| text.starts_with('+'))
        }),
        ("a template generation with zeros", |case| {
            annotation(case)
                .as_str()
                .is_some_and(|text| text.starts_with("00"))
        }),
        ("a template generation that is too large", |case| {
            *annotation(case) == "9223372036854775808"
        }),
        ("a pod of this template generation", |case| has_label(case, true)),
        ("a pod of another template generation", |case| {
            has_label(case, false)
        }),
        ("a pod by its number though the annotation has zeros", |case| {
            *annotation(case) == "001"
                && case
                    .pods
                    .iter()
                    .any(|pod| pod["metadata"]["labels"]["pod-template-generation"] == "1")
        }),
        ("a generation not observed", |case| lags(case, 1)),
        ("a generation observed", |case| lags(case, 0)),
        ("nothing observed", |case| {
            set(case)["status"]["observedGeneration"].is_null()
        }),
        ("limit 0", |case| set(case)["spec"]["revisionHistoryLimit"] == 0),
        ("limit 1", |case| set(case)["spec"]["revisionHistoryLimit"] == 1),
        ("limit 2", |case| set(case)["spec"]["revisionHistoryLimit"] == 2),
        ("limit 10", |case| set(case)["spec"]["revisionHistoryLimit"] == 10),
        ("no limit", |case| {
            set(case)["spec"]["revisionHistoryLimit"].is_null()
        }),
        ("a deletion", |case| is_deleting(set(case))),
        ("a deletion, and an orphan", |case| {
            is_deleting(set(case)) && case.pods.iter().any(is_orphan)
        }),
        ("a count of collisions", |case| {
            set(case)["status"]["collisionCount"].is_i64()
        }),
        ("two DaemonSets", |case| {
            case.daemon_sets.len() == 2
                && case.daemon_sets[0]["spec"]["selector"] == case.daemon_sets[1]["spec"]["selector"]
        }),
        ("two DaemonSets with other selectors", |case| {
            case.daemon_sets.len() == 2
                && case.daemon_sets[0]["spec"]["selector"] != case.daemon_sets[1]["spec"]["selector"]
        }),
        ("a time to be ready", |case| {
            set(case)["spec"]["minReadySeconds"].is_i64()
        }),
    ];
}
