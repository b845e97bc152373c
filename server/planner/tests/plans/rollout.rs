//! The rolling update without surge, and OnDelete.

use nodewise_planner::{
    daemonset::UpdateStrategy,
    plan::{PhaseKind, Reason, Verdict},
};

use crate::support::{Cluster, actions, counts, pod_changes, reasons};

/// Syncs until nothing happens. The number of creates and deletes of each sync.
fn syncs(cluster: &mut Cluster) -> Vec<(usize, usize)> {
    let mut done = vec![];
    loop {
        match cluster.sync() {
            (0, 0) => return done,
            some => done.push(some),
        }
        assert!(done.len() < 20, "it never ends: {done:?}");
    }
}

/// The same, and all pods become ready after each sync.
fn ready_syncs(cluster: &mut Cluster) -> Vec<(usize, usize)> {
    let mut done = vec![];
    loop {
        match cluster.sync() {
            (0, 0) => return done,
            some => done.push(some),
        }
        cluster.all_ready();
        assert!(done.len() < 30, "it never ends: {done:?}");
    }
}

#[test]
fn two_at_a_time() {
    let mut cluster = Cluster::new(5).rolling("2", "0").with_old_pods();
    // D-42, D-44, D-74: deletes in one plan, creates in the next.
    assert_eq!(
        ready_syncs(&mut cluster),
        [(0, 2), (2, 0), (0, 2), (2, 0), (0, 1), (1, 0)]
    );
    assert_eq!(cluster.plan().verdict, Verdict::Noop);
}

#[test]
fn pods_that_never_become_ready_stop_a_rollout() {
    let mut cluster = Cluster::new(5).rolling("3", "0").with_old_pods();
    assert_eq!(syncs(&mut cluster), [(0, 3), (3, 0)]);
    let mut cluster = Cluster::new(5).rolling("2", "0").with_old_pods();
    assert_eq!(syncs(&mut cluster), [(0, 2), (2, 0)]);
    cluster.change_template("img:2");
    assert_eq!(syncs(&mut cluster), [(0, 2), (2, 0)], "the unready ones");
    let untouched = cluster
        .pods
        .iter()
        .filter(|pod| pod.name.starts_with("old-"))
        .count();
    assert_eq!(untouched, 3);
}

#[test]
fn pods_that_are_not_available_go_at_once() {
    let mut cluster = Cluster::new(5).rolling("3", "0").with_old_pods();
    cluster.pods.iter_mut().for_each(|pod| pod.ready = false);
    assert_eq!(
        reasons(&cluster.plan(), PhaseKind::Deletes),
        [Reason::RolloutOldUnavailable; 5]
    );
    assert_eq!(syncs(&mut cluster), [(0, 5), (5, 0)], "D-42");
}

#[test]
fn limits_that_change_restart_nothing() {
    let mut cluster =
        Cluster::new(3).with(&["a@node-0 new ready", "b@node-1 new ready", "c@node-2 new ready"]);
    cluster.sync();
    for (max_unavailable, max_surge) in [("2", "0"), ("0", "1"), ("50%", "0")] {
        let plan = cluster.clone().rolling(max_unavailable, max_surge).plan();
        assert_eq!(plan.verdict, Verdict::Noop, "{max_unavailable} {max_surge}");
    }
    assert_eq!(cluster.clone().on_delete().plan().verdict, Verdict::Noop);
}

#[test]
fn the_budget_counts_what_is_unavailable_already() {
    for max_unavailable in 0..=11 {
        let mut cluster = Cluster::new(20)
            .rolling(&max_unavailable.to_string(), "0")
            .with_old_pods();
        for pod in cluster.pods.iter_mut().take(10) {
            pod.ready = false;
        }
        let plan = cluster.plan();
        let expected = if max_unavailable <= 10 { 10 } else { 11 };
        assert_eq!(counts(&plan), (0, expected), "D-42: {max_unavailable}");
        let within = reasons(&plan, PhaseKind::Deletes)
            .iter()
            .filter(|r| **r == Reason::RolloutWithinBudget)
            .count();
        assert_eq!(within, expected - 10);
    }
}

#[test]
fn a_budget_that_is_exceeded() {
    let mut cluster = Cluster::new(100).rolling("10", "0");
    for index in 0..100 {
        let words = match index {
            0..88 => "new",
            88..90 => "old",
            _ => "old ready",
        };
        let text = format!("p{index:02}@node-{index} {words}");
        cluster.pod(&text);
    }
    let plan = cluster.plan();
    assert_eq!(pod_changes(&plan), (vec![], vec!["p88", "p89"]));
    let rollout = plan.rollout.expect("it is described");
    assert_eq!(
        (
            rollout.unavailable,
            rollout.max_unavailable,
            rollout.nodes.outdated
        ),
        (90, 10, 12)
    );
}

