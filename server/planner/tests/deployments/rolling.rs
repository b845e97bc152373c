//! The rolling update (P-29 to P-37).

use nodewise_planner::plan::{PhaseKind, Reason, When};

use crate::support::{World, actions, condition_of, events, phase, phases, status};

#[test]
fn p_31_to_p_35_one_step() {
    // (scenario, replicas, maxSurge, maxUnavailable, sets from the oldest, sizes after one plan)
    let table = [
        ("PS-33", 10, "0", "1", "old 10/10; new 0/0", "new 0, old 9"),
        ("PS-34", 10, "2", "0", "old 10/10; new 0/0", "new 2, old 10"),
        ("PS-34", 10, "2", "0", "old 5/5; new 0/0", "new 7, old 5"),
        ("PS-34", 10, "2", "0", "old 10/10; new 2/0", "new 2, old 10"),
        ("PS-34", 10, "2", "0", "old 2/2; new 11/0", "new 10, old 2"),
        ("PS-35", 1, "1", "0", "old 0/0; new 5/5", "new 1, old 0"),
        ("PS-35", 6, "10", "0", "old 3/3; new 2/0", "new 6, old 3"),
        ("PS-39", 10, "0", "0", "old 10/10; new 0/0", "new 0, old 9"),
        ("PS-40", 10, "0", "2", "old 10/10; new 0/0", "new 0, old 8"),
        ("PS-41", 10, "0", "2", "old 10/8; new 0/0", "new 0, old 8"),
        ("PS-42", 10, "0", "2", "old 10/9; new 0/0", "new 0, old 8"),
        ("PS-43", 10, "0", "2", "old 8/8; new 2/0", "new 2, old 8"),
        (
            "PS-44, budget 1",
            10,
            "0",
            "1",
            "old 10/8; new 0/0",
            "new 0, old 9",
        ),
        (
            "PS-44, budget 3",
            10,
            "0",
            "3",
            "old 10/8; new 0/0",
            "new 0, old 7",
        ),
        ("PS-45", 10, "0", "2", "old 10/10; new 0/0", "new 0, old 8"),
        (
            "PS-45",
            10,
            "0",
            "2",
            "old 0/8 has=8; new 0/0 has=1",
            "new 10, old 0",
        ),
        (
            "PS-46",
            10,
            "3",
            "2",
            "old 8/7; old2 5/0; new 0/0",
            "new 0, old 7, old2 1",
        ),
        ("PS-47", 10, "3", "2", "old 8/10; new 5/5", "new 5, old 8"),
        (
            "PS-48",
            10,
            "3",
            "2",
            "old1 4/2; old2 3/4; new 6/5",
            "new 6, old1 2, old2 3",
        ),
        (
            "PS-49",
            10,
            "0",
            "2",
            "z 0/3; old 3/3; new 10/7",
            "new 10, old 1, z 0",
        ),
        ("PS-50", 10, "0", "2", "old 2/2; new 11/11", "new 10, old 2"),
        ("PS-50, then", 10, "0", "2", "old 2/2; new 10/10", "new 10, old 0"),
        ("PS-51", 10, "3", "2", "old 10/10", "created 3, old 8"),
        ("PS-55", 3, "25%", "25%", "", "created 3"),
        ("PS-54", 0, "25%", "25%", "", "created 0"),
        ("P-32, the set is complete", 3, "1", "0", "new 3/3", "new 3"),
        (
            "P-33, the oldest set goes first",
            4,
            "0",
            "2",
            "b 2/2 t=2; a 2/2 t=1; new 0/0 t=3",
            "a 0, b 2, new 0",
        ),
        (
            "P-35, as far as it reaches",
            5,
            "0",
            "3",
            "a 2/2; b 3/3; new 0/0",
            "a 0, b 2, new 0",
        ),
    ];
    for (scenario, replicas, surge, unavailable, sets, sizes) in table {
        let mut world = World::new(replicas).rolling(surge, unavailable).with(sets);
        let plan = world.sync();
        assert_eq!(world.sizes(), sizes, "{scenario}");
        assert_eq!(plan.error, None, "{scenario}");
        assert!(plan.status.is_some(), "{scenario}");
    }
}

