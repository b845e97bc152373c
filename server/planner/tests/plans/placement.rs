//! Placement: which nodes get pods, and which pods are deleted.

use nodewise_planner::{
    daemonset::NodeSelectorTerm,
    plan::{ActionKind, PhaseKind, Reason},
    snapshot::Target,
};

use crate::support::{Cluster, actions, apply::phases, counts, pod_changes, reasons, status};

/// (case, cluster, pods, nodes of creates, deleted pods)
type Row<'a> = (&'a str, Cluster, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

fn check(table: Vec<Row<'_>>) {
    for (what, cluster, pods, created, deleted) in table {
        let plan = cluster.with(pods).plan();
        assert_eq!(pod_changes(&plan), (created.to_vec(), deleted.to_vec()), "{what}");
    }
}

fn surging(nodes: usize) -> Cluster {
    Cluster::new(nodes).rolling("0", "1")
}

#[test]
fn nodes_get_one_pod_each() {
    check(vec![
        // D-1, D-2, D-7
        ("D-7", Cluster::new(3), &[], &["node-0", "node-1", "node-2"], &[]),
        ("no nodes", Cluster::new(0), &[], &[], &[]),
        ("D-31", Cluster::new(1), &["a@node-0 new ready"], &[], &[]),
        // Resource requests are no input (D-6), so a pod that is pending because it does not fit changes nothing.
        (
            "D-6",
            Cluster::new(2),
            &["a@node-0 new pending unbound"],
            &["node-1"],
            &[],
        ),
        (
            "D-23, D-31",
            Cluster::new(5),
            &[
                "a@node-1 new",
                "b@node-2 new t=1",
                "c@node-2 new t=2",
                "d@node-3 new t=3",
                "e@node-3 new t=1",
                "f@node-3 new t=2",
                "g@node-3 new t=5",
                "h@node-3 new t=4",
                "i@node-4 stray",
                "j@node-4 stray",
            ],
            &["node-0", "node-4"],
            &["c", "f", "d", "h", "g"],
        ),
        (
            "D-34: the same with surge",
            surging(5),
            &[
                "a@node-1 new",
                "b@node-2 new t=1",
                "c@node-2 new t=2",
                "d@node-3 new t=3",
                "e@node-3 new t=1",
                "f@node-3 new t=2",
                "g@node-3 new t=5",
                "h@node-3 new t=4",
                "i@node-4 stray",
                "j@node-4 stray",
            ],
            &["node-0", "node-4"],
            &["c", "f", "d", "h", "g"],
        ),
        (
            "D-8",
            pinned("node-0"),
            &["a@node-1 new ready"],
            &["node-0"],
            &["a"],
        ),
        ("D-8: another node name", pinned("node-9"), &[], &[], &[]),
        (
            "a pod that is not ready stays",
            Cluster::new(1),
            &["a@node-0 new"],
            &[],
            &[],
        ),
        (
            "a node that was added",
            Cluster::new(2),
            &["a@node-0 new ready"],
            &["node-1"],
            &[],
        ),
    ]);
}

fn pinned(node: &str) -> Cluster {
    let mut cluster = Cluster::new(5);
    node.clone_into(&mut cluster.ds.scheduling.node_name);
    cluster
}

#[test]
fn nodes_that_the_selector_leaves_out_lose_their_pods() {
    let mut cluster = Cluster::new(10);
    let term = NodeSelectorTerm::default();
    cluster.ds.scheduling.required_terms = Some((5..10).map(|index| named(&term, index)).collect());
    let few = [
        "a@node-0 stray",
        "b@node-0 stray",
        "c@node-1",
        "d@node-1",
        "e@node-1",
        "f@node-1 stray",
        "g@node-4",
    ];
    assert_eq!(counts(&cluster.clone().with(&few).plan()), (5, 4));
    let mut many: Vec<String> = vec![
        "a@node-0".into(),
        "b@node-1 stray".into(),
        "c@node-1 stray".into(),
        "z@node-9 stray".into(),
    ];
    for (node, count) in [(1, 3), (2, 4), (6, 13), (9, 1)] {
        many.extend((0..count).map(|index| format!("p{node}-{index}@node-{node} new")));
    }
    many.extend((0..4).map(|index| format!("s{index}@node-7 stray")));
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(counts(&cluster.with(&many).plan()), (3, 20));
}

