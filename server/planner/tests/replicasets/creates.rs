//! Creates: how many, in which batches, what is outstanding, and the manifest.

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_planner::{
    plan::{ActionKind, PhaseKind, Reason, Verdict},
    report::{OutcomeResult, come_back},
    snapshot::{Deviation, Options, SlowStart},
};
use serde_json::{Value, json};

use crate::support::{
    World, actions,
    apply::{all_of, creates_until},
    batches, condition, counts, creates, edit_template, numbers, outstanding, status,
};

#[test]
fn r_26_missing_pods_are_created() {
    // (scenario, replicas, ready pods, burst, creates)
    let table = [
        ("scenario 1: R-35", 2, 2, 500, 0),
        ("scenario 2", 2, 1, 500, 1),
        ("scenario 10", 1_200, 0, 500, 500),
        ("scenario 13: the burst is larger than the need", 2, 0, 3, 2),
        ("scenario 11: the burst is smaller than the need", 12, 0, 5, 5),
        ("no replicas", 0, 0, 500, 0),
    ];
    for (what, replicas, ready, burst, expected) in table {
        let world = World::new(replicas).burst(burst).with_ready(ready).settled();
        let plan = world.plan();
        assert_eq!(counts(&plan), (expected, 0), "{what}");
        assert_eq!(outstanding(&plan.state), (expected, 0), "{what}");
        // the status counts the pods before the creates.
        assert_eq!(status(&plan).replicas, i32::try_from(ready).unwrap(), "{what}");
        assert_eq!(plan.verdict == Verdict::Noop, expected == 0, "{what}");
    }
}

#[test]
fn r_27_batches_double_from_one() {
    // (scenario, creates, batches)
    let table: [(&str, i32, &[usize]); 4] = [
        ("scenario 8", 10, &[1, 2, 4, 3]),
        ("one", 1, &[1]),
        ("three", 3, &[1, 2]),
        ("scenario 6", 100, &[1, 2, 4, 8, 16, 32, 37]),
    ];
    for (what, replicas, expected) in table {
        let plan = World::new(replicas).strict().plan();
        assert_eq!(batches(&plan, PhaseKind::Creates), expected, "{what}");
    }
}

#[test]
fn r_28_failed_and_skipped_creates_are_not_expected() {
    // (scenario, replicas, creates that succeed, calls, left outstanding)
    let table = [
        ("scenario 6", 100, 10, 15, 10),
        ("scenario 7", 10, 0, 1, 0),
        ("scenario 8", 10, 10, 10, 10),
        ("scenario 9", 10, 5, 7, 5),
    ];
    for (what, replicas, succeed, calls, left) in table {
        for mut world in [World::new(replicas), World::new(replicas).strict()] {
            let plan = world.plan();
            let mut tried = 0;
            let mut fate = creates_until(succeed);
            let outcomes = world.apply_with(&plan, &mut |action| {
                tried += usize::from(matches!(action.kind, ActionKind::CreatePod { .. }));
                fate(action)
            });
            assert_eq!(tried, calls, "{what}");
            assert_eq!(world.pods.len(), succeed, "{what}");
            // Without names an outcome does not say which of the expected creates it was.
            if !creates(&plan)[0].is_empty() {
                assert_eq!(outstanding(&world.state), (left, 0), "{what}");
            }
            //
            let back = come_back(&outcomes, None, None);
            assert_eq!(back.backoff, succeed < calls, "{what}: {back:?}");
        }
    }
}

#[test]
fn r_15_outstanding_creates_hold_up_further_ones_without_names() {
    // Scenarios 2 to 5.
    let mut world = World::new(2).strict().with(&["a@n ready"]).settled();
    let plan = world.plan();
    world.state = plan.state.clone();
    world.rs.status.replicas = 0;
    let waiting = world.plan();
    assert_eq!(
        (waiting.verdict, counts(&waiting)),
        (Verdict::StatusOnly, (0, 0)),
        "scenario 3"
    );
    assert_eq!(
        actions(&waiting, PhaseKind::Status).len(),
        1,
        "scenario 3: the status follows"
    );
    assert_eq!(outstanding(&waiting.state), (1, 0), "scenario 3");
    world.state.expectations = None;
    let plan = world.plan();
    world.apply_with(&plan, &mut creates_until(0));
    assert_eq!(outstanding(&world.state), (0, 0), "scenario 4");
    assert_eq!(counts(&world.plan()), (1, 0), "scenario 5");
}

