//! Deletes of old sets (P-51, P-37).

use std::time::Duration;

use nodewise_planner::plan::{ActionKind, PhaseKind, Reason, When};

use crate::support::{World, actions, phase};

/// The names of the sets that a plan deletes after a complete rollout.
fn deleted(limit: Option<i32>, sets: &str) -> Vec<String> {
    let mut world = World::new(1)
        .with(&format!("{sets}; new 1/1 rev=9 desired=1 max=2"))
        .settled("NewReplicaSetAvailable", 900);
    // The stored status is complete, even if the old sets of the scenario are not empty.
    world.web.status.replicas = 1;
    world.web.status.updated_replicas = 1;
    world.web.status.available_replicas = 1;
    world.web.revision_history_limit = limit;
    let plan = world.plan();
    actions(&plan, PhaseKind::Cleanup)
        .into_iter()
        .map(|action| {
            assert_eq!(action.reason, Reason::HistoryLimit);
            match &action.kind {
                ActionKind::DeleteObject {
                    object,
                    resource_version,
                    ..
                } => {
                    assert_eq!(resource_version, "");
                    object.name.clone()
                }
                other => panic!("{other:?}"),
            }
        })
        .collect()
}

#[test]
fn p_51_which_old_sets_are_deleted() {
    // (scenario, limit, sets from the oldest, deleted)
    let table: [(&str, Option<i32>, &str, &[&str]); 14] = [
        (
            "PS-98",
            Some(1),
            "a 0/0 rev=1; b 0/0 rev=2; c 0/0 rev=3",
            &["a", "b"],
        ),
        ("PS-98, no limit", None, "a 0/0 rev=1; b 0/0 rev=2", &[]),
        (
            "PS-98, unlimited",
            Some(i32::MAX),
            "a 0/0 rev=1; b 0/0 rev=2",
            &[],
        ),
        ("PS-99", Some(0), "a 0/0; b 0/0 has=1", &["a"]),
        ("PS-100", Some(1), "a 0/0 rev=1; b 0/0", &["b"]),
        (
            "PS-101",
            Some(1),
            "a 0/0 rev=1 has=1; b 0/0 rev=2; c 0/0 rev=3",
            &["b"],
        ),
        (
            "PS-101, the first two are not empty",
            Some(1),
            "a 0/0 rev=1 has=1; b 0/0 rev=2 has=1; c 0/0 rev=3",
            &[],
        ),
        (
            "PS-102",
            Some(2),
            "a 0/0 rev=3; b 0/0 rev=1; c 0/0 rev=4; d 0/0 rev=2",
            &["b", "d"],
        ),
        (
            "PS-103, being deleted",
            Some(0),
            "a 0/0 rev=1 deleting; b 0/0 rev=2",
            &["b"],
        ),
        (
            "PS-103, generation ahead",
            Some(0),
            "a 0/0 rev=1 gen=2; b 0/0 rev=2",
            &["b"],
        ),
        ("within the limit", Some(2), "a 0/0 rev=1; b 0/0 rev=2", &[]),
        ("a negative limit is 0", Some(-1), "a 0/0 rev=1", &["a"]),
        ("a limit of 0", Some(0), "a 0/0 rev=1", &["a"]),
        (
            "P-37, an old set shrinks first",
            Some(0),
            "a 0/0 rev=1; b 1/1 rev=2",
            &[],
        ),
    ];
    for (scenario, limit, sets, expected) in table {
        assert_eq!(deleted(limit, sets), expected, "{scenario}");
    }
}

#[test]
fn p_37_the_clean_up_waits_for_a_complete_stored_status() {
    let mut world = World::new(1).with("a 0/0 rev=1; new 1/1 rev=2 desired=1 max=2");
    world.web.revision_history_limit = Some(0);
    world.sync();
    assert_eq!(
        world.sizes(),
        "a 0, new 1",
        "the stored status was not complete yet"
    );
    let plan = world.sync();
    assert_eq!(world.sizes(), "new 1");
    let cleanup = phase(&plan, PhaseKind::Cleanup).expect("a delete");
    assert_eq!(cleanup.when, When::AfterSuccess);
    // Recreate does the same.
    let mut world = World::new(1).recreate().with("a 0/0 rev=1; new 1/1 rev=2");
    world.web.revision_history_limit = Some(0);
    world.sync();
    world.sync();
    assert_eq!(world.sizes(), "new 1", "P-40");
}

#[test]
fn p_51_the_sets_of_a_paused_deployment_are_sorted_from_the_newest() {
    // A revision that is no number makes the order depend on where the sort begins.
    let world = World::new(1).with("a 0/0 rev=3; b 0/0 rev=x; c 0/0 rev=1; new 1/1 rev=9 desired=1 max=2");
    let names = |world: &World| -> Vec<String> {
        let plan = world.plan();
        let actions = actions(&plan, PhaseKind::Cleanup);
        let name = |kind: &ActionKind| match kind {
            ActionKind::DeleteObject { object, .. } => object.name.clone(),
            other => panic!("{other:?}"),
        };
        actions.iter().map(|action| name(&action.kind)).collect()
    };
    let mut rolling = world.settled("NewReplicaSetAvailable", 900);
    rolling.web.revision_history_limit = Some(2);
    assert_eq!(names(&rolling), ["a"]);
    rolling.web.paused = true;
    assert_eq!(names(&rolling), ["b"]);
}

#[test]
fn p_51_deletes_that_one_plan_has_no_room_for() {
    // (old sets, deletes of the first plan, delay of the next)
    for (count, deletes, delay) in [(1_000, 1_000, None), (1_001, 1_000, Some(Duration::ZERO))] {
        let mut world = World::new(1);
        for index in 0..count {
            world.set(&format!("a{index} 0/0 rev=1"));
        }
        let mut world = world
            .with("new 1/1 rev=9 desired=1 max=2")
            .settled("NewReplicaSetAvailable", 900);
        world.web.revision_history_limit = Some(0);
        let plan = world.plan();
        assert_eq!(actions(&plan, PhaseKind::Cleanup).len(), deletes);
        assert_eq!(plan.requeue.map(|requeue| requeue.delay), delay, "{count} sets");
    }
}
