//! A plan with a memory is the plan without one, whatever happened in between.

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    memory::Memory,
    snapshot::{Bucket, Options, Snapshot},
};
use proptest::prelude::*;

use super::{NODES, TAINTS, anything, options, pick, pod};
use crate::{
    memory::in_buckets,
    support::{Cluster, edit, node, taint},
};

/// What changes between two plans.
#[derive(Debug, Clone)]
enum Change {
    /// Another pod, or another in place of one.
    Pod(usize, String),
    /// A pod goes.
    Gone(usize),
    /// Other taints on a node.
    Taint(usize, Option<&'static str>),
    /// A node comes or goes.
    Node(&'static str),
    /// The clock, also backwards.
    Clock(i64),
    /// Another template.
    Template(bool),
    /// Two revisions of the template, or not.
    Duplicate(bool),
    /// How long a pod has to be ready.
    MinReady(i32),
    /// How to plan.
    Options(Options),
    /// Another workload, with another selector.
    Selector(bool),
    /// Into so many buckets.
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

/// A snapshot, after a change.
fn changed(snapshot: &Snapshot, change: &Change, turn: usize) -> Snapshot {
    let mut next = snapshot.clone();
    let mut nodes: Vec<_> = snapshot.nodes().cloned().collect();
    let mut pods: Vec<_> = snapshot.pods().cloned().collect();
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
            edit(&mut next.daemon_set.template, |template| {
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
        Change::MinReady(seconds) => next.daemon_set.min_ready_seconds = *seconds,
        Change::Options(options) => next.options = options.clone(),
        Change::Selector(other) => {
            let value = if *other { "other" } else { "foo" };
            if let Some(selector) = &mut next.daemon_set.selector {
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
    fn what_is_remembered_changes_no_plan(
        first in anything(),
        changes in proptest::collection::vec(change(), 0..24),
    ) {
        let (mut snapshot, mut count, mut memory) = (first, 2, Memory::default());
        for (turn, change) in changes.iter().enumerate() {
            if let Change::Buckets(other) = change {
                count = *other;
            }
            snapshot = changed(&snapshot, change, turn);
            let asked = in_buckets(&snapshot, count);
            prop_assert_eq!(memory.identify(&asked.buckets), Ok(()));
            let remembered = nodewise_planner::plan_until(&asked, &mut memory, &|| false).expect("nothing asks to stop");
            let fresh = nodewise_planner::plan(&asked);
            prop_assert_eq!(format!("{remembered:?}"), format!("{fresh:?}"), "after {:?}", change);
        }
    }
}
