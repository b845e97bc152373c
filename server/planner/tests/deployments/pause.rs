//! Paused Deployments (P-46, P-47).

use nodewise_planner::plan::PhaseKind;

use crate::support::{World, annotation, condition_of, phases, status};

#[test]
fn p_46_p_47_a_paused_deployment_rolls_nothing_out() {
    // PS-87
    let mut world = World::new(3);
    world.web.paused = true;
    let plan = world.sync();
    assert_eq!(phases(&plan), [PhaseKind::Status]);
    assert_eq!(
        condition_of(&world.web.status, "Progressing"),
        "Unknown DeploymentPaused"
    );
    assert_eq!(
        condition_of(&world.web.status, "Available"),
        "False MinimumReplicasUnavailable"
    );
    assert!(world.plan().phases.is_empty(), "P-57");
    assert_eq!(world.plan().requeue, None);
    // PS-88
    world.web.paused = false;
    let plan = world.sync();
    assert!(phases(&plan).contains(&PhaseKind::Creates));
    assert_eq!(
        condition_of(&world.web.status, "Progressing"),
        "True NewReplicaSetCreated"
    );
    // PS-89
    let mut world = World::new(3).with("old 3/3 desired=3 max=4 rev=1");
    world.web.paused = true;
    let plan = world.sync();
    assert_eq!(world.sizes(), "old 3");
    assert_eq!(phases(&plan), [PhaseKind::Status]);
}

#[test]
fn p_46_when_the_condition_changes() {
    // (what, paused, deadline, stored reason, reason afterwards)
    let table = [
        (
            "PS-91",
            true,
            Some(600),
            "ProgressDeadlineExceeded",
            "ProgressDeadlineExceeded",
        ),
        (
            "without a deadline",
            true,
            None,
            "ReplicaSetUpdated",
            "ReplicaSetUpdated",
        ),
        (
            "an endless deadline",
            true,
            Some(i32::MAX),
            "ReplicaSetUpdated",
            "ReplicaSetUpdated",
        ),
        (
            "paused already",
            true,
            Some(600),
            "DeploymentPaused",
            "DeploymentPaused",
        ),
        (
            "paused",
            true,
            Some(600),
            "NewReplicaSetAvailable",
            "DeploymentPaused",
        ),
        (
            "resumed, while a rollout waits",
            false,
            Some(600),
            "DeploymentPaused",
            "DeploymentResumed",
        ),
    ];
    for (what, paused, deadline, before, after) in table {
        let mut world = World::new(3)
            .rolling("0", "1")
            .with("old 2/2 desired=3 max=3; new 1/0 rev=1 desired=3 max=3")
            .settled("ReplicaSetUpdated", 900);
        world
            .web
            .status
            .conditions
            .retain(|condition| condition.r#type != "Progressing");
        world = world.progressing("True", before, 900);
        world.web.paused = paused;
        world.web.progress_deadline_seconds = deadline;
        world.sync();
        let reason = condition_of(&world.web.status, "Progressing");
        assert!(reason.ends_with(after), "{what}: {reason}");
    }
}

#[test]
fn p_46_resuming_starts_the_deadline_again() {
    let mut world = World::new(3)
        .rolling("0", "1")
        .with("old 2/2 desired=3 max=3; new 1/0 rev=1 desired=3 max=3")
        .settled("DeploymentPaused", 10);
    world
        .web
        .status
        .conditions
        .last_mut()
        .expect("Progressing")
        .status = "Unknown".to_owned();
    let plan = world.sync();
    let condition = status(&plan).conditions.pop().expect("Progressing is last");
    assert_eq!(condition.reason, "DeploymentResumed");
    assert_eq!(condition.last_update_time, Some(world.now));
    assert_eq!(
        condition.last_transition_time,
        Some(crate::support::at(10)),
        "it is still Unknown"
    );
    // P-62: then the timer runs from now.
    let seconds = world.plan().requeue.expect("a timer").delay.as_secs();
    assert_eq!(seconds, 601);
}

#[test]
fn p_47_a_paused_deployment_is_cleaned_up_unless_a_rollback_is_requested() {
    // PS-92
    let mut world = World::new(3).with("a 0/0 rev=1; b 0/0 rev=2; new 3/3 rev=3");
    world.web.paused = true;
    world.web.revision_history_limit = Some(0);
    let requested = world.clone().annotated(crate::support::ROLLBACK, "0");
    world.sync();
    assert_eq!(world.sizes(), "new 3");
    let mut requested = requested;
    requested.sync();
    assert_eq!(requested.sizes(), "a 0, b 0, new 3");
    assert!(
        requested
            .web
            .annotations
            .iter()
            .any(|(key, _)| key == crate::support::ROLLBACK)
    );
    assert_eq!(annotation(requested.find("new"), crate::support::REVISION), "3");
}
