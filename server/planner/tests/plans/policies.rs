//! Plans of DaemonSets with a RolloutPolicy. The rules of the decision alone have tables in src/rollout/tests.rs.

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

#[test]
fn l_19_nodes_without_an_available_pod_come_first_and_then_the_oldest() {
    let mut policy = policy(Spec {
        order: nodewise_planner::rollout::Order::OldestPod,
        ..Spec::default()
    });
    if let Ok(spec) = &mut policy.spec {
        spec.failure_threshold = IntOrString::Int(10);
    }
    let mut cluster = changed(4, policy).rolling("2", "0");
    cluster.pods[3].created = Some(at(1));
    cluster.pods[1].ready = false;
    let plan = cluster.plan();
    assert_eq!(pod_changes(&plan).1, ["first-1", "first-3"]);
    assert_eq!(
        reasons(&plan, PhaseKind::Deletes),
        [Reason::RolloutOldUnavailable, Reason::RolloutWithinBudget]
    );
}

#[test]
fn l_20_a_dead_node_does_not_hold_the_rollout_up_and_does_not_use_the_budget() {
    let mut cluster = changed(12, policy(Spec::default())).rolling("1", "0");
    cluster.nodes[5].ready = Some(false);
    cluster.nodes[5].ready_since = Some(at(20));
    cluster.pods[5].ready = false;
    run(&mut cluster, 40);
    assert_eq!((of_each(&cluster), state(&cluster)), ([1, 11], State::Complete));
    // It gets its turn when it is ready again.
    cluster.nodes[5].ready = Some(true);
    cluster.all_ready();
    run(&mut cluster, 4);
    assert_eq!(of_each(&cluster), [0, 12]);
    // Without the policy it would use up the budget.
    let mut plain = changed(12, policy(Spec::default())).rolling("1", "0");
    plain.ds.rollout.policies.clear();
    plain.pods[5].ready = false;
    assert_eq!(pod_changes(&plain.plan()).1, ["first-5"]);
}

// L-28: a dead node neither holds up the way back nor is it touched.
#[test]
fn l_20_a_dead_node_does_not_hold_a_rollback_up() {
    let mut cluster = changed(12, canary_first(3)).rolling("1", "0");
    cluster.nodes[5].ready = Some(false);
    cluster.nodes[5].ready_since = Some(at(20));
    cluster.pods[5].ready = false;
    run(&mut cluster, 12);
    assert_eq!(of_each(&cluster), [9, 3]);
    let digest = cluster.ds.rollout.policies[0].status.targets[0].digest.clone();
    cluster.ds.rollout.policies[0].requests.rollback = Some(digest);
    run(&mut cluster, 20);
    assert_eq!((of_each(&cluster), state(&cluster)), ([12, 0], State::RolledBack));
    assert!(
        cluster
            .pods
            .iter()
            .any(|pod| pod.uid == "uid-first-5" || pod.name == "first-5"),
        "it keeps its pod"
    );
}

/// Makes a node not ready, with the taint that Kubernetes gives it then and that most DaemonSets do not tolerate.
fn fall_ill(cluster: &mut Cluster, node: usize) {
    let now = cluster.now;
    let ill = &mut cluster.nodes[node];
    (ill.ready, ill.ready_since) = (Some(false), Some(now));
    ill.taints = vec![taint("node.kubernetes.io/not-ready=:NoSchedule")];
    let name = ill.name.clone();
    let pods = cluster.pods.iter_mut();
    for pod in pods.filter(|pod| is_on(pod, &name)) {
        (pod.ready, pod.ready_since) = (false, Some(now));
    }
}

fn is_on(pod: &Pod, node: &str) -> bool {
    matches!(&pod.target, Target::Bound(name) | Target::Meant(name) if name == node)
}

