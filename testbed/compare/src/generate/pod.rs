//! Pods.

use serde_json::{Map, Value, json};

use super::owner::Owner;
use super::rng::CaseRng;
use super::selector::APP;
use super::setup::Setup;

pub(super) const HASH_LABEL: &str = "controller-revision-hash";
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";

/// The node of a pod.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// The pod is bound to the node.
    Bound(String),
    /// The pod has an affinity to the node, but is not bound.
    Meant(String),
    /// The pod is not bound and has this required affinity; null for none.
    Odd(Value),
}

/// The Ready condition of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// There is no condition.
    Missing,
    /// True for this many seconds; since the future if negative.
    Since(i64),
    /// True, without a transition time.
    Undated,
    /// `False` or `Unknown`.
    Not(&'static str),
    /// The condition occurs twice.
    Twice(&'static str, &'static str),
}

/// A pod during generation.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    /// The version of its template.
    pub(super) version: usize,
    pub(super) labels: Map<String, Value>,
    pub(super) owner: Owner,
    pub(super) target: Target,
    /// Its age in seconds.
    pub(super) age: i64,
    pub(super) phase: &'static str,
    pub(super) ready: Ready,
    pub(super) deleting: bool,
    pub(super) finalizers: bool,
    /// Whether the pod is in another namespace.
    pub(super) elsewhere: bool,
}

impl Pod {
    /// A running pod of this version on this node. The cluster has `others` other pods.
    pub(super) fn draw(rng: &mut CaseRng, setup: &Setup, version: usize, node: &str, others: usize) -> Self {
        let made_of = &setup.versions[version];
        let mut labels = match &made_of.template["metadata"]["labels"] {
            Value::Object(labels) => labels.clone(),
            _ => Map::new(),
        };
        labels.insert(HASH_LABEL.into(), made_of.hash.clone().into());
        if let Some(generation) = made_of.generation {
            labels.insert(GENERATION_LABEL.into(), generation.to_string().into());
        } else {
            labels.remove(GENERATION_LABEL);
        }
        let age = match rng.below(4) {
            0 => rng.between(1..=100),
            _ => 1000 * rng.between(1..=4),
        };
        Self {
            name: name(rng, setup, others),
            version,
            labels,
            owner: Owner::Ours,
            target: Target::Bound(node.to_owned()),
            age,
            phase: "Running",
            ready: available(rng, setup.set.min_ready),
            deleting: false,
            finalizers: false,
            elsewhere: false,
        }
    }

    /// The same pod, but not available.
    pub(super) fn unavailable(mut self, rng: &mut CaseRng, setup: &Setup) -> Self {
        self.ready = unavailable(rng, setup.set.min_ready);
        if rng.in_hundred(25) {
            self.phase = rng.pick(&["Pending", "Pending", "Unknown", ""]);
        }
        if self.phase == "Pending" && rng.in_hundred(40) {
            self.unbind();
        }
        self
    }

    /// Unbinds the pod from its node; an affinity to the node remains.
    pub(super) fn unbind(&mut self) {
        if let Target::Bound(node) = &self.target {
            self.target = Target::Meant(node.clone());
        }
    }

    /// Ends the pod in `phase`.
    pub(super) fn end(&mut self, phase: &'static str) {
        self.phase = phase;
        self.ready = Ready::Not("False");
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, "Failed" | "Succeeded")
    }

    /// The node that the pod is bound to or has an affinity to.
    pub(super) fn node(&self) -> Option<&str> {
        match &self.target {
            Target::Bound(node) | Target::Meant(node) => Some(node),
            Target::Odd(_) => None,
        }
    }

    /// Changes the labels so that the selector does not match.
    pub(super) fn disguise(&mut self) {
        self.labels.insert(APP.into(), "other".into());
        self.labels.insert("left-out".into(), "".into());
    }

    /// The object.
    pub(super) fn object(&self, rng: &mut CaseRng, setup: &Setup) -> Value {
        let clock = &setup.clock;
        let mut metadata = json!({
            "name": self.name,
            "namespace": if self.elsewhere { "elsewhere" } else { setup.set.namespace },
            "uid": rng.uid(),
            "resourceVersion": rng.version(),
            "creationTimestamp": clock.before(self.age),
        });
        if !self.labels.is_empty() {
            metadata["labels"] = self.labels.clone().into();
        }
        let references = setup.set.names.references(self.owner);
        if !references.is_null() {
            metadata["ownerReferences"] = references;
        }
        if self.deleting {
            metadata["deletionTimestamp"] = clock.before(rng.between(-30..=600)).into();
            metadata["deletionGracePeriodSeconds"] = 30.into();
        }
        if self.finalizers {
            metadata["finalizers"] = json!(["example.com/hold"]);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": self.spec(setup),
            "status": self.status(setup),
        })
    }

    fn spec(&self, setup: &Setup) -> Value {
        let mut spec = json!({
            // No plan reads more of the containers.
            "containers": [{
                "name": "main",
                "image": setup.versions[self.version].template["spec"]["containers"][0]["image"],
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
            }],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
        });
        let terms = match &self.target {
            Target::Bound(node) => {
                spec["nodeName"] = node.clone().into();
                own_terms(node)
            }
            Target::Meant(node) => own_terms(node),
            Target::Odd(terms) => terms.clone(),
        };
        if !terms.is_null() {
            spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({ "nodeSelectorTerms": terms });
        }
        spec
    }

    fn status(&self, setup: &Setup) -> Value {
        let condition = |status: &str, since: i64| json!({"type": "Ready", "status": status, "lastProbeTime": null, "lastTransitionTime": setup.clock.before(since)});
        let long = setup.set.min_ready + 1000;
        let ready = match self.ready {
            Ready::Missing => vec![],
            Ready::Since(seconds) => vec![condition("True", seconds)],
            Ready::Undated => vec![
                json!({"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}),
            ],
            Ready::Not(status) => vec![condition(status, 5)],
            Ready::Twice(first, second) => vec![condition(first, long), condition(second, long)],
        };
        let mut conditions = vec![json!({
            "type": "PodScheduled",
            "lastProbeTime": null,
            "status": "True",
            "lastTransitionTime": setup.clock.before(long),
        })];
        conditions.extend(ready);
        let mut status = json!({"conditions": conditions, "qosClass": "BestEffort"});
        if !self.phase.is_empty() {
            status["phase"] = self.phase.into();
        }
        status
    }
}

/// The name for a pod of a cluster with `others` other pods.
pub(super) fn name(rng: &mut CaseRng, setup: &Setup, others: usize) -> String {
    let prefix: String = setup.set.names.name.chars().take(57).collect();
    format!("{prefix}-{}{others}", rng.letters(4))
}

/// The affinity of a DaemonSet's pod to its node.
fn own_terms(node: &str) -> Value {
    json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}])
}

