//! Which policy counts for a DaemonSet, and what holds one that cannot be used.

use super::*;

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

/// The plan of a cluster whose rollout is held, while there is a node without a pod.
fn held(cluster: &mut Cluster) -> Plan {
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
    plan
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
    let plan = held(&mut cluster);
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
    held(&mut cluster);
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
