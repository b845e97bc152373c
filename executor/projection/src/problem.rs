//! Why a pod is not ready, as its status says.

use std::fmt::Write as _;

use nodewise_proto::v1::PodProblem;
use serde::Deserialize;

use crate::protobuf::{text, text_if_any, unready};
use crate::time::Time;

/// The most characters of a message that is quoted.
const MAX_QUOTED: usize = 240;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
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

/// Why a pod, as the apiserver serves it, is not ready. `None` if it has succeeded or is being deleted, or if its status cannot be
/// read.
#[must_use]
pub fn pod_problem(json: &str) -> Option<PodProblem> {
    serde_json::from_str::<Object>(json).ok()?.problem()
}

/// Like [`pod_problem`], for the Protobuf message of a pod.
pub(crate) fn problem_of(pod: unready::Pod) -> Option<PodProblem> {
    Object::read(pod)?.problem()
}

/// A problem outside of containers.
fn of_pod(reason: &str, message: String, is_failing: bool) -> PodProblem {
    PodProblem {
        reason: reason.to_owned(),
        message,
        is_failing,
        ..PodProblem::default()
    }
}

impl Object {
    /// `None` if a number of the status is not valid.
    fn read(pod: unready::Pod) -> Option<Self> {
        let deletion = pod.metadata.and_then(|metadata| metadata.deletion_timestamp);
        Some(Self {
            metadata: Metadata {
                deletion_timestamp: Time::of(deletion).map(|_| serde::de::IgnoredAny),
            },
            spec: Spec {
                node_name: pod.spec.map(|spec| text(&spec.node_name)),
            },
            status: Status::read(pod.status.unwrap_or_default())?,
        })
    }

    fn problem(self) -> Option<PodProblem> {
        let is_over = self.status.phase.as_deref() == Some("Succeeded");
        if is_over || self.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let node = self.spec.node_name.unwrap_or_default();
        Some(self.status.problem(&node))
    }
}

impl Status {
    fn read(status: unready::PodStatus) -> Option<Self> {
        let containers = |list: Vec<unready::ContainerStatus>| {
            let list = list.into_iter().map(Container::read);
            list.collect::<Option<Vec<_>>>()
        };
        let conditions = status.conditions.iter().map(|condition| Condition {
            kind: text(&condition.kind),
            status: text(&condition.status),
            reason: text_if_any(&condition.reason),
            message: text_if_any(&condition.message),
        });
        Some(Self {
            phase: text_if_any(&status.phase),
            reason: text_if_any(&status.reason),
            message: text_if_any(&status.message),
            conditions: Some(conditions.collect()),
            init_container_statuses: Some(containers(status.init_container_statuses)?),
            container_statuses: Some(containers(status.container_statuses)?),
        })
    }

    fn problem(self, node: &str) -> PodProblem {
        if self.phase.as_deref() == Some("Failed") {
            let words = [Some("the pod has failed"), self.reason.as_deref()];
            let reason = self.reason.as_deref().unwrap_or("Failed");
            return of_pod(reason, sentence(words, self.message.as_deref()), true);
        }
        let conditions = self.conditions.unwrap_or_default();
        if node.is_empty() {
            return unbound(&conditions);
        }
        let init = self.init_container_statuses.unwrap_or_default();
        let containers = self.container_statuses.unwrap_or_default();
        let started = init.iter().filter(|container| !container.is_done());
        let all = started
            .map(|container| ("init container", container))
            .chain(containers.iter().map(|container| ("container", container)));
        let problems: Vec<_> = all
            .filter_map(|(noun, container)| container.problem(noun))
            .collect();
        // A container that only starts, or waits for others, is not the cause if another one is.
        if let Some((_, problem)) = problems.into_iter().min_by_key(|(rank, _)| *rank) {
            return problem;
        }
        without_container(&conditions, containers.is_empty(), node)
    }
}