#[test]
fn r_44_expectations_expire_after_five_minutes() {
    for (age, verdict) in [
        (0, Verdict::StatusOnly),
        (300, Verdict::StatusOnly),
        (301, Verdict::Apply),
    ] {
        let mut world = World::new(2).strict();
        world.expect(&["", ""], &[], age);
        let plan = world.plan();
        assert_eq!(plan.verdict, verdict, "{age}");
        assert_eq!(outstanding(&plan.state), (2, 0), "{age}");
        // upstream has no timer for that.
        assert_eq!(plan.requeue, None, "{age}");
    }
    let mut world = World::new(2);
    world.expect(&[""], &[], 0);
    let requeue = world.plan().requeue.expect("something expires");
    assert_eq!(requeue.delay, Duration::from_millis(300_001));
    assert!(world.plan().deviations.contains(&Deviation::EarliestRequeue));
}

#[test]
fn r_26_new_expectations_replace_old_ones() {
    let mut world = World::new(3);
    world.expect(&["x"], &["uid-of-y"], 1_000);
    let plan = world.plan();
    let expected = plan.state.expectations.as_ref().expect("creates are expected");
    assert_eq!((expected.creates.len(), expected.delete_uids.len()), (3, 0));
    assert_eq!(expected.set_at, world.now, "R-46");
}

#[test]
fn scenarios_10_and_11_rounds_of_a_burst() {
    // Upstream waits until all creates of a round are seen.
    let mut world = World::new(12).burst(5).strict();
    let mut rounds = Vec::new();
    while world.pods.len() < 12 {
        let plan = world.plan();
        rounds.push(creates(&plan).len());
        world.apply(&plan);
        // All but one event seen.
        world.expect(&[""], &[], 0);
        assert_eq!(counts(&world.plan()), (0, 0), "scenario 11");
        world.observe();
    }
    assert_eq!(rounds, [5, 5, 2]);
    // Nodewise goes on at once, and starts where it was.
    let mut world = World::new(12).burst(5);
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let plan = world.plan();
        rounds.push(batches(&plan, PhaseKind::Creates));
        let at_once = plan
            .requeue
            .as_ref()
            .is_some_and(|requeue| requeue.delay.is_zero());
        assert_eq!(at_once, rounds.len() < 3, "{:?}", plan.requeue);
        let mut other = world.clone();
        let outcomes = other.apply(&plan);
        let back = come_back(&outcomes, plan.requeue.map(|requeue| requeue.delay), None);
        assert!(!back.backoff, "the status after a failure is left out: {back:?}");
        // The caches show nothing yet.
        world.state = other.state;
    }
    assert_eq!(rounds, [vec![1, 2, 2], vec![5], vec![2]]);
    assert_eq!(counts(&world.plan()), (0, 0), "twelve creates are outstanding");
    assert_eq!(outstanding(&world.state), (12, 0));
}

