//! The cache from plan to plan: when it is used. A property test checks that it does not change plans.

use jiff::SignedDuration;
use nodewise_planner::{
    plan::Verdict,
    replicaset::{ReplicaSet, plan_cache::PlanCache, plan_until},
    snapshot::{Bucket, Digest, List, Snapshot},
};
use sha2::{Digest as _, Sha256};

use crate::support::{World, creates};

/// The same snapshot in buckets with digests.
pub(crate) fn in_buckets(snapshot: &Snapshot<ReplicaSet>, count: usize) -> Snapshot<ReplicaSet> {
    let mut buckets = vec![vec![]; count];
    for pod in snapshot.pods() {
        let index = pod.name().bytes().map(usize::from).sum::<usize>() % count;
        buckets[index].push(pod.to_pod());
    }
    let buckets = buckets.into_iter().map(|pods| {
        let digest: Digest = Sha256::digest(format!("{pods:?}")).into();
        Bucket {
            pods: List::with_digest(pods, digest),
            ..Bucket::default()
        }
    });
    Snapshot {
        buckets: buckets.collect(),
        ..snapshot.clone()
    }
}

fn counts(cache: &mut PlanCache) -> (u64, u64) {
    let counts = cache.take_counts();
    (counts.summaries_cached, counts.summaries_computed)
}

#[test]
fn only_changed_buckets_are_computed() {
    let mut cache = PlanCache::default();
    let mut plan = |world: &World, identify: bool| {
        let snapshot = in_buckets(&world.snapshot(), 8);
        if identify {
            assert_eq!(cache.identify(&snapshot.buckets), Ok(()));
        }
        let plan = plan_until(&snapshot, &mut cache, &|| false).expect("nothing stops it");
        assert_eq!(plan, world.plan());
        (plan, counts(&mut cache))
    };
    let mut world = World::new(40).with_ready(40).min_ready(60).settled();
    assert_eq!(plan(&world, true).1, (0, 8));
    assert_eq!(plan(&world, true).1, (8, 0));
    world.now += SignedDuration::from_secs(5);
    assert_eq!(plan(&world, false).1, (8, 0), "time passes");
    world.pods[3].ready = false;
    assert_eq!(plan(&world, true).1, (7, 1), "a pod changes");
    world.rs.status.replicas = 3;
    world.rs.generation = 7;
    world.rs.replicas = 41;
    world.options.terminating_replicas = false;
    let (first, counts) = plan(&world, true);
    assert_eq!(
        (counts, creates(&first).len()),
        ((8, 0), 1),
        "what summaries do not depend on"
    );
    // The names of new pods depend on all present names, which are cached, too.
    world.create(creates(&first)[0]);
    world.rs.replicas = 42;
    let (second, counts) = plan(&world, true);
    assert_eq!(counts, (7, 1));
    assert_ne!(creates(&second), creates(&first));
    world.rs.min_ready_seconds = 61;
    assert_eq!(plan(&world, true).1, (0, 8), "minReadySeconds");
    world.rs.deleting = true;
    assert_eq!(plan(&world, true).1, (0, 8), "deletion");
    world.rs.template_labels = crate::support::labels(&[("x", "y")]);
    assert_eq!(plan(&world, true).1, (0, 8), "labels of the template");
    world.rs.selector = None;
    assert_eq!(plan(&world, true).1, (0, 0), "nothing is planned");
}

#[test]
fn a_summary_ends_when_a_pod_becomes_available() {
    let world = World::new(2).with(&["a@n since=0", "b@n ready"]).min_ready(60);
    let mut cache = PlanCache::default();
    for (seconds, expected) in [
        (0, (0, 1)),
        (59, (1, 0)),
        (60, (0, 1)),
        (61, (1, 0)),
        (59, (0, 1)),
        (-86_400, (0, 1)),
    ] {
        let mut later = world.clone();
        later.now += SignedDuration::from_secs(seconds);
        let snapshot = in_buckets(&later.snapshot(), 1);
        let plan = plan_until(&snapshot, &mut cache, &|| false);
        assert_eq!(plan, Some(later.plan()), "{seconds}");
        assert_eq!(counts(&mut cache), expected, "{seconds}");
    }
    let (filled, empty) = (cache.bytes(), PlanCache::default().bytes());
    assert!(empty > 100 && filled > empty, "{filled} and {empty} bytes");
}

#[test]
fn planning_can_be_stopped() {
    let world = World::new(1).with_ready(9);
    let plan = plan_until(&world.snapshot(), &mut PlanCache::default(), &|| true);
    assert_eq!(plan, None);
    assert_eq!(world.plan().verdict, Verdict::Apply);
}

#[test]
fn superseded_lists_and_duplicates_are_reported() {
    let mut world = World::new(2).with_ready(2);
    let mut cache = PlanCache::default();
    let before = in_buckets(&world.snapshot(), 1);
    assert_eq!(cache.identify(&before.buckets), Ok(()));
    world.pods[0].ready = false;
    assert_eq!(cache.identify(&in_buckets(&world.snapshot(), 1).buckets), Ok(()));
    assert_eq!(
        cache.superseded_pods(),
        [*before.buckets[0].pods.digest().unwrap()]
    );
    let twin = world.pods[0].clone();
    world.pods.push(twin);
    assert_eq!(
        cache
            .identify(&in_buckets(&world.snapshot(), 1).buckets)
            .map_err(|twice| twice.len()),
        Err(2)
    );
}
