//! The revision of the new set, and what the set takes over from the Deployment (P-18 to P-23).

use nodewise_planner::plan::{PhaseKind, Reason};
use serde_json::json;

use crate::support::{
    DESIRED, HISTORY, MAX, REVISION, World, actions, annotate, annotation, condition_of, set_patch, status,
    status_patch,
};

#[test]
fn p_18_p_20_revisions_grow() {
    // PS-68
    let mut world = World::new(3).with("old 3/3 rev=3546343826724305832");
    world.sync();
    let set = world.web.sets.last().expect("a set was created");
    assert_eq!(annotation(set, REVISION), "3546343826724305833");
    // PS-69: an undo. The set is written first, the Deployment with the next plan.
    let mut world = World::new(3).with("new 0/0 rev=1 desired=3 max=4; old 3/3 rev=2 desired=3 max=4");
    world.sync();
    let set = world.find("new");
    assert_eq!((annotation(set, REVISION), annotation(set, HISTORY)), ("3", "1"));
    assert_eq!(world.web.annotations, []);
    world.sync();
    assert_eq!(
        world.web.annotations,
        [(REVISION.to_owned(), "3".to_owned())],
        "P-23"
    );
}

#[test]
fn p_18_p_20_odd_revisions() {
    // (what, revision of the new set, of the old set, afterwards, history)
    let table = [
        ("missing counts as 0", "-", "-", "1", ""),
        ("no number is skipped", "1", "x", "1", ""),
        ("never lower", "7", "2", "7", ""),
        ("empty counts as 0 and is recorded", "", "2", "3", ""),
        ("P-21 no number stays", "abc", "2", "abc", ""),
        ("the next number overflows", "5", "9223372036854775807", "5", ""),
        ("a negative one counts as less than 0", "1", "-4", "1", ""),
    ];
    for (what, new, old, expected, history) in table {
        let mut world = World::new(3).with("new 3/3; old 0/0");
        for (index, revision) in [new, old].into_iter().enumerate() {
            if revision != "-" {
                annotate(&mut world.web.sets[index], REVISION, revision);
            }
        }
        world.sync();
        let set = world.find("new");
        assert_eq!(
            (annotation(set, REVISION), annotation(set, HISTORY)),
            (expected, history),
            "P-20 {what}"
        );
    }
    // After an overflow a created set has no revision, and the Deployment has the negative number.
    let mut world = World::new(3).with("old 0/0 rev=9223372036854775807");
    world.sync();
    assert_eq!(annotation(world.web.sets.last().expect("created"), REVISION), "");
    assert_eq!(
        world.web.annotations,
        [(REVISION.to_owned(), "-9223372036854775808".to_owned())]
    );
}

#[test]
fn p_21_a_bad_revision_holds_up_the_copies() {
    // PS-71
    let world = World::new(3).with("new 3/3 rev=abc").annotated("note", "x");
    let plan = world.plan();
    assert_eq!(set_patch(&plan, "new"), None);
    assert_eq!(
        status_patch(&plan).expect("a write")["metadata"]["annotations"],
        json!({REVISION: "abc"})
    );
    let mut with_seconds = world.clone();
    with_seconds.web.min_ready_seconds = 5;
    let plan = with_seconds.plan();
    let patch = set_patch(&plan, "new").expect("a write");
    assert_eq!(patch["metadata"]["annotations"], json!({"note": "x"}));
    assert_eq!(patch["spec"], json!({"minReadySeconds": 5}));
    assert!(
        status_patch(&plan).expect("a write")["metadata"]
            .get("annotations")
            .is_none()
    );
    // A change of the size carries the copies, too.
    let mut scaled = world;
    scaled.web.replicas = 2;
    let patch = set_patch(&scaled.plan(), "new").expect("a write");
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({"note": "x", DESIRED: "2", MAX: "3"})
    );
}

#[test]
fn p_19_p_22_the_new_set_follows_the_deployment() {
    // PS-73, PS-74
    let mut world = World::new(3)
        .with("new 3/3 rev=1 min=3 note=old; old 0/0 rev=0")
        .annotated("test", "a")
        .annotated("kubectl.kubernetes.io/last-applied-configuration", "{}");
    world.web.min_ready_seconds = 7;
    let plan = world.sync();
    let patch = set_patch(&plan, "new").expect("one write");
    assert_eq!(patch["metadata"]["annotations"], json!({"test": "a"}));
    assert_eq!(patch["spec"], json!({"minReadySeconds": 7}));
    assert_eq!(
        annotation(world.find("new"), "note"),
        "old",
        "an annotation is never removed"
    );
    assert_eq!(
        world.web.annotations.len(),
        2,
        "P-22: the Deployment's revision comes with the next plan"
    );
    assert_eq!(
        condition_of(&status(&plan), "Progressing"),
        "True NewReplicaSetAvailable"
    );
    // Only in the next plan the condition would be FoundNewReplicaSet; now there is one already.
    let plan = world.sync();
    assert_eq!(world.web.annotations.len(), 3);
    assert_eq!(
        actions(&plan, PhaseKind::Status)[0].reason,
        Reason::MetadataChanged
    );
}

#[test]
fn p_22_p_32_a_set_that_follows_and_grows_is_written_once() {
    let world = World::new(4).with("new 2/2 rev=1").annotated("test", "a");
    let plan = world.plan();
    assert_eq!(actions(&plan, PhaseKind::ReplicaSets).len(), 1, "P-3");
    let patch = set_patch(&plan, "new").expect("one write");
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({"test": "a", DESIRED: "4", MAX: "5"})
    );
    assert_eq!(patch["spec"], json!({"replicas": 4}));
}

#[test]
fn a_write_that_changes_no_size_says_what_follows() {
    // (set, minReadySeconds of the Deployment, what the action says)
    for (set, seconds, message) in [
        (
            "new 3/3 rev=1 min=5",
            7,
            "new follows the Deployment: minReadySeconds 7",
        ),
        (
            "new 3/3",
            0,
            "new follows the Deployment: deployment.kubernetes.io/revision",
        ),
        (
            "new 3/3 min=5",
            7,
            "new follows the Deployment: deployment.kubernetes.io/revision, minReadySeconds 7",
        ),
    ] {
        let mut world = World::new(3).with(set);
        world.web.min_ready_seconds = seconds;
        let plan = world.plan();
        let found: Vec<_> = actions(&plan, PhaseKind::ReplicaSets)
            .into_iter()
            .map(|action| &*action.message)
            .collect();
        assert_eq!(found, [message]);
    }
}
