//! Properties that hold for every snapshot, and for whole rollouts.

use jiff::Timestamp;
use nodewise_planner::{
    deployment::{self, Strategy as Rollout},
    plan::{PhaseKind, Verdict},
    snapshot::{Deviation, Options},
};
use proptest::prelude::*;

use crate::{
    golden::{Readiness, run_sets},
    support::{ROLLBACK, World, annotate, annotation, template},
};

const REVISION: &str = crate::support::REVISION;

fn pick(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// Sizes, mostly small, but also the least and the greatest.
fn size() -> impl Strategy<Value = i32> {
    prop_oneof![
        8 => 0..12_i32,
        1 => -3..0_i32,
        1 => prop_oneof![Just(i32::MIN), Just(i32::MAX), Just(50_000)],
    ]
}

fn limit() -> impl Strategy<Value = &'static str> {
    pick(&[
        "0",
        "1",
        "3",
        "25%",
        "100%",
        "0%",
        "-1",
        "-30%",
        "x",
        "5x%",
        "-",
        "2147483647",
        "9223372036854775807%",
    ])
}

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (900..1_100_i64).prop_map(|seconds| Timestamp::from_second(seconds).expect("in range")),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let deviations = proptest::sample::subsequence(Deviation::ALL.to_vec(), 0..=Deviation::ALL.len());
    (deviations, 0..6_usize, any::<bool>()).prop_map(|(deviations, burst, gate)| Options {
        deviations: deviations.into_iter().collect(),
        terminating_replicas: gate,
        burst,
        ..Options::default()
    })
}

/// One set: size, counts, and words for [`World::set`].
fn set() -> impl Strategy<Value = (i32, [i32; 3], String)> {
    let word = prop_oneof![
        4 => Just(String::new()),
        1 => pick(&["orphan", "foreign", "deleting", "taken", "app=other", "failing=Quota", "pods=2", "gen=4", "seen=0"])
            .prop_map(str::to_owned),
    ];
    let number = |key: &'static str| {
        prop_oneof![
            2 => Just(String::new()),
            6 => size().prop_map(move |value| format!("{key}={value}")),
            1 => pick(&["", "x", "-1", "9223372036854775807"]).prop_map(move |value| format!("{key}={value}")),
        ]
    };
    let text = (number("desired"), number("max"), number("rev"), word, 0..4_i64).prop_map(
        |(desired, max, revision, word, created)| format!("{desired} {max} {revision} {word} t={created}"),
    );
    (size(), [size(), size(), size()], text)
}

/// Deployments with any sizes, limits, times and sets, valid or not.
fn anything() -> impl Strategy<Value = World> {
    let sets = proptest::collection::vec((pick(&["new", "old", "b"]), set()), 0..6);
    let spec = (
        size(),
        limit(),
        limit(),
        pick(&["rolling", "recreate", "unknown", "absent"]),
        (any::<bool>(), any::<bool>()),
    );
    let more = (
        proptest::option::of(size()),
        proptest::option::of(size()),
        [size(), size(), size()],
        pick(&["", "", "0", "1", "x", "-4"]),
        pick(&[
            "",
            "NewReplicaSetAvailable",
            "ReplicaSetUpdated",
            "ProgressDeadlineExceeded",
            "DeploymentPaused",
            "ReplicaSetCreateError",
        ]),
    );
    (sets, spec, more, moment(), options()).prop_map(|(sets, spec, more, now, options)| {
        let (replicas, surge, unavailable, strategy, (paused, deleting)) = spec;
        let (deadline, history, counts, rollback, reason) = more;
        let mut world = World::new(replicas).rolling(surge, unavailable);
        world.web.strategy = match strategy {
            "recreate" => Rollout::Recreate,
            "unknown" => Rollout::Unknown("Odd".to_owned()),
            "absent" => Rollout::RollingUpdate(None),
            _ => world.web.strategy,
        };
        for (index, (name, (size, [available, has, terminating], text))) in sets.into_iter().enumerate() {
            world.set(&format!(
                "{name}-{index} {size}/{available} image={name} has={has} terminating={terminating} {text}"
            ));
        }
        (world.now, world.options) = (now, options);
        world.web.paused = paused;
        world.web.deleting = deleting && paused;
        world.web.progress_deadline_seconds = deadline;
        world.web.revision_history_limit = history;
        let status = &mut world.web.status;
        [
            status.replicas,
            status.updated_replicas,
            status.available_replicas,
        ] = counts;
        status.collision_count = deadline;
        if !rollback.is_empty() {
            world = world.annotated(ROLLBACK, rollback);
        }
        if !reason.is_empty() {
            world = world.progressing("True", reason, 950);
        }
        world
    })
}