#[test]
fn nodes_are_counted_by_their_pods() {
    for (pods, expected) in [
        (&[][..], [1, 0, 0, 0]),
        (&["a@node-0 old ready"], [0, 1, 0, 0]),
        (&["a@node-0 old deleting"], [0, 1, 0, 0]),
        (&["a@node-0 old failed deleting"], [1, 0, 0, 0]),
        (&["a@node-0 new"], [0, 0, 1, 0]),
        (&["a@node-0 new failed"], [0, 0, 1, 0]),
        (&["a@node-0 new ready deleting"], [0, 0, 1, 0]),
        (&["a@node-0 by-generation ready"], [0, 0, 0, 1]),
        (&["a@node-0 old ready", "b@node-0 new"], [0, 0, 1, 0]),
        (&["a@node-0 old ready", "b@node-0 new ready"], [0, 0, 0, 1]),
        // A settled node.
        (&["a@node-0 new ready"], [0, 0, 0, 1]),
        // A missing node.
        (&["a@gone old ready"], [1, 0, 0, 0]),
    ] {
        let mut cluster = Cluster::new(1).rolling("0", "1").with(pods);
        let annotation = (
            "deprecated.daemonset.template.generation".to_owned(),
            "1".to_owned(),
        );
        cluster.ds.annotations.push(annotation);
        let nodes = cluster.plan().rollout.expect("it is described").nodes;
        let counts = [
            nodes.without_pod,
            nodes.outdated,
            nodes.updated_unavailable,
            nodes.updated_available,
        ];
        assert_eq!(counts, expected, "{pods:?}");
    }
}

#[test]
fn d_40_limits_scale_and_round_up() {
    // (case, nodes, maxUnavailable, maxSurge, scaled to)
    let table = [
        ("D-40", 3, "50%", "0", (2, 0)),
        ("D-40", 2, "50%", "0", (1, 0)),
        ("D-40", 2, "0", "100%", (0, 2)),
        ("both zero", 2, "0", "0", (1, 0)),
        ("both zero", 2, "0%", "0%", (1, 0)),
        ("nothing desired", 0, "0", "0", (0, 0)),
        ("D-40: maxSurge missing", 2, "2", "-", (2, 0)),
        ("D-40", 199, "1%", "0", (2, 0)),
        ("D-40", 200, "1%", "0", (2, 0)),
        ("D-40", 3, "7", "0", (7, 0)),
        ("D-40", 3, "0", "20%", (0, 1)),
        ("Q-8: a percentage of nothing", 0, "0", "50%", (0, 0)),
        ("D-40: less than none", 200, "-1%", "0", (0, 0)),
        (
            "D-40: more than a number holds",
            200,
            "9223372036854775807%",
            "0",
            (u32::MAX, 0),
        ),
        (
            "D-40: less than a number holds",
            200,
            "-9223372036854775808%",
            "0",
            (0, 0),
        ),
    ];
    for (what, nodes, max_unavailable, max_surge, scaled) in table {
        let plan = Cluster::new(nodes).rolling(max_unavailable, max_surge).plan();
        let rollout = plan.rollout.expect("it is described");
        assert_eq!(
            (rollout.max_unavailable, rollout.max_surge),
            scaled,
            "{what}: {max_unavailable} {max_surge}"
        );
    }
    let mut cluster = Cluster::new(2).with_old_pods();
    cluster.ds.strategy = UpdateStrategy::RollingUpdate(None);
    assert_eq!(
        counts(&cluster.plan()),
        (0, 1),
        "D-40: rollingUpdate missing acts as 1"
    );
}

#[test]
fn limits_that_cannot_be_read() {
    for (max_unavailable, max_surge) in [
        ("\"5\"", "0"),
        ("-", "0"),
        ("1", "\"1\""),
        ("a%", "0"),
        ("1", "%"),
        ("1.5%", "0"),
    ] {
        let cluster = Cluster::new(2)
            .rolling(max_unavailable, max_surge)
            .with_old_pods();
        let plan = cluster.plan();
        assert_eq!(counts(&plan), (0, 0), "D-40: {max_unavailable} {max_surge}");
        assert!(
            plan.error
                .as_ref()
                .is_some_and(|error| error.contains("rollingUpdate.max")),
            "{:?}",
            plan.error
        );
        assert_eq!(plan.verdict, Verdict::Apply);
        assert_eq!(
            actions(&plan, PhaseKind::Status).len(),
            1,
            "D-71: the status is written all the same"
        );
        // Placement goes on. The rollout waits for it, so there is no error.
        let mut cluster = cluster;
        cluster.pods.pop();
        let plan = cluster.plan();
        assert_eq!((counts(&plan), plan.error), ((1, 0), None), "D-39");
    }
}

