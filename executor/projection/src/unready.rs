//! What people want to know about a pod that is not ready or that is being deleted.

use bytes::Bytes;
use nodewise_proto::v1;
use serde::Deserialize;

use crate::parse::parse_text;
use crate::problem::{pod_problem, problem_of};
use crate::protobuf::{self, text, unready};

/// The most finalizers that are kept of a pod.
const MAX_FINALIZERS: usize = 8;

/// What people want to know about a pod that is not ready or that is being deleted. No plan reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unready {
    /// Why the pod is not ready. `None` if it is being deleted.
    pub problem: Option<v1::PodProblem>,
    /// metadata.finalizers, of a pod that is being deleted.
    pub finalizers: Vec<String>,
}

impl Unready {
    /// Reads the JSON of a pod whose projection this is. `None` for a pod that is ready, or that has succeeded, and is not being
    /// deleted.
    pub(crate) fn of(json: &str, pod: &v1::Pod) -> Option<Box<Self>> {
        Self::read(pod, || finalizers(json), || pod_problem(json))
    }

    /// Like [`Self::of`], for the Protobuf message of a pod.
    pub(crate) fn of_protobuf(object: &Bytes, pod: &v1::Pod) -> Option<Box<Self>> {
        let decode = || protobuf::decode::<unready::Pod>(object).ok();
        let finalizers = || {
            let metadata = decode().and_then(|pod| pod.metadata).unwrap_or_default();
            let kept = metadata.finalizers.iter().take(MAX_FINALIZERS);
            kept.map(|finalizer| text(finalizer)).collect()
        };
        Self::read(pod, finalizers, || problem_of(decode()?))
    }

    fn read(
        pod: &v1::Pod,
        finalizers: impl FnOnce() -> Vec<String>,
        problem: impl FnOnce() -> Option<v1::PodProblem>,
    ) -> Option<Box<Self>> {
        if pod.deletion_time.is_some() {
            let finalizers = if pod.has_finalizers {
                finalizers()
            } else {
                Vec::new()
            };
            return Some(Box::new(Self {
                problem: None,
                finalizers,
            }));
        }
        if pod.ready() == v1::ConditionStatus::True || pod.phase() == v1::PodPhase::Succeeded {
            return None;
        }
        let problem = Some(problem()?);
        let finalizers = Vec::new();
        Some(Box::new(Self { problem, finalizers }))
    }
}

fn finalizers(json: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        finalizers: Vec<String>,
    }
    let mut finalizers = parse_text::<Object>(json)
        .map(|object| object.metadata.finalizers)
        .unwrap_or_default();
    finalizers.truncate(MAX_FINALIZERS);
    finalizers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Pod;

    // A cache of ready pods must not grow.
    #[test]
    fn only_pods_that_are_not_ready_or_are_being_deleted_have_it() {
        let waiting = json!([{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
        let deleted = "2026-01-01T00:00:00Z";
        for (what, metadata, ready, expected) in [
            ("ready", json!({}), "True", None),
            (
                "not ready",
                json!({}),
                "False",
                Some((Some("ImagePullBackOff"), vec![])),
            ),
            (
                "being deleted",
                json!({"deletionTimestamp": deleted, "finalizers": ["example.com/wait"]}),
                "True",
                Some((None, vec!["example.com/wait"])),
            ),
            (
                "deleted at once",
                json!({"deletionTimestamp": deleted}),
                "False",
                Some((None, vec![])),
            ),
        ] {
            let mut object = json!({
                "metadata": metadata,
                "spec": {"nodeName": "n"},
                "status": {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": waiting},
            });
            object["metadata"]["name"] = "web-1".into();
            object["metadata"]["uid"] = "u".into();
            let pod = Pod::from_text(&object.to_string()).expect("a pod");
            let found = pod.unready.as_ref().map(|unready| {
                let reason = unready.problem.as_ref().map(|problem| &*problem.reason);
                let finalizers = unready.finalizers.iter().map(|one| &**one);
                (reason, finalizers.collect::<Vec<_>>())
            });
            assert_eq!(found, expected, "{what}");
            assert_eq!(
                Pod::from_json(&object).expect("a pod").unready,
                pod.unready,
                "{what}"
            );
        }
    }
}
