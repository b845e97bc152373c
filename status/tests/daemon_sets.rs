//! The status of DaemonSets, by tables of nodes.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::{moment, timestamp};
use nodewise_proto::v1::{self, NodeState, RolloutState, UnitState, WorkloadMode};
use nodewise_status::{
    Controlled, Inputs, NodeFacts, PodFacts, TemplateFacts, UnreadyUnit, WorkloadFacts, changes_pods,
    of_controller,
};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// A rollout from revision `old` to `new`, which began ten minutes ago.
struct Rollout {
    workload: WorkloadFacts,
    nodes: Vec<v1::NodeExplanation>,
    pods: Vec<PodFacts>,
    numbers: v1::Rollout,
    actions: Vec<v1::Action>,
    refusal: Option<v1::Refusal>,
}

impl Rollout {
    fn new(strategy: &str) -> Self {
        let object = json!({
            "metadata": {"namespace": "logging", "name": "agent", "uid": "u", "managedFields": [
                {"manager": "kubectl", "subresource": "", "time": ago(700)},
                {"manager": "old-controller", "subresource": "status", "time": ago(900)},
                {"manager": "kube-controller-manager", "subresource": "status", "time": ago(3)},
            ]},
            "spec": {"updateStrategy": {"type": strategy}, "template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}},
        });
        Self {
            workload: WorkloadFacts::of("DaemonSet", &object.to_string()),
            nodes: Vec::new(),
            pods: Vec::new(),
            numbers: v1::Rollout {
                current_hash: "new".to_owned(),
                max_unavailable: 2,
                ..v1::Rollout::default()
            },
            actions: Vec::new(),
            refusal: None,
        }
    }

    /// Adds `count` nodes in a state. Each has a pod of `hash` with this status, unless the hash is empty.
    fn nodes(mut self, count: usize, state: NodeState, hash: &str, metadata: &Value, status: &Value) -> Self {
        for _ in 0..count {
            let number = self.nodes.len();
            let (node_name, pod_name) = (format!("n{number}"), format!("agent-{number}"));
            let mut object = json!({
                "metadata": {"name": pod_name, "uid": pod_name, "labels": {"controller-revision-hash": hash}},
                "spec": {"nodeName": node_name},
                "status": status,
            });
            let fields = object["metadata"].as_object_mut().expect("an object");
            fields.extend(metadata.as_object().expect("an object").clone());
            let facts = PodFacts::of(&object.to_string());
            let pod = v1::PodExplanation {
                pod_name,
                updated: hash == "new",
                ready: facts.ready,
                available: facts.ready,
                ..v1::PodExplanation::default()
            };
            self.nodes.push(v1::NodeExplanation {
                node_name,
                state: state.into(),
                should_run: state != NodeState::MustNotRun,
                pods: if hash.is_empty() { Vec::new() } else { vec![pod] },
                ..v1::NodeExplanation::default()
            });
            if !hash.is_empty() {
                self.pods.push(facts);
            }
        }
        self
    }

    fn done(self, count: usize) -> Self {
        let ready =
            json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(300)}]});
        self.nodes(
            count,
            NodeState::Runs,
            "new",
            &json!({"creationTimestamp": ago(310)}),
            &ready,
        )
    }

    fn waiting(self, count: usize) -> Self {
        let ready =
            json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(9_000)}]});
        self.nodes(
            count,
            NodeState::Waiting,
            "old",
            &json!({"creationTimestamp": ago(9_010)}),
            &ready,
        )
    }

    /// Nodes whose new pod waits for this reason for so many seconds.
    fn pending(self, count: usize, state: NodeState, reason: &str, seconds: i64) -> Self {
        let status = json!({
            "phase": "Pending",
            "containerStatuses": [{"name": "a", "ready": false, "restartCount": 2, "state": {"waiting": {"reason": reason}}}],
        });
        self.nodes(
            count,
            state,
            "new",
            &json!({"creationTimestamp": ago(seconds)}),
            &status,
        )
    }

    /// The status as every view shows it. The controller's is the same, as far as it goes.
    fn status(&self) -> v1::WorkloadStatus {
        let status = self.status_of_all();
        let (of_controller, _) = self.status_of_controller();
        assert_eq!(of_controller.state(), status.state());
        assert_eq!(
            of_controller.counts.map(|counts| counts.blocked),
            status.counts.map(|counts| counts.blocked)
        );
        assert_eq!(
            (of_controller.message, of_controller.stuck_since),
            (status.message.clone(), status.stuck_since)
        );
        let causes = |causes: &[v1::BlockCause]| -> Vec<_> {
            // A node without a pod has no name for the controller.
            let refused = |cause: &v1::BlockCause| cause.reason == "CreateRefused";
            let named = causes.iter().filter(|cause| !refused(cause)).cloned();
            named.collect()
        };
        assert_eq!(causes(&of_controller.causes), causes(&status.causes));
        status
    }

    /// The status as a controller computes it, from counts and from the pods that are not ready.
    fn status_of_controller(&self) -> (v1::WorkloadStatus, Option<Timestamp>) {
        let count = |states: &[NodeState]| {
            let nodes = self.nodes.iter().filter(|node| states.contains(&node.state()));
            u32::try_from(nodes.count()).expect("few")
        };
        let plan = self.plan();
        let controlled = Controlled {
            workload: v1::WorkloadReference {
                kind: "DaemonSet".to_owned(),
                ..v1::WorkloadReference::default()
            },
            desired: u32::try_from(self.nodes.iter().filter(|node| node.should_run).count()).expect("few"),
            done: count(&[NodeState::Runs]),
            unavailable: count(&[NodeState::NotAvailable, NodeState::Blocking]),
            outdated: count(&[NodeState::Waiting, NodeState::BeingReplaced]),
            missing: count(&[NodeState::Missing]),
            surplus: 0,
            is_paused: false,
            is_on_delete: self.workload.strategy == "OnDelete",
            is_recreate: false,
            moves: changes_pods(&plan),
            refusal: self.refusal.clone().filter(|refusal| {
                let newest = self.pods.iter().filter_map(|pod| pod.created).max();
                let at = refusal.at.and_then(moment);
                newest.is_none_or(|newest| at.is_some_and(|at| at >= newest))
            }),
        };
        let unready = self.pods.iter().filter(|pod| !pod.ready || pod.deleted.is_some());
        let unready = unready.map(|pod| UnreadyUnit {
            pod: pod.clone(),
            is_updated: pod.hash == "new",
            is_node: true,
        });
        of_controller(&controlled, &unready.collect::<Vec<_>>(), now())
    }

    fn plan(&self) -> v1::Plan {
        let batch = v1::Batch {
            actions: self.actions.clone(),
            confirm_workload: false,
        };
        v1::Plan {
            rollout: Some(self.numbers.clone()),
            phases: vec![v1::Phase {
                batches: vec![batch],
                ..v1::Phase::default()
            }],
            ..v1::Plan::default()
        }
    }

    fn status_of_all(&self) -> v1::WorkloadStatus {
        let template = |hash: &str, number: i64, seconds: i64| {
            let object = json!({
                "metadata": {"name": format!("agent-{hash}"), "labels": {"controller-revision-hash": hash},
                    "creationTimestamp": ago(seconds)},
                "revision": number,
                "data": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": format!("a:{number}")}]}}}},
            });
            TemplateFacts::of_revision(&object.to_string())
        };
        let plan = self.plan();
        let explanation = v1::ExplainResponse {
            nodes: self.nodes.clone(),
            workload: None,
        };
        let broken = NodeFacts::of(
            &json!({"metadata": {"name": "n0"}, "status": {"conditions": [
                {"type": "Ready", "status": "Unknown", "lastTransitionTime": ago(60)},
                {"type": "MemoryPressure", "status": "False"},
            ]}})
            .to_string(),
        );
        nodewise_status::of(&Inputs {
            workload: &self.workload,
            plan: &plan,
            explanation: &explanation,
            pods: &self.pods.iter().collect::<Vec<_>>(),
            node: &|name| (name == "n0").then_some(&broken),
            templates: &[template("old", 1, 9_000), template("new", 2, 600)],
            policies: &[],
            refusal: self.refusal.as_ref(),
            now: now(),
        })
    }
}

