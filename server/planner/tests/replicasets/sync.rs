//! The order of decisions and the gates, and whole histories.

use nodewise_planner::{
    plan::{ActionKind, PhaseKind, Verdict},
    report::{OutcomeResult, come_back},
    snapshot::{Deviation, OwnWrite, Scope, Selector},
};

use crate::support::{World, actions, apply::all_of, counts, deletes, outstanding, phases, status, used};

#[test]
fn r_13_the_order_of_phases() {
    let world = World::new(2).with(&["a@n orphan"]);
    let order = [
        PhaseKind::Claims,
        PhaseKind::Creates,
        PhaseKind::Failure,
        PhaseKind::Status,
    ];
    assert_eq!(phases(&world.plan()), order);
    let world = World::new(1).with(&["a@n orphan", "b@n ready"]);
    let order = [
        PhaseKind::Claims,
        PhaseKind::Deletes,
        PhaseKind::Failure,
        PhaseKind::Status,
    ];
    assert_eq!(phases(&world.plan()), order);
}

#[test]
fn r_49_own_writes_that_the_cache_does_not_show() {
    // Scenario 72; R-50: what cannot be compared blocks nothing.
    for (written, observed, verdict) in [
        ("90", "80", Verdict::Stale),
        ("90", "90", Verdict::Apply),
        ("100", "90", Verdict::Stale),
        ("90", "100", Verdict::Apply),
        ("x", "80", Verdict::Apply),
        ("90", "", Verdict::Apply),
    ] {
        let mut snapshot = World::new(2).snapshot();
        snapshot.own_writes = vec![OwnWrite {
            resource: "pods".to_owned(),
            written: written.to_owned(),
            observed: observed.to_owned(),
        }];
        let plan = nodewise_planner::replicaset::plan(&snapshot);
        assert_eq!(plan.verdict, verdict, "R-50: {written} {observed}");
        assert_eq!(plan.error.is_some(), verdict == Verdict::Stale, "R-49");
        assert_eq!(plan.phases.is_empty(), verdict == Verdict::Stale, "R-49");
    }
}

#[test]
fn r_13_a_selector_that_is_absent_or_empty() {
    let table = [
        None,
        Some(Selector::default()),
        Some(Selector {
            match_labels: Some(vec![]),
            match_expressions: Some(vec![]),
        }),
    ];
    for selector in table {
        let mut world = World::new(2).with(&["a@n ready", "b@n orphan stray"]);
        world.rs.selector.clone_from(&selector);
        let plan = world.plan();
        assert_eq!(
            (plan.verdict, plan.phases.len(), &plan.status),
            (Verdict::Noop, 0, &None),
            "{selector:?}"
        );
        assert!(
            plan.deviations.contains(&Deviation::EmptySelectorByMeaning),
            "{selector:?}"
        );
        // Upstream takes it literally: an absent one selects nothing, an empty one every pod.
        let plan = world.strict().plan();
        let claims = actions(&plan, PhaseKind::Claims);
        assert_eq!(claims.len(), 1, "{selector:?}");
        let adopts = matches!(claims[0].kind, ActionKind::AdoptPod { .. });
        assert_eq!(adopts, selector.is_some(), "{selector:?}");
    }
}

#[test]
fn only_rollouts_are_no_matter_of_a_replica_set() {
    let mut world = World::new(2);
    world.options.scope = Scope::Rollouts;
    assert_eq!(world.plan().verdict, Verdict::Noop);
}

#[test]
fn r_16_a_set_that_is_being_deleted_only_gets_its_status() {
    // Scenario 74: the garbage collector deletes the pods.
    for pods in [&["a@n ready"][..], &["a@n ready", "b@n ready", "c@n ready"]] {
        let mut world = World::new(2).with(pods);
        world.rs.deleting = true;
        let plan = world.plan();
        assert_eq!(
            (plan.verdict, phases(&plan)),
            (Verdict::Apply, vec![PhaseKind::Status])
        );
        world.apply(&plan);
        assert_eq!(world.plan().verdict, Verdict::Noop);
    }
}

