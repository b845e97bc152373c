//! The strategy Recreate (P-38 to P-40).

use nodewise_planner::plan::{PhaseKind, Reason};

use crate::support::{World, actions, events, json, phases, status};

#[test]
fn p_38_p_39_p_40_old_pods_go_before_new_ones_come() {
    // (scenario, replicas, sets, sizes after one plan)
    let table = [
        ("PS-56", 3, "old 3/3", "old 0"),
        ("PS-57", 3, "old 0/0 has=3", "old 0"),
        ("PS-58", 3, "old 0/0 pods=1", "old 0"),
        ("PS-59", 3, "old 0/0", "created 3, old 0"),
        ("PS-60", 3, "new 2/2 pods=2; old 0/0", "new 3, old 0"),
        ("PS-62", 6, "old 0/0 has=0 terminating=6 pods=6", "old 0"),
        ("P-40 down", 3, "new 5/5; old 0/0", "new 3, old 0"),
        ("P-40 no old set", 3, "", "created 3"),
        (
            "P-38 before all else",
            3,
            "a 1/1; b 2/2; new 3/3",
            "a 0, b 0, new 3",
        ),
    ];
    for (scenario, replicas, sets, sizes) in table {
        let mut world = World::new(replicas).recreate().with(sets);
        let plan = world.sync();
        assert_eq!(world.sizes(), sizes, "{scenario}");
        assert_eq!(plan.error, None, "{scenario}");
    }
    // PS-61: a set of another controller does not count.
    let mut world = World::new(3).recreate().with("old 0/0 pods=4 foreign");
    world.sync();
    assert_eq!(world.sizes(), "created 3, old 0", "P-39");
}

#[test]
fn p_38_the_writes_of_a_stop_end_the_plan_if_they_fail() {
    let plan = World::new(3).recreate().with("old 3/3").plan();
    assert_eq!(phases(&plan), [PhaseKind::ReplicaSets, PhaseKind::Status]);
    assert_eq!(actions(&plan, PhaseKind::ReplicaSets)[0].reason, Reason::Recreate);
    assert_eq!(events(&plan), ["Scaled down replica set old from 3 to 0"]);
}

#[test]
fn p_40_the_new_set_has_all_replicas_at_once() {
    let plan = World::new(3).recreate().plan();
    let manifest = json(actions(&plan, PhaseKind::Creates)[0]);
    assert_eq!(manifest["spec"]["replicas"], 3);
    assert_eq!(
        manifest["metadata"]["annotations"][crate::support::MAX],
        "3",
        "P-30: no surge"
    );
}

#[test]
fn p_41_p_54_scaling_during_a_recreate_rollout() {
    // PS-63: one pod of the old template is still being deleted while the user scales the new set.
    let mut world = World::new(7)
        .recreate()
        .with("old 0/0; new 6/6 desired=6 max=6 terminating=1 rev=2");
    let plan = world.sync();
    assert_eq!(
        (world.sizes(), status(&plan).terminating_replicas),
        ("new 7, old 0".to_owned(), Some(1))
    );
    world.web.replicas = 5;
    world.web.sets[1].status.terminating_replicas = Some(3);
    let plan = world.sync();
    assert_eq!(
        (world.sizes(), status(&plan).terminating_replicas),
        ("new 5, old 0".to_owned(), Some(3))
    );
}

#[test]
fn p_53_the_generation_is_observed_even_if_no_size_changes() {
    // PS-64
    let mut world = World::new(3)
        .recreate()
        .with("new 3/3 desired=3 max=3 rev=1")
        .settled("NewReplicaSetAvailable", 900);
    assert!(world.plan().phases.is_empty());
    world.web.generation = 2;
    let plan = world.sync();
    assert_eq!(
        actions(&plan, PhaseKind::Status)[0].reason,
        Reason::GenerationObserved
    );
    assert_eq!(world.web.status.observed_generation, 2);
}
