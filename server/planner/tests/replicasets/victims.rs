//! Which pods are deleted.

use nodewise_planner::{plan::PhaseKind, replicaset::ReplicaSet, snapshot::Pod};

use crate::support::{World, actions, deletes};

/// The pods that a plan deletes if `count` of the world's pods are too many.
fn victims(world: &World, count: usize) -> Vec<String> {
    let replicas = i32::try_from(world.pods.len() - count).expect("few pods");
    let world = World {
        rs: ReplicaSet {
            replicas,
            ..world.rs.clone()
        },
        ..world.clone()
    };
    deletes(&world.plan()).into_iter().map(str::to_owned).collect()
}

#[test]
fn r_36_all_pods_are_deleted_by_name() {
    // Scenario 49.
    let pods = [
        "f@n ready",
        "e@n ready",
        "d@n",
        "c@n pending",
        "b@ pending",
        "a@n ready cost=-5",
    ];
    let world = World::new(0).with(&pods);
    assert_eq!(victims(&world, 6), ["a", "b", "c", "d", "e", "f"]);
    // Not ranked, so nothing is said about the order.
    let mut world = world;
    world.rs.replicas = -1;
    assert_eq!(
        actions(&world.plan(), PhaseKind::Deletes)[0].message,
        "there are 6 pods, and -1 are wanted"
    );
}

/// What, related pods by node, pods, and the victims in order.
type Row = (
    &'static str,
    &'static [(&'static str, u32)],
    &'static [&'static str],
    &'static [&'static str],
);

const RANKING: [Row; 36] = [
    ("scenario 44", &[], &["a@n pending", "b@ pending"], &["b"]),
    ("scenario 45", &[], &["a@n ready", "b@n"], &["b"]),
    ("scenario 46", &[], &["a@n", "b@n pending"], &["b"]),
    (
        "scenario 47",
        &[],
        &["a@n1 ready", "b@n2 ready", "c@n1", "d@n1 pending", "e@ pending"],
        &["e", "d", "c"],
    ),
    (
        "R-39.1: before all else",
        &[],
        &["a@n pending cost=-9", "b@ ready cost=9"],
        &["b"],
    ),
    (
        "R-39.1: two nodes do not compare",
        &[],
        &["a@n1 uid=2", "b@n2 uid=1"],
        &["b"],
    ),
    ("R-39.2", &[], &["a@n", "b@n unknown", "c@n pending"], &["c", "b"]),
    (
        "R-39.2: before readiness",
        &[],
        &["a@n unready", "b@n unknown ready"],
        &["b"],
    ),
    (
        "R-39.3: before costs",
        &[],
        &["a@n ready cost=-9", "b@n cost=9"],
        &["b"],
    ),
    (
        "scenario 48: R-38",
        &[("n1", 1), ("n2", 2)],
        &["a@n1 ready", "b@n2 ready"],
        &["b"],
    ),
    (
        "R-38: without related pods",
        &[("n2", 2)],
        &["a@n1 ready", "b@n2 ready"],
        &["b"],
    ),
    (
        "R-38: pods without a node",
        &[("", 3)],
        &["a@ t=5", "b@ t=50", "c@n pending"],
        &["a", "b"],
    ),
    (
        "scenario 50: R-41",
        &[("n1", 2), ("n2", 1)],
        &["b@n2 ready cost=100", "a@n1 ready cost=10"],
        &["a"],
    ),
    (
        "scenario 51",
        &[],
        &["a@n ready cost=1000 restarts=5", "b@n ready cost=100"],
        &["b"],
    ),
    (
        "scenario 51: equal costs",
        &[],
        &["a@n ready cost=100 restarts=5", "b@n ready cost=100"],
        &["a"],
    ),
    (
        "R-39.4: before related pods",
        &[("n1", 9)],
        &["a@n1 ready", "b@n2 ready cost=-1"],
        &["b"],
    ),
    (
        "scenario 52",
        &[],
        &["a@n ready", "b@n ready restarts=9001"],
        &["b"],
    ),
    (
        "scenario 52: rank",
        &[("m", 2), ("n", 1)],
        &["a@m ready", "b@n ready restarts=9001"],
        &["a"],
    ),
    (
        "scenario 53",
        &[],
        &["a@n ready restarts=2", "b@n ready restarts=2 sidecar=1"],
        &["b"],
    ),
    (
        "R-39.7: regular ones first",
        &[],
        &["a@n restarts=1 sidecar=9", "b@n restarts=2"],
        &["b"],
    ),
    ("scenario 54", &[], &["a@n since=18000", "b@n since=7200"], &["b"]),
    (
        "scenario 55",
        &[],
        &["a@n since=18000 uid=2", "b@n since=28800 uid=1"],
        &["b"],
    ),
    (
        "scenario 55: and the other way",
        &[],
        &["a@n since=18000 uid=1", "b@n since=28800 uid=2"],
        &["a"],
    ),
    (
        "an adopted pod goes before one that is ready since another time by its uid",
        &[],
        &["a@n since=18000 uid=2", "b@n orphan since=28800 uid=1"],
        &["b"],
    ),
    (
        "an adopted pod stays behind one that is ready since another time by its uid",
        &[],
        &["a@n since=18000 uid=1", "b@n orphan since=28800 uid=2"],
        &["a"],
    ),
    (
        "an adopted pod passes only those that it comes before",
        &[],
        &[
            "c@n since=28800 uid=5 t=1",
            "a@n since=18000 uid=9 t=9",
            "d@n orphan since=18000 uid=7 restarts=5 t=5",
        ],
        &["c", "d"],
    ),
    (
        "an adopted pod stays behind one of the same uid",
        &[],
        &["a@n since=18000 uid=1", "b@n orphan since=28800 uid=1"],
        &["a"],
    ),
    ("scenario 56", &[], &["a@n since=0", "b@n since="], &["b"]),
    (
        "R-39.6: before restarts",
        &[],
        &["a@n since=60 restarts=1", "b@n since=1"],
        &["b"],
    ),
    (
        "R-39.6: only if both are ready",
        &[],
        &["a@n since= restarts=1", "b@n since= restarts=2"],
        &["b"],
    ),
    ("R-39.8", &[], &["a@n t=100", "b@n t=1"], &["b"]),
    ("R-39.8: unknown", &[], &["a@n t=0", "b@n t="], &["b"]),
    (
        "R-39.8: same power of two",
        &[],
        &["a@n t=18000 uid=2", "b@n t=28800 uid=1"],
        &["b"],
    ),
    (
        "R-40: the future and now are one",
        &[],
        &["a@n t=0 uid=2", "b@n t=-50 uid=1", "c@n t=0.001 uid=0"],
        &["b", "a"],
    ),
    (
        "scenario 75: adopted pods last",
        &[],
        &["a@n ready orphan uid=1", "b@n ready uid=2", "c@n ready uid=3"],
        &["b", "c"],
    ),
    (
        "scenario 76",
        &[],
        &[
            "a@n since=20000 t=30000 uid=1",
            "b@n since=20000 t=70000 uid=4",
            "c@n since=21000 t=30000 uid=3",
        ],
        &["a", "c"],
    ),
];

