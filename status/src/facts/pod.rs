//! What people want to know about a pod.

use jiff::Timestamp;
use nodewise_projection::{Unready, moment, pod_problem, timestamp};
use nodewise_proto::{
    v1,
    workload::{HASH_LABEL, TEMPLATE_HASH_LABEL},
};

use super::read;

/// Facts about a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodFacts {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// The uid of its controller. Empty if it has none.
    pub controller: String,
    /// The label with the hash of its revision.
    pub hash: String,
    /// spec.nodeName.
    pub node_name: String,
    /// Whether the condition Ready is True.
    pub ready: bool,
    /// lastTransitionTime of that condition.
    pub ready_changed: Option<Timestamp>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp.
    pub deleted: Option<Timestamp>,
    /// metadata.finalizers.
    pub finalizers: Vec<String>,
    /// Why the pod is not ready.
    pub problem: Option<v1::PodProblem>,
}

impl PodFacts {
    /// Reads a v1 Pod.
    #[must_use]
    pub fn of(json: &str) -> Self {
        let object = read::object(json);
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels?.get(key)?.as_str().map(str::to_owned);
        let mut conditions = read::list(&object, "/status/conditions").iter();
        let ready = conditions.find(|condition| read::text(condition, "/type") == "Ready");
        let finalizers = read::list(&object, "/metadata/finalizers").iter();
        let is_ready = ready.is_some_and(|ready| read::text(ready, "/status") == "True");
        Self {
            namespace: read::owned(&object, "/metadata/namespace"),
            name: read::owned(&object, "/metadata/name"),
            uid: read::owned(&object, "/metadata/uid"),
            controller: read::controller(&object),
            hash: label(HASH_LABEL)
                .or_else(|| label(TEMPLATE_HASH_LABEL))
                .unwrap_or_default(),
            node_name: read::owned(&object, "/spec/nodeName"),
            ready: is_ready,
            ready_changed: ready.and_then(|ready| read::time(ready, "/lastTransitionTime")),
            created: read::time(&object, "/metadata/creationTimestamp"),
            deleted: read::time(&object, "/metadata/deletionTimestamp"),
            finalizers: finalizers
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            problem: if is_ready { None } else { pod_problem(json) },
        }
    }

    /// The facts about a pod that a controller has projected, with what it keeps of a pod that is not ready. `node_name` is the node
    /// that the pod is on or meant for.
    #[must_use]
    pub fn of_projected(namespace: &str, pod: &v1::Pod, node_name: &str, unready: &Unready) -> Self {
        let label = |key: &str| pod.labels.iter().find(|label| label.key == key);
        let hash = label(HASH_LABEL).or_else(|| label(TEMPLATE_HASH_LABEL));
        Self {
            namespace: namespace.to_owned(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            controller: pod
                .controller
                .as_ref()
                .map(|owner| owner.uid.clone())
                .unwrap_or_default(),
            hash: hash.map(|label| label.value.clone()).unwrap_or_default(),
            node_name: node_name.to_owned(),
            ready: pod.ready() == v1::ConditionStatus::True,
            ready_changed: pod.ready_transition_time.and_then(moment),
            created: pod.creation_time.and_then(moment),
            deleted: pod.deletion_time.and_then(moment),
            finalizers: unready.finalizers.clone(),
            problem: unready.problem.clone(),
        }
    }

    /// The time since which the pod is not ready. `None` if it is.
    #[must_use]
    pub fn not_ready_since(&self) -> Option<Timestamp> {
        if self.ready {
            return None;
        }
        self.ready_changed.or(self.created)
    }

    /// The message about the pod. Whether it is of the current revision, and available, is known by its workload.
    #[must_use]
    pub fn status(&self, updated: bool, available: bool) -> v1::PodStatus {
        v1::PodStatus {
            pod_name: self.name.clone(),
            node_name: self.node_name.clone(),
            updated,
            ready: self.ready,
            available,
            created_at: self.created.map(timestamp),
            not_ready_since: self.not_ready_since().map(timestamp),
            deleted_at: self.deleted.map(timestamp),
            finalizers: self.finalizers.clone(),
            problem: self.problem.clone(),
            unit_state: v1::UnitState::Unspecified.into(),
        }
    }
}
