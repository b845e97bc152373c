//! Changes of spec.replicas (P-41 to P-45).

use nodewise_planner::{plan::PhaseKind, snapshot::Deviation};

use crate::support::{DESIRED, MAX, World, actions, annotate, annotation, events, phases, set_patch};

/// A Deployment that was scaled from `before` to `after` replicas. Its sets have the annotations of `before`.
fn scaled(before: i32, after: i32, surge: i32, sets: &str) -> World {
    let mut world = World::new(after)
        .rolling(&surge.to_string(), "1")
        .with(sets)
        .progressing("True", "ReplicaSetUpdated", 900);
    for set in &mut world.web.sets {
        if annotation(set, DESIRED).is_empty() {
            annotate(set, DESIRED, &before.to_string());
            annotate(set, MAX, &(before + surge).to_string());
        }
        annotate(
            set,
            "deployment.kubernetes.io/revision",
            if set.name == "new" { "9" } else { "1" },
        );
    }
    world
}

/// Scenario, replicas before, after, maxSurge, sets from the oldest, sizes after one plan.
type Row = (&'static str, i32, i32, i32, &'static str, &'static str);

const SHARES: [Row; 25] = [
    ("PS-1", 10, 12, 0, "new 10/10", "new 12"),
    ("PS-1", 10, 5, 0, "new 10/10", "new 5"),
    ("PS-2", 5, 10, 0, "old 3/3; new 2/2", "new 4, old 6"),
    ("PS-3", 5, 3, 0, "old 3/3; new 2/2", "new 1, old 2"),
    ("PS-4", 9, 4, 0, "old 1/1; new 8/8", "new 4, old 0"),
    (
        "PS-5",
        7,
        10,
        0,
        "older 2/2; old 3/3; new 2/2",
        "new 3, old 4, older 3",
    ),
    (
        "PS-6",
        13,
        8,
        0,
        "older 3/3; old 8/8; new 2/2",
        "new 1, old 5, older 2",
    ),
    (
        "PS-7",
        3,
        4,
        0,
        "older 1/1; old 1/1; new 1/1",
        "new 2, old 1, older 1",
    ),
    (
        "PS-8",
        3,
        2,
        0,
        "older 1/1; old 1/1; new 1/1",
        "new 1, old 1, older 0",
    ),
    ("PS-9", 4, 5, 0, "older 2/2; old 2/2", "old 3, older 2"),
    (
        "the last share is what is left",
        18,
        23,
        0,
        "older 6/6; old 6/6; new 6/6",
        "new 8, old 8, older 7",
    ),
    (
        "PS-10",
        6,
        0,
        0,
        "older 3/3; old 2/2; new 1/1",
        "new 0, old 0, older 0",
    ),
    (
        "nothing is left of maxSurge, either",
        6,
        0,
        3,
        "older 3/3; old 2/2; new 1/1",
        "new 0, old 0, older 0",
    ),
    (
        "nothing is left for a set that would shrink",
        10,
        12,
        0,
        "old 6/6 desired=6 max=6; new 4/4 desired=20 max=20",
        "new 4, old 8",
    ),
    ("PS-13", 10, 20, 2, "old 6/6; new 6/6", "new 11, old 11"),
    ("PS-15", 10, 14, 0, "older 3/3; old 7/7", "old 10, older 4"),
    ("PS-16", 10, 30, 3, "old 8/8; new 5/5", "new 13, old 20"),
    (
        "PS-17",
        100,
        120,
        20,
        "old 100/100 terminating=7; new 20/20",
        "new 23, old 117",
    ),
    ("PS-18", 10, 11, 3, "old 8/8; new 5/5", "new 5, old 9"),
    ("PS-19", 10, 1, 3, "old 8/8; new 5/5", "new 2, old 2"),
    ("PS-20", 10, 5, 3, "old 8/8; new 5/5", "new 3, old 5"),
    ("PS-20", 10, 20, 3, "old 8/8; new 5/5", "new 9, old 14"),
    ("PS-21", 10, 12, 3, "old 13/13; new 0/0", "new 0, old 12"),
    ("PS-22", 10, 3, 0, "old 7/7; new 3/3", "new 1, old 2"),
    ("PS-31", 2, 1, 0, "old 2/2", "old 1"),
];

#[test]
fn p_42_p_43_p_44_shares_of_a_changed_size() {
    for (scenario, before, after, surge, sets, sizes) in SHARES {
        let mut world = scaled(before, after, surge, sets);
        let plan = world.sync();
        assert_eq!(world.sizes(), sizes, "{scenario}");
        assert!(plan.deviations.is_empty(), "{scenario}");
        // P-45: every active set has the new annotations.
        for set in world.web.sets.iter().filter(|set| set.status.replicas > 0) {
            assert_eq!(
                annotation(set, DESIRED),
                after.to_string(),
                "{scenario}: {}",
                set.name
            );
            assert_eq!(
                annotation(set, MAX),
                (after + surge).to_string(),
                "{scenario}: {}",
                set.name
            );
        }
        assert!(!phases(&plan).contains(&PhaseKind::Creates), "{scenario}: P-11");
    }
}

#[test]
fn p_44_a_changed_surge_counts_with_the_annotation_of_before() {
    // PS-14: maxSurge 3 became 6.
    let mut world = scaled(10, 50, 6, "old 8/8 desired=10 max=13; new 5/5 desired=10 max=13");
    world.sync();
    assert_eq!(world.sizes(), "new 22, old 34");
}

#[test]
fn p_45_annotation_only_writes_emit_no_event() {
    // PS-18. P-67: only proportional scaling writes a set that keeps its size.
    let world = scaled(10, 11, 3, "old 8/8; new 5/5");
    let plan = world.plan();
    assert_eq!(events(&plan), ["Scaled up replica set old from 8 to 9"]);
    let patch = set_patch(&plan, "new").expect("the annotations are written");
    assert!(patch.get("spec").is_none(), "{patch}");
    assert_eq!(patch["metadata"]["annotations"][DESIRED], "11");
    assert_eq!(patch["metadata"]["annotations"][MAX], "14");
    assert_eq!(patch["metadata"]["resourceVersion"], "3", "P-4");
}

#[test]
fn p_42_a_paused_deployment_is_scaled_too() {
    // (scenario, replicas, sets, sizes)
    let table = [
        (
            "PS-11",
            6,
            "older 0/0 desired=3; old 0/0 desired=3; new 0/0 desired=3",
            "new 6, old 0, older 0",
        ),
        (
            "PS-11, without a new set",
            6,
            "older 0/0; old 0/0",
            "old 6, older 0",
        ),
        ("PS-24", 3, "old 2/2; new 3/3 desired=3 max=3", "new 3, old 0"),
        ("PS-90", 10, "new 1/1 desired=1 max=1", "new 10"),
        ("P-42 without sets", 3, "", ""),
    ];
    for (scenario, replicas, sets, sizes) in table {
        let mut world = World::new(replicas).rolling("0", "1").with(sets);
        world.web.paused = true;
        world.sync();
        assert_eq!(world.sizes(), sizes, "{scenario}");
    }
}

#[test]
fn p_42_the_saturated_new_set_makes_the_old_ones_go() {
    // PS-23: not saturated, because no pod is available; the sizes add up already.
    let mut world = World::new(2)
        .rolling("1", "1")
        .with("old 1/1 desired=2 max=3; new 2/0 desired=2 max=3");
    world.web.paused = true;
    world.sync();
    assert_eq!(world.sizes(), "new 2, old 1");
    // The newest old set goes first.
    let mut world = World::new(2).with("a 1/1; b 1/1; new 2/2 desired=2 max=3 rev=5");
    world.web.paused = true;
    let plan = world.plan();
    assert_eq!(
        events(&plan),
        [
            "Scaled down replica set b from 1 to 0",
            "Scaled down replica set a from 1 to 0"
        ]
    );
}

#[test]
fn p_41_what_is_a_scaling_event() {
    // PS-12: a plan was applied in part. Only the middle set has the annotations of another size, and gets its share.
    let mut world = World::new(5).rolling("0", "1").with(
        "older 1/1 desired=5 max=5 rev=1; old 1/1 desired=3 max=3 rev=2; new 2/2 desired=5 max=5 rev=3",
    );
    let plan = world.sync();
    assert_eq!(world.sizes(), "new 2, old 2, older 1");
    assert_eq!((set_patch(&plan, "new"), set_patch(&plan, "older")), (None, None));
    // PS-25: an invalid annotation is no scaling event. The rolling update scales.
    let mut world = World::new(12).with("new 10/10 desired=ten rev=1");
    let plan = world.sync();
    assert_eq!(world.sizes(), "new 12");
    assert_eq!(phases(&plan)[0], PhaseKind::ReplicaSets);
    // PS-32: (annotation, whether it makes a scaling event for 3 replicas). Only a scaling event leads to proportional sizes.
    for (value, is_due) in [
        ("", false),
        ("-1", false),
        ("+3", false),
        ("invalid", false),
        ("2147483648", false),
        ("3", false),
        ("0", true),
        ("2147483647", true),
    ] {
        let mut world = World::new(3).rolling("0", "1").with("old 1/1; new 1/1 rev=2");
        annotate(&mut world.web.sets[0], DESIRED, value);
        annotate(&mut world.web.sets[0], MAX, "2");
        let plan = world.sync();
        // A rolling update would first scale the new set to 2.
        let expected = if is_due { "new 1, old 2" } else { "new 2, old 1" };
        assert_eq!(world.sizes(), expected, "P-41: {value:?}, {:?}", events(&plan));
    }
    // Without an active set there is no scaling event.
    let mut world = World::new(3).with("new 0/0 desired=7 rev=1");
    world.sync();
    assert_eq!(world.sizes(), "new 3");
}

#[test]
fn p_42_refreshed_annotations_end_the_deadlock() {
    // The only active set has the right size, but its annotation is of another size: upstream never comes to the rollout.
    let deadlock = || {
        World::new(2)
            .rolling("0", "1")
            .with("old 2/2 desired=3 max=3; new 0/0 desired=3 max=3 rev=2")
    };
    let mut world = deadlock();
    for _ in 0..3 {
        world.sync();
    }
    assert_eq!(world.sizes(), "new 0, old 2", "upstream is stuck");
    let mut world = deadlock().deviating(&[Deviation::RefreshDesiredReplicas]);
    let plan = world.sync();
    assert!(plan.deviations.contains(&Deviation::RefreshDesiredReplicas));
    assert_eq!(annotation(world.find("old"), DESIRED), "2");
    world.sync();
    assert_eq!(world.sizes(), "new 0, old 1", "the rollout goes on");
    // Recreate with two active sets: upstream does nothing for ever.
    let stuck = || {
        World::new(4)
            .recreate()
            .with("a 2/2 desired=3 max=3; b 1/1 desired=3 max=3")
    };
    let mut world = stuck();
    world.sync();
    world.sync();
    assert_eq!(world.sizes(), "a 2, b 1", "P-42 (d)");
    let mut world = stuck().deviating(&[Deviation::RefreshDesiredReplicas]);
    world.sync();
    let plan = world.sync();
    assert_eq!(world.sizes(), "a 0, b 0");
    assert!(plan.deviations.is_empty(), "nothing differs any more");
}

#[test]
fn p_44_wide_numbers_do_not_overflow() {
    let huge = || {
        World::new(60_000)
            .rolling("0", "1")
            .with("old 50000/1 desired=50000 max=50000; new 100/1 desired=50000 max=50000 rev=2")
    };
    let mut world = huge();
    world.sync();
    let upstream = world.sizes();
    let mut world = huge().deviating(&[Deviation::WideProportions]);
    let plan = world.sync();
    assert!(plan.deviations.contains(&Deviation::WideProportions));
    assert_eq!(world.sizes(), "new 100, old 59900");
    assert_ne!(upstream, world.sizes());
    // Without an overflow nothing differs.
    let mut world = scaled(10, 20, 2, "old 6/6; new 6/6").deviating(&[Deviation::WideProportions]);
    assert!(world.sync().deviations.is_empty());
}

#[test]
fn p_45_annotations_are_written_if_either_differs() {
    // (annotations of the set that keeps its size, what is written); another set makes it a scaling event.
    for (annotations, written) in [
        ("desired=5 max=4", true),
        ("desired=4 max=5", true),
        ("desired=5 max=5", false),
    ] {
        let world = World::new(5).rolling("0", "1").with(&format!(
            "older 1/1 {annotations} rev=1; old 1/1 desired=3 max=3 rev=2; new 2/2 desired=5 max=5 rev=3"
        ));
        let patch = set_patch(&world.plan(), "older");
        assert_eq!(patch.is_some(), written, "{annotations}");
    }
}

#[test]
fn p_43_without_a_change_of_the_sum_the_new_set_comes_last() {
    let plan = scaled(10, 12, 1, "a 3/3; b 4/4; new 6/6").plan();
    let names: Vec<_> = actions(&plan, PhaseKind::ReplicaSets)
        .into_iter()
        .map(|action| action.message.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(names, ["b", "a", "new"]);
}
