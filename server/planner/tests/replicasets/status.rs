//! The status and the timer that keeps it right (R-51 to R-57).

use std::time::Duration;

use nodewise_planner::{
    plan::{ActionKind, ObjectRef, PatchType, PhaseKind, Reason, Resource, Subresource, Verdict, When},
    report::{OutcomeResult, come_back},
    snapshot::{Deviation, Labels},
};
use serde_json::json;

use crate::support::{
    World, actions,
    apply::{all_of, creates_until},
    condition, edit_template, labels, numbers, patch, phases, status,
};

/// Scenario, minReadySeconds, template label `extra`, pods, counts, terminating pods.
type Counted = (&'static str, i32, bool, &'static [&'static str], [i32; 4], i32);

const COUNTS: [Counted; 11] = [
    (
        "scenario 57",
        0,
        false,
        &["a@n ready", "b@n ready"],
        [2, 2, 2, 2],
        0,
    ),
    (
        "scenario 58",
        0,
        true,
        &["a@n ready", "b@n ready extra"],
        [2, 1, 2, 2],
        0,
    ),
    ("scenario 59", 0, false, &["a@n pending"], [1, 1, 0, 0], 0),
    (
        "scenario 60: now",
        3_600,
        false,
        &["a@n since=0"],
        [1, 1, 1, 0],
        0,
    ),
    (
        "scenario 60: just enough",
        3_600,
        false,
        &["a@n since=3600"],
        [1, 1, 1, 1],
        0,
    ),
    (
        "scenario 60: long ago",
        3_600,
        false,
        &["a@n since=7200"],
        [1, 1, 1, 1],
        0,
    ),
    (
        "ready since an unknown time",
        3_600,
        false,
        &["a@n since="],
        [1, 1, 1, 0],
        0,
    ),
    (
        "ready since an unknown time, at once available",
        0,
        false,
        &["a@n since="],
        [1, 1, 1, 1],
        0,
    ),
    (
        "scenario 37",
        0,
        false,
        &[
            "a@n ready",
            "b@n ready deleting",
            "c@n failed deleting",
            "d@n failed",
            "e@n stray deleting",
            "f@n orphan deleting",
        ],
        [1, 1, 1, 1],
        1,
    ),
    (
        "adopted pods count",
        0,
        false,
        &["a@n ready orphan"],
        [1, 1, 1, 1],
        0,
    ),
    (
        "released ones do not",
        0,
        false,
        &["a@n ready stray"],
        [0, 0, 0, 0],
        0,
    ),
];

#[test]
fn r_51_counts() {
    for (what, min_ready, extra, pods, expected, terminating) in COUNTS {
        let mut world = World::new(0).with(pods).min_ready(min_ready);
        if extra {
            world.rs.template_labels = labels(&[("app", "web"), ("extra", "1")]);
        }
        let status = status(&world.plan());
        assert_eq!(numbers(&status), expected, "{what}");
        assert_eq!(status.terminating_replicas, Some(terminating), "{what}");
        assert_eq!(status.observed_generation, 1, "{what}");
    }
    // Without labels in the template every pod is fully labelled.
    let mut world = World::new(1).with(&["a@n"]);
    world.rs.template_labels = Labels::default();
    assert_eq!(status(&world.plan()).fully_labeled_replicas, 1);
}

#[test]
fn r_51_the_gate_of_terminating_replicas() {
    // Scenario 61.
    let mut world = World::new(1).with(&["a@n ready", "b@n ready deleting"]).settled();
    assert_eq!(world.plan().verdict, Verdict::Noop);
    world.options.terminating_replicas = false;
    let plan = world.plan();
    assert_eq!(status(&plan).terminating_replicas, None);
    let (patch, _) = patch(&plan, PhaseKind::Status).expect("it is written");
    assert_eq!(
        patch["status"]["terminatingReplicas"],
        json!(null),
        "a merge patch removes it"
    );
    assert!(
        patch["status"]
            .as_object()
            .unwrap()
            .contains_key("terminatingReplicas")
    );
    // Scenario 62.
    world.options.terminating_replicas = true;
    world.pods.retain(|pod| !pod.deleting);
    assert_eq!(status(&world.plan()).terminating_replicas, Some(0));
    assert_eq!(world.plan().verdict, Verdict::Apply, "scenario 62");
}

/// A change of the world.
type Change = fn(&mut World);

#[test]
fn r_54_only_changes_are_written() {
    let settled = World::new(1).with(&["a@n ready"]).settled();
    assert_eq!(settled.plan().verdict, Verdict::Noop);
    let table: [(&str, Change, Reason, &str); 8] = [
        (
            "scenario 70: only the template's annotations change",
            |world| {
                edit_template(&mut world.rs, |template| {
                    template["metadata"]["annotations"] = json!({"a": "b"});
                });
                world.rs.generation = 2;
            },
            Reason::GenerationObserved,
            "generation 2 is observed",
        ),
        (
            "replicas",
            |world| world.rs.status.replicas = 3,
            Reason::StatusChanged,
            "status: pods 3 → 1",
        ),
        (
            "labels",
            |world| world.rs.status.fully_labeled_replicas = 3,
            Reason::StatusChanged,
            "status: fully labelled 3 → 1",
        ),
        (
            "ready",
            |world| world.rs.status.ready_replicas = 3,
            Reason::StatusChanged,
            "status: ready 3 → 1",
        ),
        (
            "available",
            |world| world.rs.status.available_replicas = 3,
            Reason::StatusChanged,
            "status: available 3 → 1",
        ),
        (
            "unset and 0 differ, as in the first status of a set",
            |world| world.rs.status.terminating_replicas = None,
            Reason::StatusChanged,
            "status: being deleted unset → 0",
        ),
        (
            "a generation of the future",
            |world| world.rs.status.observed_generation = 9,
            Reason::GenerationObserved,
            "generation 1 is observed",
        ),
        (
            "scenario 65",
            |world| {
                let condition = condition("ReplicaFailure", "FailedCreate", "x");
                world.rs.status.conditions.push(condition);
            },
            Reason::ConditionChanged,
            "condition ReplicaFailure is removed",
        ),
    ];
    for (what, change, reason, message) in table {
        let mut world = settled.clone();
        change(&mut world);
        let plan = world.plan();
        let writes = actions(&plan, PhaseKind::Status);
        assert_eq!(writes.len(), 1, "{what}");
        assert_eq!(
            (writes[0].reason, &*writes[0].message),
            (reason, message),
            "{what}"
        );
        world.apply(&plan);
        assert_eq!(world.plan().verdict, Verdict::Noop, "{what}");
    }
}

#[test]
fn r_55_the_write_is_a_patch_with_the_uid() {
    let mut world = World::new(1).with(&["a@n ready"]);
    let foreign = condition("Foreign", "Because", "of <it>");
    world.rs.status.conditions = vec![foreign.clone()];
    let plan = world.plan();
    let kind = &actions(&plan, PhaseKind::Status)[0].kind;
    let expected = concat!(
        r#"{"metadata":{"uid":"uid-of-web"},"status":{"availableReplicas":1,"conditions":["#,
        r#"{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"of \u003cit\u003e","reason":"Because","status":"True","type":"Foreign"}"#,
        r#"],"fullyLabeledReplicas":1,"observedGeneration":1,"readyReplicas":1,"replicas":1,"terminatingReplicas":0}}"#,
    );
    let ActionKind::PatchObject {
        resource: Resource::ReplicaSets,
        object,
        subresource: Subresource::Status,
        patch_type: PatchType::Merge,
        patch,
        failure_pointer,
        claim: None,
        events,
    } = kind
    else {
        panic!("{kind:?}");
    };
    let web = ObjectRef {
        name: "web".to_owned(),
        uid: "uid-of-web".to_owned(),
    };
    assert_eq!((object, failure_pointer.as_str()), (&web, ""));
    assert_eq!(
        String::from_utf8_lossy(patch),
        expected,
        "R-51: other conditions stay"
    );
    assert!(events.success.is_empty() && events.failure.is_none());
}

#[test]
fn r_52_failures_of_creates_and_deletes() {
    let message = "refused";
    // (scenario, world, reason, message)
    let table = [
        (
            "scenario 63: create",
            World::new(2).with(&["a@n ready"]),
            "FailedCreate",
            message.to_owned(),
        ),
        (
            "scenario 63: delete, R-33",
            World::new(0).with(&["a@n ready"]),
            "FailedDelete",
            format!("unable to delete pods: {message}"),
        ),
    ];
    for (what, mut world, reason, message) in table {
        world.rs.status.conditions = vec![condition("Foreign", "Because", "")];
        let plan = world.plan();
        let ends = [PhaseKind::Failure, PhaseKind::Status];
        assert_eq!(phases(&plan)[1..], ends, "{what}");
        let when: Vec<_> = plan.phases[1..].iter().map(|phase| phase.when).collect();
        assert_eq!(when, [When::AfterFailure, When::AfterSuccess], "{what}: R-3");
        let (patch, pointer) = patch(&plan, PhaseKind::Failure).expect("it is written");
        assert_eq!(pointer, "/status/conditions/1/message", "{what}");
        assert_eq!(
            patch["status"]["conditions"][1]["lastTransitionTime"], "1970-01-02T00:00:00Z",
            "{what}"
        );
        // R-3: the plan's own status is the one without an error.
        assert_eq!(status(&plan).conditions.len(), 1, "{what}");

        let kind = phases(&plan)[0];
        let mut succeeded = world.clone();
        let outcomes = succeeded.apply(&plan);
        assert!(!come_back(&outcomes, None, None).backoff, "{what}");
        assert_eq!(succeeded.rs.status.conditions.len(), 1, "{what}");

        let outcomes = world.apply_with(&plan, &mut all_of(&plan, kind, OutcomeResult::Failed));
        assert!(come_back(&outcomes, None, None).backoff, "{what}: R-56");
        let added = &world.rs.status.conditions[1];
        assert_eq!(
            (&*added.r#type, &*added.status),
            ("ReplicaFailure", "True"),
            "{what}"
        );
        assert_eq!((&*added.reason, &*added.message), (reason, &*message), "{what}");

        // Scenario 64: it stays as it is while there are failures, also if the direction changes.
        world.rs.replicas = 1 - world.rs.replicas.min(1);
        let before = world.rs.status.conditions.clone();
        world.observe();
        let plan = world.plan();
        let kind = phases(&plan)[0];
        world.apply_with(&plan, &mut all_of(&plan, kind, OutcomeResult::Failed));
        assert_eq!(world.rs.status.conditions, before, "{what}: scenario 64");
        // Scenario 65.
        world.observe();
        let plan = world.plan();
        world.apply(&plan);
        assert_eq!(world.rs.status.conditions.len(), 1, "{what}: scenario 65");
    }
}

#[test]
fn r_52_a_status_for_a_failure_adds_the_condition_or_keeps_it() {
    /// Wanted pods, present conditions, stored pods, message of the write after a failure, pointer to the message of the condition.
    type Row<'a> = (i32, &'a [&'a str], i32, Option<&'a str>, &'a str);
    let kept: &[&str] = &["ReplicaFailure"];
    let table: [Row<'_>; 6] = [
        (
            2,
            &[],
            1,
            Some("if pods cannot be created: condition ReplicaFailure is added"),
            "/status/conditions/0/message",
        ),
        (
            0,
            &["Foreign"],
            1,
            Some("if pods cannot be deleted: condition ReplicaFailure is added"),
            "/status/conditions/1/message",
        ),
        (2, kept, 1, None, ""),
        (0, kept, 1, None, ""),
        (2, kept, 3, Some("status: pods 3 → 1"), ""),
        (0, kept, 3, Some("status: pods 3 → 1"), ""),
    ];
    for (wanted, conditions, stored, message, pointer) in table {
        let mut world = World::new(1).with(&["a@n ready"]).settled();
        world.rs.replicas = wanted;
        world.rs.status.replicas = stored;
        world.rs.status.conditions = conditions.iter().map(|kind| condition(kind, "x", "y")).collect();
        let plan = world.plan();
        let what = format!("{wanted} wanted, {conditions:?}, {stored} stored");
        let found = actions(&plan, PhaseKind::Failure)
            .first()
            .map(|action| &*action.message);
        assert_eq!(found, message, "{what}");
        let found = patch(&plan, PhaseKind::Failure).map_or("", |(_, pointer)| pointer);
        assert_eq!(found, pointer, "{what}");
    }
}

#[test]
fn r_53_the_write_that_removes_the_condition_has_no_error_to_append() {
    let mut world = World::new(1).with(&["a@n ready"]).settled();
    world.rs.status.conditions = ["Foreign", "ReplicaFailure"]
        .map(|kind| condition(kind, "x", "y"))
        .to_vec();
    let plan = world.plan();
    let (_, pointer) = patch(&plan, PhaseKind::Status).expect("it is written");
    assert_eq!(pointer, "");
}

#[test]
fn r_53_a_sync_that_only_waits_removes_the_condition() {
    let mut world = World::new(2).with(&["a@n ready"]).settled();
    world.rs.status.conditions = vec![condition("ReplicaFailure", "FailedCreate", "x")];
    world.expect(&[""], &[], 0);
    let plan = world.plan();
    assert_eq!(plan.verdict, Verdict::StatusOnly);
    world.apply(&plan);
    assert!(world.rs.status.conditions.is_empty());
}

#[test]
fn scenario_69_a_quota_of_two() {
    let mut world = World::new(3);
    let plan = world.plan();
    world.apply_with(&plan, &mut creates_until(2));
    assert_eq!(world.rs.status.conditions[0].reason, "FailedCreate", "R-59");
    world.observe();
    world.rs.replicas = 2;
    world.sync();
    assert!(world.rs.status.conditions.is_empty(), "R-59");
}

#[test]
fn r_56_a_status_that_cannot_be_written_is_retried() {
    // Scenario 66 has two attempts; the plan has one patch (R-55).
    let mut world = World::new(0).with(&["a@n failed"]);
    let plan = world.plan();
    let outcomes = world.apply_with(
        &plan,
        &mut all_of(&plan, PhaseKind::Status, OutcomeResult::Failed),
    );
    assert!(come_back(&outcomes, None, None).backoff);
}

/// Scenario, minReadySeconds, pods, upstream's delay, Nodewise's delay, in milliseconds.
type Delayed = (
    &'static str,
    i32,
    &'static [&'static str],
    Option<u64>,
    Option<u64>,
);

const DELAYS: [Delayed; 7] = [
    (
        "scenario 67",
        5,
        &["a@n pending", "b@n since=0", "c@n since=2", "d@n since=4.3"],
        Some(700),
        Some(700),
    ),
    ("scenario 68", 10, &["a@n since=6"], Some(4_000), Some(4_000)),
    ("all available", 10, &["a@n since=10"], None, None),
    ("no minReadySeconds", 0, &["a@n since=0"], None, None),
    ("only an unknown time", 10, &["a@n since="], Some(10_000), None),
    (
        "an unknown time beside a known one",
        10,
        &["a@n since=", "b@n since=1"],
        Some(9_000),
        Some(9_000),
    ),
    (
        "pods that are being deleted do not count",
        10,
        &["a@n since=1 deleting"],
        None,
        None,
    ),
];

#[test]
fn r_57_the_next_pod_that_becomes_available() {
    for (what, min_ready, pods, upstream, here) in DELAYS {
        let world = World::new(i32::try_from(pods.len()).unwrap())
            .with(pods)
            .min_ready(min_ready);
        let world = World {
            rs: nodewise_planner::replicaset::ReplicaSet {
                replicas: 0,
                ..world.rs.clone()
            },
            ..world
        };
        for (world, expected) in [(world.clone().strict(), upstream), (world, here)] {
            let plan = world.plan();
            assert_eq!(
                plan.requeue.as_ref().map(|requeue| requeue.delay),
                expected.map(Duration::from_millis),
                "{what}"
            );
            assert_eq!(
                plan.deviations.contains(&Deviation::EarliestRequeue),
                upstream != here && !world.options.deviations.is_empty(),
                "{what}"
            );
        }
    }
}
