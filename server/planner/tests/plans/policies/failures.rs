//! Nodes that are not ready, pods that are not available, and revisions that are rejected.

use super::*;

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