/// Ready for long enough, often only just.
pub(super) fn available(rng: &mut CaseRng, min_ready: i64) -> Ready {
    Ready::Since(match rng.below(10) {
        0..=2 => min_ready,
        3 => min_ready + 1,
        _ => min_ready + rng.between(2..=2000),
    })
}

/// Not ready, or not for long enough, often by little.
pub(super) fn unavailable(rng: &mut CaseRng, min_ready: i64) -> Ready {
    if min_ready > 0 && rng.in_hundred(50) {
        return match rng.below(10) {
            0..=4 => Ready::Since(min_ready - 1),
            5 => Ready::Since(-5),
            6 => Ready::Undated,
            _ => Ready::Since(rng.between(0..=min_ready - 1)),
        };
    }
    match rng.below(12) {
        0..=5 => Ready::Not("False"),
        6 | 7 => Ready::Not("Unknown"),
        8..=10 => Ready::Missing,
        _ => Ready::Twice("False", "True"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, is_deleting, items, set};

    fn readies(pod: &Value) -> impl Iterator<Item = &Value> {
        let conditions = items(&pod["status"]["conditions"]).iter();
        conditions.filter(|condition| condition["type"] == "Ready")
    }

    fn any(case: &Case, is: impl Fn(&Value) -> bool) -> bool {
        case.pods.iter().any(is)
    }

    /// Whether a pod becomes available in `nanoseconds`, with a minReadySeconds.
    fn turns_available_in(case: &Case, nanoseconds: i64) -> bool {
        let Some(min_ready) = set(case)["spec"]["minReadySeconds"].as_i64() else {
            return false;
        };
        let now: Timestamp = case.now.parse().expect("a time");
        let moment = now + SignedDuration::from_nanos(nanoseconds) - SignedDuration::from_secs(min_ready);
        let moment = moment.to_string();
        any(case, |pod| {
            readies(pod).any(|ready| ready["status"] == "True" && ready["lastTransitionTime"] == moment)
        })
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("pending", |case| {
            any(case, |pod| pod["status"]["phase"] == "Pending")
        }),
        ("running", |case| {
            any(case, |pod| pod["status"]["phase"] == "Running")
        }),
        ("failed", |case| {
            any(case, |pod| pod["status"]["phase"] == "Failed")
        }),
        ("succeeded", |case| {
            any(case, |pod| pod["status"]["phase"] == "Succeeded")
        }),
        ("unknown", |case| {
            any(case, |pod| pod["status"]["phase"] == "Unknown")
        }),
        ("no phase", |case| {
            any(case, |pod| pod["status"]["phase"].is_null())
        }),
        ("ready", |case| {
            any(case, |pod| readies(pod).any(|ready| ready["status"] == "True"))
        }),
        ("not ready", |case| {
            any(case, |pod| readies(pod).any(|ready| ready["status"] == "False"))
        }),
        ("not known to be ready", |case| {
            any(case, |pod| readies(pod).any(|ready| ready["status"] == "Unknown"))
        }),
        ("no word about ready", |case| {
            any(case, |pod| readies(pod).count() == 0)
        }),
        ("two words about ready", |case| {
            any(case, |pod| readies(pod).count() == 2)
        }),
        ("ready since no time", |case| {
            any(case, |pod| {
                readies(pod).any(|ready| ready["lastTransitionTime"].is_null())
            })
        }),
        ("ready in the future", |case| {
            turns_available_in(case, 5_000_000_000)
        }),
        ("available exactly now", |case| turns_available_in(case, 0)),
        ("available in a nanosecond", |case| turns_available_in(case, 1)),
        ("available since a nanosecond", |case| {
            turns_available_in(case, -1)
        }),
        ("terminating with finalizers", |case| {
            any(case, |pod| {
                is_deleting(pod) && pod["metadata"]["finalizers"].is_array()
            })
        }),
        ("terminating without finalizers", |case| {
            any(case, |pod| {
                is_deleting(pod) && pod["metadata"]["finalizers"].is_null()
            })
        }),
    ];
}