/// Syncs often; pods become ready on nodes that are ready, and five seconds pass each time.
fn run_with_ill_nodes(cluster: &mut Cluster, syncs: usize) {
    for _ in 0..syncs {
        cluster.sync();
        let now = cluster.now;
        let ready = cluster.nodes.iter().filter(|node| node.ready == Some(true));
        for pod in cluster.pods.iter_mut().filter(|pod| !pod.ready) {
            if ready.clone().any(|node| is_on(pod, &node.name)) {
                (pod.phase, pod.ready, pod.ready_since) = (PodPhase::Running, true, Some(now));
            }
        }
        cluster.now += Duration::from_secs(5);
    }
}

#[test]
fn l_20_a_tainted_node_does_not_use_the_budget_and_counts_as_exempt() {
    let mut cluster = changed(12, policy(Spec::default())).rolling("1", "0");
    fall_ill(&mut cluster, 5);
    run_with_ill_nodes(&mut cluster, 40);
    assert_eq!((of_each(&cluster), state(&cluster)), ([1, 11], State::Complete));
    // Two of twelve may be exempt.
    let mut cluster = changed(12, policy(Spec::default())).rolling("1", "0");
    (3..6).for_each(|node| fall_ill(&mut cluster, node));
    run_with_ill_nodes(&mut cluster, 10);
    assert_eq!(
        (of_each(&cluster), state(&cluster)),
        ([12, 0], State::TooManyNodesNotReady)
    );
}

#[test]
fn l_21_a_tainted_node_that_was_updated_stops_the_rollout_and_fails() {
    let mut canary = canary_first(1);
    if let Ok(spec) = &mut canary.spec {
        spec.on_failure = OnFailure::Pause;
    }
    let mut cluster = changed(6, canary);
    cluster.sync();
    run_with_ill_nodes(&mut cluster, 2);
    assert_eq!(of_each(&cluster), [5, 1]);
    let updated = (0..6).find(|index| {
        let name = format!("node-{index}");
        let mut here = cluster.pods.iter().filter(|pod| is_on(pod, &name));
        here.all(|pod| pod.name != format!("first-{index}"))
    });
    fall_ill(&mut cluster, updated.expect("the canary"));
    run_with_ill_nodes(&mut cluster, 20);
    assert_eq!((of_each(&cluster), state(&cluster)), ([5, 1], State::Progressing));
    // After the deadline of ten minutes it has failed.
    run_with_ill_nodes(&mut cluster, 120);
    assert_eq!((of_each(&cluster), state(&cluster)), ([5, 1], State::Rejected));
}

#[test]
fn l_24_evictions_and_what_a_budget_does_not_allow() {
    let mut policy = canary_first(6);
    if let Ok(spec) = &mut policy.spec {
        spec.disruption = Disruption::Evict;
    }
    let mut cluster = changed(6, policy).rolling("1", "0");
    let plan = cluster.plan();
    let evicted = actions(&plan, PhaseKind::Deletes);
    let ActionKind::EvictPod { pod, .. } = &evicted[0].kind else {
        panic!("{evicted:?}");
    };
    let (name, uid) = (pod.name.clone(), pod.uid.clone());
    let outcomes = cluster.apply_with(&plan, &mut |action| match &action.kind {
        ActionKind::EvictPod { .. } => OutcomeResult::Blocked,
        _ => OutcomeResult::Succeeded,
    });
    // The outcome is no failure; the executor notes it, and plans again at once.
    let options = cluster.options.clone();
    cluster.state = nodewise_planner::report::fold(cluster.state.clone(), &outcomes, &options);
    assert_eq!(cluster.state.expectations, None);
    let again = nodewise_planner::report::come_back(&outcomes, None, None);
    assert_eq!((again.backoff, again.after), (false, Some(Duration::ZERO)));
    cluster.state.blocked_evictions = vec![BlockedEviction {
        pod_uid: uid,
        message: "the disruption budget agent needs 6 healthy pods".to_owned(),
        retry_at: cluster.now + Duration::from_secs(10),
        attempts: 1,
    }];
    let plan = cluster.plan();
    let (_, deletes) = pod_changes(&plan);
    assert!(
        deletes.len() == 1 && deletes[0] != name,
        "another node is next: {deletes:?}"
    );
    // Counts and blocking nodes are written every two seconds.
    cluster.now += Duration::from_secs(2);
    cluster.sync();
    let blocking = &cluster.ds.rollout.policies[0].status.targets[0].blocking;
    assert!(
        blocking
            .iter()
            .any(|node| node.reason.contains("needs 6 healthy pods")),
        "{blocking:?}"
    );
    // Asked for again in time, and dropped when the pod is gone.
    cluster.now += Duration::from_secs(20);
    run(&mut cluster, 40);
    assert_eq!(of_each(&cluster), [0, 6]);
    assert!(cluster.state.blocked_evictions.is_empty());
}

