//! Adoption and release of pods (R-18 to R-25).

use nodewise_planner::{
    plan::{ActionKind, PhaseKind, Verdict},
    report::{OutcomeResult, come_back},
    snapshot::Deviation,
};

use crate::support::{World, actions, apply::all_of, counts, outstanding, phases, status};

/// The claims of a plan: `+` adopts, `-` releases.
fn claims(world: &World) -> Vec<String> {
    let plan = world.plan();
    let claims = actions(&plan, PhaseKind::Claims).into_iter();
    claims
        .map(|action| match &action.kind {
            ActionKind::AdoptPod { pod, .. } => format!("+{}", pod.name),
            ActionKind::ReleasePod { pod, .. } => format!("-{}", pod.name),
            other => panic!("{other:?} among claims"),
        })
        .collect()
}

/// Rule or scenario, replicas, pods, deleting, claims, creates and deletes, replicas in the status.
type Row = (
    &'static str,
    i32,
    &'static [&'static str],
    bool,
    &'static [&'static str],
    (usize, usize),
    i32,
);

const SCENARIOS: [Row; 15] = [
    ("R-19, scenario 1", 1, &["a@n ready"], false, &[], (0, 0), 1),
    ("scenario 21: R-1", 2, &["a@n foreign"], false, &[], (2, 0), 0),
    ("scenario 23: R-20", 1, &["a@n orphan"], false, &["+a"], (0, 0), 1),
    (
        "scenario 24",
        2,
        &["a@n orphan", "b@n orphan", "c@n orphan"],
        false,
        &["+a", "+b", "+c"],
        (0, 1),
        3,
    ),
    ("scenario 25: R-16", 1, &["a@n orphan"], true, &[], (0, 0), 0),
    ("scenario 32: R-19", 1, &["a@n stray"], false, &["-a"], (1, 0), 0),
    ("R-19: deleting", 1, &["a@n stray"], true, &[], (0, 0), 0),
    (
        "R-19: deleting, still claimed",
        3,
        &["a@n ready"],
        true,
        &[],
        (0, 0),
        1,
    ),
    (
        "scenario 33",
        1,
        &["a@n ready", "b@n orphan"],
        false,
        &["+b"],
        (0, 1),
        2,
    ),
    (
        "scenario 34: R-20",
        1,
        &["a@n orphan deleting"],
        false,
        &[],
        (1, 0),
        0,
    ),
    (
        "R-25: finished orphan",
        1,
        &["a@n orphan failed"],
        false,
        &[],
        (1, 0),
        0,
    ),
    (
        "R-25: finished stray",
        1,
        &["a@n stray succeeded"],
        false,
        &[],
        (1, 0),
        0,
    ),
    (
        "R-25: terminating stray",
        1,
        &["a@n stray deleting"],
        false,
        &[],
        (1, 0),
        0,
    ),
    (
        "R-20: labels differ",
        1,
        &["a@n orphan stray"],
        false,
        &[],
        (1, 0),
        0,
    ),
    (
        "R-18: all in one batch",
        2,
        &["c@n orphan", "b@n stray", "a@n orphan"],
        false,
        &["-b", "+a", "+c"],
        (0, 0),
        2,
    ),
];

#[test]
fn claims_by_scenario() {
    for (what, replicas, pods, deleting, expected, changes, in_status) in SCENARIOS {
        let mut world = World::new(replicas).with(pods);
        world.rs.deleting = deleting;
        assert_eq!(claims(&world), expected, "{what}");
        let plan = world.plan();
        assert_eq!(counts(&plan), changes, "{what}");
        assert_eq!(status(&plan).replicas, in_status, "{what}");
        assert!(
            plan.phases
                .iter()
                .filter(|phase| phase.kind == PhaseKind::Claims)
                .all(|phase| phase.batches.len() == 1),
            "{what}"
        );
    }
}

#[test]
fn r_21_adoptions_are_confirmed() {
    // Scenario 27: without an adoption nobody reads the ReplicaSet from the apiserver.
    for (pods, confirmed) in [(["a@n orphan"], true), (["a@n stray"], false)] {
        let plan = World::new(1).with(&pods).plan();
        assert_eq!(
            plan.phases[0].batches[0].confirm_workload, confirmed,
            "scenarios 26 and 27: {pods:?}"
        );
    }
}

