//! The cache from plan to plan: when it is used. A property test checks that it does not change plans.

use nodewise_planner::{
    daemonset::{DaemonSet, plan_cache::PlanCache},
    plan::PhaseKind,
    snapshot::{Bucket, Digest, List, NodeView, PodView, Snapshot, Table},
};
use sha2::{Digest as _, Sha256};

use crate::support::{Cluster, actions, status, taint};

/// The same snapshot in buckets with digests.
pub(crate) fn in_buckets(snapshot: &Snapshot<DaemonSet>, count: usize) -> Snapshot<DaemonSet> {
    let (nodes, pods) = (
        snapshot.nodes().map(NodeView::to_node).collect(),
        snapshot.pods().map(PodView::to_pod).collect(),
    );
    let buckets = Bucket::divide(nodes, pods, count, |name| bucket_of(name) % count);
    Snapshot {
        buckets: buckets
            .into_iter()
            .map(|bucket| Bucket {
                nodes: known(bucket.nodes.to_vec()),
                pods: known(bucket.pods.to_vec()),
            })
            .collect(),
        ..snapshot.clone()
    }
}

fn known<T: Table<Item: std::fmt::Debug>>(items: Vec<T::Item>) -> List<T> {
    let digest: Digest = Sha256::digest(format!("{items:?}")).into();
    List::with_digest(items, digest)
}

/// A number for a node's name, to choose a bucket.
fn bucket_of(name: &str) -> usize {
    name.bytes().map(usize::from).sum()
}

#[test]
fn only_changed_buckets_are_computed() {
    let mut cluster = Cluster::new(12);
    for index in 0..12 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let mut cache = PlanCache::default();
    let mut plan = |snapshot: &Snapshot<DaemonSet>| {
        let snapshot = in_buckets(snapshot, 4);
        let plan = nodewise_planner::daemonset::plan_until(&snapshot, &mut cache, &|| false)
            .expect("nothing asks to stop");
        assert_eq!(plan, nodewise_planner::daemonset::plan(&snapshot));
        let counts = cache.take_counts();
        (
            [counts.fits_computed, counts.fits_cached],
            [counts.summaries_computed, counts.summaries_cached],
        )
    };
    assert_eq!(plan(&cluster.snapshot()), ([4, 0], [4, 0]), "everything is new");
    assert_eq!(plan(&cluster.snapshot()), ([0, 0], [0, 4]), "nothing changed");
    cluster.pods[0].ready = false;
    assert_eq!(plan(&cluster.snapshot()), ([0, 1], [1, 3]), "a pod changed");
    cluster.nodes[0].taints = vec![taint("a:NoSchedule")];
    assert_eq!(plan(&cluster.snapshot()), ([1, 0], [1, 3]), "a node changed");
    cluster.ds.annotations.push(("a".to_owned(), "b".to_owned()));
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 0], [0, 4]),
        "an irrelevant field changed"
    );
    cluster.ds.min_ready_seconds = 10;
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 4], [4, 0]),
        "an input of all summaries changed"
    );
    cluster.change_template("img:2");
    assert_eq!(plan(&cluster.snapshot()), ([0, 4], [4, 0]), "another revision");
    cluster.change_template("img:1");
    assert_eq!(plan(&cluster.snapshot()), ([0, 4], [4, 0]), "and back");
    let twin = cluster.revisions[0].clone();
    cluster.revisions.push(nodewise_planner::snapshot::Revision {
        name: "twin".to_owned(),
        number: twin.number + 1,
        labels: [("app", "foo"), ("controller-revision-hash", "twin")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        ..twin
    });
    assert_eq!(plan(&cluster.snapshot()), ([0, 4], [4, 0]), "pods are relabelled");
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 4], [4, 0]),
        "summaries with relabels are not cached"
    );
    cluster.revisions.pop();
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 4], [4, 0]),
        "no pod is relabelled"
    );
    assert_eq!(plan(&cluster.snapshot()), ([0, 0], [0, 4]), "nothing is new");
    cluster.options.toleration_comparison_operators = true;
    assert_eq!(
        plan(&cluster.snapshot()),
        ([4, 0], [4, 0]),
        "taints are compared otherwise"
    );
    cluster.ds.scheduling.node_name = "node-0".to_owned();
    assert_eq!(
        plan(&cluster.snapshot()),
        ([4, 0], [4, 0]),
        "an input of eligibility changed"
    );
    cluster.ds.deleting = true;
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 0], [0, 0]),
        "nothing is computed, and the counts were reset"
    );
}

#[test]
fn node_lists_that_were_replaced_are_named() {
    let mut cluster = Cluster::new(4);
    let mut cache = PlanCache::default();
    let mut replaced = |cluster: &Cluster| {
        let snapshot = in_buckets(&cluster.snapshot(), 2);
        let plan = nodewise_planner::daemonset::plan_until(&snapshot, &mut cache, &|| false);
        plan.expect("nothing asks to stop");
        let digests = snapshot
            .buckets
            .iter()
            .map(|bucket| *bucket.nodes.digest().expect("one"));
        (digests.collect::<Vec<_>>(), cache.take_superseded_nodes())
    };
    let (first, none) = replaced(&cluster);
    assert_eq!(none, [[0; 32]; 0]);
    cluster.nodes[0].taints = vec![taint("a:NoSchedule")];
    let (second, former) = replaced(&cluster);
    let changed: Vec<_> = first
        .iter()
        .filter(|digest| !second.contains(digest))
        .copied()
        .collect();
    assert_eq!((former.len(), former), (1, changed));
    assert_eq!(replaced(&cluster).1, [[0; 32]; 0], "nothing changed");
    cluster.ds.scheduling.node_name = "node-0".to_owned();
    assert_eq!(
        replaced(&cluster).1,
        [[0; 32]; 0],
        "other results for the same nodes"
    );
}