/// The state and the numbers of done, progressing, blocked and waiting nodes.
fn summary(status: &v1::WorkloadStatus) -> (RolloutState, [u32; 4]) {
    let counts = status.counts.expect("counts");
    let numbers = [counts.done, counts.progressing, counts.blocked, counts.waiting];
    let of_state = |state| status.nodes.iter().filter(move |node| node.unit_state() == state);
    // What an executor computes has no nodes.
    if status.nodes.is_empty() {
        return (status.state(), numbers);
    }
    let of_nodes = [
        UnitState::Done,
        UnitState::Progressing,
        UnitState::Blocked,
        UnitState::Waiting,
    ]
    .map(|state| u32::try_from(of_state(state).count()).expect("few"));
    assert_eq!(of_nodes, numbers, "each node says how it is counted");
    assert!(of_state(UnitState::Blocked).all(|node| !node.block_reason.is_empty()));
    (status.state(), numbers)
}

#[test]
fn the_state_is_that_of_the_nodes() {
    use NodeState::{BeingReplaced, Blocking, Missing, MustNotRun, NotAvailable};
    let rolling = || Rollout::new("RollingUpdate");
    let none = json!({});
    for (what, rollout, expected) in [
        (
            "all are new",
            rolling().done(3),
            (RolloutState::Complete, [3, 0, 0, 0]),
        ),
        (
            "a pod on a node that it must leave",
            rolling().done(3).nodes(1, MustNotRun, "old", &none, &none),
            (RolloutState::Complete, [3, 0, 0, 0]),
        ),
        (
            "new pods start",
            rolling()
                .done(1)
                .pending(2, Blocking, "ContainerCreating", 5)
                .waiting(3),
            (RolloutState::Progressing, [1, 2, 0, 3]),
        ),
        (
            "the image cannot be pulled",
            rolling()
                .done(1)
                .pending(2, Blocking, "ImagePullBackOff", 5)
                .waiting(3),
            (RolloutState::Stuck, [1, 0, 2, 3]),
        ),
        (
            "one fails, the other starts",
            rolling()
                .pending(1, Blocking, "ImagePullBackOff", 5)
                .pending(1, Blocking, "ContainerCreating", 5)
                .waiting(3),
            (RolloutState::Progressing, [0, 1, 1, 3]),
        ),
        (
            "a pod starts for four minutes",
            rolling()
                .done(5)
                .pending(1, NotAvailable, "ContainerCreating", 240),
            (RolloutState::Stuck, [5, 0, 1, 0]),
        ),
        (
            "a pod ends in time",
            rolling().done(1).nodes(
                1,
                BeingReplaced,
                "old",
                &json!({"deletionTimestamp": ago(-20)}),
                &none,
            ),
            (RolloutState::Progressing, [1, 1, 0, 0]),
        ),
        (
            "a pod does not end",
            rolling().done(1).nodes(
                1,
                BeingReplaced,
                "old",
                &json!({"deletionTimestamp": ago(90), "finalizers": ["x.io/y"]}),
                &none,
            ),
            (RolloutState::Stuck, [1, 0, 1, 0]),
        ),
        (
            "a node without a pod",
            rolling().done(1).nodes(1, Missing, "", &none, &none),
            (RolloutState::Progressing, [1, 1, 0, 0]),
        ),
        (
            "someone deletes the pods",
            Rollout::new("OnDelete").done(1).waiting(2),
            (RolloutState::WaitingForDelete, [1, 0, 0, 2]),
        ),
    ] {
        assert_eq!(summary(&rollout.status()), expected, "{what}");
    }
}