/// Rollouts that a real cluster may have: replicas, limits, the sizes of old sets, and how many new pods become available.
fn rollout() -> impl Strategy<Value = World> {
    let limits = (
        pick(&["0", "1", "3", "25%", "50%", "100%"]),
        pick(&["0", "1", "3", "25%", "50%", "100%"]),
    );
    (
        0..12_i32,
        limits,
        proptest::collection::vec(0..6_i32, 0..3),
        any::<bool>(),
    )
        .prop_map(|(replicas, (surge, unavailable), olds, recreate)| {
            let mut world = World::new(replicas).rolling(surge, unavailable);
            if recreate {
                world = world.recreate();
            }
            for (index, size) in olds.into_iter().enumerate() {
                world.set(&format!(
                    "old-{index} {size}/{size} rev={} desired={replicas} max={replicas}",
                    index + 1
                ));
            }
            world.options = Options::default();
            world
        })
}

/// The limits of a world, as the planner resolves them: (the most replicas, the least available).
fn bounds(world: &World) -> (i32, i32) {
    let Rollout::RollingUpdate(Some(limits)) = &world.web.strategy else {
        return (world.web.replicas, 0);
    };
    let replicas = world.web.replicas;
    let scale = |limit: &Option<nodewise_planner::snapshot::IntOrString>, up: i32| match limit {
        Some(nodewise_planner::snapshot::IntOrString::Int(number)) => *number,
        Some(nodewise_planner::snapshot::IntOrString::String(text)) => {
            let percent: i32 = text.trim_end_matches('%').parse().expect("a percentage");
            (percent * replicas + up) / 100
        }
        None => 0,
    };
    let (surge, unavailable) = (scale(&limits.max_surge, 99), scale(&limits.max_unavailable, 0));
    let unavailable = if surge == 0 && unavailable == 0 {
        1
    } else {
        unavailable
    };
    (replicas + surge, (replicas - unavailable).max(0))
}

fn total(world: &World) -> i32 {
    world.web.sets.iter().map(|set| set.replicas).sum()
}

