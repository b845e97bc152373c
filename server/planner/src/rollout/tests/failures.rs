//! Nodes that fail or are exempt, and what follows from it.

use super::*;

#[test]
fn l_20_l_21_what_counts_is_whether_the_node_was_ready_before_it_got_the_revision() {
    // Not ready since; the pod's revision and creation; whether the node is exempt, and free of the budget.
    for (since, pod, created, exempt, free) in [
        (-100, Some("old"), -9_000, true, true),
        (15, Some("old"), -9_000, true, true),
        (-100, Some("new"), 20, true, true),
        (50, Some("new"), 20, false, false),
        // The rollout may have deleted the old pod before the node became unwell (L-11).
        (15, None, 0, true, false),
        (-100, None, 0, true, true),
    ] {
        let mut world = World::new(Spec::default());
        world.decide();
        world.now = at(60);
        let node = world.node("n3");
        (node.not_ready_since, node.pod, node.pod_created) = (Some(at(since)), pod, at(created));
        node.available_since = (pod == Some("old")).then_some(at(created));
        world.decide();
        let decided = world.last.nodes.of(3);
        assert_eq!(
            (decided.is_exempt, decided.is_free),
            (exempt, free),
            "{since} {pod:?}"
        );
    }
    let mut world = World::new(Spec {
        not_ready: NotReady::Count,
        ..Spec::default()
    });
    world.node("n3").not_ready_since = Some(at(-100));
    world.decide();
    assert!(!world.last.nodes.of(3).is_exempt);
}

#[test]
fn l_20_an_exempt_node_is_not_waited_for_and_gets_its_turn() {
    let mut world = World::new(staged());
    world.node("n3").not_ready_since = Some(at(-100));
    world.run(30);
    assert_eq!((world.state(), world.on("old")), (State::Complete, vec!["n3"]));
    world.node("n3").not_ready_since = None;
    world.run(1);
    assert_eq!(world.on("old").len(), 0);
}

#[test]
fn l_22_too_many_exempt_nodes_hold_the_rollout() {
    let mut world = World::new(Spec::default());
    for name in ["n1", "n2"] {
        world.node(name).not_ready_since = Some(at(-100));
    }
    world.run(2);
    assert_eq!(
        (world.state(), world.on("new").len()),
        (State::TooManyNodesNotReady, 0)
    );
    assert!(world.events.contains(&"RolloutHeld"));
    world.spec().max_exempt = IntOrString::Int(2);
    world.run(1);
    assert_eq!(world.on("new").len(), 2);
}

#[test]
fn l_23_nodes_in_maintenance_are_exempt_or_first() {
    for (rule, exempt, first) in [
        (InMaintenance::Exempt, true, false),
        (InMaintenance::First, false, true),
        (InMaintenance::Count, false, false),
    ] {
        let mut world = World::new(Spec {
            in_maintenance: rule,
            ..Spec::default()
        });
        world.node("n7").in_maintenance = true;
        world.decide();
        let decided = world.last.nodes.of(7);
        assert_eq!((decided.is_exempt, decided.is_first), (exempt, first), "{rule:?}");
    }
}

