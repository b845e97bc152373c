//! Why a pod is not ready, as its status says. No plan depends on it: people read it.

use std::fmt::Write as _;

use nodewise_proto::{
    v1::{ConditionStatus, Pod, PodPhase},
    workload::REPLICA_SET,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most characters of a message that is quoted.
const MAX_QUOTED: usize = 240;

/// Why a pod is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The cause, without the pod's name: `container web: ImagePullBackOff: Back-off pulling image "web:2"`.
    pub(crate) cause: String,
    /// How often the container of the cause was restarted.
    pub(crate) restarts: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    reason: Option<String>,
    message: Option<String>,
    conditions: Option<Vec<Condition>>,
    init_container_statuses: Option<Vec<Container>>,
    container_statuses: Option<Vec<Container>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: String,
    ready: bool,
    started: Option<bool>,
    restart_count: u64,
    state: Option<State>,
    last_state: Option<State>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    waiting: Option<Ended>,
    running: Option<Running>,
    terminated: Option<Ended>,
}

#[derive(Deserialize)]
struct Running {}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ended {
    reason: Option<String>,
    message: Option<String>,
    exit_code: i64,
}

impl Trouble {
    /// Why a pod of a ReplicaSet is not ready. `None` for a pod that is ready, has succeeded or is being deleted, and for a pod of
    /// another kind.
    pub(super) fn of(pod: &Pod, json: &RawValue) -> Option<Self> {
        let is_of_set = pod
            .controller
            .as_ref()
            .is_some_and(|owner| owner.kind == REPLICA_SET);
        let is_fine = pod.ready() == ConditionStatus::True || pod.phase() == PodPhase::Succeeded;
        if !is_of_set || is_fine || pod.deletion_time.is_some() {
            return None;
        }
        // A status that cannot be read says nothing.
        let object: Object = serde_json::from_str(json.get()).unwrap_or_default();
        Some(object.status.unwrap_or_default().trouble(pod))
    }
}

impl Status {
    fn trouble(self, pod: &Pod) -> Trouble {
        let without_restarts = |cause: String| Trouble { cause, restarts: 0 };
        if pod.phase() == PodPhase::Failed {
            let words = [Some("the pod has failed"), self.reason.as_deref()];
            return without_restarts(sentence(words, self.message.as_deref()));
        }
        let conditions = self.conditions.unwrap_or_default();
        if pod.node_name.is_empty() {
            let scheduled = conditions
                .iter()
                .find(|condition| condition.kind == "PodScheduled" && condition.status == "False");
            let reason = scheduled.and_then(|condition| condition.reason.as_deref());
            let message = scheduled.and_then(|condition| condition.message.as_deref());
            return without_restarts(sentence([Some("not bound to a node"), reason], message));
        }
        let init = self.init_container_statuses.unwrap_or_default();
        let containers = self.container_statuses.unwrap_or_default();
        let started = init.iter().filter(|container| !container.is_done());
        let all = started
            .map(|container| ("init container", container))
            .chain(containers.iter().map(|container| ("container", container)));
        let troubles: Vec<_> = all
            .filter_map(|(noun, container)| container.trouble(noun))
            .collect();
        // A container that only starts, or waits for others, is not the cause if another one is.
        if let Some((_, trouble)) = troubles.into_iter().min_by_key(|(rank, _)| *rank) {
            return trouble;
        }
        let mut failing = conditions
            .iter()
            .filter(|condition| condition.kind == "Ready" && condition.status != "True");
        let ready = failing.next();
        without_restarts(match ready.and_then(|condition| condition.reason.as_deref()) {
            Some(reason) => sentence(
                [Some("condition Ready"), Some(reason)],
                ready.and_then(|condition| condition.message.as_deref()),
            ),
            None if containers.is_empty() => {
                format!(
                    "its kubelet has not started it yet; look at node {}",
                    pod.node_name
                )
            }
            None => format!(
                "its containers are ready, and the pod is not: look at node {}",
                pod.node_name
            ),
        })
    }
}

/// How much a container is the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Fails,
    NotReady,
    Starts,
}

impl Container {
    /// Whether it is an init container that has succeeded, or a sidecar that runs.
    fn is_done(&self) -> bool {
        self.ready || self.started == Some(true)
    }

    /// Why the container is not ready; `None` if it is.
    fn trouble(&self, noun: &str) -> Option<(Rank, Trouble)> {
        if self.ready {
            return None;
        }
        let state = self.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let ended = state.and_then(|state| state.terminated.as_ref());
        let name = format!("{noun} {}", self.name);
        let (rank, cause) = match (waiting, ended) {
            (Some(waiting), _) => waits(&name, waiting),
            (None, Some(ended)) => (Rank::Fails, format!("{name} ended ({})", ended.exit())),
            (None, None) if state.is_some_and(|state| state.running.is_some()) => {
                match (noun, self.started) {
                    ("init container", _) => (Rank::NotReady, format!("{name} still runs")),
                    (_, Some(false)) => (
                        Rank::NotReady,
                        format!("{name} runs; its startup probe has not succeeded yet"),
                    ),
                    _ => (
                        Rank::NotReady,
                        format!("{name} runs; its readiness probe does not succeed"),
                    ),
                }
            }
            (None, None) => (Rank::Starts, format!("{name} has not started yet")),
        };
        let cause = self.with_last_exit(cause, ended.is_some());
        Some((
            rank,
            Trouble {
                cause,
                restarts: self.restart_count,
            },
        ))
    }

