//! The rolling update with surge.

use nodewise_planner::{
    plan::{PhaseKind, Reason},
    snapshot::Deviation,
};

use crate::support::{Cluster, at, counts, pod_changes, reasons, status};

fn surging(nodes: usize, max_surge: &str) -> Cluster {
    Cluster::new(nodes).rolling("0", max_surge)
}

/// The new pods on these nodes become ready.
fn new_ready(cluster: &mut Cluster, names: &[&str]) {
    let now = cluster.now;
    for pod in cluster
        .pods
        .iter_mut()
        .filter(|pod| pod.target.node().is_some_and(|node| names.contains(&node)))
    {
        if !pod.ready && !pod.name.starts_with("old-") {
            (pod.ready, pod.ready_since) = (true, Some(now));
        }
    }
}

#[test]
fn new_pods_come_before_old_ones_go() {
    let mut cluster = surging(5, "2").with_old_pods();
    let mut done = vec![];
    for _ in 0..3 {
        done.extend([cluster.sync(), cluster.sync()]);
        cluster.all_ready();
    }
    done.extend([cluster.sync(), cluster.sync()]);
    // D-46, D-48; the deletes come first in a plan of their own (D-74).
    assert_eq!(
        done,
        [(2, 0), (0, 0), (0, 2), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0)]
    );
}

#[test]
fn old_pods_that_are_not_available_need_no_budget() {
    let mut cluster = surging(5, "3").with_old_pods();
    cluster.pods.iter_mut().for_each(|pod| pod.ready = false);
    assert_eq!(
        reasons(&cluster.plan(), PhaseKind::Creates),
        [Reason::SurgeOldUnavailable; 5]
    );
    assert_eq!((cluster.sync(), cluster.sync()), ((5, 0), (0, 5)));

    cluster.all_ready();
    cluster = cluster.min_ready(15);
    cluster.now = at(2_000);
    cluster.change_template("img:2");
    assert_eq!(cluster.sync(), (3, 0));
    new_ready(&mut cluster, &["node-0", "node-1"]);
    let old = cluster
        .pods
        .iter_mut()
        .find(|pod| pod.target.node() == Some("node-3"))
        .unwrap();
    (old.ready, old.name) = (false, "old-3".to_owned());
    cluster.now = at(2_010);
    assert_eq!(cluster.sync(), (1, 0), "after 10 s");
    cluster.now = at(2_020);
    assert_eq!((cluster.sync(), cluster.sync()), ((0, 3), (1, 0)), "after 20 s");
    new_ready(&mut cluster, &["node-2", "node-3", "node-4"]);
    cluster.now = at(2_040);
    assert_eq!(cluster.sync(), (0, 2), "after 40 s");
    cluster.now = at(2_050);
    assert_eq!(cluster.sync(), (0, 0), "after 50 s");
}

#[test]
fn d_47_a_node_that_may_no_longer_run_a_pod() {
    let mut cluster = surging(5, "1").taint(4, &["a:NoSchedule"]).with_old_pods();
    let mut done = vec![cluster.sync(), cluster.sync()];
    for _ in 0..4 {
        cluster.all_ready();
        done.extend([cluster.sync(), cluster.sync()]);
    }
    // D-47: available 5, desired 4, so one may go at once.
    let expected = [
        (1, 1),
        (0, 0),
        (0, 1),
        (1, 0),
        (0, 1),
        (1, 0),
        (0, 1),
        (1, 0),
        (0, 1),
        (0, 0),
    ];
    assert_eq!(done, expected);
}

#[test]
fn tolerations_that_change() {
    let taints = ["y", "y", "z", "z", "common", "common"];
    let mut cluster = surging(6, "1").tolerate("z").tolerate("common");
    for (index, key) in taints.iter().enumerate() {
        cluster = cluster.taint(index, &[&format!("{key}=:NoSchedule")]);
    }
    let pods = ["old-0@node-0", "old-1@node-1", "old-4@node-4", "old-5@node-5"];
    for pod in pods {
        cluster.pod(&format!("{pod} old ready"));
    }
    assert_eq!(
        (cluster.sync(), cluster.sync(), cluster.sync()),
        ((2, 0), (1, 0), (0, 0))
    );
    assert_eq!(cluster.pods.len(), 7, "4 old, 2 on z, 1 surging");
    for _ in 0..6 {
        cluster.all_ready();
        cluster.sync();
    }
    assert_eq!((cluster.pods.len(), cluster.sync()), (4, (0, 0)));
    cluster.ds.scheduling.tolerations.clear();
    cluster.change_template("img:2");
    // D-49
    assert_eq!((cluster.sync(), cluster.sync()), ((0, 4), (0, 0)));
    assert_eq!(
        cluster.ds.status,
        nodewise_planner::plan::DaemonSetStatus {
            observed_generation: 2,
            ..Default::default()
        }
    );
}

/// (case, cluster, pods, nodes of creates, deleted pods)
type Row<'a> = (&'a str, Cluster, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

fn check(table: Vec<Row<'_>>) {
    for (what, cluster, pods, created, deleted) in table {
        let plan = cluster.with(pods).plan();
        assert_eq!(
            pod_changes(&plan),
            (created.to_vec(), deleted.to_vec()),
            "{what}: {pods:?}"
        );
    }
}

