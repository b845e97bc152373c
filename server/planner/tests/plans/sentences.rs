//! Messages of actions: each says why the action is planned.

use nodewise_planner::plan::{PhaseKind, Plan};

use crate::support::{Cluster, actions, status};

/// The messages of the creates, then those of the deletes.
fn messages(plan: &Plan) -> Vec<&str> {
    let phases = [PhaseKind::Creates, PhaseKind::Deletes].into_iter();
    let actions = phases.flat_map(|kind| actions(plan, kind));
    actions.map(|action| action.message.as_str()).collect()
}

/// (case, cluster, pods on all nodes but the last, messages)
type Row<'a> = (&'a str, Cluster, &'a [&'a str], &'a [&'a str]);

fn check(table: Vec<Row<'_>>) {
    for (what, cluster, pods, expected) in table {
        let plan = cluster.with(pods).with(&["z@node-1 new ready"]).plan();
        assert_eq!(messages(&plan), expected, "{what}");
    }
}

fn without_surge() -> Cluster {
    Cluster::new(2).rolling("2", "0")
}

fn surging() -> Cluster {
    Cluster::new(2).rolling("0", "2")
}

#[test]
fn messages_of_placement() {
    check(vec![
        (
            "a node without pods",
            without_surge(),
            &[],
            &["node-0 has no pod of this workload"],
        ),
        (
            "a node that must not run a pod",
            without_surge().taint(0, &["a:NoExecute"]),
            &["a@node-0 ready"],
            &["a is on node-0, which must not run this workload"],
        ),
        (
            "D-95",
            without_surge(),
            &["a@node-0 failed"],
            &["a on node-0 failed"],
        ),
        (
            "D-96",
            without_surge(),
            &["a@node-0 succeeded"],
            &["a on node-0 succeeded, but has to run"],
        ),
        (
            "D-31",
            without_surge(),
            &["a@node-0 t=1", "b@node-0 t=2"],
            &["node-0 has more pods than it should; a stays"],
        ),
        (
            "D-36",
            without_surge(),
            &["a@node-0 ready", "b@lost unbound"],
            &["b waits for lost, which does not exist"],
        ),
        (
            "D-32: the failed pod is named, not the one that is being deleted",
            surging(),
            &["a@node-0 t=1 deleting", "b@node-0 t=2 failed"],
            &[
                "node-0 has no pod that runs: b is finished or being deleted",
                "b on node-0 failed",
            ],
        ),
        (
            "D-32: only a pod that is being deleted",
            surging(),
            &["a@node-0 t=1 deleting"],
            &["node-0 has no pod that runs: a is finished or being deleted"],
        ),
        (
            "D-34, not ready",
            surging(),
            &["a@node-0 old", "b@node-0 new"],
            &["a on node-0 is outdated and not ready; b replaces it"],
        ),
        (
            "D-34, available",
            surging(),
            &["a@node-0 old ready", "b@node-0 new ready"],
            &["a on node-0 is outdated; its replacement b is available"],
        ),
    ]);
}

#[test]
fn messages_of_a_rollout() {
    check(vec![
        (
            "D-42, not available",
            without_surge(),
            &["a@node-0 old"],
            &["a on node-0 is outdated and not available"],
        ),
        (
            "D-42, within the budget",
            without_surge(),
            &["a@node-0 old ready", "b@gone new"],
            &["a on node-0 is outdated (slot 2 of 2)"],
        ),
        (
            "D-45, not available",
            surging(),
            &["a@node-0 old"],
            &["node-0: a is outdated and not available"],
        ),
        (
            "D-46",
            surging(),
            &["a@node-0 old ready", "b@gone old ready", "c@gone new"],
            &["node-0: a is outdated (slot 2 of 2)"],
        ),
        (
            "D-45, the node may not run a new one",
            surging().taint(0, &["a:NoSchedule"]),
            &["a@node-0 old"],
            &["a on node-0 is outdated and not available"],
        ),
        (
            "D-47",
            surging().taint(0, &["a:NoSchedule"]),
            &["a@node-0 old ready"],
            &["a is outdated and node-0 may not get a new one; enough others are available"],
        ),
    ]);
}

#[test]
fn messages_of_the_status() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 new ready", "b@node-1 old"]);
    let message = |cluster: &Cluster| {
        let plan = cluster.plan();
        let writes = actions(&plan, PhaseKind::Status);
        writes.first().map(|action| action.message.clone())
    };
    // D-89
    let all = "status: desired 0 → 2, current 0 → 2, updated 0 → 1, ready 0 → 1, available 0 → 1, unavailable 0 → 1";
    assert_eq!(message(&cluster).as_deref(), Some(all));
    cluster.ds.status = status(&cluster.plan());
    assert_eq!(message(&cluster), None);
    cluster.ds.status.number_ready = 2;
    cluster.ds.status.number_misscheduled = 3;
    let some = "status: ready 2 → 1, misscheduled 3 → 0";
    assert_eq!(message(&cluster).as_deref(), Some(some));
    cluster.ds.status = status(&cluster.plan());
    cluster.ds.generation += 1;
    assert_eq!(message(&cluster).as_deref(), Some("generation 2 is observed"));
}
