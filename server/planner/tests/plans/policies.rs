//! Plans of DaemonSets with a RolloutPolicy. The rules of the decision alone have tables in src/rollout/tests.

use std::{collections::BTreeSet, time::Duration};

use nodewise_planner::{
    plan::{ActionKind, PhaseKind, Plan, Reason, Verdict},
    report::OutcomeResult,
    rollout::{
        Disruption, OnFailure, Pace, Policy, Requests, Spec, Stage, Targets, Unadmitted,
        status::{PolicyStatus, StageStatus, State, TargetStatus},
    },
    snapshot::{BlockedEviction, IntOrString, Labels, Pod, PodPhase, Scope, Selector, Target},
};
use serde_json::Value;

use crate::support::{
    Cluster, HASH_LABEL, actions, apply::phases, at, counts, node, pod_changes, reasons, taint,
};

mod failures;
mod which_counts;

/// A policy for `foo` that updates `canaries` nodes first.
fn canary_first(canaries: i32) -> Policy {
    policy(Spec {
        stages: vec![Stage {
            name: "canary".to_owned(),
            replicas: Some(IntOrString::Int(canaries)),
            soak: Duration::from_mins(1),
            ..Stage::default()
        }],
        ..Spec::default()
    })
}

fn policy(spec: Spec) -> Policy {
    Policy {
        name: "agents".to_owned(),
        uid: "uid-of-agents".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        created: Some(at(0)),
        deleting: false,
        requests: Requests::default(),
        targets: Some(Targets::Names(vec!["foo".to_owned()])),
        spec: Ok(spec),
        status: PolicyStatus::default(),
    }
}

/// A cluster on whose nodes the first template runs, with this policy. The policy knows the stable revision.
fn running(nodes: usize, policy: Policy) -> Cluster {
    let mut cluster = Cluster::new(nodes).rolling("2", "0");
    for index in 0..nodes {
        cluster.pod(&format!("first-{index}@node-{index} new ready t=10"));
    }
    cluster.sync();
    cluster.ds.rollout.policies = vec![policy];
    cluster.sync();
    assert_eq!(state(&cluster), State::Complete);
    cluster
}

/// [`running`], and then the template changes.
fn changed(nodes: usize, policy: Policy) -> Cluster {
    let mut cluster = running(nodes, policy);
    cluster.change_template("img:2");
    cluster
}

fn state(cluster: &Cluster) -> State {
    cluster.ds.rollout.policies[0].status.targets[0].state
}

/// Syncs often; pods become ready, and five seconds pass each time.
fn run(cluster: &mut Cluster, syncs: usize) {
    for _ in 0..syncs {
        cluster.sync();
        cluster.all_ready();
        cluster.now += Duration::from_secs(5);
    }
}

/// How many live pods there are of the first template, and of the second one.
fn of_each(cluster: &Cluster) -> [usize; 2] {
    let hash = |number: i64| {
        let revision = cluster
            .revisions
            .iter()
            .find(|revision| revision.number == number);
        revision
            .and_then(|revision| revision.labels.get(HASH_LABEL))
            .unwrap_or("none")
            .to_owned()
    };
    [1, 2].map(|number| {
        let pods = cluster.pods.iter().filter(|pod| !pod.deleting);
        pods.filter(|pod| pod.labels.get(HASH_LABEL) == Some(&hash(number)))
            .count()
    })
}

fn image(plan: &Plan) -> String {
    let manifest = plan.pod_manifest.as_ref().expect("the plan creates pods");
    let pod: Value = serde_json::from_slice(&manifest.json).expect("JSON");
    pod["spec"]["containers"][0]["image"]
        .as_str()
        .expect("an image")
        .to_owned()
}

fn is_on(pod: &Pod, node: &str) -> bool {
    matches!(&pod.target, Target::Bound(name) | Target::Meant(name) if name == node)
}

