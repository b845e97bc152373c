//! Status and progress (P-52 to P-62).

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_planner::{
    plan::{Condition, PhaseKind, Reason, Verdict},
    snapshot::{Deviation, OwnWrite},
};
use serde_json::json;

use crate::support::{
    World, actions, at, condition, condition_of, json as json_of, phase, status, status_patch,
};

/// A rollout that cannot go on: the new set's pods are not available. Its status is stored, and its last progress was at 900 s.
fn stuck() -> World {
    World::new(4)
        .rolling("0", "1")
        .with("old 3/3 rev=1 desired=4 max=4; new 1/0 rev=2 desired=4 max=4")
        .settled("ReplicaSetUpdated", 900)
}

fn progressing(world: &World) -> String {
    condition_of(&status(&world.plan()), "Progressing")
}

#[test]
fn p_53_p_56_counts_and_availability() {
    // PS-116: (what, sets, replicas, updated, ready, available, unavailable, Available)
    let table = [
        (
            "PS-116",
            "new 10/0 ready=10 rev=1",
            (10, 10, 10, 0, 10),
            "False MinimumReplicasUnavailable",
        ),
        (
            "PS-116, lowered",
            "new 10/10 rev=1",
            (10, 10, 10, 10, 0),
            "True MinimumReplicasAvailable",
        ),
        (
            "two sets",
            "old 8/8; new 2/0 ready=1 has=1 rev=2",
            (9, 1, 9, 8, 2),
            "True MinimumReplicasAvailable",
        ),
        (
            "more available than wanted",
            "old 3/5; new 7/7 rev=2",
            (10, 7, 12, 12, 0),
            "True MinimumReplicasAvailable",
        ),
    ];
    for (what, sets, counts, available) in table {
        let plan = World::new(10).rolling("0", "2").with(sets).plan();
        let status = status(&plan);
        let found = (
            status.replicas,
            status.updated_replicas,
            status.ready_replicas,
            status.available_replicas,
            status.unavailable_replicas,
        );
        assert_eq!(found, counts, "{what}");
        assert_eq!(condition_of(&status, "Available"), available, "{what}");
        assert_eq!(status.observed_generation, 1);
    }
    // PS-117
    let plan = World::new(0).with("new 3/3 rev=1 desired=3 max=4").plan();
    assert_eq!(
        condition_of(&status(&plan), "Available"),
        "True MinimumReplicasAvailable"
    );
    assert_eq!(status(&plan).replicas, 3);
    // With Recreate all replicas must be available.
    let plan = World::new(3).recreate().with("new 3/2 rev=1").plan();
    assert_eq!(
        condition_of(&status(&plan), "Available"),
        "False MinimumReplicasUnavailable"
    );
}

#[test]
fn p_54_pods_that_are_being_deleted() {
    // PS-115: (what, sets, terminating)
    let table = [
        (
            "PS-115",
            "old 0/0 terminating=3; new 1/1 terminating=1 rev=2",
            Some(4),
        ),
        (
            "PS-115, unsynced",
            "old 0/0 terminating=3; new 1/1 terminating=- seen=0 rev=2; b 0/0 terminating=1",
            Some(4),
        ),
        (
            "PS-115, synced",
            "old 0/0 terminating=-; new 1/1 terminating=1 rev=2",
            None,
        ),
    ];
    for (what, sets, expected) in table {
        let mut world = World::new(1).with(sets);
        assert_eq!(status(&world.plan()).terminating_replicas, expected, "{what}");
        world.options.terminating_replicas = false;
        assert_eq!(
            status(&world.plan()).terminating_replicas,
            None,
            "{what}, without the gate"
        );
    }
    // A value that goes away is removed.
    let mut world = World::new(1)
        .with("new 1/1 rev=1")
        .settled("NewReplicaSetAvailable", 900);
    world.options.terminating_replicas = false;
    let patch = status_patch(&world.plan()).expect("a write");
    assert!(
        patch["status"]["terminatingReplicas"].is_null()
            && patch["status"].get("terminatingReplicas").is_some()
    );
}