/// Why a pod is not bound to a node.
fn unbound(conditions: &[Condition]) -> PodProblem {
    let mut scheduled = conditions.iter();
    let scheduled =
        scheduled.find(|condition| condition.kind == "PodScheduled" && condition.status == "False");
    let reason = scheduled.and_then(|condition| condition.reason.as_deref());
    let message = scheduled.and_then(|condition| condition.message.as_deref());
    let message = sentence([Some("not bound to a node"), reason], message);
    of_pod(reason.unwrap_or("NotScheduled"), message, reason.is_some())
}

/// Why a pod is not ready although no container says so.
fn without_container(conditions: &[Condition], is_without_containers: bool, node: &str) -> PodProblem {
    let mut failing = conditions.iter();
    let ready = failing.find(|condition| condition.kind == "Ready" && condition.status != "True");
    match ready.and_then(|condition| condition.reason.as_deref()) {
        Some(reason) => {
            let message = ready.and_then(|condition| condition.message.as_deref());
            of_pod(
                reason,
                sentence([Some("condition Ready"), Some(reason)], message),
                false,
            )
        }
        None if is_without_containers => {
            let message = format!("its kubelet has not started it yet; look at node {node}");
            of_pod("NotStarted", message, false)
        }
        None => {
            let message = format!("its containers are ready, and the pod is not: look at node {node}");
            of_pod("NotReady", message, false)
        }
    }
}

/// How much a container is the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Fails,
    NotReady,
    Starts,
}

impl From<unready::ContainerState> for State {
    fn from(state: unready::ContainerState) -> Self {
        Self {
            waiting: state.waiting.map(|waiting| Ended {
                reason: text_if_any(&waiting.reason),
                message: text_if_any(&waiting.message),
                exit_code: 0,
            }),
            running: state.running.map(|_| Running {}),
            terminated: state.terminated.map(|terminated| Ended {
                reason: text_if_any(&terminated.reason),
                message: text_if_any(&terminated.message),
                exit_code: terminated.exit_code.into(),
            }),
        }
    }
}

impl Container {
    fn read(status: unready::ContainerStatus) -> Option<Self> {
        Some(Self {
            name: text(&status.name),
            ready: status.ready,
            started: status.started,
            restart_count: status.restart_count.try_into().ok()?,
            state: status.state.map(State::from),
            last_state: status.last_state.map(State::from),
        })
    }

    /// Whether it is an init container that has succeeded, or a sidecar that runs.
    fn is_done(&self) -> bool {
        self.ready || self.started == Some(true)
    }

    /// Why the container is not ready; `None` if it is.
    fn problem(&self, noun: &str) -> Option<(Rank, PodProblem)> {
        if self.ready {
            return None;
        }
        let state = self.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let ended = state.and_then(|state| state.terminated.as_ref());
        let name = format!("{noun} {}", self.name);
        let (rank, reason, cause) = match (waiting, ended) {
            (Some(waiting), _) => waits(&name, waiting),
            (None, Some(ended)) => (
                Rank::Fails,
                ended.reason_or("Error"),
                format!("{name} ended ({})", ended.exit()),
            ),
            (None, None) if state.is_some_and(|state| state.running.is_some()) => {
                let (reason, cause) = self.runs(noun);
                (Rank::NotReady, reason.to_owned(), format!("{name} {cause}"))
            }
            (None, None) => (
                Rank::Starts,
                "NotStarted".to_owned(),
                format!("{name} has not started yet"),
            ),
        };
        let last = self
            .last_state
            .as_ref()
            .and_then(|state| state.terminated.as_ref());
        let last_exit = last.or(ended).map(Ended::exit).unwrap_or_default();
        let problem = PodProblem {
            message: self.with_last_exit(cause, ended.is_some()),
            reason,
            container: self.name.clone(),
            restarts: u32::try_from(self.restart_count).unwrap_or(u32::MAX),
            last_exit,
            is_failing: rank == Rank::Fails,
        };
        Some((rank, problem))
    }