#[test]
fn a_rollout_goes_stage_by_stage() {
    let mut cluster = changed(6, canary_first(1));
    run(&mut cluster, 4);
    assert_eq!((of_each(&cluster), state(&cluster)), ([5, 1], State::Soaking));
    // L-14: the soak takes a minute.
    run(&mut cluster, 12);
    assert_eq!(state(&cluster), State::Progressing);
    run(&mut cluster, 20);
    assert_eq!((of_each(&cluster), state(&cluster)), ([0, 6], State::Complete));
    let reasons: Vec<_> = cluster.events.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(
        reasons,
        [
            "RolloutStageStarted",
            "RolloutStageComplete",
            "RolloutStageStarted",
            "RolloutStageComplete"
        ]
    );
    let plan = cluster.plan();
    assert_eq!(
        (plan.verdict, plan.policy_uids),
        (Verdict::Noop, vec!["uid-of-agents".to_owned()])
    );
}

// The plan records a stage before it touches its nodes: if the write fails, nothing is deleted.
#[test]
fn what_a_rollout_does_is_recorded_before_it_is_done() {
    let mut cluster = changed(6, canary_first(1));
    let plan = cluster.plan();
    let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(
        kinds,
        [
            PhaseKind::Revisions,
            PhaseKind::RolloutPolicies,
            PhaseKind::Deletes,
            PhaseKind::Status
        ]
    );
    let outcomes = cluster.apply_with(&plan, &mut |action| match &action.kind {
        ActionKind::PatchObject { .. } => OutcomeResult::Failed,
        _ => OutcomeResult::Succeeded,
    });
    assert_eq!(outcomes[2].result, OutcomeResult::Skipped);
    assert_eq!(of_each(&cluster), [6, 0]);
}

#[test]
fn l_6_pods_that_are_missing_get_the_stable_revision_where_the_update_is_not_admitted() {
    let mut cluster = changed(6, canary_first(1));
    run(&mut cluster, 3);
    let canary = cluster
        .pods
        .iter()
        .find(|pod| !pod.name.starts_with("first"))
        .expect("a canary");
    let canary = canary.target.node().expect("a node").to_owned();
    // A new node, and one that lost its pod.
    cluster.nodes.push(node("node-9", &[]));
    let lost = cluster
        .pods
        .iter()
        .position(|pod| pod.name.starts_with("first"))
        .expect("an old pod");
    cluster.pods.remove(lost);
    let plan = cluster.plan();
    assert_eq!((counts(&plan), image(&plan).as_str()), ((2, 0), "img:1"));
    cluster.sync();
    assert_eq!(of_each(&cluster), [6, 1]);
    // The canary's pod is of the update revision again. Pods of both revisions need two plans.
    cluster.pods.retain(|pod| pod.target.node() != Some(&canary));
    cluster.nodes.push(node("node-8", &[]));
    let plan = cluster.plan();
    assert_eq!((counts(&plan), image(&plan).as_str()), ((1, 0), "img:1"));
    assert_eq!(
        plan.requeue.as_ref().map(|requeue| requeue.delay),
        Some(Duration::ZERO)
    );
    cluster.sync();
    let plan = cluster.plan();
    assert_eq!((counts(&plan), image(&plan).as_str()), ((1, 0), "img:2"));

    // `unadmitted: Update` is as without a policy.
    let mut cluster = changed(6, canary_first(1));
    if let Ok(spec) = &mut cluster.ds.rollout.policies[0].spec {
        spec.unadmitted = Unadmitted::Update;
    }
    cluster.sync();
    cluster.nodes.push(node("node-9", &[]));
    assert_eq!(image(&cluster.plan()), "img:2");
}

#[test]
fn l_7_the_stable_revision_is_never_cleaned_up() {
    let mut cluster = changed(
        3,
        policy(Spec {
            paused: true,
            ..Spec::default()
        }),
    );
    cluster.ds.revision_history_limit = Some(0);
    cluster.sync();
    // No pod has the stable revision any more.
    cluster.pods.clear();
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Cleanup).len(), 0);
    assert_eq!(image(&plan), "img:1", "L-8: missing pods of a paused rollout");
    cluster.ds.rollout.policies.clear();
    assert_eq!(actions(&cluster.plan(), PhaseKind::Cleanup).len(), 1);
}