#[test]
fn p_57_a_status_is_written_only_if_it_changes() {
    let world = stuck();
    let plan = world.plan();
    assert_eq!(plan.verdict, Verdict::Noop);
    assert!(plan.phases.is_empty());
    // The order of conditions counts: a changed one goes to the end, the others stay as they were served.
    let mut world = stuck();
    world.web.sets[0].status.available_replicas = 0;
    world.web.sets[0].status.ready_replicas = 0;
    let patch = status_patch(&world.plan()).expect("a write");
    let conditions = patch["status"]["conditions"].as_array().expect("a list");
    let types: Vec<_> = conditions
        .iter()
        .map(|condition| condition["type"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(types, ["Progressing", "Available"]);
    assert_eq!(conditions[0]["message"], "served");
    assert_eq!(conditions[1]["lastTransitionTime"], "1970-01-01T00:16:40Z");
}

#[test]
fn p_59_the_condition_of_a_rollout() {
    // PS-106 is a unit test. (what, last update, deadline, condition)
    let mut world = stuck();
    assert_eq!(progressing(&world), "True ReplicaSetUpdated");
    world.web.progress_deadline_seconds = Some(99);
    assert_eq!(progressing(&world), "False ProgressDeadlineExceeded");
    world.web.progress_deadline_seconds = Some(100);
    assert_eq!(
        progressing(&world),
        "True ReplicaSetUpdated",
        "P-61: strictly before now"
    );
    // PS-107
    for deadline in [None, Some(i32::MAX)] {
        world.web.progress_deadline_seconds = deadline;
        assert_eq!(progressing(&world), "");
    }
    // PS-108: nothing is rolled out, so a lost pod is no lack of progress.
    let mut world = World::new(4)
        .rolling("0", "1")
        .with("new 4/4 rev=1")
        .settled("NewReplicaSetAvailable", 100);
    world.web.sets[0].status.available_replicas = 2;
    assert_eq!(progressing(&world), "True NewReplicaSetAvailable");
    assert_eq!(
        condition_of(&status(&world.plan()), "Available"),
        "False MinimumReplicasUnavailable"
    );
    // PS-111
    let plan = World::new(0).recreate().with("old 0/0 pods=1").plan();
    let condition = status(&plan).conditions.pop().expect("Progressing is last");
    assert_eq!(
        condition.message,
        "Deployment \"web\" has successfully progressed."
    );
}

#[test]
fn p_59_times_of_the_condition() {
    let find = |world: &World| {
        let status = status(&world.plan());
        let mut conditions = status.conditions.into_iter();
        conditions
            .find(|condition| condition.r#type == "Progressing")
            .expect("it is there")
    };
    // PS-109: progress while it is True.
    let mut world = stuck();
    world.web.sets[1].status.ready_replicas = 1;
    let condition = find(&world);
    assert_eq!(
        (condition.last_update_time, condition.last_transition_time),
        (Some(at(1_000)), Some(at(900)))
    );
    assert_eq!(condition.message, "ReplicaSet \"new\" is progressing.");
    // PS-110: progress while it is False.
    world
        .web
        .status
        .conditions
        .retain(|condition| condition.r#type != "Progressing");
    let mut world = world.progressing("False", "ProgressDeadlineExceeded", 900);
    let condition = find(&world);
    assert_eq!(
        (condition.last_update_time, condition.last_transition_time),
        (Some(at(1_000)), Some(at(1_000)))
    );
    assert_eq!(condition.status, "True");
    // Times have whole seconds, also before the epoch.
    world.now = at(-5) + SignedDuration::from_millis(300);
    assert_eq!(find(&world).last_update_time, Some(at(-5)));
}

#[test]
fn p_58_failures_of_sets() {
    // PS-114: the new set's failure comes first.
    let world = World::new(4)
        .rolling("0", "1")
        .with("old 2/2 rev=1 failing=OldReason; new 2/0 rev=2 failing=NewReason");
    assert_eq!(
        condition_of(&status(&world.plan()), "ReplicaFailure"),
        "True NewReason"
    );
    let mut world = World::new(4)
        .rolling("0", "1")
        .with("a 1/1 failing=A; b 1/1 failing=B; new 2/0 rev=2");
    world.sync();
    assert_eq!(condition_of(&world.web.status, "ReplicaFailure"), "True A");
    let condition = world.web.status.conditions.last().expect("it is last");
    assert_eq!(
        condition.last_update_time,
        Some(at(500)),
        "the transition time of the set's condition"
    );
    for set in &mut world.web.sets {
        set.status.conditions.clear();
    }
    assert_eq!(condition_of(&status(&world.plan()), "ReplicaFailure"), "");
    // A plain status leaves it alone.
    world.web.paused = true;
    assert_eq!(condition_of(&status(&world.plan()), "ReplicaFailure"), "True A");
}

#[test]
fn p_62_the_timer_of_a_rollout_that_is_stuck() {
    let at_left = |millis: i64| {
        let mut world = stuck();
        world.web.progress_deadline_seconds = Some(60);
        world.now = at(960) - SignedDuration::from_millis(millis);
        world
    };
    let delay = |world: &World| world.plan().requeue.map(|requeue| requeue.delay);
    // PS-112: (milliseconds until the deadline, delay)
    for (left, millis) in [(30_000, 31_000), (1_000, 2_000), (999, 5), (0, 5)] {
        let expected = Some(Duration::from_millis(millis));
        assert_eq!(delay(&at_left(left)), expected, "{left} ms are left");
    }
    let late = at_left(-1);
    assert_eq!(delay(&late), None, "the status is written");
    assert_eq!(progressing(&late), "False ProgressDeadlineExceeded");
    // PS-113
    let complete = World::new(3)
        .with("new 3/3 rev=1 desired=3 max=4")
        .settled("NewReplicaSetAvailable", 900);
    assert_eq!(delay(&complete), None);
    let mut world = stuck();
    world
        .web
        .status
        .conditions
        .last_mut()
        .expect("Progressing")
        .reason = "ProgressDeadlineExceeded".to_owned();
    assert_eq!(delay(&world), None);
    // Without a deadline the condition goes, and then there is no timer.
    let mut world = stuck();
    world.web.progress_deadline_seconds = None;
    world.sync();
    assert_eq!(delay(&world), None);
}

#[test]
fn p_62_no_hot_requeue() {
    let delay = |world: &World| world.plan().requeue.map(|requeue| requeue.delay);
    // A finished rollout of which a pod was lost long ago: upstream plans again every few milliseconds.
    let mut finished = World::new(4)
        .rolling("0", "1")
        .with("new 4/4 rev=1 desired=4 max=4")
        .settled("NewReplicaSetAvailable", 10);
    finished.web.sets[0].status.available_replicas = 3;
    finished.web.sets[0].status.ready_replicas = 3;
    finished.sync();
    assert_eq!(delay(&finished), Some(Duration::from_millis(5)));
    // An undo that makes no progress keeps that reason, but not all pods are updated.
    let mut undo = stuck();
    undo.web.status.conditions.last_mut().expect("Progressing").reason = "NewReplicaSetAvailable".to_owned();
    undo.web.progress_deadline_seconds = Some(10);
    assert_eq!(delay(&undo), Some(Duration::from_millis(5)));
    for (world, expected) in [(finished, None), (undo, Some(Duration::from_secs(1)))] {
        let world = world.deviating(&[Deviation::NoHotRequeue]);
        assert_eq!(delay(&world), expected);
        assert!(world.plan().deviations.contains(&Deviation::NoHotRequeue));
    }
    let calm = stuck().deviating(&[Deviation::NoHotRequeue]);
    assert_eq!(delay(&calm), Some(Duration::from_secs(501)));
    assert!(calm.plan().deviations.is_empty());
}

#[test]
fn p_36_retried_scaling_of_old_sets() {
    let world = World::new(10)
        .rolling("0", "2")
        .with("old 10/10; new 0/0 rev=2")
        .deviating(&[Deviation::RetryOldSetScaling]);
    let plan = world.plan();
    assert!(
        !phase(&plan, PhaseKind::OldReplicaSets)
            .expect("a step")
            .ignores_failure
    );
    assert!(plan.deviations.contains(&Deviation::RetryOldSetScaling));
    assert_eq!(
        phase(&plan, PhaseKind::Status).expect("a status").when,
        nodewise_planner::plan::When::Always
    );
    // The status of a plan that creates a set needs the set.
    let world = World::new(10)
        .rolling("3", "2")
        .with("old 10/10")
        .deviating(&[Deviation::RetryOldSetScaling]);
    let plan = world.plan();
    assert!(
        phase(&plan, PhaseKind::OldReplicaSets)
            .expect("a step")
            .ignores_failure
    );
    assert!(plan.deviations.is_empty());
    assert_eq!(
        phase(&plan, PhaseKind::Status).expect("a status").when,
        nodewise_planner::plan::When::AfterSuccess
    );
}

#[test]
fn p_3_reasons_of_a_status_write() {
    let world = World::new(10).rolling("0", "2").with("old 10/10; new 0/0 rev=2");
    let plan = world.plan();
    let action = actions(&plan, PhaseKind::Status)[0];
    assert_eq!(action.reason, Reason::StatusChanged);
    assert!(action.message.contains("replicas 0 → 10"), "{}", action.message);
    assert_eq!(json_of(action)["metadata"]["uid"], "web-uid");
    let mut world = stuck();
    world.web.progress_deadline_seconds = Some(50);
    let plan = world.plan();
    let action = actions(&plan, PhaseKind::Status)[0];
    assert_eq!(action.reason, Reason::ConditionChanged);
    assert_eq!(action.message, "Progressing is False (ProgressDeadlineExceeded)");
}

// Each of thousands of conditions would be compared with all others.
#[test]
fn many_conditions_are_not_told_one_by_one() {
    let told = |count: usize| {
        let mut world = stuck();
        world.web.progress_deadline_seconds = Some(50);
        let other = world.web.status.conditions[0].clone();
        let others = (world.web.status.conditions.len()..count).map(|number| Condition {
            r#type: format!("Other{number}"),
            ..other.clone()
        });
        world.web.status.conditions.extend(others);
        let plan = world.plan();
        actions(&plan, PhaseKind::Status)[0].message.clone()
    };
    assert_eq!(told(100), "Progressing is False (ProgressDeadlineExceeded)");
    assert_eq!(told(101), "the conditions are different");
}

#[test]
fn nothing_is_planned_from_a_cache_that_is_behind() {
    let mut snapshot = stuck().snapshot();
    snapshot.own_writes = vec![OwnWrite {
        resource: "replicasets".to_owned(),
        written: "12".to_owned(),
        observed: "9".to_owned(),
    }];
    let plan = nodewise_planner::deployment::plan(&snapshot);
    assert_eq!(plan.verdict, Verdict::Stale);
    assert!(plan.phases.is_empty() && plan.error.is_some());
}

#[test]
fn p_58_the_condition_of_a_set_is_written_with_an_update_time() {
    let mut world = World::new(4)
        .rolling("0", "1")
        .with("old 2/2 rev=1; new 2/0 rev=2 failing=Quota");
    // A ReplicaSet's condition has no such time.
    let condition = &mut world.web.sets[1].status.conditions[0];
    condition.last_update_time = None;
    condition.served = Some(json!({"type": "ReplicaFailure", "status": "True"}).into());
    let patch = status_patch(&world.plan()).expect("a write");
    let conditions = patch["status"]["conditions"].as_array().expect("a list");
    assert_eq!(
        *conditions.last().expect("it is last"),
        json!({
            "type": "ReplicaFailure", "status": "True", "reason": "Quota", "message": "served",
            "lastTransitionTime": "1970-01-01T00:08:20Z", "lastUpdateTime": "1970-01-01T00:08:20Z",
        })
    );
}

#[test]
fn p_3_a_status_write_tells_which_condition_goes() {
    let mut world = stuck();
    world.web.sets[1].status.conditions = vec![condition("ReplicaFailure", "True", "Quota", 500)];
    world.sync();
    world.web.sets[1].status.conditions.clear();
    let plan = world.plan();
    assert_eq!(
        actions(&plan, PhaseKind::Status)[0].message,
        "ReplicaFailure is removed"
    );
}

#[test]
fn p_62_only_a_rollout_without_a_write_has_a_timer() {
    let has_timer = |world: &World| world.plan().requeue.is_some();
    assert!(has_timer(&stuck()));
    let mut written = stuck();
    written.web.sets[1].status.ready_replicas = 1;
    assert!(!has_timer(&written));
    // A paused Deployment whose condition says so already.
    let mut paused = stuck();
    paused.web.paused = true;
    paused.sync();
    assert_eq!(paused.plan().verdict, Verdict::Noop);
    assert!(!has_timer(&paused));
}
