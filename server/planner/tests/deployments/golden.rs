//! Whole rollouts, with a model of the ReplicaSet controller (G-1 to G-12).

use nodewise_planner::snapshot::Deviation;

use crate::support::{World, template};

/// How many pods of each template become available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    /// Of the Deployment's template.
    pub(crate) new: i32,
    /// Of any other.
    pub(crate) old: i32,
}

impl Readiness {
    pub(crate) const ALL: Self = Self {
        new: i32::MAX,
        old: i32::MAX,
    };
}

/// What the ReplicaSet controller does: each set has its pods at once, and as many are available as may be.
pub(crate) fn run_sets(world: &mut World, readiness: Readiness) {
    let template = world.web.template.to_value();
    for set in &mut world.web.sets {
        let mut own = set.template.to_value();
        if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
            labels.remove(crate::support::HASH_LABEL);
        }
        let most = if own == template {
            readiness.new
        } else {
            readiness.old
        };
        set.status.replicas = set.replicas;
        set.status.ready_replicas = set.replicas.min(most);
        set.status.available_replicas = set.replicas.min(most);
        set.status.observed_generation = set.generation;
        set.status.terminating_replicas = Some(0);
    }
}

/// The sizes of the old and the new set, as `8/3`. A set that is missing is `–`.
fn sizes(world: &World) -> String {
    let size = |index: usize| {
        let set = world.web.sets.get(index);
        set.map_or_else(|| "–".to_owned(), |set| set.replicas.to_string())
    };
    format!("{}/{}", size(0), size(1))
}

/// Applies plans until nothing changes any more. Returns the sizes after each plan that changed them.
fn roll_out(world: &mut World, readiness: Readiness) -> String {
    let mut steps = vec![];
    let mut before = sizes(world);
    for _ in 0..40 {
        world.sync();
        run_sets(world, readiness);
        let after = sizes(world);
        if after != before {
            steps.push(after.clone());
        }
        before = after;
    }
    steps.join(" ")
}

#[test]
fn golden_rollouts() {
    let never = Readiness {
        new: 0,
        ..Readiness::ALL
    };
    let one = Readiness {
        new: 1,
        ..Readiness::ALL
    };
    // (rollout, replicas, maxSurge, maxUnavailable, readiness, steps)
    let table = [
        ("G-1", 10, "3", "2", Readiness::ALL, "8/3 8/5 3/5 3/10 0/10"),
        ("G-2", 10, "3", "2", never, "8/3 8/5"),
        ("G-3", 4, "25%", "25%", Readiness::ALL, "3/1 3/2 1/2 1/4 0/4"),
        ("G-4", 3, "25%", "25%", Readiness::ALL, "3/1 2/1 2/2 1/2 1/3 0/3"),
        ("G-5", 1, "25%", "25%", Readiness::ALL, "1/1 0/1"),
        ("G-6", 2, "0%", "1%", Readiness::ALL, "1/0 1/1 0/1 0/2"),
        ("G-7", 2, "1%", "0%", Readiness::ALL, "2/1 1/1 1/2 0/2"),
        ("G-8", 5, "0", "2", Readiness::ALL, "3/0 3/2 1/2 1/4 0/4 0/5"),
        ("G-9", 5, "10", "0", Readiness::ALL, "5/5 0/5"),
        ("G-10", 5, "0", "100%", Readiness::ALL, "0/0 0/5"),
        ("G-11", 3, "recreate", "", Readiness::ALL, "0/– 0/3"),
        ("G-12", 6, "2", "0", one, "6/2 5/2 5/3"),
    ];
    for (rollout, replicas, surge, unavailable, readiness, steps) in table {
        for deviations in [&[][..], &Deviation::ALL] {
            let world = World::new(replicas);
            let world = match surge {
                "recreate" => world.recreate(),
                surge => world.rolling(surge, unavailable),
            };
            let mut world = world
                .with(&format!(
                    "old {replicas}/{replicas} rev=1 desired={replicas} max=99"
                ))
                .deviating(deviations);
            assert_eq!(
                roll_out(&mut world, readiness),
                steps,
                "{rollout} with {deviations:?}"
            );
        }
    }
}

#[test]
fn a_finished_rollout_says_so_and_ends() {
    let mut world = World::new(3).with("old 3/3 rev=1 desired=3 max=4");
    roll_out(&mut world, Readiness::ALL);
    let progressing = crate::support::condition_of(&world.web.status, "Progressing");
    assert_eq!(progressing, "True NewReplicaSetAvailable", "P-65");
    let plan = world.plan();
    assert!(plan.phases.is_empty() && plan.requeue.is_none(), "{plan:?}");
}

#[test]
fn a_new_template_replaces_an_unfinished_rollout() {
    // P-65
    let mut world = World::new(6)
        .rolling("2", "0")
        .with("old 6/6 rev=1 desired=6 max=8");
    let none = Readiness {
        new: 0,
        ..Readiness::ALL
    };
    roll_out(&mut world, none);
    world.web.template = template("newest").into();
    world.web.generation += 1;
    for _ in 0..40 {
        world.sync();
        run_sets(&mut world, Readiness::ALL);
    }
    assert_eq!(world.sizes(), "created 0, created 6, old 0");
}