#[test]
fn a_plan_with_deletes_is_progress_although_pods_are_blocked() {
    let mut rollout = Rollout::new("RollingUpdate")
        .pending(1, NodeState::NotAvailable, "CrashLoopBackOff", 50)
        .waiting(2);
    assert_eq!(rollout.status().state(), RolloutState::Stuck);
    rollout.actions.push(v1::Action {
        kind: Some(v1::action::Kind::DeletePod(v1::DeletePod::default())),
        ..v1::Action::default()
    });
    let status = rollout.status();
    assert_eq!(status.state(), RolloutState::Progressing);
    assert_eq!(status.next, ["delete 1 pod"]);
}

#[test]
fn blocked_nodes_are_grouped_by_cause_with_their_first_time() {
    let status = Rollout::new("RollingUpdate")
        .pending(1, NodeState::Blocking, "CrashLoopBackOff", 100)
        .pending(1, NodeState::Blocking, "ImagePullBackOff", 50)
        .pending(2, NodeState::Blocking, "ImagePullBackOff", 70)
        .waiting(2)
        .status();
    let causes: Vec<_> = status
        .causes
        .iter()
        .map(|cause| (&*cause.reason, cause.units.join(" "), cause.restarts))
        .collect();
    assert_eq!(
        causes,
        [
            ("ImagePullBackOff", "n1 n2 n3".to_owned(), 2),
            ("CrashLoopBackOff", "n0".to_owned(), 2)
        ]
    );
    assert_eq!(
        status.causes[0].since,
        Some(timestamp(ago(70).parse().expect("a time")))
    );
    assert_eq!(
        status.stuck_since,
        Some(timestamp(ago(100).parse().expect("a time")))
    );
    assert_eq!(
        status.message,
        "4 nodes blocked for 100s, 2 nodes wait: container a: ImagePullBackOff"
    );
}