#[test]
fn summaries_expire_when_pods_become_available() {
    let mut cluster = Cluster::new(2).min_ready(10);
    cluster.pod("settled@node-0 new since=990");
    cluster.pod("settling@node-1 new since=995");
    let mut cache = PlanCache::default();
    let mut made = |cluster: &Cluster| {
        let snapshot = in_buckets(&cluster.snapshot(), 1);
        let plan = nodewise_planner::daemonset::plan_until(&snapshot, &mut cache, &|| false)
            .expect("nothing asks to stop");
        assert_eq!(plan, nodewise_planner::daemonset::plan(&snapshot));
        let available = status(&plan).number_available;
        (cache.take_counts().summaries_computed, available)
    };
    // (clock, computed summaries, available pods)
    for (now, walked, available) in [
        (1_000, 1, 1),
        (1_004, 0, 1),
        (1_005, 1, 2),
        (1_500, 0, 2),
        (1_004, 1, 1),
        (999, 1, 0),
        (998, 0, 0),
    ] {
        cluster.now = crate::support::at(now);
        assert_eq!(made(&cluster), (walked, available), "at {now}");
    }
    // Without minReadySeconds the time does not matter.
    cluster.ds.min_ready_seconds = 0;
    for (now, walked) in [(1_000, 1), (0, 0), (5_000, 0)] {
        cluster.now = crate::support::at(now);
        assert_eq!(made(&cluster), (walked, 2), "at {now}");
    }
}

#[test]
fn the_division_into_buckets_does_not_change_plans() {
    let orphans = ["z@node-0 orphan", "a@node-1 orphan", "m@node-2 orphan"];
    for (case, cluster) in [
        ("creates", Cluster::new(12)),
        ("claims", Cluster::new(3).with(&orphans)),
        (
            "candidates",
            Cluster::new(5).rolling("2", "0").with(&[
                "a@node-4 old ready",
                "b@node-3 old ready",
                "c@node-2 old ready",
                "d@node-1 old",
            ]),
        ),
    ] {
        let snapshot = cluster.snapshot();
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        assert!(
            plan.phases
                .iter()
                .any(|phase| phase.batches.len() + phase.batches[0].actions.len() > 1),
            "{case}"
        );
        for count in [2, 3, 5] {
            assert_eq!(
                nodewise_planner::daemonset::plan(&in_buckets(&snapshot, count)),
                plan,
                "{case}, {count} buckets"
            );
        }
    }
}

#[test]
fn takes_little_memory() {
    let mut cluster = Cluster::new(1_000);
    let bytes = |cluster: &Cluster| {
        let mut cache = PlanCache::default();
        let snapshot = in_buckets(&cluster.snapshot(), 4);
        nodewise_planner::daemonset::plan_until(&snapshot, &mut cache, &|| false)
            .expect("nothing asks to stop");
        let without_names = cache.bytes();
        cache.identify(&snapshot.buckets).expect("names are unique");
        (without_names, cache.bytes())
    };
    let (notable, _) = bytes(&cluster);
    for index in 0..1_000 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let (settled, with_names) = bytes(&cluster);
    assert!((2_000..5_000).contains(&settled), "two bytes a node: {settled}");
    assert!(
        (40_000..100_000).contains(&notable),
        "{notable} bytes if no node is settled"
    );
    assert!(
        (40_000..100_000).contains(&(with_names - settled)),
        "{with_names} bytes with names"
    );
    // Nodes that may not run a pod and have none are settled, too.
    let none = (0..1_000).fold(Cluster::new(1_000), |cluster, index| {
        cluster.taint(index, &["a:NoSchedule"])
    });
    let (barred, _) = bytes(&none);
    assert!(
        (2_000..5_000).contains(&barred),
        "{barred} bytes if no node may run a pod"
    );
}

#[test]
fn duplicates_are_reported_independently_of_the_cache() {
    let mut cluster = Cluster::new(4);
    for index in 0..4 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let mut cache = PlanCache::default();
    assert_eq!(
        cache.identify(&in_buckets(&cluster.snapshot(), 4).buckets),
        Ok(())
    );
    cluster.pods[0].name = "pod-3".to_owned();
    let twice = in_buckets(&cluster.snapshot(), 4).buckets;
    let result = cache.identify(&twice);
    assert!(result.is_err());
    assert_eq!(result, PlanCache::default().identify(&twice));
}

// D-63: pods of settled nodes count, too.
#[test]
fn d_63_a_revision_is_kept_if_pods_of_settled_nodes_have_its_hash() {
    let mut cluster = Cluster::new(2);
    let present = cluster.revisions[0].clone();
    cluster.revisions.push(nodewise_planner::snapshot::Revision {
        name: "old".to_owned(),
        uid: "old-uid".to_owned(),
        number: 0,
        data: serde_json::json!({"spec": {"template": {}}}).into(),
        ..present
    });
    cluster.ds.revision_history_limit = Some(0);
    let deleted = |cluster: &Cluster| actions(&cluster.plan(), PhaseKind::Cleanup).len();
    assert_eq!(deleted(&cluster), 1, "there is no pod");
    let settled = cluster
        .clone()
        .with(&["a@node-0 new ready", "b@node-1 new ready"]);
    assert_eq!(deleted(&settled), 0, "its pods are on settled nodes");
    let notable = cluster.with(&["a@node-0 new", "b@node-1 new"]);
    assert_eq!(deleted(&notable), 0, "its pods are not ready");
}
