//! What cases of ReplicaSets and Deployments have in common: owners, times and pods.

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::rng::CaseRng;
use super::selector::{self, Selector};
use crate::case::Fault;

/// The namespace of everything.
pub(super) const NAMESPACE: &str = "ns";

/// The annotation with the deletion cost of a pod.
pub(super) const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Responses of the API.
pub(super) const BROKEN: (u16, &str) = (500, "InternalError");
pub(super) const FORBIDDEN: (u16, &str) = (403, "Forbidden");
pub(super) const MISSING: (u16, &str) = (404, "NotFound");
pub(super) const CONFLICT: (u16, &str) = (409, "Conflict");
pub(super) const INVALID: (u16, &str) = (422, "Invalid");

/// The identity of an object that may be a controller.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Identity {
    /// An owner reference with `controller: true`.
    pub(super) fn controls(&self) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// An owner reference without `controller`.
    pub(super) fn mentions(&self) -> Value {
        json!({"apiVersion": "apps/v1", "kind": self.kind, "name": self.name, "uid": self.uid})
    }
}

/// The owner references of an object, of which none may be a controller.
pub(super) fn owners(rng: &mut CaseRng, us: &Identity) -> Value {
    match rng.below(10) {
        0..=5 => json!([us.controls()]),
        6 | 7 => Value::Null,
        8 => orphan(rng, us),
        _ => foreign(rng, us),
    }
}

/// The owner references of an orphan.
pub(super) fn orphan(rng: &mut CaseRng, us: &Identity) -> Value {
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "config", "uid": "config"});
    match rng.below(6) {
        0..=2 => Value::Null,
        3 => json!([us.mentions()]),
        4 => json!([other]),
        _ => json!([other, us.mentions()]),
    }
}

/// The owner references of an object that something else controls.
pub(super) fn foreign(rng: &mut CaseRng, us: &Identity) -> Value {
    let of = |kind, name: &str, uid: &str| Identity {
        kind,
        name: name.to_owned(),
        uid: uid.to_owned(),
    };
    match rng.below(4) {
        0 => json!([of(us.kind, &us.name, "former").controls()]),
        1 => json!([of(us.kind, "neighbour", "neighbour").controls()]),
        2 => json!([of("StatefulSet", &us.name, "stateful").controls()]),
        _ => json!([of(us.kind, "neighbour", "neighbour").controls(), us.mentions()]),
    }
}

/// The metadata of an object in the namespace.
pub(super) fn metadata(rng: &mut CaseRng, clock: &Clock, name: &str, age: i64) -> Value {
    json!({
        "name": name,
        "namespace": NAMESPACE,
        "uid": rng.uid(),
        "resourceVersion": rng.version(),
        "creationTimestamp": clock.before(age),
    })
}

/// A selector. An invalid one is in no snapshot: the server refuses it, and so does every apiserver.
pub(super) fn selector(rng: &mut CaseRng) -> Selector {
    loop {
        let drawn = selector::draw(rng);
        let expressions = drawn.object["matchExpressions"].as_array();
        let known = ["In", "NotIn", "Exists", "DoesNotExist"];
        let is_known = |expression: &Value| known.iter().any(|operator| expression["operator"] == *operator);
        if expressions.into_iter().flatten().all(is_known) {
            return drawn;
        }
    }
}