#[test]
fn a_refused_create_names_who_refused_it_until_a_pod_is_newer() {
    let none = json!({});
    let mut rollout = Rollout::new("RollingUpdate")
        .done(1)
        .nodes(2, NodeState::Missing, "", &none, &none);
    let time = |seconds| Some(timestamp(ago(seconds).parse().expect("a time")));
    let refused = |seconds| v1::Refusal {
        message: r#"pods "agent-x" is forbidden: exceeded quota: small"#.to_owned(),
        at: time(seconds),
        since: time(seconds + 100),
    };
    rollout.refusal = Some(refused(20));
    let status = rollout.status();
    assert_eq!(status.stuck_since, time(120));
    assert_eq!(summary(&status), (RolloutState::Stuck, [1, 0, 2, 0]));
    assert_eq!(status.causes[0].units, ["n1", "n2"]);
    assert!(
        status.message.contains("exceeded quota: small"),
        "{}",
        status.message
    );
    // The pod of n0 is 310 s old. What was refused before belongs to an earlier series.
    rollout.refusal = Some(v1::Refusal {
        since: time(5_000),
        ..refused(20)
    });
    assert_eq!(rollout.status_of_all().stuck_since, time(310));
    rollout.refusal = Some(refused(400));
    let status = rollout.status();
    assert_eq!(summary(&status), (RolloutState::Progressing, [1, 2, 0, 0]));
    assert_eq!(status.last_refusal, None);
}