#[test]
fn l_28_a_rejected_revision_goes_back_and_the_spec_stays() {
    let mut spec = canary_first(2).spec.expect("a spec");
    spec.progress_deadline = Duration::from_secs(30);
    let mut cluster = changed(8, policy(spec));
    let before = cluster.ds.template.clone();
    for _ in 0..12 {
        cluster.sync();
        cluster.now += Duration::from_secs(5);
    }
    // Unavailable pods of the rejected revision go at once.
    assert_eq!(of_each(&cluster), [8, 0]);
    assert!(
        cluster
            .events
            .iter()
            .any(|(reason, _)| *reason == "RolloutRollingBack")
    );
    run(&mut cluster, 6);
    assert_eq!((of_each(&cluster), state(&cluster)), ([8, 0], State::RolledBack));
    assert_eq!(cluster.ds.template, before);
    assert_eq!(
        cluster.ds.status.updated_number_scheduled, 0,
        "the counts are about the present template"
    );
    assert_eq!(cluster.ds.status.number_available, 8);
    // New nodes get the stable revision, and nothing else happens.
    cluster.nodes.push(node("node-9", &[]));
    assert_eq!(image(&cluster.plan()), "img:1");
    run(&mut cluster, 4);
    assert_eq!(cluster.plan().verdict, Verdict::Noop);
    assert!(
        cluster
            .events
            .iter()
            .any(|(reason, _)| *reason == "RolloutRolledBack")
    );
}

#[test]
fn l_28_available_pods_go_back_within_the_budget() {
    let mut cluster = changed(8, canary_first(5));
    run(&mut cluster, 10);
    assert_eq!((of_each(&cluster), state(&cluster)), ([3, 5], State::Soaking));
    let digest = cluster.ds.rollout.policies[0].status.targets[0].digest.clone();
    cluster.ds.rollout.policies[0].requests.rollback = Some(digest);
    cluster.sync();
    let plan = cluster.plan();
    assert_eq!(reasons(&plan, PhaseKind::Deletes), [Reason::RevisionRejected; 2]);
    let first = actions(&plan, PhaseKind::Deletes)[0].message.clone();
    assert!(first.contains("has a rejected revision (slot 1 of 2)"), "{first}");
    run(&mut cluster, 12);
    assert_eq!((of_each(&cluster), state(&cluster)), ([8, 0], State::RolledBack));
}

#[test]
fn l_1_of_several_policies_the_oldest_counts_and_the_others_say_so() {
    let mut younger = policy(Spec::default());
    (younger.name, younger.uid, younger.created) = ("b".to_owned(), "uid-of-b".to_owned(), Some(at(5)));
    let mut cluster = changed(6, canary_first(1));
    cluster.ds.rollout.policies.push(younger);
    assert_eq!(cluster.plan().policy_uids, ["uid-of-agents", "uid-of-b"]);
    run(&mut cluster, 4);
    assert_eq!(of_each(&cluster), [5, 1]);
    let accepted = &cluster.ds.rollout.policies[1].status.conditions[0];
    assert_eq!(
        (
            accepted.r#type.as_str(),
            accepted.status.as_str(),
            accepted.reason.as_str()
        ),
        ("Accepted", "False", "Conflict")
    );
    assert!(accepted.message.contains("agents"), "{}", accepted.message);
}

