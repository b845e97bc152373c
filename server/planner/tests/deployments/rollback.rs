//! Rollbacks that the deprecated annotation requests (P-48 to P-50).

use nodewise_planner::plan::{PhaseKind, Reason, Verdict};

use crate::support::{REVISION, ROLLBACK, World, actions, annotate, json, phases, template};

/// Revisions 1 (`old`) and 2 (`new`) of a settled Deployment, and a request.
fn requested(revision: &str) -> World {
    let mut world = World::new(3)
        .with("old 0/0 rev=1; new 3/3 rev=2")
        .annotated("note", "new");
    annotate(&mut world.web.sets[0], "note", "old");
    annotate(&mut world.web.sets[0], "extra", "1");
    annotate(&mut world.web.sets[1], "note", "new");
    world
        .settled("NewReplicaSetAvailable", 900)
        .annotated(ROLLBACK, revision)
}

fn note(world: &World, key: &str) -> Option<String> {
    world
        .web
        .annotations
        .iter()
        .find(|(found, _)| found == key)
        .map(|(_, value)| value.clone())
}

#[test]
fn p_48_p_49_p_50_the_last_revision_comes_back() {
    // PS-93
    let mut world = requested("0");
    let before = world.web.sets.clone();
    let plan = world.sync();
    assert_eq!(phases(&plan), [PhaseKind::Rollback]);
    assert!(PhaseKind::Rollback.aborts_on_failure());
    let action = actions(&plan, PhaseKind::Rollback)[0];
    assert_eq!(action.reason, Reason::RollbackRequested);
    assert_eq!(json(action)["metadata"]["resourceVersion"], "7");
    assert_eq!(
        world.web.template.to_value(),
        template("old"),
        "without the hash label"
    );
    assert_eq!(note(&world, ROLLBACK), None);
    assert_eq!(
        (note(&world, "note"), note(&world, "extra")),
        (Some("old".to_owned()), Some("1".to_owned()))
    );
    assert_eq!(
        note(&world, REVISION).as_deref(),
        Some("2"),
        "it changes with the next plans"
    );
    assert_eq!(
        world.events,
        ["DeploymentRollback: Rolled back deployment \"web\" to revision 1"]
    );
    assert_eq!(world.web.sets, before, "no set is written");
    // The restored revision gets the next number.
    world.sync();
    assert_eq!(crate::support::annotation(world.find("old"), REVISION), "3");
}

#[test]
fn p_49_annotations_that_the_set_has_not_go_away() {
    let mut world = requested("1").annotated("only-here", "x");
    world.web.sets[1]
        .annotations
        .push(("only-here".to_owned(), "x".to_owned()));
    world.sync();
    assert_eq!(note(&world, "only-here"), None);
}

#[test]
fn p_48_p_49_requests_that_cannot_be_met() {
    let unchanged = "DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as current deployment \"web\"";
    let unknown = "DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to.";
    // (scenario, request, event)
    let table = [
        ("PS-94", "2", unchanged),
        ("PS-95", "7", unknown),
        ("PS-95", "-1", unknown),
    ];
    for (scenario, request, event) in table {
        let mut world = requested(request);
        let plan = world.sync();
        assert_eq!(
            phases(&plan),
            [PhaseKind::Events, PhaseKind::Rollback],
            "{scenario}"
        );
        assert_eq!(world.events, [event], "{scenario}");
        assert_eq!(note(&world, ROLLBACK), None, "P-50, {scenario}");
        assert_eq!(world.web.template.to_value(), template("new"), "{scenario}");
        assert_eq!(world.plan().verdict, Verdict::Noop, "{scenario}");
    }
    // PS-95: revision 0 of a Deployment with one set, and with one more that has no revision.
    for sets in ["new 3/3 rev=1", "old 0/0; new 3/3 rev=1"] {
        let mut world = World::new(3)
            .with(sets)
            .settled("NewReplicaSetAvailable", 900)
            .annotated(ROLLBACK, "0");
        world.sync();
        assert_eq!(
            world.events,
            ["DeploymentRollbackRevisionNotFound: Unable to find last revision."],
            "{sets}"
        );
        assert_eq!(world.web.template.to_value(), template("new"), "{sets}");
    }
}

#[test]
fn p_48_an_invalid_request_is_ignored() {
    // PS-96
    for request in ["x", "", "1.0", "9223372036854775808"] {
        let mut world = requested(request);
        let plan = world.sync();
        assert_eq!(plan.verdict, Verdict::Noop, "{request:?}");
        assert_eq!(note(&world, ROLLBACK).as_deref(), Some(request));
    }
}

#[test]
fn p_48_the_new_set_is_created_before_a_rollback() {
    // PS-97: one plan creates revision 3, and the next returns to revision 2.
    let mut world = World::new(3)
        .with("a 0/0 rev=1; b 3/3 rev=2")
        .settled("NewReplicaSetAvailable", 900)
        .annotated(ROLLBACK, "0");
    let plan = world.sync();
    assert_eq!(
        phases(&plan),
        [PhaseKind::Creates, PhaseKind::Failure, PhaseKind::Status]
    );
    assert_eq!(note(&world, REVISION).as_deref(), Some("3"));
    let plan = world.sync();
    assert_eq!(phases(&plan), [PhaseKind::Rollback]);
    assert!(world.events[1].ends_with("to revision 2"), "{:?}", world.events);
    assert_eq!(world.web.template.to_value(), template("b"));
}

#[test]
fn p_48_a_rollback_waits_for_each_early_write() {
    type Row = (&'static str, World, fn(&mut World), &'static [PhaseKind]);

    let creates = || {
        World::new(3)
            .with("a 0/0 rev=1; b 3/3 rev=2")
            .settled("NewReplicaSetAvailable", 900)
            .annotated(ROLLBACK, "1")
    };
    // (what, world, its change, phases of the first plan)
    let table: [Row; 5] = [
        ("nothing", requested("1"), |_| (), &[PhaseKind::Rollback]),
        (
            "only a create",
            creates(),
            |world| world.web.progress_deadline_seconds = None,
            &[PhaseKind::Creates],
        ),
        (
            "only the Deployment's revision",
            requested("1"),
            |world| world.web.annotations.retain(|(key, _)| key != REVISION),
            &[PhaseKind::Status],
        ),
        (
            "only the new set",
            requested("1"),
            |world| world.web.min_ready_seconds = 5,
            &[PhaseKind::ReplicaSets],
        ),
        (
            "only a condition",
            requested("1"),
            |world| world.web.status.conditions.clear(),
            &[PhaseKind::Status],
        ),
    ];
    for (what, mut world, change, expected) in table {
        change(&mut world);
        let plan = world.sync();
        assert_eq!(phases(&plan), expected, "{what}");
        if !expected.contains(&PhaseKind::Rollback) {
            assert!(phases(&world.plan()).contains(&PhaseKind::Rollback), "{what}");
        }
    }
}