#[test]
fn revisions_rate_conditions_and_writers_are_told() {
    let status = Rollout::new("RollingUpdate").done(4).waiting(4).status();
    let revisions: Vec<_> = status
        .revisions
        .iter()
        .map(|one| (one.number, one.is_current, one.pods, one.images.concat()))
        .collect();
    assert_eq!(
        revisions,
        [
            (2, true, 4, "a=a:2".to_owned()),
            (1, false, 4, "a=a:1".to_owned())
        ]
    );
    // Four in ten minutes, so four more take ten.
    assert!(
        (status.ready_per_minute - 0.4).abs() < 0.001,
        "{}",
        status.ready_per_minute
    );
    assert_eq!(status.time_left.map(|left| left.seconds), Some(600));
    let conditions: Vec<_> = status.nodes[0]
        .conditions
        .iter()
        .map(|one| (&*one.r#type, &*one.status))
        .collect();
    assert_eq!(conditions, [("Ready", "Unknown")]);
    let writers: Vec<_> = status.writers.iter().map(|writer| &*writer.manager).collect();
    assert_eq!(writers, ["kube-controller-manager", "old-controller"]);
    assert_eq!(status.mode(), WorkloadMode::Observe);
    // The other one wrote 15 minutes ago.
    assert_eq!(status.second_owner, [""; 0]);
}

#[test]
fn the_last_writer_and_the_annotation_tell_the_mode() {
    let asks = json!({"nodewise.dev/rollout": "managed"});
    for (manager, strategy, annotations, expected) in [
        ("", "OnDelete", &json!({}), WorkloadMode::Unspecified),
        (
            "kube-controller-manager",
            "OnDelete",
            &json!({}),
            WorkloadMode::Observe,
        ),
        (
            "kube-controller-manager",
            "OnDelete",
            &asks,
            WorkloadMode::Companion,
        ),
        (
            "kube-controller-manager",
            "RollingUpdate",
            &asks,
            WorkloadMode::Observe,
        ),
        ("nodewise-executor", "OnDelete", &asks, WorkloadMode::Own),
    ] {
        let writers = match manager {
            "" => json!([]),
            manager => json!([{"manager": manager, "subresource": "status", "time": ago(5)}]),
        };
        let object = json!({
            "metadata": {"name": "agent", "annotations": annotations, "managedFields": writers},
            "spec": {"updateStrategy": {"type": strategy}},
        });
        let facts = WorkloadFacts::of("DaemonSet", &object.to_string());
        assert_eq!(facts.mode, expected, "{manager} {strategy} {annotations}");
    }
}

#[test]
fn a_second_writer_is_told() {
    let mut rollout = Rollout::new("RollingUpdate").done(1);
    rollout.workload.writers[1].at = Some(timestamp(ago(60).parse().expect("a time")));
    let told = rollout.status().second_owner;
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("kube-controller-manager (3s ago) and old-controller (60s ago) write its status"),
        "{told:?}"
    );
}

// Kubelets that do not answer: each message names its node.
#[test]
fn pods_with_one_reason_are_one_cause() {
    let mut rollout = Rollout::new("RollingUpdate");
    for seconds in [100, 200, 200] {
        rollout = rollout.nodes(
            1,
            NodeState::BeingReplaced,
            "old",
            &json!({"deletionTimestamp": ago(seconds)}),
            &json!({}),
        );
    }
    let [cause] = &*rollout.status().causes else {
        panic!("one cause");
    };
    assert_eq!(cause.units, ["n0", "n1", "n2"]);
    assert!(
        cause.message.ends_with(" (and 2 other messages)"),
        "{}",
        cause.message
    );
}

// A controller gets no event when a pod becomes late.
#[test]
fn a_controller_knows_when_a_pod_becomes_late() {
    let none = json!({});
    let deleting = |seconds| json!({"deletionTimestamp": ago(seconds)});
    let rolling = || Rollout::new("RollingUpdate");
    let starts = |seconds| rolling().pending(1, NodeState::Blocking, "ContainerCreating", seconds);
    for (what, rollout, seconds) in [
        ("all are new", rolling().done(3), None),
        ("a pod starts", starts(5), Some(176)),
        ("it is late", starts(240), None),
        (
            "one starts, one fails",
            starts(5).pending(1, NodeState::Blocking, "ImagePullBackOff", 50),
            Some(131),
        ),
        (
            "a pod ends",
            rolling().nodes(1, NodeState::BeingReplaced, "old", &deleting(-20), &none),
            Some(51),
        ),
        (
            "it does not",
            rolling().nodes(1, NodeState::BeingReplaced, "old", &deleting(90), &none),
            None,
        ),
    ] {
        let (_, at) = rollout.status_of_controller();
        let expected = seconds.map(|seconds| now() + SignedDuration::from_secs(seconds));
        assert_eq!(at, expected, "{what}");
    }
}

// The plan may be older than what the watches have shown of the pods.
#[test]
fn pods_that_are_newer_than_the_counts_are_not_counted_twice() {
    let mut rollout = Rollout::new("RollingUpdate").pending(2, NodeState::Blocking, "ImagePullBackOff", 50);
    for node in &mut rollout.nodes {
        node.state = NodeState::Runs.into();
    }
    let (status, _) = rollout.status_of_controller();
    assert_eq!(summary(&status), (RolloutState::Complete, [2, 0, 0, 0]));
}

#[test]
fn a_workload_without_anything_is_no_error() {
    let nothing = WorkloadFacts::of("DaemonSet", "no JSON");
    let status = nodewise_status::of(&Inputs {
        workload: &nothing,
        plan: &v1::Plan::default(),
        explanation: &v1::ExplainResponse::default(),
        pods: &[],
        node: &|_| None,
        templates: &[],
        policies: &[],
        refusal: None,
        now: now(),
    });
    assert_eq!(status.state(), RolloutState::Complete);
}
