//! The status of a DaemonSet with a RolloutPolicy: where it comes from, and what it makes of the state of the rollout.

use jiff::Timestamp;
use nodewise_proto::v1::{self, NodeState, RolloutState, action};
use nodewise_status::{Inputs, NodeFacts, PolicyFacts, WorkloadFacts};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// The status of a policy whose rollout has this state.
fn of_state(state: &str) -> Value {
    json!({"targets": [{"name": "agent", "uid": "u", "state": state, "message": "it is so", "digest": "d",
        "updateRevision": {"hash": "new", "number": 2}, "stableRevision": {"hash": "old", "number": 1}}]})
}

/// What a status is made from: a workload, the written status of its policy, and the one that the next plan writes.
struct Case {
    annotations: Value,
    written: Value,
    planned: Option<Value>,
    nodes: Vec<v1::NodeExplanation>,
    /// Further fields of the spec of the policy.
    spec: Value,
    rollout: v1::Rollout,
    /// Whether the next plan deletes a pod.
    deletes: bool,
}

impl Case {
    fn written(status: Value) -> Self {
        Self {
            annotations: json!({}),
            written: status,
            planned: None,
            nodes: Vec::new(),
            spec: json!({}),
            rollout: v1::Rollout {
                current_hash: "new".to_owned(),
                ..v1::Rollout::default()
            },
            deletes: false,
        }
    }

    fn planned(self, status: Value) -> Self {
        Self {
            planned: Some(status),
            ..self
        }
    }

    /// Nodes with an available pod of the current revision, or with an old one.
    fn nodes(mut self, done: usize, waiting: usize) -> Self {
        let states = [(done, NodeState::Runs), (waiting, NodeState::Waiting)];
        for (count, state) in states {
            for _ in 0..count {
                self.nodes.push(v1::NodeExplanation {
                    node_name: format!("n{}", self.nodes.len()),
                    state: state.into(),
                    should_run: true,
                    ..v1::NodeExplanation::default()
                });
            }
        }
        self
    }