#[test]
fn d_45_creates_and_deletes_by_node() {
    let out = || surging(3, "1").taint(0, &["a:NoSchedule"]);
    // (case, cluster, pods, creates, deletes)
    let table: Vec<Row<'_>> = vec![
        (
            "a new pod that may stay",
            surging(1, "1").taint(0, &["a:NoSchedule"]),
            &["n@node-0 new ready"],
            &[],
            &[],
        ),
        (
            "D-45: an old pod that is not available",
            out(),
            &["o@node-0 old", "a@node-1 new ready", "b@node-2 new ready"],
            &[],
            &["o"],
        ),
        (
            "D-47",
            out(),
            &["o@node-0 old ready", "a@node-1 new ready", "b@node-2 new"],
            &[],
            &[],
        ),
        (
            "D-47: enough others",
            out(),
            &["o@node-0 old ready", "a@node-1 new ready", "b@node-2 new ready"],
            &[],
            &["o"],
        ),
        (
            "D-46",
            surging(3, "20%"),
            &["a@node-0 old ready", "b@node-1 old ready", "c@node-2 old ready"],
            &["node-0"],
            &[],
        ),
        // A node with an old pod and a new one that is not available uses the budget.
        (
            "D-45",
            surging(2, "1"),
            &["a@node-0 old ready", "b@node-0 new", "c@node-1 old ready"],
            &[],
            &[],
        ),
        (
            "D-46",
            surging(2, "2"),
            &["a@node-0 old ready", "b@node-0 new", "c@node-1 old ready"],
            &["node-1"],
            &[],
        ),
        // A node with only a new pod does not, available or not.
        (
            "D-45",
            surging(2, "1"),
            &["b@node-0 new", "c@node-1 old ready"],
            &["node-1"],
            &[],
        ),
        // Two new pods on a missing node use the budget (D-45); placement does not delete them.
        (
            "D-45",
            surging(1, "1"),
            &["a@gone new", "b@gone new", "c@node-0 old ready"],
            &[],
            &[],
        ),
        // A pod that is of the template only by generation is not old (except for D-34).
        (
            "D-65",
            generation_1(surging(1, "1")),
            &["a@node-0 by-generation ready"],
            &[],
            &[],
        ),
        // Of an old and a new pod the old one counts (D-45): two nodes are available, and one is desired.
        (
            "D-45, D-47",
            surging(2, "1").taint(0, &["a:NoSchedule"]),
            &["o@node-0 old ready", "p@node-1 old ready", "n@node-1 new"],
            &[],
            &["o"],
        ),
        // Every maxSurge but 0 selects the update with surge (D-41, D-120), even a negative one.
        ("D-41", surging(1, "-1"), &["o@node-0 old"], &["node-0"], &[]),
        // On a missing node the old pod is deleted when the new one is available.
        (
            "D-45",
            surging(1, "1"),
            &["a@node-0 new ready", "b@gone old ready", "c@gone new ready"],
            &[],
            &["b"],
        ),
    ];
    check(table);
}

#[test]
fn d_45_ready_is_not_available() {
    // An old pod that is ready but not available is replaced beyond the budget or deleted, and does not count as available.
    let out = surging(3, "1").min_ready(10).taint(0, &["a:NoSchedule"]);
    check(vec![
        (
            "D-45",
            surging(2, "1").min_ready(10),
            &["a@node-0 old since=999", "b@node-1 old since=999"],
            &["node-0", "node-1"],
            &[],
        ),
        (
            "D-45: an old pod that is not available",
            surging(1, "1").min_ready(10).taint(0, &["a:NoSchedule"]),
            &["o@node-0 old since=999"],
            &[],
            &["o"],
        ),
        (
            "D-47",
            out,
            &[
                "o@node-0 old ready",
                "a@node-1 new ready",
                "b@node-2 new since=999",
            ],
            &[],
            &[],
        ),
    ]);
}

fn generation_1(mut cluster: Cluster) -> Cluster {
    let annotation = (
        "deprecated.daemonset.template.generation".to_owned(),
        "1".to_owned(),
    );
    cluster.ds.annotations.push(annotation);
    cluster
}

#[test]
fn d_49_q_8_nothing_desired() {
    let none = |max_surge: &str| {
        surging(2, max_surge)
            .taint(0, &["a:NoSchedule"])
            .taint(1, &["a:NoSchedule"])
    };
    let pods = ["a@node-0 old ready", "b@node-1 old"];
    assert_eq!(pod_changes(&none("1").with(&pods).plan()).1, ["b", "a"], "D-49");
    // A percentage of zero nodes is zero, so the update without surge applies, with maxUnavailable 0.
    assert_eq!(pod_changes(&none("50%").with(&pods).plan()).1, ["b"], "Q-8, D-41");
}

#[test]
fn q_7_an_old_pod_on_a_missing_node() {
    let cluster = surging(2, "1").with(&["a@node-0 old ready", "b@node-1 old ready", "c@gone old ready"]);
    let strict = cluster.clone().strict().plan();
    assert_eq!(counts(&strict), (0, 0));
    assert!(
        strict
            .error
            .is_some_and(|error| error.contains("couldn't get node for nodeName \"gone\""))
    );
    let plan = cluster.plan();
    assert_eq!((counts(&plan), plan.error.as_deref()), ((1, 0), None), "Q-7");
    assert!(plan.deviations.contains(&Deviation::SurgeIgnoresMissingNodes));
    assert_eq!(status(&plan).current_number_scheduled, 2);
}
