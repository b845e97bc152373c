//! The order of deletion, compared with upstream's own method: a sort by insertion with an inconsistent comparison.

use std::cmp::Ordering;

use nodewise_planner::{
    replicaset::ReplicaSet,
    snapshot::{Pod, PodPhase, Snapshot, Target},
};
use proptest::prelude::*;

use super::pod;
use crate::support::{World, deletes};

/// The power of two of an age in nanoseconds; -1 for none, as R-40 says.
fn bucket(snapshot: &Snapshot<ReplicaSet>, time: jiff::Timestamp) -> i64 {
    let age = snapshot.now.duration_since(time).as_nanos();
    if age <= 0 { -1 } else { i64::from(age.ilog2()) }
}

/// Whether `a` is deleted before `b`, rule by rule.
fn is_before(a: &Pod, b: &Pod, snapshot: &Snapshot<ReplicaSet>) -> bool {
    let node = |pod: &Pod| match &pod.target {
        Target::Bound(node) => node.clone(),
        _ => String::new(),
    };
    let phase = |pod: &Pod| match pod.phase {
        PodPhase::Running => 2,
        PodPhase::Unknown => 1,
        _ => 0,
    };
    let related = |pod: &Pod| {
        let mut all = snapshot.workload.related_pods.iter();
        all.find(|(name, _)| *name == node(pod))
            .map_or(0, |(_, pods)| *pods)
    };
    let first = [
        node(a).is_empty().cmp(&node(b).is_empty()).reverse(),
        phase(a).cmp(&phase(b)),
        a.ready.cmp(&b.ready),
        a.deletion_cost.cmp(&b.deletion_cost),
        related(b).cmp(&related(a)),
    ];
    if let Some(order) = first.into_iter().find(|order| order.is_ne()) {
        return order == Ordering::Less;
    }
    let by_time = |one: Option<jiff::Timestamp>, other: Option<jiff::Timestamp>| match (one, other) {
        (Some(one), Some(other)) => match bucket(snapshot, one).cmp(&bucket(snapshot, other)) {
            Ordering::Equal => a.uid < b.uid,
            order => order == Ordering::Less,
        },
        (one, _) => one.is_none(),
    };
    if a.ready && b.ready && a.ready_since != b.ready_since {
        return by_time(a.ready_since, b.ready_since);
    }
    match (b.restarts, b.sidecar_restarts).cmp(&(a.restarts, a.sidecar_restarts)) {
        Ordering::Equal if a.created != b.created => by_time(a.created, b.created),
        order => order == Ordering::Less,
    }
}

fn sorted<'a>(start: &[&'a Pod], snapshot: &Snapshot<ReplicaSet>) -> Vec<&'a Pod> {
    let mut sorted: Vec<&Pod> = Vec::new();
    for pod in start {
        let steps = sorted
            .iter()
            .rev()
            .take_while(|other| is_before(pod, other, snapshot))
            .count();
        sorted.insert(sorted.len() - steps, pod);
    }
    sorted
}

/// All orders of these items.
fn orders<'a>(items: &[&'a Pod]) -> Vec<Vec<&'a Pod>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for index in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(index);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, first);
            order
        }));
    }
    all
}

/// The order of R-42 as it stands: a sort by what can be compared, then a sort by insertion.
fn in_two_steps<'a>(pods: &'a [Pod], snapshot: &Snapshot<ReplicaSet>) -> Vec<&'a Pod> {
    let mut start: Vec<&Pod> = pods.iter().collect();
    start.sort_by_key(|pod| (pod.controller.is_none(), &pod.uid));
    // What is not consistent makes no difference here: two pods differ only if the rules 1 to 5 or a power of two do.
    let power = |pod: &Pod| {
        pod.ready
            .then(|| pod.ready_since.map(|since| bucket(snapshot, since)))
    };
    let mut groups: Vec<Vec<&Pod>> = Vec::new();
    for pod in start {
        let alike = |other: &Pod| {
            let mut one = pod.clone();
            let mut two = other.clone();
            for pod in [&mut one, &mut two] {
                (pod.ready_since, pod.created, pod.restarts, pod.sidecar_restarts) = (None, None, 0, 0);
            }
            !is_before(&one, &two, snapshot) && !is_before(&two, &one, snapshot) && power(pod) == power(other)
        };
        match groups.iter_mut().find(|group| alike(group[0])) {
            Some(group) => group.push(pod),
            None => groups.push(vec![pod]),
        }
    }
    groups.sort_by(|a, b| {
        if is_before(a[0], b[0], snapshot) {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    });
    groups.iter().flat_map(|group| sorted(group, snapshot)).collect()
}

/// The world with these pods that count.
fn world_of(pods: &[(String, u8)]) -> World {
    let mut world = World::new(1).related(&[("", 1), ("n1", 2), ("n3", 1)]);
    for (index, (words, uid)) in pods.iter().enumerate() {
        world.pod(&format!("p-{index}{words} uid={uid}-{index}"));
    }
    world.pods.retain(|pod| {
        let is_foreign = pod
            .controller
            .as_ref()
            .is_some_and(|controller| controller.uid == "another");
        !pod.deleting && !pod.phase.is_terminal() && pod.labels.get("app") == Some("web") && !is_foreign
    });
    world
}

/// Pods that differ only in times and restarts, and often in nothing.
fn similar() -> impl Strategy<Value = String> {
    let times = (
        any::<bool>(),
        0..3_u8,
        0..3_u8,
        0..3_u8,
        proptest::bool::weighted(0.2),
    );
    times.prop_map(|(ready, since, created, restarts, adopted)| {
        let ready = if ready {
            format!("since={}", 20_000 + u32::from(since))
        } else {
            String::new()
        };
        let owner = if adopted { "orphan" } else { "" };
        format!(
            "@n {ready} {owner} t={} restarts={restarts}",
            20_000 + u32::from(created)
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // upstream can come to the same order, from some order of its own list: owned pods before adopted ones.
    #[test]
    fn r_42_upstream_can_delete_the_same_pods(pods in proptest::collection::vec((pod(), 0..9_u8), 2..6)) {
        let world = world_of(&pods);
        let snapshot = world.snapshot();
        let found = deletes(&world.plan()).into_iter().map(str::to_owned).collect::<Vec<_>>();
        if world.pods.len() < 2 {
            return Ok(());
        }
        let (owned, adopted): (Vec<_>, Vec<_>) = world.pods.iter().partition(|pod| pod.controller.is_some());
        let possible = orders(&owned).into_iter().any(|owned| orders(&adopted).into_iter().any(|adopted| {
            let start: Vec<_> = owned.iter().chain(&adopted).copied().collect();
            let names: Vec<_> = sorted(&start, &snapshot).iter().map(|pod| pod.name.clone()).collect();
            names[..found.len()] == found[..]
        }));
        prop_assert!(possible, "{:?} of {:#?}", found, world.pods);
    }

    // short cuts do not change the order.
    #[test]
    fn r_42_the_order_is_that_of_two_plain_steps(
        pods in prop_oneof![
            proptest::collection::vec((pod(), 0..9_u8), 2..40),
            proptest::collection::vec((similar(), 0..9_u8), 2..40),
        ],
    ) {
        let world = world_of(&pods);
        let found = deletes(&world.plan()).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected = in_two_steps(&world.pods, &world.snapshot());
        let expected: Vec<_> = expected.iter().take(world.pods.len().saturating_sub(1)).map(|pod| pod.name.clone()).collect();
        prop_assert_eq!(found, expected);
    }
}
