//! Properties that hold for every snapshot.

mod histories;
mod ranking;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    plan::{ActionKind, PhaseKind, Plan, Verdict},
    replicaset::{ReplicaSet, explain, plan_cache::PlanCache, plan_until},
    snapshot::{Bucket, Deviation, List, Options, OwnWrite, PodNameCollision, PodView, SlowStart, Snapshot},
};
use proptest::prelude::*;

use crate::{
    plan_cache::in_buckets,
    support::{World, actions, condition, counts, creates, deletes, status, used},
};

const NODES: [&str; 4] = ["", "n1", "n2", "n3"];
const LABELS: [&str; 4] = ["", "", "extra", "stray"];
const OWNERS: [&str; 4] = ["", "", "orphan", "foreign"];
const STATES: [&str; 7] = [
    "ready",
    "since=",
    "unready",
    "pending",
    "unknown",
    "failed",
    "succeeded",
];

fn pick(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// The words of a pod, without its name.
pub(super) fn pod() -> impl Strategy<Value = String> {
    let numbers = (
        -3..3_i64,
        0..3_u8,
        0..3_u8,
        proptest::option::of(-5..40_000_i64),
        0..4_i64,
    );
    (pick(&NODES), pick(&LABELS), pick(&OWNERS), pick(&STATES), proptest::bool::weighted(0.2), numbers).prop_map(
        |(node, labels, owner, state, deleting, (cost, restarts, sidecar, since, created))| {
            let deleting = if deleting { "deleting" } else { "" };
            let since = since.map(|since| format!("since={since}")).unwrap_or_default();
            format!(
                "@{node} {labels} {owner} {state} {since} {deleting} cost={cost} restarts={restarts} sidecar={sidecar} t={}",
                created * 5_000
            )
        },
    )
}

/// Times, including the least and the greatest.
fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (86_000..87_000_i64).prop_map(|seconds| Timestamp::from_second(seconds).expect("in range")),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let deviations = proptest::sample::subsequence(Deviation::ALL.to_vec(), 0..=Deviation::ALL.len());
    let burst = prop_oneof![4 => 0..6_usize, 1 => Just(usize::MAX)];
    (deviations, burst, any::<bool>(), any::<bool>()).prop_map(|(deviations, burst, cost, terminating)| {
        Options {
            deviations: deviations.into_iter().collect(),
            burst,
            pod_deletion_cost: cost,
            terminating_replicas: terminating,
            ..Options::default()
        }
    })
}

/// Snapshots with any pods, state and clock, valid or not.
fn anything() -> impl Strategy<Value = Snapshot<ReplicaSet>> {
    let size = (
        prop_oneof![8 => -2..12_i32, 1 => any::<i32>()],
        prop_oneof![4 => 0..20_000_i32, 1 => any::<i32>()],
        any::<bool>(),
    );
    let state = (
        proptest::option::of((moment(), 0..4_usize, 0..3_usize, any::<bool>())),
        proptest::collection::vec(0..8_usize, 0..4),
        proptest::option::of(0..5_u32),
        proptest::option::of((any::<u32>(), moment())),
    );
    let pods = proptest::collection::vec((pod(), 0..12_usize), 0..14);
    (size, pods, state, options(), moment(), any::<[bool; 3]>()).prop_map(
        |(
            (replicas, min_ready, deleting),
            pods,
            (expected, gone, refused, slow),
            options,
            now,
            [stale, failure, odd],
        )| {
            let mut world =
                World::new(replicas)
                    .min_ready(min_ready)
                    .related(&[("", 1), ("n1", 2), ("n3", 1)]);
            let names: Vec<String> = names(12);
            for (index, (words, name)) in pods.iter().enumerate() {
                // Some pods have names that new pods could get. Names must be unique.
                let name =
                    if index.is_multiple_of(2) && !world.pods.iter().any(|pod| pod.name == names[*name]) {
                        names[*name].clone()
                    } else {
                        format!("p-{index}")
                    };
                world.pod(&format!("{name}{words}"));
            }
            if let Some((set_at, creates, deletes, named)) = expected {
                let creates: Vec<&str> = names[..creates]
                    .iter()
                    .map(|name| if named { &**name } else { "" })
                    .collect();
                world.expect(&creates, &["uid-of-p-1", "uid-of-x"][..deletes.min(2)], 0);
                world.state.expectations.as_mut().expect("just set").set_at = set_at;
            }
            world.state.used_pod_names = gone.into_iter().map(|index| used(&names[index])).collect();
            world.state.pod_name_collisions = refused
                .into_iter()
                .map(|refused| PodNameCollision {
                    node_name: String::new(),
                    count: refused,
                    refused,
                })
                .collect();
            world.state.slow_start = slow.map(|(size, last)| SlowStart {
                size,
                revision_hash: world.rs.uid.clone(),
                last,
            });
            if failure {
                world
                    .rs
                    .status
                    .conditions
                    .push(condition("ReplicaFailure", "FailedCreate", "x"));
            }
            world.rs.deleting = deleting && odd;
            world.options = options;
            let mut snapshot = Snapshot {
                now,
                ..world.snapshot()
            };
            if stale && odd {
                snapshot.own_writes = vec![OwnWrite {
                    resource: "pods".to_owned(),
                    written: "2".to_owned(),
                    observed: "1".to_owned(),
                }];
            }
            snapshot
        },
    )
}

