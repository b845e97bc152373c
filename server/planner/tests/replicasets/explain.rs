//! Explanations of a ReplicaSet and its pods.

use nodewise_planner::{
    replicaset::{explain, explain_until},
    snapshot::{OwnWrite, Selector},
};

use crate::support::World;

fn message(world: &World) -> String {
    explain(&world.snapshot()).message
}

#[test]
fn the_message_says_what_happens_next() {
    type Change = fn(&mut World);
    let table: [(&str, Change, &str); 9] = [
        ("complete", |_| {}, ""),
        ("missing", |world| world.rs.replicas = 5, " 3 must be created."),
        (
            "more than the burst",
            |world| (world.rs.replicas, world.options.burst) = (500, 9),
            " 498 must be created, 9 of them in the next plan.",
        ),
        ("too many", |world| world.rs.replicas = 0, " 2 must be deleted."),
        (
            "being deleted",
            |world| world.rs.deleting = true,
            " It is being deleted, so no pods are created or deleted.",
        ),
        (
            "expectations",
            |world| world.expect(&["x"], &["y", "z"], 0),
            " The caches do not show 1 creates and 2 deletes of earlier plans yet.",
        ),
        (
            "pods that leave",
            |world| {
                world.pod("x@n ready deleting");
            },
            " 1 more are being deleted; they do not count.",
        ),
        (
            "selector",
            |world| world.rs.selector = Some(Selector::default()),
            " Its selector is absent or empty, so nothing is done.",
        ),
        (
            "scope",
            |world| world.options.scope = nodewise_planner::snapshot::Scope::Rollouts,
            " Another controller manages it.",
        ),
    ];
    for (what, change, expected) in table {
        let mut world = World::new(2).with(&["a@n ready", "b@n ready"]);
        change(&mut world);
        let has = if what == "selector" { 0 } else { 2 };
        let expected = format!("web has {has} of {} pods.{expected}", world.rs.replicas);
        assert_eq!(message(&world), expected, "{what}");
    }
    let mut snapshot = World::new(0).snapshot();
    snapshot.own_writes = vec![OwnWrite {
        resource: "pods".to_owned(),
        written: "9".to_owned(),
        observed: "8".to_owned(),
    }];
    let expected = "web has 0 of 0 pods. Nothing is done until the caches show the last writes: the cache of pods is at version 8, \
                    behind our own write at 9.";
    assert_eq!(explain(&snapshot).message, expected);
}

#[test]
fn r_39_each_pod_has_its_place() {
    let pods = [
        "a@m ready",
        "b@ pending",
        "c@n",
        "d@n failed",
        "e@n ready deleting",
        "f@n succeeded deleting",
        "g@n foreign",
        "h@n stray",
    ];
    let explanation = explain(&World::new(3).with(&pods).snapshot());
    let pods: Vec<_> = explanation
        .pods
        .iter()
        .map(|pod| (&*pod.pod_name, &*pod.node_name, pod.place, &*pod.message))
        .collect();
    assert_eq!(
        pods,
        [
            (
                "b",
                "",
                Some(1),
                "It is deleted before c: it is not bound to a node."
            ),
            ("c", "n", Some(2), "It is deleted before a: it is not ready."),
            ("a", "m", Some(3), "It is deleted last."),
            (
                "d",
                "n",
                None,
                "It has finished, and does not count. The ReplicaSet leaves it alone."
            ),
            ("e", "n", None, "It is being deleted, and does not count."),
            (
                "f",
                "n",
                None,
                "It has finished and is being deleted, and does not count."
            ),
        ]
    );
}

#[test]
fn an_explanation_can_be_stopped() {
    assert_eq!(
        explain_until(&World::new(1).with_ready(1).snapshot(), &|| true),
        None
    );
}