    fn status(&self) -> v1::WorkloadStatus {
        let workload = json!({
            "metadata": {"name": "agent", "namespace": "logging", "uid": "u", "annotations": self.annotations,
                "managedFields": [{"manager": "kube-controller-manager", "subresource": "status", "time": NOW}]},
            "spec": {"updateStrategy": {"type": "OnDelete"}},
        });
        let mut policy = json!({
            "metadata": {"name": "agents", "uid": "p"},
            "spec": {"targets": {"names": ["agent"]}, "stages": [
                {"name": "zones", "groupBy": "zone", "soak": "5m", "analysis": [{"name": "errors", "count": 3, "failureLimit": 1}]}]},
            "status": self.written,
        });
        for (field, value) in self.spec.as_object().expect("fields") {
            policy["spec"][field] = value.clone();
        }
        let patch = |status: &Value| v1::PatchObject {
            resource: Some(v1::GroupVersionResource {
                group: "nodewise.dev".to_owned(),
                version: "v1alpha1".to_owned(),
                resource: "rolloutpolicies".to_owned(),
            }),
            object: Some(v1::ObjectReference {
                name: "agents".to_owned(),
                uid: "p".to_owned(),
            }),
            subresource: "status".to_owned(),
            patch: json!({"status": status}).to_string().into(),
            ..v1::PatchObject::default()
        };
        let actions = self.planned.iter().map(|status| v1::Action {
            kind: Some(action::Kind::PatchObject(Box::new(patch(status)))),
            ..v1::Action::default()
        });
        let deletes = self.deletes.then(|| v1::Action {
            kind: Some(action::Kind::DeletePod(v1::DeletePod::default())),
            ..v1::Action::default()
        });
        let actions = actions.chain(deletes);
        let plan = v1::Plan {
            phases: vec![v1::Phase {
                batches: vec![v1::Batch {
                    actions: actions.collect(),
                    ..v1::Batch::default()
                }],
                ..v1::Phase::default()
            }],
            rollout: Some(self.rollout.clone()),
            ..v1::Plan::default()
        };
        let explanation = v1::ExplainResponse {
            nodes: self.nodes.clone(),
            workload: None,
        };
        let broken = json!({"metadata": {"name": "n0"}, "spec": {"unschedulable": true}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T09:00:00Z"}]}});
        let broken = NodeFacts::of(&broken.to_string());
        nodewise_status::of(&Inputs {
            workload: &WorkloadFacts::of("DaemonSet", &workload.to_string()),
            plan: &plan,
            explanation: &explanation,
            pods: &[],
            node: &|name| (name == "n0").then_some(&broken),
            templates: &[],
            policies: &[PolicyFacts::of(&policy.to_string())],
            refusal: None,
            now: now(),
        })
    }

    fn policy(&self) -> v1::PolicyRollout {
        self.status().policy.expect("a policy")
    }
}

#[test]
fn the_state_of_the_policy_is_one_of_the_rollout() {
    for (state, done, waiting, expected) in [
        ("Complete", 3, 0, RolloutState::Complete),
        // Every pod is there, and the last stage still soaks.
        ("Soaking", 3, 0, RolloutState::Progressing),
        ("Analyzing", 3, 0, RolloutState::Progressing),
        ("Paused", 1, 2, RolloutState::Paused),
        ("Rejected", 1, 2, RolloutState::Stuck),
        ("RolledBack", 0, 3, RolloutState::Stuck),
        ("ProgressDeadlineExceeded", 2, 1, RolloutState::Stuck),
        ("TooManyNodesNotReady", 2, 1, RolloutState::Stuck),
        ("AnalysisHeld", 2, 1, RolloutState::Stuck),
        ("Invalid", 3, 0, RolloutState::Stuck),
    ] {
        let status = Case::written(of_state(state)).nodes(done, waiting).status();
        assert_eq!(status.state(), expected, "{state}");
        let is_stuck = expected == RolloutState::Stuck;
        let has_cause = status.causes.iter().any(|cause| cause.reason == state);
        assert_eq!(has_cause, is_stuck, "{state}: {:?}", status.causes);
        let says = status.message.contains("RolloutPolicy agents: it is so");
        assert_eq!(says, expected != RolloutState::Complete, "{}", status.message);
    }
}

#[test]
fn the_next_plan_counts_before_the_written_status_but_not_beside_another_controller() {
    let mut case = Case::written(of_state("Soaking")).planned(of_state("RollingBack"));
    assert_eq!(case.policy().state, "RollingBack");
    case.annotations = json!({"nodewise.dev/rollout": "managed"});
    assert_eq!(case.policy().state, "Soaking");
}

#[test]
fn people_can_name_only_what_an_executor_wrote_about_the_present_template() {
    let mut rejected = of_state("Rejected");
    rejected["targets"][0]["rejectedRevision"] =
        json!({"hash": "new", "reason": "Requested", "digest": "of the plan"});
    // The rejection is found by this plan only.
    let found = Case::written(of_state("Progressing"))
        .planned(rejected.clone())
        .policy();
    let rejection = found.rejection.expect("a rejection");
    assert_eq!(
        (rejection.reason.as_str(), rejection.resume_digest.as_str()),
        ("Requested", "")
    );
    assert_eq!(found.rollback_digest, "d");
    let recorded = Case::written(rejected).policy();
    assert_eq!(
        recorded.rejection.expect("a rejection").resume_digest,
        "of the plan"
    );
    // The executor has not seen the new template.
    let mut earlier = of_state("Complete");
    earlier["targets"][0]["updateRevision"]["hash"] = json!("earlier");
    let begun = Case::written(earlier).planned(of_state("Progressing")).policy();
    assert_eq!(
        (begun.state.as_str(), begun.rollback_digest.as_str()),
        ("Progressing", "")
    );
    // Another DaemonSet had the name.
    let mut another = of_state("Soaking");
    another["targets"][0]["uid"] = json!("another");
    assert_eq!(Case::written(another).policy().state, "");
}

#[test]
fn l_24_evictions_that_a_budget_forbids_stay_beside_what_the_plan_knows() {
    let blocked = |node: &str, reason: &str| {
        let mut status = of_state("Progressing");
        status["targets"][0]["blocking"] = json!([{"node": node, "reason": reason}]);
        status
    };
    let protected = "a PodDisruptionBudget protects its pod: The disruption budget b needs 3 healthy pods";
    let case =
        Case::written(blocked("n1", protected)).planned(blocked("n2", "pod agent-2 is not available yet"));
    let nodes: Vec<_> = case
        .policy()
        .blocking
        .into_iter()
        .map(|node| (node.name, node.reason))
        .collect();
    assert_eq!(nodes[0].0, "n2");
    assert_eq!((nodes[1].0.as_str(), nodes[1].1.as_str()), ("n1", protected));
}

#[test]
fn waves_have_the_soak_and_the_checks_of_their_stage() {
    let mut status = of_state("Soaking");
    status["targets"][0]["stages"] = json!([
        {"name": "zones/a", "state": "Soaking", "nodes": 2, "updated": 2, "available": 2, "soakStartTime": "2026-01-01T11:58:00Z",
            "analysis": [{"name": "errors", "measurements": 1, "successful": 1, "value": "0.1"}]},
        {"name": "zones/b", "state": "Pending", "nodes": 3, "soakStartTime": "2026-01-01T11:58:00Z"},
    ]);
    let stages = Case::written(status).policy().stages;
    let ends = stages[0].soak_ends_at.expect("it ends");
    assert_eq!(
        nodewise_projection::moment(ends),
        "2026-01-01T12:03:00Z".parse().ok()
    );
    let check = &stages[0].checks[0];
    assert_eq!(
        (check.count, check.failure_limit, check.value.as_str()),
        (3, 1, "0.1")
    );
    assert!(stages[1].soak_ends_at.is_none(), "it does not soak");
}

#[test]
fn exempt_nodes_have_their_own_conditions() {
    let mut case = Case::written(of_state("Progressing")).nodes(0, 120);
    for node in &mut case.nodes {
        node.rollout_exempt = true;
        node.rollout_stage = "zones/a".to_owned();
    }
    let status = case.status();
    let policy = status.policy.expect("a policy");
    assert_eq!(policy.exempt[0].reason, "Ready is Unknown for 3h, cordoned");
    assert_eq!((policy.exempt.len(), policy.more_exempt), (100, 20));
    assert_eq!(status.nodes[0].rollout_stage, "zones/a");
    assert!(status.nodes[0].rollout_exempt);
}

/// A rollout whose stage has begun: two nodes are done, one waits, and the pace began nodes at these times.
fn begun(state: &str, pace: &[(&str, u32)]) -> Case {
    let mut status = of_state(state);
    let target = &mut status["targets"][0];
    target["desired"] = json!(30);
    target["stages"] = json!([
        {"name": "zones/a", "state": "Progressing", "nodes": 3, "startTime": "2026-01-01T11:50:00Z"},
        {"name": "zones/b", "state": "Pending", "nodes": 3},
    ]);
    let begun = pace
        .iter()
        .map(|(time, nodes)| json!({"time": time, "nodes": nodes}));
    target["pace"] = begun.collect();
    let mut case = Case::written(status).nodes(2, 1);
    case.rollout = v1::Rollout {
        max_unavailable: 2,
        unavailable: 1,
        ..case.rollout
    };
    for node in &mut case.nodes {
        "zones/a".clone_into(&mut node.rollout_stage);
    }
    case
}

const USED_UP: &str = "it is so; the budget is used up: 2 nodes without an available pod, and maxUnavailable is 2 here; the next node follows as soon as \
     they are fewer";

#[test]
fn a_stage_that_waits_for_its_budget_says_so_with_numbers() {
    let message = |case: &Case| case.policy().message;
    let mut case = begun("Progressing", &[]);
    assert_eq!(message(&case), "it is so", "there is budget left");
    case.rollout.unavailable = 2;
    assert_eq!(message(&case), USED_UP);
    assert!(
        case.status().message.contains(USED_UP),
        "{}",
        case.status().message
    );
    case.deletes = true;
    assert_eq!(message(&case), "it is so", "it goes on");
    case.deletes = false;
    // A node of a stage that has not begun waits for that, and a node that is done for nothing.
    "zones/b".clone_into(&mut case.nodes[2].rollout_stage);
    assert_eq!(message(&case), "it is so");
    let mut case = begun("Soaking", &[]);
    case.rollout.unavailable = 2;
    assert_eq!(message(&case), "it is so", "only nodes of the partition wait");
    let mut case = begun("Progressing", &[]);
    (
        case.rollout.max_unavailable,
        case.rollout.max_surge,
        case.rollout.surging,
    ) = (0, 1, 1);
    let said = message(&case);
    assert!(
        said.contains("1 node with two pods, and maxSurge is 1 here"),
        "{said}"
    );
}

#[test]
fn a_pace_that_is_used_up_says_when_it_goes_on() {
    let spec = json!({"pace": {"nodes": 20, "interval": "10m"}});
    let of = |pace: &[(&str, u32)]| {
        let mut case = begun("Progressing", pace);
        case.spec = spec.clone();
        case.policy().message
    };
    let [old, first, second] = [
        "2026-01-01T11:49:59Z",
        "2026-01-01T11:52:30.5Z",
        "2026-01-01T11:58:00Z",
    ];
    assert_eq!(of(&[]), "it is so");
    assert_eq!(of(&[(first, 12), (second, 7)]), "it is so", "one more may begin");
    assert_eq!(
        of(&[(old, 12), (second, 8)]),
        "it is so",
        "the first ones are too long ago"
    );
    assert_eq!(
        of(&[(old, 9), (first, 12), (second, 8)]),
        "it is so; the pace allows 20 nodes in 10m, and so many have begun; the next ones may begin at 2026-01-01T12:02:30Z"
    );
    // Both may hold it.
    let mut case = begun("ProgressDeadlineExceeded", &[(first, 20)]);
    case.spec = spec.clone();
    case.rollout.unavailable = 2;
    let said = case.policy().message;
    assert!(
        said.contains("the budget is used up") && said.contains("12:02:30Z"),
        "{said}"
    );
}

#[test]
fn what_holds_a_rollout_says_what_lets_it_go_on() {
    let mut case = begun("TooManyNodesNotReady", &[]);
    case.spec = json!({"nodes": {"maxExempt": "5%"}});
    let goes_on = |most| format!("it is so; the rollout goes on by itself when at most {most} are");
    assert_eq!(case.policy().message, goes_on(2));
    case.spec = json!({});
    assert_eq!(case.policy().message, goes_on(3), "10% of 30 is the default");
    for (inconclusive, expected) in [
        (1, "`nodewise rollout resume` makes it go on"),
        (0, "is made again each interval"),
    ] {
        let mut case = begun("AnalysisHeld", &[]);
        case.written["targets"][0]["stages"][0]["analysis"] =
            json!([{"name": "errors", "inconclusive": inconclusive, "errors": 5}]);
        let said = case.policy().message;
        assert!(said.contains(expected), "{said}");
        case.spec = json!({"stages": [{"name": "zones", "groupBy": "zone",
            "analysis": [{"name": "errors", "inconclusiveLimit": 1}]}]});
        let said = case.policy().message;
        assert!(
            said.contains("is made again each interval"),
            "within its limit: {said}"
        );
    }
}