#[test]
fn l_8_a_paused_policy_replaces_nothing() {
    let mut cluster = changed(
        4,
        policy(Spec {
            paused: true,
            ..Spec::default()
        }),
    );
    run(&mut cluster, 5);
    assert_eq!((of_each(&cluster), state(&cluster)), ([4, 0], State::Paused));
    // A failed pod comes back from the stable revision.
    cluster.pods[0].phase = nodewise_planner::snapshot::PodPhase::Failed;
    cluster.pods[0].ready = false;
    run(&mut cluster, 5);
    assert_eq!(of_each(&cluster), [4, 0]);
}

#[test]
fn l_11_changes_of_the_template_never_add_up() {
    let mut cluster = changed(9, policy(Spec::default()));
    for image in ["img:3", "img:4", "img:5", "img:6"] {
        // No pod becomes ready.
        for _ in 0..3 {
            cluster.sync();
        }
        let down = 9 - cluster
            .pods
            .iter()
            .filter(|pod| pod.ready && !pod.deleting)
            .count();
        assert!(down <= 2, "{down} nodes without an available pod");
        cluster.change_template(image);
    }
}

#[test]
fn l_17_a_stage_may_lower_the_budget_and_never_raises_it() {
    for (limit, own, deleted) in [("1", "2", 1), ("50%", "2", 2), ("10%", "4", 1), ("3", "10%", 1)] {
        let mut policy = canary_first(9);
        let limit = limit
            .parse()
            .map_or_else(|_| IntOrString::String(limit.to_owned()), IntOrString::Int);
        if let Ok(spec) = &mut policy.spec {
            spec.stages[0].max_unavailable = Some(limit.clone());
        }
        let cluster = changed(9, policy).rolling(own, "0");
        assert_eq!(counts(&cluster.plan()), (0, deleted), "{limit:?} of {own}");
    }
    // With OnDelete the stage has the only limit, or one node at a time.
    for (limit, deleted) in [(Some(3), 3), (None, 1)] {
        let mut policy = canary_first(9);
        if let Ok(spec) = &mut policy.spec {
            spec.stages[0].max_unavailable = limit.map(IntOrString::Int);
        }
        let cluster = changed(9, policy).on_delete();
        assert_eq!(counts(&cluster.plan()), (0, deleted), "{limit:?}");
    }
}

#[test]
fn l_17_the_surge_of_a_stage() {
    let mut policy = canary_first(4);
    if let Ok(spec) = &mut policy.spec {
        spec.stages[0].max_surge = Some(IntOrString::Int(1));
    }
    let mut cluster = changed(6, policy).rolling("0", "3");
    let plan = cluster.plan();
    assert_eq!(
        (counts(&plan), reasons(&plan, PhaseKind::Creates)),
        ((1, 0), vec![Reason::SurgeWithinBudget])
    );
    run(&mut cluster, 12);
    assert_eq!((of_each(&cluster), state(&cluster)), ([2, 4], State::Soaking));
}

#[test]
fn l_18_the_pace_is_recorded_with_the_first_delete() {
    let mut cluster = changed(
        6,
        policy(Spec {
            pace: Some(Pace {
                nodes: 1,
                interval: Duration::from_mins(1),
            }),
            ..Spec::default()
        }),
    );
    assert_eq!(counts(&cluster.plan()), (0, 1), "maxUnavailable is 2");
    run(&mut cluster, 12);
    assert_eq!(of_each(&cluster), [5, 1]);
    run(&mut cluster, 1);
    assert_eq!(of_each(&cluster), [4, 1], "one more is being replaced");
}