/// Sets a member unless the value is null or empty.
pub(super) fn set(object: &mut Value, member: &str, value: Value) {
    let is_empty = value.as_object().is_some_and(Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
        || value.is_null();
    if !is_empty {
        object[member] = value;
    }
}

/// A pod without labels, owners and name.
pub(super) fn pod(rng: &mut CaseRng, clock: &Clock, name: &str, min_ready: i64) -> Value {
    // Few different ages, so that some are equal or in the same bucket, and none of less than a millisecond, of which
    // upstream's metrics crash.
    let age = rng.pick(&[1, 2, 60, 90, 100, 3_600, 3_700, 7_200, 100_000, -5]);
    let mut metadata = metadata(rng, clock, name, age);
    if rng.in_hundred(2) {
        metadata
            .as_object_mut()
            .map(|members| members.remove("creationTimestamp"));
    }
    if rng.in_hundred(20) {
        let costs = [
            "0",
            "10",
            "-5",
            "+3",
            "008",
            "abc",
            "2147483648",
            "-007",
            "-0",
            "",
            "100",
            "-2147483648",
        ];
        metadata["annotations"] = json!({COST: rng.pick(&costs)});
    }
    if rng.in_hundred(5) {
        metadata["finalizers"] = json!(["example.com/hold"]);
    }
    let mut spec = json!({
        "containers": [{"name": "main", "image": "i", "resources": {}}],
    });
    let node = rng.weighted(&[(2, ""), (4, "n1"), (3, "n2"), (1, "n3")]);
    let mut phase = rng.weighted(&[(8, "Running"), (2, "Pending"), (1, "Unknown")]);
    if node.is_empty() {
        phase = rng.weighted(&[(8, "Pending"), (1, "Running")]);
    } else {
        spec["nodeName"] = node.into();
    }
    let mut status = json!({"phase": phase});
    set(
        &mut status,
        "conditions",
        ready(rng, clock, min_ready, phase == "Pending"),
    );
    if rng.in_hundred(25) {
        let restarts = |rng: &mut CaseRng| rng.pick(&[0, 0, 1, 5, 9001]);
        status["containerStatuses"] = json!([
            {"name": "main", "restartCount": restarts(rng)}, {"name": "other", "restartCount": restarts(rng)},
        ]);
    }
    if rng.in_hundred(20) {
        spec["initContainers"] = json!([
            {"name": "sidecar", "image": "i", "resources": {}, "restartPolicy": "Always"},
            {"name": "init", "image": "i", "resources": {}},
        ]);
        status["initContainerStatuses"] = json!([
            {"name": "sidecar", "restartCount": rng.pick(&[0, 1, 3])},
            {"name": "init", "restartCount": rng.pick(&[0, 7])},
            {"name": "gone", "restartCount": rng.pick(&[0, 8])},
        ]);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
}

/// The conditions of a pod.
fn ready(rng: &mut CaseRng, clock: &Clock, min_ready: i64, unlikely: bool) -> Value {
    let condition = |status: &str, since: Option<i64>| {
        let mut condition = json!({"type": "Ready", "status": status, "lastProbeTime": null});
        condition["lastTransitionTime"] = since.map_or(Value::Null, |since| clock.before(since).into());
        condition
    };
    let kind = if unlikely { rng.below(40) } else { rng.below(14) };
    match kind {
        0..=4 => {
            let since = rng.pick(&[0, 1, 5, 30, 60, 90, 3_600, 3_700, 100_000]);
            json!([condition("True", Some(since))])
        }
        5..=8 => {
            // The second in which the pod becomes available, and those next to it.
            let since = min_ready + rng.between(-2..=2);
            json!([condition("True", Some(since))])
        }
        9 => json!([condition("True", None)]),
        10 => json!([condition("True", Some(-30))]),
        11 => json!([
            {"type": "Initialized", "status": "True", "lastProbeTime": null, "lastTransitionTime": null},
            condition("True", Some(40)),
            condition("False", Some(40)),
        ]),
        12 => json!([condition("False", Some(10))]),
        _ => Value::Null,
    }
}

/// A refusal of a kind of call.
pub(super) fn fault(op: &str, name: &str, (code, reason): (u16, &str), times: u32) -> Fault {
    Fault {
        op: op.to_owned(),
        name: name.to_owned(),
        code,
        reason: reason.to_owned(),
        cause: String::new(),
        times,
    }
}

/// A refusal because the namespace is terminating.
pub(super) fn terminating(op: &str, name: &str, times: u32) -> Fault {
    Fault {
        cause: "NamespaceTerminating".to_owned(),
        ..fault(op, name, FORBIDDEN, times)
    }
}

/// The name of an object.
pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