    /// Adds how the container ended the last time.
    fn with_last_exit(&self, mut cause: String, has_ended: bool) -> String {
        let last = self
            .last_state
            .as_ref()
            .and_then(|state| state.terminated.as_ref());
        if let Some(last) = last.filter(|_| !has_ended) {
            write!(cause, "; it ended last with {}", last.exit()).expect("writing to a string cannot fail");
        }
        cause
    }
}

impl Ended {
    /// `exit code 137, OOMKilled`.
    fn exit(&self) -> String {
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
        format!("exit code {}{reason}", self.exit_code)
    }
}

/// Why a container waits.
fn waits(name: &str, waiting: &Ended) -> (Rank, String) {
    match waiting.reason.as_deref() {
        None | Some("ContainerCreating" | "PodInitializing") => {
            let words = [Some(name), waiting.reason.as_deref().or(Some("is waiting"))];
            (Rank::Starts, sentence(words, waiting.message.as_deref()))
        }
        // The message has only the names of the pod and of the container, and the time of the next start.
        reason @ Some("CrashLoopBackOff") => (Rank::Fails, sentence([Some(name), reason], None)),
        reason => (
            Rank::Fails,
            sentence([Some(name), reason], waiting.message.as_deref()),
        ),
    }
}

/// The words and the message, separated by colons. The message is cut to one line of limited length.
fn sentence(words: [Option<&str>; 2], message: Option<&str>) -> String {
    let message = message.map(|message| {
        let line = message.trim().lines().next().unwrap_or_default();
        match line.char_indices().nth(MAX_QUOTED) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    });
    let words = words.into_iter().flatten().map(str::to_owned);
    let parts = words.chain(message).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn trouble(spec: &Value, status: &Value) -> Option<String> {
        let object = json!({
            "metadata": {
                "name": "web-1-a", "uid": "u",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "uid": "s", "controller": true}],
            },
            "spec": spec,
            "status": status,
        });
        let pod = nodewise_projection::pod(&object).expect("a pod");
        let json = RawValue::from_string(object.to_string()).expect("JSON");
        Trouble::of(&pod, &json).map(|trouble| trouble.cause)
    }

    fn container(status: &Value) -> Value {
        let mut container = json!({"name": "web", "ready": false, "restartCount": 0});
        let fields = container.as_object_mut().expect("an object");
        fields.extend(status.as_object().expect("an object").clone());
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [container]})
    }

    #[test]
    fn the_status_says_why_a_pod_is_not_ready() {
        let image = r#"Back-off pulling image "web:2""#;
        let table = [
            (
                container(&json!({"state": {"waiting": {"reason": "ImagePullBackOff", "message": image}}})),
                "container web: ImagePullBackOff: Back-off pulling image \"web:2\"",
            ),
            (
                container(
                    &json!({"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
                ),
                "container web: CrashLoopBackOff; it ended last with exit code 137, OOMKilled",
            ),
            (
                container(&json!({"state": {"terminated": {"exitCode": 1, "reason": "Error"}}})),
                "container web ended (exit code 1, Error)",
            ),
            (
                container(
                    &json!({"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "started": true}),
                ),
                "container web runs; its readiness probe does not succeed",
            ),
            (
                container(&json!({"state": {"running": {}}, "started": false})),
                "container web runs; its startup probe has not succeeded yet",
            ),
            (
                container(&json!({"state": {"waiting": {"reason": "ContainerCreating"}}})),
                "container web: ContainerCreating",
            ),
            (
                container(&json!({"ready": true})),
                "condition Ready: ContainersNotReady",
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{"name": "web", "ready": true}],
                    "conditions": [{"type": "Ready", "status": "False"}]}),
                "its containers are ready, and the pod is not: look at node n",
            ),
            (
                json!({"phase": "Pending"}),
                "its kubelet has not started it yet; look at node n",
            ),
            (
                json!({"phase": "Pending",
                    "initContainerStatuses": [{"name": "migrate", "ready": false, "state": {"running": {}}}],
                    "containerStatuses": [{"name": "web", "ready": false, "state": {"waiting": {"reason": "PodInitializing"}}}]}),
                "init container migrate still runs",
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.\nMore."}),
                "the pod has failed: Evicted: The node was low on resource: memory.",
            ),
        ];
        for (status, expected) in table {
            let found = trouble(&json!({"nodeName": "n"}), &status);
            assert_eq!(found.as_deref(), Some(expected), "{status}");
        }
    }

    #[test]
    fn a_pod_that_is_not_bound_says_why() {
        let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu."});
        for (conditions, expected) in [
            (json!([]), "not bound to a node"),
            (
                json!([unschedulable]),
                "not bound to a node: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
            ),
        ] {
            let status = json!({"phase": "Pending", "conditions": conditions});
            assert_eq!(trouble(&json!({}), &status).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_pod_that_is_ready_or_has_an_odd_status_is_no_error() {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(trouble(&json!({"nodeName": "n"}), &ready), None);
        assert_eq!(
            trouble(&json!({"nodeName": "n"}), &json!({"phase": "Succeeded"})),
            None
        );
        let odd = json!({"phase": "Running", "reason": 7});
        let expected = "its kubelet has not started it yet; look at node n";
        assert_eq!(
            trouble(&json!({"nodeName": "n"}), &odd).as_deref(),
            Some(expected)
        );
        let long = container(&json!({"state": {"waiting": {"reason": "Odd", "message": "x".repeat(1_000)}}}));
        let cause = trouble(&json!({"nodeName": "n"}), &long).expect("a cause");
        assert!(cause.ends_with('…') && cause.chars().count() < 300, "{cause}");
    }
}