// related pods, costs, sidecars and powers of two count, too.
#[test]
fn r_39_the_order_of_deletion() {
    for (what, related, pods, expected) in RANKING {
        let world = World::new(0).with(pods).related(related);
        assert_eq!(victims(&world, expected.len()), expected, "{what}");
        // The order of the snapshot does not matter.
        let mut turned = world.clone();
        turned.pods.reverse();
        assert_eq!(victims(&turned, expected.len()), expected, "{what}");
    }
}

#[test]
fn r_41_costs_count_only_with_the_gate() {
    // Scenario 50: the gate is off, so related pods decide.
    let mut world = World::new(0)
        .with(&["a@n1 ready cost=10", "b@n2 ready cost=100"])
        .related(&[("n1", 1), ("n2", 2)]);
    assert_eq!(victims(&world, 1), ["a"]);
    world.options.pod_deletion_cost = false;
    assert_eq!(victims(&world, 1), ["b"]);
}

#[test]
fn r_41_the_annotation() {
    let table = [
        ("", 0),
        ("0", 0),
        ("-0", 0),
        ("7", 7),
        ("-7", -7),
        ("-007", -7),
        ("007", 0),
        ("00", 0),
        ("+7", 0),
        ("7.0", 0),
        (" 7", 0),
        ("x", 0),
        ("2147483647", i32::MAX),
        ("2147483648", 0),
        ("-2147483648", i32::MIN),
        ("-2147483649", 0),
    ];
    for (annotation, cost) in table {
        assert_eq!(Pod::deletion_cost_of(annotation), cost, "{annotation:?}");
    }
}

#[test]
fn r_42_where_upstream_goes_in_circles_the_result_is_fixed() {
    // A before B before C before A, all in one power of two.
    let circle = [
        "a@n since=20000 restarts=5 uid=c",
        "b@n since=20000 uid=a",
        "c@n since=21000 uid=b",
    ];
    assert_eq!(victims(&World::new(0).with(&circle), 2), ["b", "c"]);
    // B before C before A, though A and B are equal.
    let circle = ["a@n t=20000 uid=c", "b@n t=20000 uid=a", "c@n t=21000 uid=b"];
    assert_eq!(victims(&World::new(0).with(&circle), 2), ["b", "c"]);
}

#[test]
fn messages_say_why_a_pod_goes() {
    let table = [
        ("b@ ready", "it is not bound to a node"),
        ("b@n pending", "it is pending"),
        ("b@n unknown", "its phase is unknown"),
        ("b@n", "it is not ready"),
        ("b@n ready cost=-1", "its deletion cost is lower (-1)"),
        ("b@m ready", "its node has more related pods (2)"),
        ("b@n since=5", "it became ready more recently"),
        (
            "b@n ready restarts=3",
            "its containers restarted more often (3 times)",
        ),
        (
            "b@n ready sidecar=3",
            "its sidecars restarted more often (3 times)",
        ),
        ("b@n ready t=5", "it is younger"),
        ("b@n ready uid=0", "the others are alike, and the uids decide"),
        (
            "b@n since=86000 uid=0",
            "the others are alike, and the uids decide",
        ),
    ];
    for (pod, why) in table {
        let mut world = World::new(1)
            .with(&["a@n ready", pod])
            .related(&[("m", 2), ("n", 1)]);
        let plan = world.plan();
        let delete = actions(&plan, PhaseKind::Deletes)[0];
        assert_eq!(deletes(&plan), ["b"], "{pod}");
        assert_eq!(
            delete.message,
            format!("there are 2 pods, and 1 are wanted; {why}"),
            "{pod}"
        );
        world.rs.replicas = 2;
        assert!(deletes(&world.plan()).is_empty());
    }
}
