//! What the cluster reads from a pod.

use serde_json::Value;

/// The status field in which the kubelet stores the tick at which a pod becomes ready or goes. Not part of the API.
pub(crate) const DUE: &str = "dueTick";

/// The state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    Available,
    Starting,
    Deleting,
    /// Succeeded or failed.
    Finished,
}

impl PodState {
    pub(crate) fn of(pod: &Value) -> Self {
        match (is_finished(pod), is_deleting(pod), is_ready(pod)) {
            (true, _, _) => Self::Finished,
            (false, true, _) => Self::Deleting,
            (false, false, true) => Self::Available,
            (false, false, false) => Self::Starting,
        }
    }
}

/// Whether a pod has a Ready condition that is true.
#[must_use]
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a pod has succeeded or failed.
#[must_use]
pub fn is_finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}

/// Whether a pod is being deleted.
#[must_use]
pub fn is_deleting(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// The uid of the controller of a pod, or of another object.
#[must_use]
pub fn owner_uid(object: &Value) -> Option<&str> {
    controller(object)?["uid"].as_str()
}

/// The kind of the controller of a pod, or of another object.
#[must_use]
pub fn owner_kind(object: &Value) -> Option<&str> {
    controller(object)?["kind"].as_str()
}

fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// The node that a pod is on, or that its required node affinity names (D-24).
///
/// The first field expression with the key `metadata.name` and the operator `In` decides, over the terms in their order. If it
/// does not have exactly one value, there is no such node.
#[must_use]
pub fn node(pod: &Value) -> Option<&str> {
    let spec = &pod["spec"];
    if let Some(node) = spec["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().into_iter().flatten();
    let mut fields = terms.flat_map(|term| term["matchFields"].as_array().into_iter().flatten());
    let deciding = fields.find(|field| field["key"] == "metadata.name" && field["operator"] == "In")?;
    match deciding["values"].as_array()?.as_slice() {
        [name] => name.as_str(),
        _ => None,
    }
}

/// The tick at which a pod becomes ready, is gone or is bound; `None` if it is ready or finished.
pub(crate) fn due(pod: &Value) -> Option<u64> {
    let due = || pod["status"][DUE].as_u64().unwrap_or_default();
    let is_settled = is_finished(pod) || is_ready(pod);
    (is_deleting(pod) || !is_settled).then(due)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn d_24_the_node_of_a_pod() {
        let by_name = |values: Value| json!({"key": "metadata.name", "operator": "In", "values": values});
        let other = json!({"key": "metadata.name", "operator": "NotIn", "values": ["b"]});
        // (spec.nodeName, matchFields of the terms, the node)
        let table = [
            (json!("a"), json!([]), Some("a")),
            (json!("a"), json!([[by_name(json!(["b"]))]]), Some("a")),
            (json!(null), json!([[by_name(json!(["b"]))]]), Some("b")),
            (json!(""), json!([[by_name(json!(["b"]))]]), Some("b")),
            (
                json!(null),
                json!([[], [other, by_name(json!(["c"]))]]),
                Some("c"),
            ),
            (
                json!(null),
                json!([[by_name(json!(["b", "c"]))], [by_name(json!(["d"]))]]),
                None,
            ),
            (json!(null), json!([]), None),
        ];
        for (bound, terms, expected) in table {
            let terms: Vec<_> = terms
                .as_array()
                .expect("a list")
                .iter()
                .map(|fields| json!({"matchFields": fields}))
                .collect();
            let required =
                json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
            let pod = json!({"spec": {"nodeName": bound, "affinity": {"nodeAffinity": required}}});
            assert_eq!(node(&pod), expected, "{pod}");
        }
    }
}
