//! More claims than one plan may have. The next plans make the rest, and only then what depends on claims.

use std::time::Duration;

use nodewise_planner::plan::{ActionKind, PhaseKind, Plan, Verdict};

use crate::support::{Cluster, actions, apply::phases, counts, status};

/// The most claims of one plan with the default burst.
const MOST: usize = 1_000;

/// An orphan on each of these nodes, an excess pod on the first, a failed one on the second, and one more node without a pod.
fn orphaned(nodes: usize) -> Cluster {
    let mut cluster = Cluster::new(nodes + 1);
    for node in 0..nodes {
        cluster.pod(&format!("orphan-{node:04}@node-{node} ready orphan t=2"));
    }
    cluster.with(&["excess@node-0 ready t=9", "failed@node-1 failed t=9"])
}

fn goes_on(plan: &Plan) -> bool {
    plan.requeue
        .as_ref()
        .is_some_and(|requeue| requeue.delay == Duration::ZERO && requeue.reason.contains("claim"))
}

// D-23, D-28, D-75
#[test]
fn d_23_the_rest_of_many_claims_comes_in_the_following_plans() {
    let mut cluster = orphaned(2 * MOST + 10);
    for round in 0..2 {
        let plan = cluster.plan();
        assert_eq!(phases(&plan)[0], PhaseKind::Claims, "round {round}");
        assert_eq!(actions(&plan, PhaseKind::Claims).len(), MOST);
        assert!(plan.phases[0].batches[0].confirm_workload);
        assert_eq!(counts(&plan), (0, 0), "nothing that depends on the claims");
        assert!(actions(&plan, PhaseKind::Events).is_empty());
        assert!(goes_on(&plan), "{:?}", plan.requeue);
        assert_eq!(plan.verdict, Verdict::Apply);
        assert_eq!(plan.state.expectations, None);
        // All orphans count as owned, including those that are adopted later.
        assert_eq!(usize::try_from(status(&plan).number_ready), Ok(2 * MOST + 10));
        cluster.apply(&plan);
        assert!(!cluster.pods.iter().any(|pod| pod.deleting));
    }
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Claims).len(), 10);
    assert!(!goes_on(&plan));
    assert_eq!(counts(&plan), (1, 2), "one node is empty, two pods are too many");
    cluster.apply(&plan);
    assert!(actions(&cluster.plan(), PhaseKind::Claims).is_empty());
}

#[test]
fn a_small_burst_is_for_creates_and_a_large_one_for_both() {
    let mut cluster = orphaned(MOST);
    cluster.options.burst = 1;
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Claims).len(), MOST);
    assert_eq!(counts(&plan), (1, 1), "the burst");
    let mut cluster = orphaned(3 * MOST);
    cluster.options.burst = 3 * MOST;
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Claims).len(), 3 * MOST);
    assert_eq!(counts(&plan), (1, 2));
}

// D-56, D-57: a duplicate is deleted only after all of its pods are relabelled.
#[test]
fn d_56_the_rest_of_many_relabels_comes_before_a_duplicate_is_deleted() {
    for strict in [false, true] {
        let mut cluster = Cluster::new(MOST + 20);
        let mut duplicate = cluster.revisions[0].clone();
        (duplicate.name, duplicate.uid) = ("copy".to_owned(), "uid-of-copy".to_owned());
        duplicate.labels = [("app", "foo"), ("controller-revision-hash", "copied")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        duplicate.number -= 1;
        cluster.revisions.push(duplicate);
        for node in 0..MOST + 20 {
            let owner = if node < 15 { "orphan" } else { "" };
            let pod = cluster.pod(&format!("pod-{node:04}@node-{node} ready {owner}"));
            pod.labels = [("app", "foo"), ("controller-revision-hash", "copied")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into_iter()
                .collect();
        }
        let mut cluster = if strict { cluster.strict() } else { cluster };
        let mut writes = 0;
        for round in 0..2 {
            let plan = cluster.plan();
            let revisions = actions(&plan, PhaseKind::Revisions);
            let is_delete = |kind: &ActionKind| matches!(kind, ActionKind::DeleteRevision { .. });
            let deletes = revisions.iter().filter(|action| is_delete(&action.kind)).count();
            assert_eq!(deletes, round, "in the end");
            assert_eq!(counts(&plan), (0, 0), "no pod is taken for an old one");
            assert_eq!(goes_on(&plan), round == 0, "{:?}", plan.requeue);
            assert!(revisions.len() <= MOST);
            writes += revisions.len();
            cluster.apply(&plan);
        }
        // All are relabelled, 15 are adopted before, and the duplicate is deleted.
        assert_eq!(writes, MOST + 20 + 15 + 1);
        let plan = cluster.plan();
        assert!(actions(&plan, PhaseKind::Revisions).is_empty());
        assert_eq!(counts(&plan), (0, 0));
    }
}

// D-63
#[test]
fn d_63_the_rest_of_many_old_revisions_goes_with_the_following_plans() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 ready"]);
    cluster.ds.revision_history_limit = Some(0);
    for number in 0..MOST + 5 {
        let mut old = cluster.revisions[0].clone();
        (old.name, old.uid) = (format!("old-{number}"), format!("uid-of-old-{number}"));
        old.labels = [
            ("app", "foo"),
            ("controller-revision-hash", &format!("hash-{number}")),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
        old.data = (&serde_json::json!({"spec": {"template": {"number": number}}})).into();
        old.number = 0;
        cluster.revisions.push(old);
    }
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Cleanup).len(), MOST);
    let requeue = plan.requeue.as_ref().expect("it goes on");
    assert_eq!(requeue.delay, Duration::ZERO);
    cluster.apply(&plan);
    let plan = cluster.plan();
    assert_eq!(actions(&plan, PhaseKind::Cleanup).len(), 5);
    assert_eq!(plan.requeue, None);
}