#[test]
fn creates_for_lost_pods_are_confirmed() {
    // (pods of the last status, pods, whether the creates are confirmed)
    for (before, pods, confirmed) in [
        (2, &["a@n"][..], true),
        (1, &[], true),
        (1, &["a@n"], false),
        (0, &[], false),
        (-1, &[], false),
        (2, &["a@n", "b@n deleting"], true),
    ] {
        let mut world = World::new(3).with(pods);
        world.rs.status.replicas = before;
        let is_confirmed = |world: &World| {
            let plan = world.plan();
            let creates = plan.phases.iter().find(|phase| phase.kind == PhaseKind::Creates);
            let batches = &creates.expect("creates").batches;
            assert!(batches[1..].iter().all(|batch| !batch.confirm_workload));
            batches[0].confirm_workload
        };
        assert_eq!(is_confirmed(&world), confirmed, "{before} before, now {pods:?}");
        world.options.deviations.remove(&Deviation::ConfirmBeforeCreates);
        assert!(!is_confirmed(&world), "upstream does not read it");
    }
}

#[test]
fn r_22_and_r_23_patches() {
    let world = World::new(1).with(&["a@n orphan", "b@n stray"]);
    let plan = world.plan();
    let patches: Vec<_> = actions(&plan, PhaseKind::Claims)
        .into_iter()
        .map(|action| match &action.kind {
            ActionKind::AdoptPod { patch, .. } | ActionKind::ReleasePod { patch, .. } => {
                String::from_utf8(patch.clone()).unwrap()
            }
            other => panic!("{other:?} among claims"),
        })
        .collect();
    // Scenarios 28 and 29: the apiserver merges owners by uid.
    let adopt = r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web","uid":"uid-of-web"}],"uid":"uid-of-a"}}"#;
    let release =
        r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"uid-of-web"}],"uid":"uid-of-b"}}"#;
    assert_eq!(patches, [release, adopt]);
}

#[test]
fn r_14_a_failed_claim_ends_the_plan() {
    // Scenario 22.
    let mut world = World::new(3).with(&["a@n orphan", "b@n orphan"]);
    let plan = world.plan();
    let before = world.rs.status.clone();
    let mut tried = 0;
    let mut fate = all_of(&plan, PhaseKind::Claims, OutcomeResult::Failed);
    let outcomes = world.apply_with(&plan, &mut |action| {
        tried += 1;
        fate(action)
    });
    assert_eq!(tried, 2, "both are tried, and nothing else is");
    assert_eq!((world.pods.len(), &world.rs.status), (2, &before));
    assert_eq!(outstanding(&world.state), (0, 0));
    let back = come_back(&outcomes, None, None);
    assert!(back.backoff, "{back:?}");
}

#[test]
fn r_24_a_pod_that_is_gone_is_no_error() {
    let mut world = World::new(1).with(&["a@n orphan", "b@n stray"]);
    let plan = world.plan();
    let outcomes = world.apply_with(
        &plan,
        &mut all_of(&plan, PhaseKind::Claims, OutcomeResult::NotFound),
    );
    let back = come_back(&outcomes, None, None);
    assert!(!back.backoff, "{back:?}");
}

#[test]
fn r_15_claims_do_not_wait_for_expectations() {
    let mut world = World::new(2).with(&["a@n orphan", "b@n stray"]);
    world.expect(&[], &["x"], 0);
    let plan = world.plan();
    assert_eq!(plan.verdict, Verdict::StatusOnly);
    assert_eq!(phases(&plan), [PhaseKind::Claims, PhaseKind::Status]);
    assert_eq!(status(&plan).replicas, 1);
}

#[test]
fn scenario_39_two_sets_with_one_selector_are_stable() {
    let mut one = World::new(1);
    let mut two = World::new(2);
    two.rs.uid = "uid-of-the-other".to_owned();
    one.sync();
    two.sync();
    for world in [&mut one, &mut two] {
        world.all_ready();
        world.sync();
    }
    let (pods_of_one, pods_of_two) = (one.pods.clone(), two.pods.clone());
    one.pods.extend(pods_of_two);
    two.pods.extend(pods_of_one);
    assert_eq!(
        (one.plan().verdict, two.plan().verdict),
        (Verdict::Noop, Verdict::Noop)
    );
    assert_eq!(one.pods.len(), 3);
}

#[test]
fn claims_are_bounded_and_everything_else_waits() {
    let mut world = World::new(3).burst(1);
    for index in 0..1_500 {
        world.pod(&format!("orphan-{index}@n orphan"));
    }
    let plan = world.plan();
    assert_eq!(actions(&plan, PhaseKind::Claims).len(), 1_000);
    assert_eq!(counts(&plan), (0, 0));
    assert_eq!(
        plan.requeue.as_ref().map(|requeue| requeue.delay.is_zero()),
        Some(true)
    );
    world.apply(&plan);
    let plan = world.plan();
    assert_eq!(
        (actions(&plan, PhaseKind::Claims).len(), counts(&plan)),
        (500, (0, 1))
    );
}