#[test]
fn d_41_what_uses_the_budget() {
    // One node has an available old pod, the other is as described. With maxUnavailable 1 the old pod is replaced unless the
    // other node uses the budget.
    let table: [(&str, &[&str], bool); 9] = [
        ("being deleted", &["a@node-1 new ready deleting"], true),
        (
            "two of a kind",
            &["a@node-1 new ready", "b@node-1 new ready deleting"],
            false,
        ),
        ("available", &["a@node-1 new ready"], false),
        ("not available", &["a@node-1 new"], true),
        (
            "finished and being deleted",
            &["a@node-1 new ready", "b@node-1 failed deleting"],
            false,
        ),
        (
            "on a missing node, not available (D-43)",
            &["a@node-1 new ready", "b@gone new"],
            true,
        ),
        (
            "on a missing node, available (D-43)",
            &["a@node-1 new ready", "b@gone new ready"],
            false,
        ),
        (
            "two new on a missing node (D-43)",
            &["a@node-1 new ready", "b@gone new ready", "c@gone new ready"],
            true,
        ),
        (
            "one of each on a missing node",
            &["a@node-1 new ready", "b@gone new ready", "c@gone old ready"],
            true,
        ),
    ];
    for (what, pods, used) in table {
        let plan = Cluster::new(2).with(&["o@node-0 old ready"]).with(pods).plan();
        assert_eq!(counts(&plan), (0, usize::from(!used)), "D-41: {what}");
        assert_eq!(
            plan.rollout.expect("it is described").unavailable,
            u32::from(used),
            "D-41: {what}"
        );
    }
    // Ready is not available.
    let plan = Cluster::new(2)
        .min_ready(10)
        .with(&["a@node-0 old since=999", "b@node-1 old since=999"]);
    assert_eq!(pod_changes(&plan.plan()).1, ["a", "b"], "D-41, D-42");
    // An old pod on a missing node is a candidate like another, and must go when it is not available.
    let plan = Cluster::new(1)
        .rolling("2", "0")
        .with(&["o@gone old", "n@node-0 old ready"])
        .plan();
    assert_eq!(pod_changes(&plan).1, ["o", "n"], "D-43");
}

#[test]
fn a_node_that_may_only_keep_its_pod_loses_it() {
    let cluster = Cluster::new(2).taint(0, &["a:NoSchedule"]);
    let mut cluster = cluster.with(&["o@node-0 old ready", "n@node-1 new ready"]);
    //
    assert_eq!(syncs(&mut cluster), [(0, 1)], "D-43");
}

#[test]
fn a_rollback_keeps_pods_that_were_not_replaced() {
    let pods = ["a@node-0 new ready", "b@node-1 new ready", "c@node-2 new ready"];
    let mut cluster = Cluster::new(3).with(&pods);
    let first = cluster.ds.template.clone();
    cluster.change_template("img:2");
    assert_eq!((cluster.sync(), cluster.sync()), ((0, 1), (1, 0)));
    cluster.all_ready();
    assert_eq!(
        cluster
            .revisions
            .iter()
            .map(|revision| revision.number)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    cluster.ds.template = first;
    cluster.ds.generation += 1;
    assert_eq!(ready_syncs(&mut cluster), [(0, 1), (1, 0)]);
    let survivors = cluster
        .pods
        .iter()
        .filter(|pod| pods.iter().any(|text| text.starts_with(&pod.name)));
    assert_eq!(survivors.count(), 2);
    assert_eq!(
        cluster
            .revisions
            .iter()
            .map(|revision| revision.number)
            .collect::<Vec<_>>(),
        [3, 2]
    );
}

#[test]
fn on_delete_waits_for_someone_to_delete() {
    let mut cluster = Cluster::new(2)
        .on_delete()
        .with(&["a@node-0 new ready", "b@node-1 new ready"]);
    cluster.change_template("img:2");
    // D-50
    assert_eq!(cluster.sync(), (0, 0));
    assert_eq!(
        (
            cluster.revisions.len(),
            cluster.ds.status.updated_number_scheduled
        ),
        (2, 0)
    );
    cluster.pods.remove(0);
    assert_eq!(cluster.sync(), (1, 0));
    cluster.all_ready();
    cluster.sync();
    assert_eq!(cluster.ds.status.updated_number_scheduled, 1);
}

#[test]
fn d_74_rolling_waits_for_placement() {
    let cluster = Cluster::new(3)
        .rolling("3", "0")
        .with(&["a@node-0 old ready", "b@node-1 old ready"]);
    let plan = cluster.plan();
    assert_eq!(pod_changes(&plan), (vec!["node-2"], vec![]), "D-74");
}
