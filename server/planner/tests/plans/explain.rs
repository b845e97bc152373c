//! Explanations of nodes.

use std::fmt::Write as _;

use nodewise_planner::{
    daemonset::explain::{NodeState, Rule},
    snapshot::{Deviation, Expectations, ExpectedCreate, FailedPodBackoff, Selector},
};

use crate::support::{Cluster, at};

/// One line for each node: state, rule, pods, message.
fn explained(cluster: &Cluster) -> String {
    let mut text = String::new();
    for node in nodewise_planner::daemonset::explain(&cluster.snapshot(), None) {
        let pods: Vec<_> = node.pods.iter().map(|pod| pod.pod_name.as_str()).collect();
        let (name, message) = (&node.node_name, &node.message);
        writeln!(
            text,
            "{name} {:?} {:?} {pods:?}: {message}",
            node.state, node.rule
        )
        .expect("a string takes it");
    }
    text
}

/// The explanation of one node: state, rule, message.
fn one(cluster: &Cluster, node: &str) -> String {
    let nodes = nodewise_planner::daemonset::explain(&cluster.snapshot(), Some(node));
    let node = nodes.first().expect("the node is explained");
    format!("{:?} {:?}: {}", node.state, node.rule, node.message)
}

#[test]
fn a_rollout_within_a_budget() {
    let mut cluster = Cluster::new(6)
        .rolling("2", "0")
        .taint(5, &["dedicated=gpu:NoSchedule"])
        .with(&[
            "a@node-0 new ready",
            "b@node-1 new",
            "c@node-2 old ready",
            "d@node-3 old ready",
            "e@node-4 new ready deleting",
            "f@lost unbound",
            "g@gone new ready",
        ]);
    cluster.pods.retain(|pod| pod.name != "f");
    insta::assert_snapshot!(explained(&cluster), @r#"
    gone MustNotRun NodeMissing ["g"]: gone does not exist; its pods are left to the pod garbage collector
    node-0 Runs Eligible ["a"]: pod a runs and is available
    node-1 Blocking NewPodNotAvailable ["b"]: pod b runs, but is not ready
    node-2 Waiting MaxUnavailable ["c"]: pod c is outdated; 2 of maxUnavailable 2 in use by node-1 (pod b is not available), node-4 (pod e is being deleted)
    node-3 Waiting MaxUnavailable ["d"]: pod d is outdated; 2 of maxUnavailable 2 in use by node-1 (pod b is not available), node-4 (pod e is being deleted)
    node-4 BeingReplaced PodDeleting ["e"]: pod e is being deleted; its replacement comes after it
    node-5 MustNotRun TaintNoSchedule []: taint dedicated=gpu:NoSchedule is not tolerated
    "#);
}

#[test]
fn placement_comes_first() {
    let cluster = Cluster::new(6)
        .rolling("9", "0")
        .taint(4, &["dedicated=gpu:NoExecute"])
        .taint(5, &["a:NoSchedule"])
        .with(&[
            "a@node-1 t=1",
            "b@node-1 t=2",
            "c@node-2 failed",
            "d@node-3 old ready",
            "e@node-4 ready",
            "f@node-5 ready",
            "g@lost unbound",
        ]);
    insta::assert_snapshot!(explained(&cluster), @r#"
    lost MustNotRun NodeMissing ["g"]: g waits for lost, which does not exist
    node-0 Missing Eligible []: node-0 has no pod of this workload
    node-1 BeingReplaced ExcessPod ["a", "b"]: node-1 has more pods than it should; a stays
    node-2 BeingReplaced PodFinished ["c"]: c on node-2 failed
    node-3 Waiting PlacementFirst ["d"]: pod d is outdated; missing, excess and finished pods come first
    node-4 MustNotRun TaintNoExecute ["e"]: taint dedicated=gpu:NoExecute is not tolerated; e is on node-4, which must not run this workload
    node-5 MustNotRun TaintNoSchedule ["f"]: no new pods (taint a:NoSchedule is not tolerated); the present pod f stays
    "#);
}

#[test]
fn surge() {
    let cluster = Cluster::new(5).rolling("0", "1").with(&[
        "a@node-0 old ready",
        "b@node-0 new",
        "c@node-1 old ready",
        "d@node-2 old",
        "e@node-3 new ready",
        "f@node-4 new ready",
    ]);
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 Blocking NewPodNotAvailable ["a", "b"]: pod a goes when b is available
    node-1 Waiting MaxSurge ["c"]: pod c is outdated; 1 of maxSurge 1 in use by node-0 (pod b is not available)
    node-2 BeingReplaced Outdated ["d"]: node-2: d is outdated and not available
    node-3 Runs Eligible ["e"]: pod e runs and is available
    node-4 Runs Eligible ["f"]: pod f runs and is available
    "#);
}

#[test]
fn nodes_that_use_the_budget_are_named() {
    // Six nodes use the budget; three are named. A node that only waits for placement has another reason.
    let cluster = Cluster::new(6).rolling("2", "0").with(&[
        "a@gone new ready",
        "b@gone old ready",
        "c@node-1 new",
        "d@node-2 new ready deleting",
        "e@node-3 new",
        "f@node-4 new deleting",
        "g@node-5 old ready",
    ]);
    insta::assert_snapshot!(one(&cluster, "node-5"), @"Waiting MaxUnavailable: pod g is outdated; 6 of maxUnavailable 2 in use by gone (more than one pod), node-0 (no pod), node-1 (pod c is not available) and 3 more");
    let cluster = Cluster::new(2).rolling("0", "1").with(&["a@node-0 old ready"]);
    insta::assert_snapshot!(one(&cluster, "node-0"), @"Waiting PlacementFirst: pod a is outdated; missing, excess and finished pods come first");
    let cluster = Cluster::new(3)
        .rolling("0", "1")
        .with(&["a@node-0 old ready", "b@node-1 old ready"]);
    insta::assert_snapshot!(one(&cluster, "node-1"), @"Waiting MaxSurge: pod b is outdated; maxSurge is 1, and others come first");
}

#[test]
fn pods_that_are_not_available_yet() {
    let mut cluster = Cluster::new(4).min_ready(10).taint(3, &["a:NoSchedule"]).with(&[
        "a@node-0 new pending",
        "b@node-1 new since=995",
        "c@node-2 new",
        "d@node-3 new ready deleting",
    ]);
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 NotAvailable NewPodNotAvailable ["a"]: pod a is pending
    node-1 NotAvailable NewPodNotAvailable ["b"]: pod b runs and is ready, but not yet for minReadySeconds
    node-2 NotAvailable NewPodNotAvailable ["c"]: pod c runs, but is not ready
    node-3 MustNotRun TaintNoSchedule ["d"]: taint a:NoSchedule is not tolerated; pod d is being deleted
    "#);
    cluster = Cluster::new(2)
        .rolling("0", "1")
        .with(&["a@node-0 new ready deleting", "b@node-1 succeeded"]);
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 BeingReplaced PodDeleting ["a"]: node-0 has no pod that runs: a is finished or being deleted
    node-1 BeingReplaced PodFinished ["b"]: node-1 has no pod that runs: b is finished or being deleted
    "#);
}

#[test]
fn nodes_that_wait_for_the_budget_have_a_place_in_line() {
    let cluster = Cluster::new(5).rolling("1", "0").with(&[
        "a@node-0 old ready",
        "b@node-1 new",
        "c@node-2 old ready",
        "d@node-3 new ready",
        "e@node-4 old ready",
    ]);
    let nodes = nodewise_planner::daemonset::explain(&cluster.snapshot(), None);
    let places: Vec<_> = nodes.iter().map(|node| node.queue_position).collect();
    assert_eq!(places, [Some(1), None, Some(2), None, Some(3)]);
    // Without budget in use, the first one is replaced now and does not wait.
    let cluster = Cluster::new(3).rolling("1", "0").with(&[
        "a@node-0 old ready",
        "b@node-1 old ready",
        "c@node-2 old ready",
    ]);
    let nodes = nodewise_planner::daemonset::explain(&cluster.snapshot(), None);
    let waiting = nodes.iter().filter_map(|node| node.queue_position);
    assert_eq!(waiting.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn nodes_that_wait() {
    let mut cluster =
        Cluster::new(3)
            .on_delete()
            .with(&["a@node-0 failed", "b@node-1 old ready", "c@node-2 ready"]);
    cluster.state.failed_pod_backoffs = vec![FailedPodBackoff {
        observed_generation: 1,
        node_name: "node-0".to_owned(),
        delay: std::time::Duration::from_secs(8),
        last: at(995),
    }];
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 Waiting FailedPodBackoff ["a"]: pod a on node-0 failed; it is replaced in 3 s
    node-1 Waiting OnDelete ["b"]: pod b is outdated; with OnDelete it is replaced when someone deletes it
    node-2 Runs Eligible ["c"]: pod c runs and is available
    "#);

    let mut cluster = Cluster::new(3).with(&["a@node-1 t=1", "b@node-1 t=2"]);
    cluster.state.expectations = Some(Expectations {
        set_at: at(999),
        creates: vec![ExpectedCreate {
            pod_name: "foo-x".to_owned(),
            node_name: "node-0".to_owned(),
        }],
        delete_uids: vec![],
    });
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 Missing Expectations []: foo-x was created for node-0 and has not been seen yet
    node-1 Waiting Expectations ["a", "b"]: node-1 has more pods than it should; a stays; waits for creates or deletes of an earlier plan to be seen, at most 300 s
    node-2 Missing Eligible []: node-2 has no pod of this workload
    "#);
    cluster.options.burst = 0;
    assert!(explained(&cluster).contains("node-2 Missing Burst"));
    cluster
        .options
        .deviations
        .remove(&Deviation::SlowStartAcrossPlans);
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 Missing Expectations []: foo-x was created for node-0 and has not been seen yet
    node-1 Waiting Expectations ["a", "b"]: node-1 has more pods than it should; a stays; waits for creates or deletes of an earlier plan to be seen, at most 300 s
    node-2 Missing Expectations []: node-2 has no pod of this workload; waits for creates or deletes of an earlier plan to be seen, at most 300 s
    "#);

    let mut cluster = Cluster::new(3).with(&["a@node-2 t=1", "b@node-2 t=2", "c@node-2 t=3"]);
    cluster.options.burst = 1;
    insta::assert_snapshot!(explained(&cluster), @r#"
    node-0 Missing Eligible []: node-0 has no pod of this workload
    node-1 Missing Burst []: node-1 has no pod of this workload; more than 1 at once are not allowed
    node-2 BeingReplaced ExcessPod ["a", "b", "c"]: node-2 has more pods than it should; a stays
    "#);
}

#[test]
fn an_inactive_workload() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 ready"]);
    cluster.ds.deleting = true;
    insta::assert_snapshot!(explained(&cluster), @r#"node-0 MustNotRun WorkloadInactive ["a"]: the workload is being deleted; its pods are left to the garbage collector"#);
    cluster.ds.selector = Some(Selector::default());
    insta::assert_snapshot!(explained(&cluster), @"node-0 Waiting WorkloadInactive []: the workload's selector is empty, so nothing is decided until that is mended");
}

#[test]
fn one_node_by_name() {
    let cluster = Cluster::new(2).with(&["a@lost unbound"]);
    let one = |name| nodewise_planner::daemonset::explain(&cluster.snapshot(), Some(name));
    assert_eq!(one("node-1").len(), 1);
    assert_eq!(
        (one("node-1")[0].state, one("node-1")[0].rule),
        (NodeState::Missing, Rule::Eligible)
    );
    assert_eq!(
        (one("lost")[0].state, one("lost")[0].rule),
        (NodeState::MustNotRun, Rule::NodeMissing)
    );
    let unknown = one("nowhere");
    assert_eq!((unknown[0].rule, unknown[0].pods.len()), (Rule::NodeMissing, 0));
    assert_eq!(
        nodewise_planner::daemonset::explain(&cluster.snapshot(), None).len(),
        3,
        "the missing node is there, too"
    );
}