// Its status is written by the plans of both DaemonSets. They must agree on it, or they would write it again and again.
#[test]
fn l_1_a_policy_that_counts_for_one_of_two_daemonsets_says_so_once() {
    let mut older = policy(Spec::default());
    let mut younger = policy(Spec::default());
    (younger.name, younger.uid, younger.created) = ("b".to_owned(), "uid-of-b".to_owned(), Some(at(5)));
    younger.targets = Some(Targets::Names(vec!["foo".to_owned(), "bar".to_owned()]));
    let (mut foo, mut bar) = (Cluster::new(2), Cluster::new(2));
    bar.ds.name = "bar".to_owned();
    let mut versions = Vec::new();
    for _ in 0..8 {
        foo.ds.rollout.policies = vec![older.clone(), younger.clone()];
        run(&mut foo, 1);
        (older, younger) = (
            foo.ds.rollout.policies[0].clone(),
            foo.ds.rollout.policies[1].clone(),
        );
        bar.ds.rollout.policies = vec![younger.clone()];
        run(&mut bar, 1);
        younger = bar.ds.rollout.policies[0].clone();
        versions.push(younger.resource_version.clone());
    }
    assert_eq!(
        versions[5..],
        vec![versions[7].clone(); 3],
        "{:?}",
        younger.status
    );
    let states: Vec<_> = (younger.status.targets.iter())
        .map(|target| (target.name.as_str(), target.state))
        .collect();
    assert_eq!(states, [("bar", State::Complete), ("foo", State::Conflict)]);
    let accepted = &younger.status.conditions[0];
    assert_eq!(
        (accepted.status.as_str(), accepted.reason.as_str()),
        ("False", "Conflict")
    );
    let summary = younger.status.summary.expect("a summary");
    assert_eq!(
        (summary.target.as_str(), summary.state.as_str()),
        ("bar", "Complete")
    );
}

#[test]
fn l_2_a_policy_that_cannot_be_used_holds() {
    for targets in [canary_first(1).targets, None] {
        let mut broken = canary_first(1);
        let mut cluster = running(6, broken.clone());
        broken.spec = Err("spec.stages[0].nodeSelector: is wrong".to_owned());
        broken.targets = targets;
        broken.status = cluster.ds.rollout.policies[0].status.clone();
        broken
            .resource_version
            .clone_from(&cluster.ds.rollout.policies[0].resource_version);
        cluster.ds.rollout.policies = vec![broken];
        cluster.change_template("img:2");
        run(&mut cluster, 5);
        assert_eq!((of_each(&cluster), state(&cluster)), ([6, 0], State::Invalid));
        let accepted = &cluster.ds.rollout.policies[0].status.conditions[0];
        assert_eq!(
            (accepted.status.as_str(), accepted.reason.as_str()),
            ("False", "Invalid")
        );
        assert!(accepted.message.contains("nodeSelector"));
        // Missing pods are created, from the stable revision.
        cluster.pods.remove(0);
        assert_eq!(image(&cluster.plan()), "img:1");
    }
}

#[test]
fn l_3_without_its_policy_a_rollout_goes_on_at_once() {
    let mut cluster = changed(6, canary_first(1));
    run(&mut cluster, 4);
    cluster.ds.rollout.policies.clear();
    run(&mut cluster, 12);
    assert_eq!(of_each(&cluster), [0, 6]);
}

