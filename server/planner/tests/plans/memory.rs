//! What is remembered from plan to plan, and when it is of use. That it changes no plan is a property.

use nodewise_planner::{
    memory::Memory,
    plan::PhaseKind,
    snapshot::{Bucket, Digest, List, Listed, Snapshot},
};
use sha2::{Digest as _, Sha256};

use crate::support::{Cluster, actions, taint};

/// The same snapshot in buckets that are known by their content.
pub(crate) fn in_buckets(snapshot: &Snapshot, count: usize) -> Snapshot {
    let (nodes, pods) = (
        snapshot.nodes().cloned().collect(),
        snapshot.pods().cloned().collect(),
    );
    let buckets = Bucket::divide(nodes, pods, count, |name| place(name) % count);
    Snapshot {
        buckets: buckets
            .into_iter()
            .map(|bucket| Bucket {
                nodes: known(&bucket.nodes),
                pods: known(&bucket.pods),
            })
            .collect(),
        ..snapshot.clone()
    }
}

fn known<T: Listed + Clone + std::fmt::Debug>(items: &[T]) -> List<T> {
    let digest: Digest = Sha256::digest(format!("{items:?}")).into();
    List::known_by(items.to_vec(), digest)
}

/// Some place for a node's name.
fn place(name: &str) -> usize {
    name.bytes().map(usize::from).sum()
}

#[test]
fn of_a_cluster_at_rest_only_what_changed_is_looked_at() {
    let mut cluster = Cluster::new(12);
    for index in 0..12 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let mut memory = Memory::default();
    let mut plan = |snapshot: &Snapshot| {
        let snapshot = in_buckets(snapshot, 4);
        let plan =
            nodewise_planner::plan_until(&snapshot, &mut memory, &|| false).expect("nothing asks to stop");
        assert_eq!(plan, nodewise_planner::plan(&snapshot));
        let tally = memory.take_tally();
        (
            [tally.fits_made, tally.fits_recalled],
            [tally.summaries_made, tally.summaries_recalled],
        )
    };
    assert_eq!(plan(&cluster.snapshot()), ([4, 0], [4, 0]), "everything is new");
    assert_eq!(plan(&cluster.snapshot()), ([0, 0], [0, 4]), "nothing is");
    cluster.pods[0].ready = false;
    assert_eq!(plan(&cluster.snapshot()), ([0, 1], [1, 3]), "a pod changed");
    cluster.nodes[0].taints = vec![taint("a:NoSchedule")];
    assert_eq!(plan(&cluster.snapshot()), ([1, 0], [1, 3]), "a node changed");
    cluster.ds.annotations.push(("a".to_owned(), "b".to_owned()));
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 0], [0, 4]),
        "what does not count changed"
    );
    cluster.ds.min_ready_seconds = 10;
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 4], [4, 0]),
        "what pods are judged by changed"
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
        "which is of one plan"
    );
    cluster.revisions.pop();
    assert_eq!(plan(&cluster.snapshot()), ([0, 4], [4, 0]), "none is");
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
        "what nodes are judged by changed"
    );
    cluster.ds.deleting = true;
    assert_eq!(
        plan(&cluster.snapshot()),
        ([0, 0], [0, 0]),
        "nothing is looked at, and nothing counted again"
    );
}

#[test]
fn the_passing_of_time_is_noticed() {
    let mut cluster = Cluster::new(2).min_ready(10);
    cluster.pod("settled@node-0 new since=990");
    cluster.pod("settling@node-1 new since=995");
    let mut memory = Memory::default();
    let mut made = |cluster: &Cluster| {
        let snapshot = in_buckets(&cluster.snapshot(), 1);
        let plan =
            nodewise_planner::plan_until(&snapshot, &mut memory, &|| false).expect("nothing asks to stop");
        assert_eq!(plan, nodewise_planner::plan(&snapshot));
        let available = plan.status.expect("nodes are counted").number_available;
        (memory.take_tally().summaries_made, available)
    };
    // (clock, walked, available)
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
    // Where nothing has to wait, no clock matters.
    cluster.ds.min_ready_seconds = 0;
    for (now, walked) in [(1_000, 1), (0, 0), (5_000, 0)] {
        cluster.now = crate::support::at(now);
        assert_eq!(made(&cluster), (walked, 2), "at {now}");
    }
}

#[test]
fn buckets_do_not_show_in_plans() {
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
        let plan = nodewise_planner::plan(&snapshot);
        assert!(
            plan.phases
                .iter()
                .any(|phase| phase.batches.len() + phase.batches[0].actions.len() > 1),
            "{case}"
        );
        for count in [2, 3, 5] {
            assert_eq!(
                nodewise_planner::plan(&in_buckets(&snapshot, count)),
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
        let mut memory = Memory::default();
        let snapshot = in_buckets(&cluster.snapshot(), 4);
        nodewise_planner::plan_until(&snapshot, &mut memory, &|| false).expect("nothing asks to stop");
        let without_names = memory.bytes();
        memory.identify(&snapshot.buckets).expect("names are unique");
        (without_names, memory.bytes())
    };
    let (notable, _) = bytes(&cluster);
    for index in 0..1_000 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let (quiet, with_names) = bytes(&cluster);
    assert!((2_000..5_000).contains(&quiet), "two bytes a node: {quiet}");
    assert!(
        (40_000..100_000).contains(&notable),
        "{notable} bytes where every place is of note"
    );
    assert!(
        (40_000..100_000).contains(&(with_names - quiet)),
        "{with_names} bytes with names"
    );
    // Nodes that may not have a pod, and have none, are as quiet.
    let none = (0..1_000).fold(Cluster::new(1_000), |cluster, index| {
        cluster.taint(index, &["a:NoSchedule"])
    });
    let (barred, _) = bytes(&none);
    assert!(
        (2_000..5_000).contains(&barred),
        "{barred} bytes where no node may have a pod"
    );
}

#[test]
fn what_is_there_twice_is_told_as_anybody_would() {
    let mut cluster = Cluster::new(4);
    for index in 0..4 {
        cluster.pod(&format!("pod-{index}@node-{index} new ready"));
    }
    let mut memory = Memory::default();
    assert_eq!(
        memory.identify(&in_buckets(&cluster.snapshot(), 4).buckets),
        Ok(())
    );
    cluster.pods[0].name = "pod-3".to_owned();
    let twice = in_buckets(&cluster.snapshot(), 4).buckets;
    let told = memory.identify(&twice);
    assert!(told.is_err());
    assert_eq!(told, Memory::default().identify(&twice));
}

// D-63: also of pods of which nothing else is decided.
#[test]
fn a_revision_whose_hash_quiet_pods_carry_is_kept() {
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
    let quiet = cluster
        .clone()
        .with(&["a@node-0 new ready", "b@node-1 new ready"]);
    assert_eq!(deleted(&quiet), 0, "its pods are quiet");
    let notable = cluster.with(&["a@node-0 new", "b@node-1 new"]);
    assert_eq!(deleted(&notable), 0, "its pods are not ready");
}