#[test]
fn further_pods_are_created_while_named_creates_are_outstanding() {
    let first = World::new(2).plan();
    let names: Vec<_> = creates(&first).into_iter().map(str::to_owned).collect();
    let mut world = World::new(5);
    world.state = first.state.clone();
    world.now += SignedDuration::from_secs(7);
    let plan = world.plan();
    assert_eq!(counts(&plan), (3, 0));
    assert!(
        creates(&plan)
            .iter()
            .all(|name| names.iter().all(|known| known != name))
    );
    let expected = plan.state.expectations.as_ref().expect("five are outstanding");
    assert_eq!(expected.creates.len(), 5);
    assert_eq!(
        expected.set_at,
        first.state.expectations.as_ref().unwrap().set_at,
        "the older time stays"
    );
    assert!(plan.deviations.contains(&Deviation::SlowStartAcrossPlans));
    // Scenario 14: a pod that the snapshot shows is not counted twice.
    world.pods.clear();
    world.create(&names[0]);
    assert_eq!(counts(&world.plan()), (3, 0));
    // Not without the deviation, and not while deletes or creates without a name are outstanding.
    let without = world.clone().without(Deviation::SlowStartAcrossPlans);
    assert_eq!(without.plan().verdict, Verdict::StatusOnly);
    for (creates, deletes) in [(vec!["", "x"], vec![]), (vec!["x"], vec!["uid-of-y"])] {
        let mut waiting = world.clone();
        waiting.expect(&creates, &deletes, 0);
        assert_eq!(
            waiting.plan().verdict,
            Verdict::StatusOnly,
            "{creates:?} {deletes:?}"
        );
    }
    // There are already more than wanted.
    world.rs.replicas = 1;
    assert_eq!(world.plan().verdict, Verdict::StatusOnly);
}

#[test]
fn the_slow_start_begins_again_after_a_failure_and_after_a_pause() {
    let mut world = World::new(4);
    let plan = world.plan();
    world.apply(&plan);
    world.observe();
    world.rs.replicas = 20;
    let first = |world: &World| batches(&world.plan(), PhaseKind::Creates)[0];
    assert_eq!(first(&world), 5, "it goes on");
    assert_eq!(first(&world.clone().without(Deviation::SlowStartAcrossPlans)), 1);
    let mut later = world.clone();
    later.now += SignedDuration::from_secs(31);
    assert_eq!(first(&later), 1, "after a pause");
    let mut other = world.clone();
    other.rs.uid = "another".to_owned();
    assert_eq!(first(&other), 1, "another ReplicaSet");
    let plan = world.plan();
    world.apply_with(&plan, &mut creates_until(2));
    world.observe();
    assert_eq!(first(&world), 1, "after a failure");
}

#[test]
fn a_plan_says_when_the_slow_start_is_another_than_upstreams() {
    // (pods wanted, size of the next batch, whether the plan differs from upstream's)
    for (replicas, size, differs) in [
        (5, None, false),
        (5, Some(1), false),
        (5, Some(4), true),
        (1, Some(4), false),
    ] {
        let mut world = World::new(replicas);
        world.state.slow_start = size.map(|size| SlowStart {
            size,
            revision_hash: world.rs.uid.clone(),
            last: world.now,
        });
        let found = world.plan().deviations.contains(&Deviation::SlowStartAcrossPlans);
        assert_eq!(found, differs, "{replicas} pods, a batch of {size:?}");
    }
    // The burst cuts the creates: the next plan follows at once only then.
    for (replicas, differs) in [(5, false), (6, true)] {
        let plan = World::new(replicas).burst(5).plan();
        assert_eq!(
            plan.deviations.contains(&Deviation::SlowStartAcrossPlans),
            differs
        );
    }
}

#[test]
fn r_29_a_terminating_namespace() {
    // Four wanted: four calls, no failure. Upstream expects them until they expire.
    for (mut world, left) in [(World::new(4).strict(), 4), (World::new(4), 0)] {
        let plan = world.plan();
        let result = OutcomeResult::NamespaceTerminating;
        let outcomes = world.apply_with(&plan, &mut all_of(&plan, PhaseKind::Creates, result));
        let back = come_back(&outcomes, None, None);
        assert!(!back.backoff, "{back:?}");
        assert_eq!(outstanding(&world.state), (left, 0));
        assert!(world.rs.status.conditions.is_empty(), "no failure, no condition");
    }
}

fn manifest(world: &World) -> Value {
    let manifest = world.plan().pod_manifest.expect("pods are created");
    assert_eq!(manifest.node_name_pointers, [""; 0]);
    serde_json::from_slice(&manifest.json).expect("a manifest is JSON")
}