#[test]
fn a_policy_of_others_changes_nothing() {
    let plain = {
        let mut cluster = changed(6, canary_first(1));
        cluster.ds.rollout.policies.clear();
        cluster
    };
    let mut others = plain.clone();
    let mut of_bar = canary_first(1);
    of_bar.targets = Some(Targets::Names(vec!["bar".to_owned()]));
    let mut of_label = canary_first(1);
    of_label.targets = Some(Targets::Selector(Selector {
        match_labels: Some(vec![("team".to_owned(), "net".to_owned())]),
        match_expressions: None,
    }));
    others.ds.rollout.policies = vec![of_bar, of_label];
    let without_uids = |plan: Plan| Plan {
        policy_uids: vec![],
        ..plan
    };
    assert_eq!(without_uids(others.plan()), plain.plan());
    others.ds.rollout.labels = Labels::new(vec![("team".to_owned(), "net".to_owned())]);
    assert_ne!(without_uids(others.plan()), plain.plan(), "now it is meant");
}

#[test]
fn l_38_beside_another_controller_a_policy_takes_the_place_of_the_annotations() {
    let mut policy = canary_first(2);
    if let Ok(spec) = &mut policy.spec {
        spec.on_failure = OnFailure::Rollback;
        spec.progress_deadline = Duration::from_secs(30);
    }
    let mut cluster = changed(6, policy).on_delete();
    // The other controller has recorded the template.
    cluster.sync();
    let before = of_each(&cluster);
    cluster.options.scope = Scope::Rollouts;
    let plan = cluster.plan();
    let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
    assert!(
        !kinds.contains(&PhaseKind::Creates) && !kinds.contains(&PhaseKind::Status),
        "{kinds:?}"
    );
    assert_eq!(
        before.iter().sum::<usize>(),
        5,
        "the canary is being replaced by the other controller"
    );
    cluster.apply(&plan);
    let accepted = cluster.ds.rollout.policies[0].status.conditions[0].clone();
    assert_eq!(
        (accepted.status.as_str(), accepted.reason.as_str()),
        ("True", "Limited")
    );
    assert!(
        accepted.message.contains("onFailure: Rollback"),
        "{}",
        accepted.message
    );
    // There is no way back: a rejection stops the rollout.
    cluster.options.scope = Scope::Workload;
    cluster.sync();
    cluster.options.scope = Scope::Rollouts;
    for _ in 0..12 {
        let plan = cluster.plan();
        cluster.apply(&plan);
        cluster.observe();
        cluster.now += Duration::from_secs(5);
    }
    assert_eq!(state(&cluster), State::Rejected);
}

// The other controller rolls it out at once, whatever the policy says. Somebody has to be told.
#[test]
fn l_38_beside_another_controller_a_policy_has_no_say_over_rolling_updates() {
    let mut cluster = changed(6, canary_first(2));
    cluster.options.scope = Scope::Rollouts;
    let plan = cluster.plan();
    let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::RolloutPolicies]);
    cluster.apply(&plan);
    let status = &cluster.ds.rollout.policies[0].status;
    let accepted = &status.conditions[0];
    assert_eq!(
        [&*accepted.r#type, &*accepted.status, &*accepted.reason],
        ["Accepted", "False", "Invalid"]
    );
    assert!(
        accepted
            .message
            .starts_with("spec.updateStrategy.type is RollingUpdate")
    );
    assert!(status.targets[0].stable_revision.is_some(), "it is not forgotten");
    assert_eq!(cluster.plan().verdict, Verdict::Noop);
}