#[test]
fn l_25_l_26_l_28_failed_nodes_reject_the_revision_and_it_goes_back() {
    let mut world = World::new(Spec {
        failure_threshold: IntOrString::Int(2),
        progress_deadline: Duration::from_mins(5),
        ..staged()
    });
    world.bad = (0..10)
        .map(|index| ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"][index])
        .collect();
    world.run(29);
    assert_eq!((world.state(), world.on("new").len()), (State::Progressing, 2));
    world.run(3);
    assert!(world.events.contains(&"RolloutRejected"), "{:?}", world.events);
    assert!(world.events.contains(&"RolloutRollingBack"), "{:?}", world.events);
    world.run(3);
    assert_eq!((world.state(), world.on("old").len()), (State::RolledBack, 10));
    let rejected = world.last.status.rejected_revision.clone().expect("a rejection");
    assert_eq!(
        (rejected.hash.as_str(), rejected.reason.as_str()),
        ("new", "FailureThreshold")
    );
    // L-26: no further node gets it, however long it takes.
    world.run(50);
    assert_eq!(world.on("new").len(), 0);
    // L-28: another template ends the rejection.
    world.update = "next";
    world.run(3);
    assert_eq!(
        (
            world.on("next").len(),
            world.last.status.rejected_revision.is_none()
        ),
        (2, true)
    );
}

#[test]
fn l_27_what_is_still_broken_a_deadline_after_a_resume_fails_again() {
    let mut world = failing(OnFailure::Pause);
    world.run(20);
    let rejection = world.last.status.rejected_revision.clone().expect("a rejection");
    world.policy.requests.resume = Some(rejection.digest);
    world.run(2);
    assert_eq!(world.state(), State::Progressing);
    let named = world.last.status.blocking.iter().map(|node| node.reason.as_str());
    assert_eq!(named.collect::<Vec<_>>(), ["pod pod is not available yet"; 2]);
    world.run(2);
    assert_eq!(world.state(), State::Rejected);
}

// L-25: since when the deadline counts.
#[test]
fn l_25_a_restart_now_and_then_is_no_crash_loop() {
    let spec = Spec {
        progress_deadline: Duration::from_mins(10),
        ..Spec::default()
    };
    // (age, restarts, when its readiness changed last, whether it has failed)
    for (age, restarts, changed, fails) in [
        (599, 0, None, false),
        (601, 0, None, true),
        (3_600, 0, Some(3_590), false),
        (3_600, 1, Some(3_590), false),
        (72_000, 5, Some(71_990), false),
        // It crashes every few minutes.
        (3_600, 7, Some(3_590), true),
        (601, 2, Some(600), true),
        (7_200, 1, Some(3_600), true),
        // A clock that is ahead does not put it off.
        (601, 0, Some(9_999), true),
    ] {
        let labels = Labels::default();
        let node = NodeFacts {
            name: "n0",
            labels: (&labels).into(),
            selected: StageSet::default(),
            readiness: Readiness::Ready,
            in_maintenance: false,
            update_pod: Some(UpdatePod {
                name: "pod",
                created: Some(at(0)),
                available: false,
                ready_since: changed.map(at),
                restarts,
            }),
            has_other_pod: false,
            entry: 0,
        };
        let health = node.health(&spec, None, at(age));
        assert_eq!(
            matches!(health, Health::Failed(_)),
            fails,
            "{age} {restarts} {changed:?}: {health:?}"
        );
    }
}

#[test]
fn l_28_after_a_rollback_a_pod_may_be_missing() {
    let mut world = failing(OnFailure::Rollback);
    world.run(20);
    assert_eq!(world.state(), State::RolledBack);
    let events = world.events.len();
    world.node("n3").pod = None;
    world.decide();
    assert_eq!((world.state(), world.events.len()), (State::RolledBack, events));
}

#[test]
fn l_27_with_pause_a_person_decides() {
    let mut world = failing(OnFailure::Pause);
    world.run(20);
    assert_eq!((world.state(), world.on("new").len()), (State::Rejected, 2));
    // Resume: the failures so far do not count any more.
    let digest = world
        .last
        .status
        .rejected_revision
        .clone()
        .expect("a rejection")
        .digest;
    world.policy.requests.resume = Some("another".to_owned());
    world.decide();
    assert_eq!(
        world.state(),
        State::Rejected,
        "a digest of something else does nothing"
    );
    world.policy.requests.resume = Some(digest);
    world.decide();
    assert_eq!(world.state(), State::Progressing);
    assert!(!world.last.replaces, "it is recorded first");
    world.run(2);
    assert_eq!(
        world.state(),
        State::Progressing,
        "nodes have one more deadline, and the request is not needed any longer"
    );
    // Roll back: whatever onFailure says.
    world.policy.requests.rollback = Some(world.last.status.digest.clone());
    world.run(1);
    assert_eq!(
        world
            .last
            .status
            .rejected_revision
            .as_ref()
            .map(|rejected| rejected.reason.as_str()),
        Some("Requested")
    );
}

#[test]
fn l_27_a_person_lets_a_rejected_revision_go_back_and_on_again() {
    let mut world = failing(OnFailure::Pause);
    world.run(20);
    assert_eq!((world.state(), world.on("new").len()), (State::Rejected, 2));
    world.policy.requests.rollback = Some("another".to_owned());
    world.run(3);
    assert_eq!(world.state(), State::Rejected, "a digest of something else");
    world.policy.requests.rollback = Some(world.last.status.digest.clone());
    world.run(5);
    assert_eq!((world.state(), world.on("new").len()), (State::RolledBack, 0));
    let rejection = world.last.status.rejected_revision.clone().expect("a rejection");
    assert_eq!(rejection.reason, "FailureThreshold", "it stays the reason");
    // Both annotations stay on the policy. The older one does nothing any more.
    world.bad.clear();
    world.policy.requests.resume = Some(rejection.digest);
    world.run(5);
    assert!(
        world.last.status.rejected_revision.is_none(),
        "{:?}",
        world.state()
    );
    assert_eq!(world.on("new").len(), 2);
}

#[test]
fn l_25_a_pod_that_restarts_too_often_has_failed() {
    let mut world = World::new(Spec {
        max_restarts: Some(3),
        ..Spec::default()
    });
    world.run(1);
    let name = world.on("new")[0].to_owned();
    world.node(&name).restarts = 3;
    world.decide();
    assert_eq!(world.state(), State::Progressing);
    world.node(&name).restarts = 4;
    world.decide();
    assert_eq!(world.state(), State::Rejected);
    assert!(
        world.last.status.message.contains("failureThreshold is 1"),
        "{}",
        world.last.status.message
    );
}

#[test]
fn l_29_without_a_stable_revision_a_rollback_acts_as_a_pause() {
    let mut world = failing(OnFailure::Rollback);
    world.run(1);
    // Somebody deletes the stable revision.
    world.others.retain(|hash| *hash != "old");
    world.run(10);
    assert_eq!(world.state(), State::Rejected);
}