    /// Why a container that runs is not ready: the reason, and the words after its name.
    fn runs(&self, noun: &str) -> (&'static str, &'static str) {
        match (noun, self.started) {
            ("init container", _) => ("PodInitializing", "still runs"),
            (_, Some(false)) => ("StartupProbe", "runs; its startup probe has not succeeded yet"),
            _ => ("ReadinessProbe", "runs; its readiness probe does not succeed"),
        }
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
    fn reason_or(&self, otherwise: &str) -> String {
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty());
        reason.unwrap_or(otherwise).to_owned()
    }

    /// `exit code 137, OOMKilled`.
    fn exit(&self) -> String {
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
        format!("exit code {}{reason}", self.exit_code)
    }
}

/// Why a container waits.
fn waits(name: &str, waiting: &Ended) -> (Rank, String, String) {
    let reason = waiting.reason_or("Waiting");
    let message = waiting.message.as_deref();
    match reason.as_str() {
        "Waiting" => (
            Rank::Starts,
            reason,
            sentence([Some(name), Some("is waiting")], message),
        ),
        "ContainerCreating" | "PodInitializing" => {
            let cause = sentence([Some(name), Some(&reason)], message);
            (Rank::Starts, reason, cause)
        }
        // The message has only the names of the pod and of the container, and the time of the next start.
        "CrashLoopBackOff" => {
            let cause = sentence([Some(name), Some(&reason)], None);
            (Rank::Fails, reason, cause)
        }
        _ => {
            let cause = sentence([Some(name), Some(&reason)], message);
            (Rank::Fails, reason, cause)
        }
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

    fn problem(spec: &Value, status: &Value) -> Option<PodProblem> {
        pod_problem(&json!({"metadata": {"name": "web-1-a"}, "spec": spec, "status": status}).to_string())
    }

    fn message(spec: &Value, status: &Value) -> Option<String> {
        problem(spec, status).map(|problem| problem.message)
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
            let found = message(&json!({"nodeName": "n"}), &status);
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
            assert_eq!(message(&json!({}), &status).as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_reason_is_that_of_kubernetes_and_says_whether_someone_must_act() {
        let waiting =
            |reason: &str| container(&json!({"state": {"waiting": {"reason": reason}}, "restartCount": 4}));
        for (status, reason, is_failing, restarts) in [
            (waiting("ImagePullBackOff"), "ImagePullBackOff", true, 4),
            (waiting("CrashLoopBackOff"), "CrashLoopBackOff", true, 4),
            (
                waiting("CreateContainerConfigError"),
                "CreateContainerConfigError",
                true,
                4,
            ),
            (waiting("ContainerCreating"), "ContainerCreating", false, 4),
            (
                container(&json!({"state": {"terminated": {"exitCode": 1}}})),
                "Error",
                true,
                0,
            ),
            (
                container(&json!({"state": {"running": {}}})),
                "ReadinessProbe",
                false,
                0,
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted"}),
                "Evicted",
                true,
                0,
            ),
            (json!({"phase": "Pending"}), "NotStarted", false, 0),
        ] {
            let found = problem(&json!({"nodeName": "n"}), &status).expect("a problem");
            assert_eq!(
                (&*found.reason, found.is_failing, found.restarts),
                (reason, is_failing, restarts),
                "{status}"
            );
        }
    }

    #[test]
    fn a_pod_that_is_over_or_has_an_odd_status_is_no_error() {
        let node = json!({"nodeName": "n"});
        assert_eq!(message(&node, &json!({"phase": "Succeeded"})), None);
        assert_eq!(message(&node, &json!({"phase": "Running", "reason": 7})), None);
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(pod_problem(&deleting.to_string()), None);
        let long = container(&json!({"state": {"waiting": {"reason": "Odd", "message": "x".repeat(1_000)}}}));
        let cause = message(&node, &long).expect("a cause");
        assert!(cause.ends_with('…') && cause.chars().count() < 300, "{cause}");
    }
}