#[test]
fn r_30_the_manifest_of_the_pods() {
    let mut world = World::new(1);
    edit_template(&mut world.rs, |template| {
        *template = json!({
            "metadata": {
                "labels": {"app": "web", "pod-template-hash": "h"}, "annotations": {"a": "b"}, "finalizers": ["f/x"],
                "name": "n", "creationTimestamp": null,
            },
            "spec": {"containers": [{"name": "c"}], "nodeName": "n", "aFieldOfTheFuture": [{"x": 1}]},
        });
    });
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"app": "web", "pod-template-hash": "h"},
            "annotations": {"a": "b"},
            "finalizers": ["f/x"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-of-web",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"containers": [{"name": "c"}], "nodeName": "n", "aFieldOfTheFuture": [{"x": 1}]},
    });
    assert_eq!(manifest(&world), expected);
    let mut generated = expected;
    generated["metadata"]["generateName"] = "web-".into();
    assert_eq!(manifest(&world.strict()), generated);
}

#[test]
fn r_30_the_prefix_of_generated_names() {
    let long = "a".repeat(253);
    // (name, prefix)
    let table = [
        ("web", "web-".to_owned()),
        ("a", "a-".to_owned()),
        ("a.b", "a.b-".to_owned()),
        (&long, format!("{long}-")),
        // No apiserver has such names.
        ("Web", "Web".to_owned()),
        ("-web", "-web".to_owned()),
        ("", "-".to_owned()),
    ];
    for (name, prefix) in table {
        let mut world = World::new(1).strict();
        name.clone_into(&mut world.rs.name);
        assert_eq!(manifest(&world)["metadata"]["generateName"], prefix, "{name}");
    }
}

#[test]
fn r_30_without_labels_no_create_is_tried() {
    for present in [None, Some(condition("ReplicaFailure", "FailedDelete", "before"))] {
        let mut world = World::new(2);
        world.rs.status.conditions.extend(present.clone());
        edit_template(&mut world.rs, |template| template["metadata"] = json!({}));
        let plan = world.plan();
        assert_eq!(plan.error.as_deref(), Some("unable to create pods, no labels"));
        assert_eq!((counts(&plan), outstanding(&plan.state)), ((0, 0), (0, 0)));
        assert_eq!(plan.pod_manifest, None);
        // the error is known, so the status has it at once.
        let conditions = status(&plan).conditions;
        match present {
            None => {
                assert_eq!(
                    (&*conditions[0].reason, &*conditions[0].message),
                    ("FailedCreate", "unable to create pods, no labels")
                );
                assert_eq!(actions(&plan, PhaseKind::Status)[0].reason, Reason::WritesFailed);
            }
            Some(present) => assert_eq!(conditions, [present]),
        }
        assert!(actions(&plan, PhaseKind::Failure).is_empty());
    }
}

#[test]
fn r_63_finished_and_terminating_pods_are_replaced_at_once() {
    // Scenario 36.
    let world = World::new(2).with(&["a@n failed", "b@n ready deleting"]);
    let plan = world.plan();
    assert_eq!(counts(&plan), (2, 0));
    assert_eq!(status(&plan).terminating_replicas, Some(1));
    assert_eq!(numbers(&status(&plan)), [0, 0, 0, 0]);
    // Pods that are pending or in an unknown phase count.
    let world = World::new(2).with(&["a@n pending", "b@n unknown"]);
    assert_eq!(counts(&world.plan()), (0, 0));
}

#[test]
fn one_plan_never_creates_too_many_pods() {
    let mut world = World::new(i32::MAX).burst(usize::MAX);
    let plan = world.plan();
    assert_eq!(creates(&plan).len(), 10_000);
    assert_eq!(plan.requeue.map(|requeue| requeue.delay), Some(Duration::ZERO));
    world.rs.replicas = i32::MIN;
    assert_eq!(counts(&world.plan()), (0, 0));
}

#[test]
fn the_burst_of_replica_sets_is_500() {
    assert_eq!(Options::REPLICA_SET_BURST, 500);
    let message = &actions(&World::new(501).plan(), PhaseKind::Creates)[0]
        .message
        .clone();
    assert_eq!(message, "there are 0 of 501 pods");
}