// The apiserver may refuse the pods of one revision, and must get those of the other one all the same.
#[test]
fn pods_of_two_revisions_take_turns() {
    let mut cluster = changed(6, canary_first(2));
    run(&mut cluster, 4);
    assert_eq!(of_each(&cluster), [4, 2]);
    cluster.pods.retain(|pod| {
        let node = ["node-0", "node-1", "node-2", "node-3", "node-4", "node-5"];
        !node.iter().any(|node| is_on(pod, node))
    });
    let images: BTreeSet<String> = (0..4)
        .map(|turn| {
            cluster.now += Duration::from_secs(turn * 4);
            image(&cluster.plan())
        })
        .collect();
    assert_eq!(images.into_iter().collect::<Vec<_>>(), ["img:1", "img:2"]);
}

// L-34: another executor, or the same one after a restart, goes on where the last one was: all that it needs is in the objects.
#[test]
fn l_34_everything_is_remembered_in_the_status() {
    let mut cluster = changed(6, canary_first(2));
    for step in 0..40 {
        let remembered = cluster.plan();
        cluster.state = nodewise_planner::snapshot::State::default();
        let forgotten = cluster.plan();
        assert_eq!(forgotten.phases, remembered.phases, "step {step}");
        run(&mut cluster, 1);
    }
    assert_eq!((of_each(&cluster), state(&cluster)), ([0, 6], State::Complete));
}

#[test]
fn l_36_the_status_says_what_kubectl_prints_and_waits_for() {
    let mut cluster = changed(6, canary_first(2));
    run(&mut cluster, 4);
    let status = &cluster.ds.rollout.policies[0].status;
    let summary = status.summary.as_ref().expect("a summary");
    assert_eq!(
        [&summary.target, &summary.stage, &summary.updated, &summary.state],
        ["foo", "canary", "2/6", "Soaking"]
    );
    let conditions = status.conditions.iter();
    let conditions: Vec<_> = conditions
        .map(|condition| {
            (
                condition.r#type.as_str(),
                condition.status.as_str(),
                condition.reason.as_str(),
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            ("Accepted", "True", "Accepted"),
            ("Progressing", "True", "Soaking"),
            ("Available", "True", "MinimumNodesAvailable"),
            ("RolledBack", "False", "NotNeeded"),
        ]
    );
    let canary = &status.targets[0].stages[0];
    assert_eq!([canary.nodes, canary.updated, canary.available], [2, 2, 2]);
    assert_eq!(
        (status.observed_generation, status.targets[0].stages.len()),
        (1, 2)
    );
    // L-37: each transition is an Event.
    assert_eq!(
        cluster.events.last().map(|(reason, _)| *reason),
        Some("RolloutStageStarted")
    );
    // Nothing is written as long as nothing changes.
    cluster.now += Duration::from_secs(3);
    cluster.sync();
    cluster.now += Duration::from_secs(3);
    assert_eq!(cluster.plan().verdict, Verdict::Noop);
}

#[test]
fn l_41_explain_says_what_each_node_waits_for() {
    let mut cluster = changed(6, canary_first(1));
    run(&mut cluster, 4);
    let nodes = nodewise_planner::daemonset::explain(&cluster.snapshot(), None);
    let stages: Vec<_> = nodes.iter().map(|node| node.rollout_stage.as_str()).collect();
    assert_eq!(
        stages.iter().filter(|stage| **stage == "canary").count(),
        1,
        "{stages:?}"
    );
    assert_eq!(
        stages.iter().filter(|stage| **stage == "(others)").count(),
        5,
        "{stages:?}"
    );
    let waiting = nodes
        .iter()
        .find(|node| node.rollout_stage == "(others)")
        .expect("a node");
    assert_eq!(
        waiting.rule,
        nodewise_planner::daemonset::explain::Rule::RolloutPolicy
    );
    let message = &waiting.message;
    assert!(
        message.contains("its stage (others) has not begun; stage canary soaks until"),
        "{message}"
    );
    let canary = nodes
        .iter()
        .find(|node| node.rollout_stage == "canary")
        .expect("the canary");
    assert!(canary.pods[0].updated && canary.pods[0].available);
}