fn available(world: &World) -> i32 {
    world
        .web
        .sets
        .iter()
        .map(|set| set.status.available_replicas.min(set.replicas))
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn plans_and_explanations_never_panic_and_have_their_form(world in anything()) {
        let snapshot = world.snapshot();
        let plan = deployment::plan(&snapshot);
        let _ = deployment::explain(&snapshot);
        // P-1, P-64: a plan depends on nothing but the snapshot, and there is no state.
        prop_assert_eq!(&plan, &deployment::plan(&snapshot));
        prop_assert_eq!(&plan.state, &snapshot.state);
        prop_assert_eq!(plan.verdict == Verdict::Noop, plan.phases.is_empty() && plan.error.is_none());
        let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
        prop_assert!(kinds.is_sorted_by(|a, b| a < b), "P-2: each phase once, and in order: {:?}", kinds);
        prop_assert!(plan.phases.iter().all(|phase| phase.batches.iter().all(|batch| !batch.actions.is_empty())));
        // P-11: without a rollout nothing is created.
        if snapshot.workload.paused || snapshot.workload.deleting {
            prop_assert!(!kinds.contains(&PhaseKind::Creates) && !kinds.contains(&PhaseKind::Rollback));
        }
        for deviation in &plan.deviations {
            prop_assert!(snapshot.options.deviates(*deviation));
        }
    }

    #[test]
    fn the_order_of_sets_does_not_matter(world in anything(), seed in any::<u64>()) {
        let mut shuffled = world.clone();
        let sets = &mut shuffled.web.sets;
        let mut seed = seed;
        for index in (1..sets.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = usize::try_from(seed >> 33).expect("64 bits") % (index + 1);
            sets.swap(index, other);
        }
        prop_assert_eq!(world.plan(), shuffled.plan());
        prop_assert_eq!(deployment::explain(&world.snapshot()), deployment::explain(&shuffled.snapshot()));
    }

    #[test]
    fn a_set_is_written_once(world in anything()) {
        let plan = world.plan();
        let mut seen = std::collections::HashSet::new();
        for kind in [PhaseKind::ReplicaSets, PhaseKind::OldReplicaSets, PhaseKind::Cleanup] {
            for action in crate::support::actions(&plan, kind) {
                use nodewise_planner::plan::ActionKind::{DeleteObject, PatchObject};
                let (PatchObject { object, .. } | DeleteObject { object, .. }) = &action.kind else {
                    panic!("{action:?}");
                };
                prop_assert!(seen.insert(object.name.clone()), "P-3: {} is written twice", object.name);
            }
        }
    }

    // P-65: a rollout keeps to its limits, and becomes complete.
    #[test]
    fn rollouts_keep_to_their_limits_and_end(mut world in rollout(), ready in 0..12_i32) {
        let recreate = world.web.strategy == Rollout::Recreate;
        let slow = Readiness { new: ready, ..Readiness::ALL };
        let (most, least) = bounds(&world);
        for step in 0..60 {
            // New pods become available only in the second half.
            run_sets(&mut world, if step < 30 { slow } else { Readiness::ALL });
            let (before, had) = (total(&world), available(&world));
            world.sync();
            prop_assert!(total(&world) <= most.max(before), "{} of {most} replicas: {}", total(&world), world.sizes());
            if !recreate {
                let still = available(&world);
                prop_assert!(still >= least.min(had), "{still} of {least} available: {}", world.sizes());
            }
            if recreate {
                let new: i32 = world.web.sets.iter().filter(|set| set.name.starts_with("web-")).map(|set| set.status.replicas).sum();
                prop_assert!(new == 0 || total(&world) == world.web.replicas, "old and new pods at once: {}", world.sizes());
            }
        }
        let condition = crate::support::condition_of(&world.web.status, "Progressing");
        prop_assert_eq!(condition, "True NewReplicaSetAvailable");
        prop_assert_eq!(world.web.status.available_replicas, world.web.replicas);
        prop_assert!(world.plan().phases.is_empty(), "{:?}", world.plan());
    }

    // P-65: rollouts, scaling, pauses and rollbacks in any order end well.
    #[test]
    fn any_history_converges(
        mut world in rollout(),
        changes in proptest::collection::vec((0..6_u8, 0..8_i32, 0..3_u8), 0..12),
    ) {
        for (change, number, syncs) in changes {
            world.web.generation += 1;
            match change {
                0 => world.web.replicas = number,
                1 => world.web.template = template(["new", "old-0", "x", "y"][usize::try_from(number).expect("small") % 4]).into(),
                2 => world.web.paused = !world.web.paused,
                3 => world = world.annotated(ROLLBACK, &(number % 4).to_string()),
                4 => world.web.min_ready_seconds = number,
                _ => run_sets(&mut world, Readiness { new: number, old: number }),
            }
            for _ in 0..syncs {
                world.sync();
            }
        }
        world.web.paused = false;
        for _ in 0..80 {
            run_sets(&mut world, Readiness::ALL);
            world.sync();
        }
        let condition = crate::support::condition_of(&world.web.status, "Progressing");
        prop_assert_eq!(condition, "True NewReplicaSetAvailable", "{}", world.sizes());
        prop_assert_eq!(total(&world), world.web.replicas, "{}", world.sizes());
        prop_assert!(world.plan().phases.is_empty(), "{:?}", world.plan());
        let mut revisions: Vec<_> = world.web.sets.iter().map(|set| annotation(set, REVISION).to_owned()).collect();
        let count = revisions.len();
        revisions.sort();
        revisions.dedup();
        prop_assert_eq!(revisions.len(), count, "P-18: each set has its own revision");
    }
}

#[test]
fn thousands_of_sets_are_planned_in_bounds() {
    let mut world = World::new(1);
    for index in 0..3_000 {
        world.set(&format!("old{index} 1/1 rev={index} desired=9 max=9"));
    }
    let plan = world.plan();
    let writes = crate::support::actions(&plan, PhaseKind::ReplicaSets).len();
    assert_eq!(writes, 1_000, "P-45");
    assert_eq!(
        plan.requeue.expect("the rest follows").delay,
        std::time::Duration::ZERO
    );
    // As many orphans: only claims are planned.
    for set in &mut world.web.sets {
        set.controller = None;
    }
    let plan = world.plan();
    assert_eq!(crate::support::phases(&plan), [PhaseKind::Claims]);
    assert_eq!(crate::support::actions(&plan, PhaseKind::Claims).len(), 1_000);
    // Planning stops when it is asked to.
    assert_eq!(deployment::plan_until(&world.snapshot(), &|| true), None);
    assert_eq!(deployment::explain_until(&world.snapshot(), &|| true), None);
    annotate(&mut world.web.sets[0], "x", "y");
}