#[test]
fn r_32_deletes_are_one_batch_and_are_expected_by_uid() {
    // Scenario 12: 30 to 0 with a burst of 5.
    let mut world = World::new(0).burst(5).with_ready(30);
    let mut rounds = 0;
    while !world.pods.is_empty() {
        let plan = world.plan();
        let victims = deletes(&plan).len();
        assert_eq!(victims, 5);
        let phase = plan.phases.iter().find(|phase| phase.kind == PhaseKind::Deletes);
        assert_eq!(phase.expect("pods are deleted").batches.len(), 1);
        let expected = plan.state.expectations.clone().expect("deletes are expected");
        let uids: Vec<_> = deletes(&plan)
            .into_iter()
            .map(|name| format!("uid-of-{name}"))
            .collect();
        assert_eq!((expected.creates.len(), expected.delete_uids), (0, uids));
        world.apply(&plan);
        assert_eq!(world.plan().verdict, Verdict::StatusOnly, "R-15");
        world.observe();
        rounds += 1;
    }
    assert_eq!(rounds, 6);
}

#[test]
fn r_32_the_uid_is_a_precondition_unless_upstream_is_followed_strictly() {
    let world = World::new(0).with(&["a@n1 ready", "b@"]);
    for (world, expected) in [(world.clone(), true), (world.strict(), false)] {
        let plan = world.plan();
        let deletes = actions(&plan, PhaseKind::Deletes);
        let nodes: Vec<_> = deletes
            .iter()
            .map(|action| match &action.kind {
                ActionKind::DeletePod {
                    node_name,
                    uid_precondition,
                    ..
                } => {
                    assert_eq!(*uid_precondition, expected);
                    node_name.as_str()
                }
                other => panic!("{other:?} among deletes"),
            })
            .collect();
        assert_eq!(nodes, ["n1", ""]);
        assert_eq!(plan.deviations.contains(&Deviation::DeleteWithUid), expected);
    }
}

#[test]
fn r_33_deletes_that_fail_or_find_nothing_are_not_expected() {
    for (what, result, failed, left) in [
        ("scenario 73", OutcomeResult::NotFound, false, 0),
        ("R-33", OutcomeResult::Failed, true, 0),
        ("lowered by the watch", OutcomeResult::Succeeded, false, 3),
    ] {
        let mut world = World::new(0).with_ready(3);
        let plan = world.plan();
        let outcomes = world.apply_with(&plan, &mut all_of(&plan, PhaseKind::Deletes, result));
        assert_eq!(outstanding(&world.state), (0, left), "{what}");
        let back = come_back(&outcomes, None, None);
        assert_eq!(back.backoff, failed, "{what}: {back:?}");
        assert_eq!(world.rs.status.conditions.len(), usize::from(failed), "{what}");
    }
}

#[test]
fn r_46_state_of_another_uid_is_not_in_the_snapshot() {
    // Scenarios 15 and 16: the executor starts a re-created set without state, and it creates normally.
    let mut world = World::new(2);
    world.rs.uid = "new".to_owned();
    assert_eq!(counts(&world.plan()), (2, 0));
}

#[test]
fn a_set_settles_in_a_few_syncs() {
    // the first status goes from unset to 0 pods that are being deleted.
    let mut world = World::new(0);
    assert_eq!(world.sync(), (0, 0));
    assert_eq!(world.rs.status.terminating_replicas, Some(0));
    assert_eq!(world.plan().verdict, Verdict::Noop);
    world.rs.replicas = 3;
    assert_eq!(world.sync(), (3, 0));
    assert_eq!(status(&world.plan()).replicas, 3);
    world.all_ready();
    world.sync();
    assert_eq!(world.plan().verdict, Verdict::Noop);
    world.rs.replicas = 1;
    assert_eq!(world.sync(), (0, 2));
    world.sync();
    assert_eq!(world.plan().verdict, Verdict::Noop);
    assert_eq!(world.rs.status.replicas, 1);
}

#[test]
fn names_are_kept_only_while_pods_are_missing() {
    let mut world = World::new(2).with_ready(2).settled();
    world.state.used_pod_names = vec![used("web-bbbbb")];
    assert!(world.plan().state.used_pod_names.is_empty());
    world.rs.replicas = 3;
    assert_eq!(world.plan().state.used_pod_names, [used("web-bbbbb")]);
    assert!(world.strict().plan().state.used_pod_names.is_empty());
}