fn named(term: &NodeSelectorTerm, index: usize) -> NodeSelectorTerm {
    let mut term = term.clone();
    term.match_fields
        .push(nodewise_planner::daemonset::NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: vec![format!("node-{index}")],
        });
    term
}

#[test]
fn taints_decide_where_pods_may_start_and_stay() {
    let tainted = |taints: &[&str]| Cluster::new(1).taint(0, taints);
    check(vec![
        (
            "D-20",
            tainted(&["node.kubernetes.io/not-ready:NoSchedule"]),
            &[],
            &[],
            &[],
        ),
        (
            "D-35",
            tainted(&["node.kubernetes.io/not-ready:NoSchedule"]),
            &["a@node-0"],
            &[],
            &[],
        ),
        (
            "D-18",
            tainted(&["node.kubernetes.io/unreachable:NoExecute"]),
            &[],
            &["node-0"],
            &[],
        ),
        (
            "D-17: not tolerated",
            tainted(&["dedicated=user1:NoSchedule"]),
            &[],
            &[],
            &[],
        ),
        (
            "D-17: no taint",
            tainted(&[]).tolerate("dedicated"),
            &[],
            &["node-0"],
            &[],
        ),
        (
            "D-35",
            tainted(&["dedicated=user1:NoSchedule"]),
            &["a@node-0 new ready"],
            &[],
            &[],
        ),
        (
            "D-8: NoExecute",
            tainted(&["dedicated=user1:NoExecute"]),
            &["a@node-0 new ready"],
            &[],
            &["a"],
        ),
        (
            "D-35: pruned to one, and nothing is created",
            tainted(&["dedicated=user1:NoSchedule"]),
            &["a@node-0 t=2", "b@node-0 t=1", "c@node-0 succeeded"],
            &[],
            &["c", "a"],
        ),
        (
            "D-35: surge creates nothing there either",
            surging(1).taint(0, &["dedicated=user1:NoSchedule"]),
            &["a@node-0 deleting"],
            &[],
            &[],
        ),
        (
            "D-8: on a node that must not keep it a failed pod goes like any other",
            tainted(&["dedicated=user1:NoExecute"]),
            &["a@node-0 failed", "b@node-0 deleting"],
            &[],
            &["a"],
        ),
        (
            "D-30: a failed pod on a node that may keep it",
            tainted(&["dedicated=user1:NoSchedule"]),
            &["a@node-0 failed"],
            &[],
            &["a"],
        ),
    ]);
    let plan = Cluster::new(1)
        .taint(0, &["a:NoExecute"])
        .with(&["a@node-0 failed"])
        .plan();
    assert_eq!(phases(&plan), [PhaseKind::Deletes, PhaseKind::Status], "no event");
    assert!(plan.state.failed_pod_backoffs.is_empty(), "no back-off");
}

#[test]
fn a_required_affinity_without_terms_matches_no_node() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 new ready", "b@node-1 new ready"]);
    cluster.ds.scheduling.required_terms = Some(vec![]);
    assert_eq!(pod_changes(&cluster.plan()), (vec![], vec!["a", "b"]));
}

#[test]
fn labels_and_selectors_that_change() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 new ready"]);
    cluster.nodes[0].labels = [("color".to_owned(), "green".to_owned())].into_iter().collect();
    cluster.ds.scheduling.node_selector = vec![("color".to_owned(), "blue".to_owned())];
    assert_eq!(cluster.sync(), (0, 1));
    cluster.ds.scheduling.node_selector[0].1 = "green".to_owned();
    assert_eq!(cluster.sync(), (1, 0));
}

