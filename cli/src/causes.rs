//! Why pods of a ReplicaSet are missing or not ready. The cluster says so in the status of the pods and of the ReplicaSet.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodewise_projection::moment;
use nodewise_proto::v1;
use nodewise_status::TemplateFacts;
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

/// The status of a Deployment, as far as it is read here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    status: Status,
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

/// The causes for one ReplicaSet: that of missing pods first, then those with the most pods. `ready` and `available` are its counts.
pub(crate) fn of(
    cluster: &Cluster,
    set: &Served,
    facts: &TemplateFacts,
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
    if let Some((failure, _)) = &facts.failure {
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