#[test]
fn p_29_p_30_limits() {
    // (scenario, replicas, maxSurge, maxUnavailable, size of a created set beside old 10/10 of 10, size of the old set)
    let table = [
        ("PS-36", 10, "39%", "39%", 4, 7),
        ("PS-36, without maxUnavailable", 10, "39%", "-", 4, 10),
        ("PS-38", 10, "0", "50%", 0, 5),
        ("PS-38, capped", 10, "0", "30", 0, 0),
        ("PS-38, all", 10, "0", "100%", 0, 0),
        ("PS-36, both 0", 10, "0%", "0%", 0, 9),
        (
            "P-29, maxUnavailable is no number: both are 0",
            10,
            "3",
            "oops",
            3,
            10,
        ),
    ];
    for (scenario, replicas, surge, unavailable, created, old) in table {
        let mut world = World::new(replicas).rolling(surge, unavailable).with("old 10/10");
        world.sync();
        assert_eq!(
            world.sizes(),
            format!("created {created}, old {old}"),
            "{scenario}"
        );
    }
    // PS-37: a maxSurge that cannot be read, or is absent, is an error as soon as the new set must be sized.
    for (surge, said) in [("urg", "\"urg\""), ("-", "missing"), ("5x%", "\"5x%\"")] {
        let plan = World::new(10).rolling(surge, "1").with("old 10/10").plan();
        let error = plan.error.expect("an error");
        assert!(
            error.contains("maxSurge") && error.contains(said),
            "P-29: {error}"
        );
        assert!(plan.phases.is_empty(), "P-29");
    }
}

#[test]
fn p_34_p_35_a_set_that_is_scaled_twice_has_one_write_and_two_events() {
    // PS-42
    let plan = World::new(10)
        .rolling("0", "2")
        .with("old 10/9; new 0/0 rev=2")
        .plan();
    let writes = actions(&plan, PhaseKind::OldReplicaSets);
    assert_eq!(writes.len(), 1, "P-3");
    assert_eq!(writes[0].reason, Reason::ScaleDownOld);
    assert!(
        writes[0]
            .message
            .contains("old has 1 replica that is not available: they go first"),
        "{}",
        writes[0].message
    );
    assert_eq!(
        events(&plan),
        [
            "Scaled down replica set old from 10 to 9",
            "Scaled down replica set old from 9 to 8"
        ]
    );
}

#[test]
fn p_46_an_unhealthy_rollout_gets_stuck_within_its_limits() {
    // PS-46: the budget is 5; then the new set grows to 5; then nothing more happens.
    let mut world = World::new(10)
        .rolling("3", "2")
        .with("old 8/7; old2 5/0; new 0/0");
    let mut sizes = vec![];
    for _ in 0..4 {
        world.sync();
        sizes.push(world.sizes());
        for set in &mut world.web.sets {
            set.status.replicas = set.replicas;
        }
        world.web.sets[1].status.available_replicas = 0;
    }
    assert_eq!(
        sizes,
        [
            "new 0, old 7, old2 1",
            "new 5, old 7, old2 1",
            "new 5, old 7, old2 1",
            "new 5, old 7, old2 1"
        ],
        "P-46, P-33"
    );
}

#[test]
fn p_26_p_55_the_first_step_of_a_rollout_creates_and_shrinks() {
    // PS-51: the status counts the old size of the old set, and the new set with its new size.
    let mut world = World::new(10).rolling("3", "2").with("old 10/10 rev=4");
    let plan = world.sync();
    assert_eq!(
        phases(&plan),
        [
            PhaseKind::Creates,
            PhaseKind::OldReplicaSets,
            PhaseKind::Failure,
            PhaseKind::Status
        ]
    );
    let status = status(&plan);
    assert_eq!(status.unavailable_replicas, 3);
    assert_eq!(status.replicas, 10);
    assert_eq!(condition_of(&status, "Progressing"), "True ReplicaSetUpdated");
    assert_eq!(events(&plan)[1], "Scaled down replica set old from 10 to 8");
}

#[test]
fn p_36_which_failures_end_a_plan() {
    // PS-52, PS-53
    let plan = World::new(10)
        .rolling("0", "2")
        .with("old 10/10; new 0/0 rev=2")
        .plan();
    let old = phase(&plan, PhaseKind::OldReplicaSets).expect("the old set shrinks");
    assert!(old.ignores_failure);
    assert!(!PhaseKind::OldReplicaSets.aborts_on_failure());
    let status = phase(&plan, PhaseKind::Status).expect("the status is written");
    assert_eq!(status.when, When::AfterSuccess);
    let plan = World::new(10)
        .rolling("2", "2")
        .with("old 10/10; new 0/0 rev=2")
        .plan();
    let new = phase(&plan, PhaseKind::ReplicaSets).expect("the new set grows");
    assert!(!new.ignores_failure && new.kind.aborts_on_failure(), "P-32");
}