#[test]
fn pods_without_a_live_one_beside_them() {
    check(vec![
        (
            "D-26",
            Cluster::new(1),
            &["a@node-0 succeeded deleting"],
            &["node-0"],
            &[],
        ),
        (
            "D-26",
            Cluster::new(1),
            &["a@node-0 failed deleting"],
            &["node-0"],
            &[],
        ),
        (
            "D-30, D-31",
            Cluster::new(1),
            &["a@node-0 new ready deleting"],
            &[],
            &[],
        ),
        (
            "D-32",
            surging(1),
            &["a@node-0 new ready deleting"],
            &["node-0"],
            &[],
        ),
        ("D-31", Cluster::new(1), &["a@node-0 failed"], &[], &["a"]),
        ("D-31", Cluster::new(1), &["a@node-0 succeeded"], &[], &["a"]),
        (
            "D-32, D-100",
            surging(1),
            &["a@node-0 failed"],
            &["node-0"],
            &["a"],
        ),
        ("D-32", surging(1), &["a@node-0 succeeded"], &["node-0"], &["a"]),
        (
            "D-32: above the surge limit",
            surging(2),
            &["n@node-0 new", "o@node-0 old ready", "a@node-1 deleting"],
            &["node-1"],
            &[],
        ),
        ("D-33", surging(1), &["a@node-0 new"], &[], &[]),
        (
            "D-30: an unknown phase is live",
            Cluster::new(1),
            &["a@node-0 pending", "b@node-0 deleting"],
            &[],
            &[],
        ),
    ]);
}

#[test]
fn d_38_which_of_several_stays() {
    check(vec![
        (
            "D-38",
            Cluster::new(1),
            &["b@node-0 unbound t=1", "a@node-0 t=2"],
            &[],
            &["b"],
        ),
        (
            "D-38, Q-10",
            Cluster::new(1),
            &["a@node-0 old t=1", "b@node-0 new ready t=2"],
            &[],
            &["b"],
        ),
        (
            "D-38",
            Cluster::new(1),
            &["b@node-0", "a@node-0", "ab@node-0"],
            &[],
            &["ab", "b"],
        ),
        (
            "D-38: a creation time that is missing is the earliest",
            Cluster::new(1),
            &["a@node-0 t=1", "b@node-0 t=0"],
            &[],
            &["a"],
        ),
    ]);
}