/// The names that new pods get first.
pub(super) fn names(count: i32) -> Vec<String> {
    creates(&World::new(count).plan())
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// The names of active pods that the set owns after the plan's claims.
fn active<'a>(snapshot: &'a Snapshot<ReplicaSet>, plan: &Plan) -> BTreeSet<&'a str> {
    let adopted: BTreeSet<&str> = actions(plan, PhaseKind::Claims)
        .into_iter()
        .filter_map(|action| match &action.kind {
            ActionKind::AdoptPod { pod, .. } => Some(pod.name.as_str()),
            _ => None,
        })
        .collect();
    snapshot
        .pods()
        .filter(|pod| !pod.deleting() && !pod.phase().is_terminal() && pod.labels().get("app") == Some("web"))
        .filter(|pod| match pod.controller() {
            Some(controller) => controller.uid == snapshot.workload.uid,
            None => adopted.contains(pod.name()),
        })
        .map(PodView::name)
        .collect()
}

fn plan(snapshot: &Snapshot<ReplicaSet>) -> Plan {
    nodewise_planner::replicaset::plan(snapshot)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // never more pods than wanted, and never fewer, by what the plan does.
    #[test]
    fn plans_do_not_overshoot(snapshot in anything()) {
        let plan = plan(&snapshot);
        let (created, deleted) = counts(&plan);
        let burst = snapshot.options.burst;
        prop_assert!(created <= burst && deleted <= burst);
        prop_assert!(created == 0 || deleted == 0);
        let active = active(&snapshot, &plan);
        let wanted = usize::try_from(snapshot.workload.replicas).unwrap_or(0);
        if created > 0 {
            let outstanding = plan.state.expectations.as_ref().expect("creates are expected");
            let unseen = outstanding.creates.iter().filter(|create| create.pod_name.is_empty() || !snapshot.pods().any(|pod| pod.name() == create.pod_name));
            prop_assert!(active.len() + unseen.count() <= wanted);
            let named: Vec<_> = creates(&plan).into_iter().filter(|name| !name.is_empty()).collect();
            prop_assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len(), "names differ");
            for name in named {
                prop_assert!(!snapshot.pods().any(|pod| pod.name() == name), "no pod has the name");
                prop_assert!(snapshot.state.used_pod_names.iter().all(|used| used.pod_name != name));
            }
        }
        let victims: BTreeSet<_> = deletes(&plan).into_iter().collect();
        prop_assert_eq!(victims.len(), deleted, "each pod is deleted once");
        prop_assert!(victims.is_subset(&active));
        if deleted > 0 {
            prop_assert!(active.len() - deleted >= wanted);
        }
        if plan.status.is_some() && snapshot.workload.selector.is_some() {
            prop_assert_eq!(usize::try_from(status(&plan).replicas), Ok(active.len()));
        }
        if plan.verdict == Verdict::Stale || plan.verdict == Verdict::Noop {
            prop_assert!(plan.phases.is_empty());
        }
    }

    // equal snapshots give equal plans, in any order and in any buckets.
    #[test]
    fn the_order_does_not_matter(snapshot in anything(), buckets in 1..5_usize) {
        let expected = plan(&snapshot);
        let mut pods: Vec<_> = snapshot.pods().map(PodView::to_pod).collect();
        pods.reverse();
        let whole = Snapshot { buckets: Bucket::divide(vec![], pods, 1, |_| 0), ..snapshot.clone() };
        prop_assert_eq!(&plan(&whole), &expected);
        prop_assert_eq!(&plan(&in_buckets(&snapshot, buckets)), &expected);
    }

    #[test]
    fn explanations_place_every_active_pod(snapshot in anything()) {
        let explanation = explain(&snapshot);
        let places: Vec<_> = explanation.pods.iter().filter_map(|pod| pod.place).collect();
        prop_assert_eq!(&places, &(1..=places.len()).collect::<Vec<_>>());
        let plan = plan(&snapshot);
        if plan.status.is_some() {
            prop_assert_eq!(places.len(), active(&snapshot, &plan).len());
        }
        let victims = deletes(&plan);
        if !victims.is_empty() && victims.len() < places.len() {
            let first: Vec<_> = explanation.pods.iter().take(victims.len()).map(|pod| &*pod.pod_name).collect();
            prop_assert_eq!(first, victims, "the plan deletes in the order of the explanation");
        }
    }

    // A plan with a cache equals the plan without one, after any changes.
    #[test]
    fn the_cache_does_not_change_plans(
        first in anything(),
        changes in proptest::collection::vec((anything(), 0..6_u8, 0..14_usize), 1..5),
        buckets in 1..4_usize,
    ) {
        let mut cache = PlanCache::default();
        let mut snapshot = first;
        for (other, change, index) in changes {
            match change {
                0 => snapshot.now = other.now,
                1 => snapshot.state = other.state,
                2 => snapshot.workload = other.workload,
                3 => snapshot.options = other.options,
                4 => snapshot.buckets = other.buckets,
                _ => {
                    let mut pods = snapshot.buckets[0].pods.to_vec();
                    if index < pods.len() {
                        pods.remove(index);
                    }
                    snapshot.buckets[0].pods = List::new(pods);
                    snapshot.now = snapshot.now.checked_add(SignedDuration::from_secs(40)).unwrap_or(Timestamp::MAX);
                }
            }
            let divided = in_buckets(&snapshot, buckets);
            if change == 1 {
                cache = PlanCache::default();
            } else {
                prop_assert_eq!(cache.identify(&divided.buckets), Ok(()));
            }
            let with = plan_until(&divided, &mut cache, &|| false);
            prop_assert_eq!(with, Some(plan(&snapshot)));
        }
    }
}
