//! A plan with a cache equals the plan without one, after any changes.

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    daemonset::{DaemonSet, plan_cache::PlanCache},
    snapshot::{Bucket, NodeView, Options, PodView, Snapshot},
};
use proptest::prelude::*;

use super::{NODES, TAINTS, anything, options, pick, pod};
use crate::{
    plan_cache::in_buckets,
    support::{Cluster, edit, node, taint},
};

/// A change between two plans.
#[derive(Debug, Clone)]
enum Change {
    /// A pod is added, or replaces the pod with this index.
    Pod(usize, String),
    /// A pod is removed.
    Gone(usize),
    /// A node's taints change.
    Taint(usize, Option<&'static str>),
    /// A node is added or removed.
    Node(&'static str),
    /// The clock moves, also backwards.
    Clock(i64),
    /// The template changes.
    Template(bool),
    /// A second revision of the template is added or removed.
    Duplicate(bool),
    /// minReadySeconds changes.
    MinReady(i32),
    /// The options change.
    Options(Options),
    /// The selector changes.
    Selector(bool),
    /// The number of buckets changes.
    Buckets(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..12_usize, pod()).prop_map(|(index, text)| Change::Pod(index, text)),
        4 => (0..12_usize, pick(&NODES), 985..1_005_i64)
            .prop_map(|(index, node, since)| Change::Pod(index, format!("@{node} new since={since}"))),
        2 => (0..12_usize).prop_map(Change::Gone),
        3 => (0..4_usize, proptest::option::of(pick(&TAINTS))).prop_map(|(node, key)| Change::Taint(node, key)),
        2 => pick(&NODES).prop_map(Change::Node),
        3 => (-15..15_i64).prop_map(Change::Clock),
        1 => any::<bool>().prop_map(Change::Template),
        1 => any::<bool>().prop_map(Change::Duplicate),
        1 => prop_oneof![Just(0), Just(10), any::<i32>()].prop_map(Change::MinReady),
        1 => options().prop_map(Change::Options),
        1 => any::<bool>().prop_map(Change::Selector),
        1 => (1..4_usize).prop_map(Change::Buckets),
    ]
}

/// The snapshot after a change.
fn changed(snapshot: &Snapshot<DaemonSet>, change: &Change, turn: usize) -> Snapshot<DaemonSet> {
    let mut next = snapshot.clone();
    let mut nodes: Vec<_> = snapshot.nodes().map(NodeView::to_node).collect();
    let mut pods: Vec<_> = snapshot.pods().map(PodView::to_pod).collect();
    match change {
        Change::Pod(index, text) => {
            let mut other = Cluster::new(4);
            other.pod(&format!("changed-{turn}{text}"));
            if *index < pods.len() {
                pods.remove(*index);
            }
            pods.append(&mut other.pods);
        }
        Change::Gone(index) if *index < pods.len() => {
            pods.remove(*index);
        }
        Change::Taint(index, key) if *index < nodes.len() => {
            nodes[*index].taints = key.iter().map(|key| taint(key)).collect();
        }
        Change::Node(name) => {
            let before = nodes.len();
            nodes.retain(|node| node.name != *name);
            if nodes.len() == before {
                nodes.push(node(name, &[]));
            }
        }
        Change::Clock(seconds) => {
            let moved = next.now.saturating_add(SignedDuration::from_secs(*seconds));
            next.now = moved.unwrap_or(Timestamp::MAX);
        }
        Change::Template(second) => {
            let image = if *second { "img:2" } else { "img:1" };
            edit(&mut next.workload.template, |template| {
                template["spec"]["containers"][0]["image"] = image.into();
            });
        }
        Change::Duplicate(twice) => {
            next.revisions.retain(|revision| revision.name != "twin");
            if let Some(twin) = next.revisions.first().cloned().filter(|_| *twice) {
                next.revisions.push(nodewise_planner::snapshot::Revision {
                    name: "twin".to_owned(),
                    uid: "twin-uid".to_owned(),
                    ..twin
                });
            }
        }
        Change::MinReady(seconds) => next.workload.min_ready_seconds = *seconds,
        Change::Options(options) => next.options = options.clone(),
        Change::Selector(other) => {
            let value = if *other { "other" } else { "foo" };
            if let Some(selector) = &mut next.workload.selector {
                selector.match_labels = Some(vec![("app".to_owned(), value.to_owned())]);
            }
        }
        Change::Gone(_) | Change::Taint(..) | Change::Buckets(_) => {}
    }
    next.buckets = Bucket::divide(nodes, pods, 1, |_| 0);
    next
}

proptest! {
    #[test]
    fn the_cache_does_not_change_plans(
        first in anything(),
        changes in proptest::collection::vec(change(), 0..24),
    ) {
        let (mut snapshot, mut count, mut cache) = (first, 2, PlanCache::default());
        for (turn, change) in changes.iter().enumerate() {
            if let Change::Buckets(other) = change {
                count = *other;
            }
            snapshot = changed(&snapshot, change, turn);
            let asked = in_buckets(&snapshot, count);
            prop_assert_eq!(cache.identify(&asked.buckets), Ok(()));
            let cached = nodewise_planner::daemonset::plan_until(&asked, &mut cache, &|| false).expect("nothing asks to stop");
            let fresh = nodewise_planner::daemonset::plan(&asked);
            prop_assert_eq!(format!("{cached:?}"), format!("{fresh:?}"), "after {:?}", change);
        }
    }
}