#[test]
fn d_34_with_surge_one_of_each_kind_stays_while_it_is_needed() {
    let surge = || surging(1).min_ready(10);
    check(vec![
        (
            "both needed",
            surge(),
            &["o@node-0 old ready t=1", "n@node-0 new t=2"],
            &[],
            &[],
        ),
        (
            "the new one is not available for long enough",
            surge(),
            &["o@node-0 old ready", "n@node-0 new since=991"],
            &[],
            &[],
        ),
        (
            "the new one is available",
            surge(),
            &["o@node-0 old ready", "n@node-0 new since=990"],
            &[],
            &["o"],
        ),
        (
            "the old one is not ready",
            surge(),
            &["o@node-0 old", "n@node-0 new"],
            &[],
            &["o"],
        ),
        (
            "the old one is ready, though not for long enough",
            surge(),
            &["o@node-0 old since=999", "n@node-0 new"],
            &[],
            &[],
        ),
        (
            "two new",
            surge(),
            &["m@node-0 new t=2", "n@node-0 new t=1"],
            &[],
            &["m"],
        ),
        (
            "two old",
            surge(),
            &["o@node-0 old ready t=2", "p@node-0 old ready t=1"],
            &[],
            &["o"],
        ),
        (
            "D-38 chooses among each kind",
            surge(),
            &[
                "n@node-0 new t=9",
                "m@node-0 new t=8",
                "o@node-0 old ready t=7",
                "p@node-0 old t=6",
                "q@node-0 old t=5",
            ],
            &[],
            // q stays as the first old one, but it is not ready.
            &["p", "o", "n", "q"],
        ),
        (
            "an excess old pod",
            Cluster::new(1).rolling("0", "1"),
            &[
                "n@node-0 new t=99",
                "a@node-0 old ready t=50",
                "b@node-0 old ready t=60",
            ],
            &[],
            &["b"],
        ),
        (
            "an excess old pod, and the first is not ready",
            Cluster::new(1).rolling("0", "1"),
            &[
                "n@node-0 new t=99",
                "a@node-0 old t=50",
                "b@node-0 old ready t=60",
            ],
            &[],
            &["b", "a"],
        ),
        // Only the hash makes a pod new here.
        (
            "D-34, Q-3",
            generation_1(surging(1)),
            &["g@node-0 by-generation ready", "n@node-0 new ready"],
            &[],
            &["g"],
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
fn d_34_d_38_several_pods_on_one_of_five_nodes() {
    // (case, minReadySeconds, pods of node-1, creates, deletes)
    let table = [
        (
            "an excess old pod",
            0,
            [
                "n@node-1 new",
                "a@node-1 old ready t=50",
                "b@node-1 old ready t=60",
            ],
            (3, 1),
        ),
        (
            "an excess old pod, and the first is not ready",
            0,
            ["n@node-1 new", "a@node-1 old t=50", "b@node-1 old ready t=60"],
            (3, 2),
        ),
        (
            "the new pod is not available yet",
            15,
            [
                "n@node-1 new since=990",
                "a@node-1 old ready t=50",
                "b@node-1 old ready t=60",
            ],
            (3, 1),
        ),
        (
            "the new pod is available",
            15,
            [
                "n@node-1 new since=980",
                "a@node-1 old ready t=50",
                "b@node-1 old ready t=60",
            ],
            (3, 2),
        ),
    ];
    for (what, min_ready, pods, expected) in table {
        let cluster = surging(5)
            .min_ready(min_ready)
            .with(&pods)
            .with(&["c@node-2 new ready"]);
        assert_eq!(counts(&cluster.plan()), expected, "{what}");
    }
}

#[test]
fn d_37_what_allows_surge() {
    // (maxSurge, allowed): D-32 shows it.
    let table = [
        ("1", true),
        ("7", true),
        ("1%", true),
        ("100%", true),
        ("0", false),
        ("0%", false),
        ("-", false),
        ("\"5\"", false),
        ("x%", false),
        ("-1", false),
    ];
    for (max_surge, allowed) in table {
        let cluster = Cluster::new(1)
            .rolling("1", max_surge)
            .with(&["a@node-0 deleting"]);
        assert_eq!(counts(&cluster.plan()).0 == 1, allowed, "D-37: {max_surge}");
    }
    let on_delete = Cluster::new(1).on_delete().with(&["a@node-0 deleting"]);
    assert_eq!(counts(&on_delete.plan()), (0, 0), "D-37: OnDelete");
}

#[test]
fn d_36_pods_of_missing_nodes() {
    check(vec![
        (
            "D-29, D-36",
            Cluster::new(1),
            &[
                "a@node-0 new",
                "b@gone new",
                "d@lost unbound",
                "c@lost unbound t=9",
            ],
            &[],
            &["c", "d"],
        ),
        (
            "D-36 comes after the nodes",
            Cluster::new(1),
            &["a@a-lost unbound", "b@node-0 t=1", "c@node-0 t=2"],
            &[],
            &["c", "a"],
        ),
    ]);
    let plan = Cluster::new(0).with(&["c@lost unbound"]).plan();
    assert_eq!(reasons(&plan, PhaseKind::Deletes), [Reason::NodeMissing]);
}

#[test]
fn d_25_pods_without_a_node_are_left_alone() {
    // A pod whose affinity does not name exactly one node (D-24) is neither counted nor deleted.
    let plan = Cluster::new(1).with(&["a@x nowhere"]).plan();
    assert_eq!(pod_changes(&plan), (vec!["node-0"], vec![]), "D-24");
    assert_eq!(status(&plan).current_number_scheduled, 0);
    assert_eq!(Target::Nowhere.node(), None);
    assert_eq!(Target::Meant("n".to_owned()).node(), Some("n"), "D-24");
}

#[test]
fn claims_come_before_what_relies_on_them() {
    // D-3, D-28: in the same plan an adopted pod counts as owned, and a released one does not.
    let pods = [
        "a@node-0 new orphan ready",
        "b@node-1 stray",
        "c@node-2 foreign",
        "d@node-3 orphan deleting",
    ];
    let plan = Cluster::new(4).with(&pods).plan();
    assert_eq!(pod_changes(&plan).0, ["node-1", "node-2", "node-3"], "D-28");
    assert_eq!(
        phases(&plan),
        [PhaseKind::Claims, PhaseKind::Creates, PhaseKind::Status]
    );
    assert!(
        PhaseKind::Claims.aborts_on_failure(),
        "a failed adoption ends the plan"
    );
    let claims = &plan.phases[0].batches;
    let [claims] = &claims[..] else {
        panic!("D-23: all claims are in one batch, so that a failed one does not stop the others")
    };
    assert!(matches!(claims.actions[0].kind, ActionKind::ReleasePod { .. }));
    assert!(matches!(claims.actions[1].kind, ActionKind::AdoptPod { .. }));
    assert!(claims.confirm_workload, "D-27: adoptions ask for a live read");
    let released = Cluster::new(4).with(&["b@node-1 stray"]).plan();
    assert!(
        !released.phases[0].batches[0].confirm_workload,
        "D-27: releases do not"
    );
    assert_eq!(status(&plan).current_number_scheduled, 1);
}

// Upstream handles owned pods before pods that it adopts in the same sync. With surge, it decides last about an old pod beside a
// new one. Both orders matter when the burst cuts the deletes.
#[test]
fn q_1_which_deletes_the_burst_cuts() {
    for (pods, surge, deleted) in [
        (
            ["a@node-0 orphan failed", "b@node-0 failed", "c@node-0 t=1"],
            false,
            "b",
        ),
        (
            ["a@node-9 orphan unbound", "b@node-9 unbound", "c@node-0 t=1"],
            false,
            "b",
        ),
        (
            ["a@node-0 old t=1", "b@node-0 old t=2", "c@node-0 new t=3"],
            true,
            "b",
        ),
    ] {
        let mut cluster = Cluster::new(1).with(&pods);
        if surge {
            cluster = cluster.rolling("0", "1");
        }
        cluster.options.burst = 1;
        assert_eq!(pod_changes(&cluster.plan()).1, [deleted], "{pods:?}");
    }
    let mut cluster = Cluster::new(1)
        .with(&["a@node-0 orphan t=1", "b@node-0 t=2"])
        .taint(0, &["x:NoExecute"]);
    cluster.options.burst = 1;
    assert_eq!(pod_changes(&cluster.plan()).1, ["b"]);
}

#[test]
fn q_1_orders_and_the_cut() {
    let mut cluster = Cluster::new(3).with(&[
        "c@node-2 t=1",
        "d@node-2 t=2",
        "a@node-0 t=1",
        "b@node-0 t=2",
        "f@node-0 succeeded t=9",
        "z@lost unbound",
    ]);
    assert_eq!(pod_changes(&cluster.plan()).1, ["f", "b", "d", "z"]);
    // D-75: the burst limits creates and deletes separately.
    cluster.options.burst = 2;
    assert_eq!(pod_changes(&cluster.plan()), (vec!["node-1"], vec!["f", "b"]));
    let messages: Vec<_> = actions(&cluster.plan(), PhaseKind::Deletes)
        .iter()
        .map(|a| a.message.clone())
        .collect();
    assert_eq!(
        messages,
        [
            "f on node-0 succeeded, but has to run",
            "node-0 has more pods than it should; a stays"
        ]
    );
}