// L-2: a status that has no place for the workload cannot remember its rollout, so there is none.
#[test]
fn a_policy_holds_the_workloads_for_which_its_status_has_no_place() {
    let mut policy = canary_first(2);
    policy.targets = Some(Targets::Selector(Selector::default()));
    let mut cluster = changed(6, policy);
    let status = &mut cluster.ds.rollout.policies[0].status;
    let ours = status.targets[0].clone();
    status.targets = (0..100)
        .map(|number| TargetStatus {
            name: format!("other-{number}"),
            uid: format!("other-{number}"),
            ..TargetStatus::default()
        })
        .collect();
    cluster.nodes.push(node("node-9", &[]));
    let plan = cluster.plan();
    assert_eq!(
        phases(&plan),
        [
            PhaseKind::Revisions,
            PhaseKind::Events,
            PhaseKind::Creates,
            PhaseKind::Status
        ],
        "nothing is replaced or recorded"
    );
    cluster.nodes.pop();
    let event = plan.phases.iter().find(|phase| phase.kind == PhaseKind::Events);
    let event = &event.expect("an Event").batches[0].actions[0].kind;
    let ActionKind::EmitEvent { reason, message, .. } = event else {
        panic!("{event:?}")
    };
    assert_eq!(*reason, "RolloutHeld");
    assert!(message.contains("has no place"), "{message}");
    // As soon as an entry is dropped there is a place.
    cluster.ds.rollout.policies[0].status.targets[7] = ours;
    run(&mut cluster, 4);
    assert_eq!(of_each(&cluster), [4, 2]);
}

// One with many stages takes the place of many workloads: the apiserver takes no policy of any size.
#[test]
fn a_policy_holds_the_workloads_whose_stages_would_not_fit_into_its_status() {
    let mut policy = canary_first(2);
    policy.targets = Some(Targets::Selector(Selector::default()));
    let mut cluster = changed(6, policy);
    let stage = StageStatus {
        name: "s".repeat(60),
        ..StageStatus::default()
    };
    cluster.ds.rollout.policies[0].status.targets.push(TargetStatus {
        name: "other".to_owned(),
        uid: "other".to_owned(),
        stages: vec![stage; 5_000],
        ..TargetStatus::default()
    });
    cluster.nodes.push(node("node-9", &[]));
    let plan = cluster.plan();
    assert_eq!(
        phases(&plan),
        [
            PhaseKind::Revisions,
            PhaseKind::Events,
            PhaseKind::Creates,
            PhaseKind::Status
        ],
        "nothing is replaced or recorded"
    );
    cluster.nodes.pop();
    cluster.ds.rollout.policies[0].status.targets[1]
        .stages
        .truncate(1_000);
    run(&mut cluster, 4);
    assert_eq!(of_each(&cluster), [4, 2]);
}

// L-1: whoever may write a policy that does not count cannot stop the rollout of the one that does.
#[test]
fn a_failed_write_of_a_policy_that_does_not_count_stops_nothing() {
    let mut younger = canary_first(2);
    (younger.name, younger.uid) = ("younger".to_owned(), "uid-of-younger".to_owned());
    younger.created = Some(at(1));
    let mut cluster = changed(6, canary_first(2));
    cluster.ds.rollout.policies.push(younger);
    let plan = cluster.plan();
    let policies: Vec<_> = plan
        .phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::RolloutPolicies)
        .map(|phase| (phase.batches.len(), phase.ignores_failure))
        .collect();
    assert_eq!(policies, [(1, false), (1, true)]);
    assert!(plan.phases.is_sorted_by_key(|phase| phase.kind));
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

// Plans of different workloads must agree on what a policy's status says about all of them.
#[test]
fn an_unusable_target_is_named_whichever_workload_is_planned() {
    let mut cluster = running(3, canary_first(1));
    let policy = &mut cluster.ds.rollout.policies[0];
    policy.targets = Some(Targets::Selector(Selector::default()));
    policy.status.targets.push(TargetStatus {
        name: "other".to_owned(),
        uid: "other".to_owned(),
        state: State::Invalid,
        message: "it has too many zones".to_owned(),
        ..TargetStatus::default()
    });
    cluster.sync();
    let accepted = &cluster.ds.rollout.policies[0].status.conditions[0];
    assert_eq!(
        (&*accepted.status, &*accepted.message),
        ("False", "other: it has too many zones")
    );
    assert_eq!(cluster.plan().verdict, Verdict::Noop);
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
