//! Why pods of a ReplicaSet are missing or not ready. The cluster says so in the status of the pods and of the ReplicaSet.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodewise_projection::{Workload, moment};
use nodewise_proto::v1;
use serde::{Deserialize, Serialize};

use crate::input::{Cluster, Served};

/// One cause, and the pods that have it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// The ReplicaSet; empty if it does not exist, because it cannot be created.
    pub(crate) replica_set: String,
    /// The pods; empty if they cannot be created, or if their names are not known.
    pub(crate) pods: Vec<String>,
    /// One sentence for people.
    pub(crate) message: String,
    /// The largest number of restarts of the container that is the cause.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) restarts: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A ReplicaSet, as far as people read it.
#[derive(Debug, Default)]
pub(crate) struct SetFacts {
    pub(crate) images: Vec<String>,
    pub(crate) min_ready_seconds: u32,
    /// The annotation with the number of the revision.
    pub(crate) revision: Option<String>,
    /// The kind and the name of its controller.
    pub(crate) controller: Option<String>,
    /// Why its controller cannot create or delete pods: the message of the condition ReplicaFailure.
    failure: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    image: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

/// Why the new ReplicaSet of a Deployment cannot be created: the message of the condition that its controller sets then.
pub(crate) fn of_creation(deployment: &Served) -> Option<Cause> {
    let object: Object = serde_json::from_str(deployment.json.get()).unwrap_or_default();
    let mut conditions = object.status.conditions.into_iter();
    let condition = conditions.find(|condition| {
        (&*condition.kind, &*condition.status, &*condition.reason)
            == ("Progressing", "False", "ReplicaSetCreateError")
    })?;
    Some(Cause {
        replica_set: String::new(),
        pods: Vec::new(),
        message: condition.message,
        restarts: 0,
    })
}

impl SetFacts {
    /// Reads a ReplicaSet. What cannot be read is left out: the planner has refused what it needs.
    pub(crate) fn of(set: &Served) -> Self {
        let object: Object = serde_json::from_str(set.json.get()).unwrap_or_default();
        let workload = Workload::replica_set_from_text(set.json.get()).ok();
        let containers = object.spec.template.spec.containers.into_iter();
        let mut conditions = object.status.conditions.into_iter();
        let mut annotations = object.metadata.annotations.unwrap_or_default();
        Self {
            images: containers.map(|container| container.image).collect(),
            min_ready_seconds: workload.as_ref().map_or(0, |set| set.min_ready_seconds),
            revision: annotations.remove("deployment.kubernetes.io/revision"),
            controller: workload
                .and_then(|set| set.controller)
                .map(|owner| format!("{} {}", owner.kind, owner.name)),
            failure: conditions
                .find(|condition| condition.kind == "ReplicaFailure" && condition.status == "True")
                .map(|condition| condition.message),
        }
    }
}

/// The causes for one ReplicaSet: that of missing pods first, then those with the most pods. `ready` and `available` are its counts.
pub(crate) fn of(
    cluster: &Cluster,
    set: &Served,
    facts: &SetFacts,
    (ready, available): (i32, i32),
    now: Timestamp,
) -> Vec<Cause> {
    let cause = |pods, message, restarts| Cause {
        replica_set: set.name.clone(),
        pods,
        message,
        restarts,
    };
    let mut groups: BTreeMap<String, (Vec<String>, u64)> = BTreeMap::new();
    for pod in cluster.pods_in(&set.namespace).iter().map(|pod| &pod.object) {
        let is_owned = pod.controller.as_ref().is_some_and(|owner| owner.uid == set.uid);
        if !is_owned {
            continue;
        }
        let facts = cluster.facts.as_ref().and_then(|facts| facts.pod(&pod.uid));
        let problem = facts.and_then(|facts| facts.problem.as_ref());
        let found = problem
            .map(|problem| (problem.message.clone(), u64::from(problem.restarts)))
            .or_else(|| Some((overdue(pod, now)?, 0)));
        if let Some((message, restarts)) = found {
            let (pods, most) = groups.entry(message).or_default();
            pods.push(pod.name.clone());
            *most = restarts.max(*most);
        }
    }
    let mut causes: Vec<Cause> = groups
        .into_iter()
        .map(|(message, (pods, restarts))| cause(pods, message, restarts))
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.pods.len()));
    if let Some(failure) = &facts.failure {
        causes.insert(0, cause(Vec::new(), failure.clone(), 0));
    }
    let young = ready.saturating_sub(available);
    if young > 0 && facts.min_ready_seconds > 0 {
        let seconds = facts.min_ready_seconds;
        let message = format!(
            "{young} of the ready pods are not available yet: minReadySeconds is {seconds}, and they became ready later"
        );
        causes.push(cause(Vec::new(), message, 0));
    }
    causes
}

/// Why a pod that is being deleted is late. `None` if it is not.
fn overdue(pod: &v1::Pod, now: Timestamp) -> Option<String> {
    let until = moment(pod.deletion_time?)?;
    let finalizers = if pod.has_finalizers {
        "; it has finalizers"
    } else {
        ""
    };
    (until < now).then(|| format!("is being deleted, and should have been gone at {until}{finalizers}"))
}
