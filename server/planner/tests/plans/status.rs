//! The status, and its timers.

use std::time::Duration;

use nodewise_planner::{
    plan::{ActionKind, DaemonSetStatus, PhaseKind, Reason},
    snapshot::{Deviation, PodPhase},
};

use crate::support::{Cluster, actions, at, reasons, status};

/// desired, current, misscheduled, ready, updated, available, unavailable.
fn counts(cluster: &Cluster) -> [i32; 7] {
    let status = status(&cluster.plan());
    [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        status.number_unavailable,
    ]
}

#[test]
fn counts_are_of_nodes() {
    let tainted = Cluster::new(2).taint(0, &["a:NoSchedule"]);
    // (case, cluster, pods, counts)
    let table: Vec<(&str, Cluster, &[&str], [i32; 7])> = vec![
        (
            "D-93: before the plan's own writes",
            Cluster::new(5),
            &[],
            [5, 0, 0, 0, 0, 0, 5],
        ),
        ("no nodes", Cluster::new(0), &[], [0; 7]),
        (
            "pods that are not ready",
            Cluster::new(2),
            &["a@node-0", "b@node-1"],
            [2, 2, 0, 0, 2, 0, 2],
        ),
        (
            "available pods",
            Cluster::new(2),
            &["a@node-0 ready", "b@node-1 ready"],
            [2, 2, 0, 2, 2, 2, 0],
        ),
        (
            "ready, but not for minReadySeconds",
            Cluster::new(1).min_ready(10),
            &["a@node-0 since=995"],
            [1, 1, 0, 1, 1, 0, 1],
        ),
        (
            "D-86",
            Cluster::new(1).min_ready(10),
            &["a@node-0 since=990"],
            [1, 1, 0, 1, 1, 1, 0],
        ),
        (
            "D-120: a negative minReadySeconds is not none",
            Cluster::new(1).min_ready(-1),
            &["a@node-0 ready"],
            [1, 1, 0, 1, 1, 1, 0],
        ),
        (
            "D-84: pods of the current template that only may stay",
            Cluster::new(4)
                .taint(0, &["a:NoSchedule"])
                .taint(1, &["a:NoSchedule"]),
            &["a@node-0 new ready", "b@node-1 new ready", "c@node-2 new ready"],
            [2, 1, 2, 1, 1, 1, 1],
        ),
        (
            "D-85, D-87",
            Cluster::new(1),
            &["a@node-0 old t=1", "b@node-0 ready t=2"],
            [1, 1, 0, 0, 0, 0, 1],
        ),
        (
            "D-83, D-87: also when it is being deleted",
            Cluster::new(1),
            &["a@node-0 ready deleting"],
            [1, 1, 0, 1, 1, 1, 0],
        ),
        (
            "D-26: a pod that is finished and being deleted does not come first",
            Cluster::new(1),
            &["a@node-0 ready t=5", "b@node-0 failed deleting t=1"],
            [1, 1, 0, 1, 1, 1, 0],
        ),
        (
            "D-26, D-83: but not when it is finished, too",
            Cluster::new(1),
            &["a@node-0 ready failed deleting"],
            [1, 0, 0, 0, 0, 0, 1],
        ),
        (
            "D-84: nodes, not pods",
            tainted,
            &["a@node-0", "b@node-0", "c@node-0"],
            [1, 0, 1, 0, 0, 0, 1],
        ),
        (
            "D-83, D-84: not on missing nodes",
            Cluster::new(1),
            &["a@gone ready", "b@lost unbound"],
            [1, 0, 0, 0, 0, 0, 1],
        ),
        (
            "D-88",
            Cluster::new(3),
            &["a@node-0 ready", "b@node-1"],
            [3, 2, 0, 1, 2, 1, 2],
        ),
        (
            "D-86: old ones are not updated",
            Cluster::new(1),
            &["a@node-0 old ready"],
            [1, 1, 0, 1, 0, 1, 0],
        ),
    ];
    for (what, cluster, pods, expected) in table {
        assert_eq!(counts(&cluster.with(pods)), expected, "{what}");
    }
}

#[test]
fn a_pod_is_of_the_current_template_by_either_label() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 by-generation ready"]);
    assert_eq!(counts(&cluster)[4], 0, "no template generation is known");
    for (annotation, updated) in [("1", 1), ("2", 0), ("x", 0)] {
        cluster.ds.annotations = vec![(
            "deprecated.daemonset.template.generation".to_owned(),
            annotation.to_owned(),
        )];
        assert_eq!(counts(&cluster)[4], updated, "D-86: {annotation}");
    }
}

#[test]
fn d_89_an_unchanged_status_is_not_written() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 ready"]);
    let plan = cluster.plan();
    assert_eq!(reasons(&plan, PhaseKind::Status), [Reason::StatusChanged]);
    // D-88, D-94: the write has seven counts and the generation, no conditions.
    assert!(matches!(
        actions(&plan, PhaseKind::Status)[0].kind,
        ActionKind::UpdateStatus { status, collision: None, .. }
            if status.observed_generation == 1
    ));
    cluster.sync();
    assert!(cluster.plan().phases.is_empty(), "D-89");
    cluster.ds.generation = 2;
    assert_eq!(
        reasons(&cluster.plan(), PhaseKind::Status),
        [Reason::GenerationObserved],
        "D-90"
    );
    cluster.ds.status.observed_generation = 7;
    assert!(cluster.plan().phases.is_empty(), "D-89: observed already");
    cluster.ds.status = DaemonSetStatus {
        number_ready: 5,
        ..cluster.ds.status
    };
    assert_eq!(
        reasons(&cluster.plan(), PhaseKind::Status),
        [Reason::StatusChanged]
    );
}

#[test]
fn d_92_pods_that_become_available_by_waiting() {
    let cluster = Cluster::new(2)
        .min_ready(10)
        .with(&["a@node-0 since=995", "b@node-1 since=999"]);
    let delay = |cluster: &Cluster| cluster.plan().requeue.map(|requeue| requeue.delay);
    assert_eq!(delay(&cluster), Some(Duration::from_secs(5)), "Q-18");
    assert!(cluster.plan().deviations.contains(&Deviation::EarliestRequeue));
    assert_eq!(
        delay(&cluster.clone().strict()),
        Some(Duration::from_secs(10)),
        "D-92: the whole period"
    );
    // The status counts a pod that is being deleted (D-87), but not if it is finished, too (D-26).
    let mut leaving = cluster.clone();
    leaving.pods.iter_mut().for_each(|pod| pod.deleting = true);
    assert_eq!(delay(&leaving), Some(Duration::from_secs(5)), "Q-18, D-87");
    leaving
        .pods
        .iter_mut()
        .for_each(|pod| pod.phase = PodPhase::Failed);
    assert_eq!(
        (delay(&leaving), delay(&leaving.strict())),
        (None, None),
        "Q-18, D-26"
    );
    let mut later = cluster.clone();
    later.now = at(1_009);
    assert_eq!(delay(&later), None, "D-92");
    assert_eq!(delay(&later.strict()), None, "D-92");
    assert_eq!(delay(&cluster.clone().min_ready(0)), None, "D-92");
    // A pod with an unknown transition time never becomes available, so there is no timer.
    let mut unknown = cluster;
    unknown.pods.iter_mut().for_each(|pod| pod.ready_since = None);
    assert_eq!(counts(&unknown)[3..6], [2, 2, 0]);
    assert_eq!(counts(&unknown.clone().min_ready(-1))[5], 0, "D-120");
    assert_eq!(delay(&unknown), None, "Q-18");
    assert_eq!(delay(&unknown.strict()), Some(Duration::from_secs(10)), "D-92");
}
