//! The slow start of creates across plans, and creates while earlier ones are outstanding.

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_planner::{
    plan::{PhaseKind, Plan, Verdict},
    report::{Outcome, OutcomeResult, come_back, fold},
    snapshot::{Deviation, ExpectedCreate, SlowStart, State},
};

use crate::support::{Cluster, at, counts, pod_changes, status};

/// Sizes of the batches of creates.
fn batches(plan: &Plan) -> Vec<usize> {
    let creates = plan
        .phases
        .iter()
        .filter(|phase| phase.kind == PhaseKind::Creates);
    creates
        .flat_map(|phase| &phase.batches)
        .map(|batch| batch.actions.len())
        .collect()
}

/// The cluster after a plan whose actions all had this result, while the caches do not show them yet, and the outcomes.
fn unseen(cluster: &Cluster, plan: &Plan, result: OutcomeResult) -> (Cluster, Vec<Outcome>) {
    let outcomes = cluster.clone().apply_with(plan, &mut |_| result);
    let mut next = cluster.clone();
    next.state = fold(plan.state.clone(), &outcomes, &cluster.options);
    (next, outcomes)
}

fn expected(state: &State) -> usize {
    state.expectations.as_ref().map_or(0, |pair| pair.creates.len())
}

fn size(state: &State) -> Option<u32> {
    state.slow_start.as_ref().map(|known| known.size)
}

#[test]
fn the_batch_size_grows_from_plan_to_plan_up_to_the_burst() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 12;
    let mut sizes = Vec::new();
    let mut created: Vec<String> = Vec::new();
    for _ in 0..4 {
        let plan = cluster.plan();
        sizes.push(batches(&plan));
        created.extend(pod_changes(&plan).0.into_iter().map(str::to_owned));
        let (next, _) = unseen(&cluster, &plan, OutcomeResult::Succeeded);
        cluster = next;
        assert_eq!(
            expected(&cluster.state),
            created.len(),
            "outstanding creates add up"
        );
    }
    assert_eq!(sizes, [vec![1, 2, 4, 5], vec![12], vec![12], vec![4]]);
    created.sort();
    created.dedup();
    assert_eq!(created.len(), 40, "each node once");
    let last = cluster.plan();
    assert_eq!(
        (last.verdict, batches(&last)),
        (Verdict::StatusOnly, vec![]),
        "all creates are outstanding"
    );
    assert_eq!(size(&last.state), Some(12), "the size is kept");
}

// An executor that treats a full batch as a window begins no further create after a failure.
#[test]
fn the_rest_of_a_batch_may_be_skipped_after_a_failure() {
    let mut cluster = Cluster::new(20);
    cluster.options.burst = 12;
    let plan = cluster.plan();
    (cluster, _) = unseen(&cluster, &plan, OutcomeResult::Succeeded);
    let plan = cluster.plan();
    assert_eq!(batches(&plan), [8]);
    let mut count = 0;
    let outcomes = cluster.clone().apply_with(&plan, &mut |_| {
        count += 1;
        match count {
            1..=4 => OutcomeResult::Succeeded,
            5 | 6 => OutcomeResult::Failed,
            _ => OutcomeResult::Skipped,
        }
    });
    let state = fold(plan.state.clone(), &outcomes, &cluster.options);
    assert_eq!((expected(&state), size(&state)), (12 + 4, None));
    cluster.state = state;
    let created: Vec<String> = pod_changes(&plan).0[..4]
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    let again = cluster.plan();
    assert_eq!(
        batches(&again),
        [1, 2, 1],
        "the slow start begins again, for the others"
    );
    assert!(
        !pod_changes(&again)
            .0
            .iter()
            .any(|name| created.iter().any(|made| made == name))
    );
}

#[test]
fn after_a_full_burst_the_next_plan_follows_at_once_if_all_creates_succeeded() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 12;
    let delay = |plan: &Plan| plan.requeue.as_ref().map(|requeue| requeue.delay);
    let plan = cluster.plan();
    assert_eq!(delay(&plan), Some(Duration::ZERO));
    let (_, outcomes) = unseen(&cluster, &plan, OutcomeResult::Succeeded);
    for (result, after) in [
        (OutcomeResult::Succeeded, Some(Duration::ZERO)),
        (OutcomeResult::AlreadyExists, None),
        (OutcomeResult::NameTaken, Some(Duration::ZERO)),
        (OutcomeResult::NamespaceTerminating, None),
        (OutcomeResult::Failed, None),
        (OutcomeResult::Skipped, None),
    ] {
        let mut outcomes = outcomes.clone();
        outcomes[11].result = result;
        assert_eq!(
            come_back(&outcomes, delay(&plan), None).after,
            after,
            "{result:?}"
        );
    }
    for deviation in [Deviation::SlowStartAcrossPlans, Deviation::IdempotentCreates] {
        let mut other = cluster.clone();
        other.options.deviations.remove(&deviation);
        assert_eq!(delay(&other.plan()), None, "without {deviation:?}");
    }
    let mut early = cluster.clone();
    early.options.deviations.remove(&Deviation::EarliestRequeue);
    assert_eq!(delay(&early.plan()), Some(Duration::ZERO));
    cluster.options.burst = 41;
    assert_eq!(delay(&cluster.plan()), None);
}

/// Which of ten plans at this interval write the status.
fn status_writes(mut cluster: Cluster, milliseconds: i64) -> Vec<bool> {
    (0..10)
        .map(|_| {
            let plan = cluster.plan();
            let outcomes = cluster.apply(&plan);
            cluster.state = fold(cluster.state.clone(), &outcomes, &cluster.options);
            cluster.observe();
            cluster.now += SignedDuration::from_millis(milliseconds);
            plan.phases.iter().any(|phase| phase.kind == PhaseKind::Status)
        })
        .collect()
}

#[test]
fn while_bursts_follow_each_other_the_status_is_written_after_each_quarter() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 4;
    let (yes, no) = (true, false);
    assert_eq!(
        status_writes(cluster.clone(), 999),
        [yes, no, no, yes, no, no, yes, no, no, yes],
        "4 pods a plan, of 40"
    );
    assert_eq!(status_writes(cluster.clone(), 1_000), [yes; 10], "slowly");
    cluster
        .options
        .deviations
        .remove(&Deviation::SlowStartAcrossPlans);
    assert_eq!(status_writes(cluster.clone(), 1), [yes; 10], "as upstream");
    // The last status is not delayed.
    let mut nearly = Cluster::new(7);
    nearly.options.burst = 4;
    assert_eq!(status_writes(nearly, 1)[..4], [yes, yes, yes, no]);
}

#[test]
fn the_burst_limits_the_next_batch() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 7;
    let (cluster, _) = unseen(&cluster, &cluster.plan(), OutcomeResult::Succeeded);
    assert_eq!(size(&cluster.state), Some(7), "8 would come next");
    let mut smaller = cluster.clone();
    smaller.options.burst = 3;
    assert_eq!(batches(&smaller.plan()), [3]);
    let mut larger = cluster;
    larger.options.burst = 30;
    assert_eq!(batches(&larger.plan()), [7, 14, 9]);
}

#[test]
fn the_slow_start_begins_again_after_a_failure() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 12;
    let (cluster, _) = unseen(&cluster, &cluster.plan(), OutcomeResult::Succeeded);
    for (result, after) in [
        (OutcomeResult::Succeeded, Some(12)),
        (OutcomeResult::AlreadyExists, Some(12)),
        (OutcomeResult::Skipped, Some(12)),
        (OutcomeResult::NameTaken, Some(12)),
        (OutcomeResult::Failed, None),
        (OutcomeResult::NamespaceTerminating, None),
    ] {
        let (next, _) = unseen(&cluster, &cluster.plan(), result);
        assert_eq!(size(&next.state), after, "{result:?}");
    }
    let (failed, _) = unseen(&cluster, &cluster.plan(), OutcomeResult::Failed);
    assert_eq!(batches(&failed.plan()), [1, 2, 4, 5]);
}

#[test]
fn the_slow_start_begins_again_after_thirty_seconds_and_for_another_revision() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 12;
    let (known, _) = unseen(&cluster, &cluster.plan(), OutcomeResult::Succeeded);
    let after = |seconds| {
        let mut later = known.clone();
        later.now += SignedDuration::from_secs(seconds);
        later
    };
    let mut other = known.clone();
    if let Some(slow_start) = &mut other.state.slow_start {
        slow_start.revision_hash = "other".to_owned();
    }
    // (when, what is planned, sizes)
    for (what, cluster, sizes) in [
        ("at once", after(0), vec![12]),
        ("within 30 s", after(30), vec![12]),
        ("later", after(31), vec![1, 2, 4, 5]),
        ("before", after(-1), vec![1, 2, 4, 5]),
        ("another revision", other, vec![1, 2, 4, 5]),
    ] {
        assert_eq!(batches(&cluster.plan()), sizes, "{what}");
    }
    let mut nothing_to_create = Cluster::new(0);
    nothing_to_create.state.slow_start = Some(SlowStart {
        size: 5,
        revision_hash: nothing_to_create.current_hash(),
        last: at(980),
    });
    assert_eq!(size(&nothing_to_create.plan().state), Some(5));
    nothing_to_create.now = at(1_011);
    assert_eq!(size(&nothing_to_create.plan().state), None, "dropped");
}

#[test]
fn the_deviation_is_named_if_it_changed_the_plan() {
    let mut cluster = Cluster::new(40);
    let names_it = |plan: &Plan| plan.deviations.contains(&Deviation::SlowStartAcrossPlans);
    for (burst, expected) in [(12, true), (40, true), (41, false)] {
        cluster.options.burst = burst;
        assert_eq!(
            names_it(&cluster.plan()),
            expected,
            "after a burst of {burst} the executor comes back at once"
        );
    }
    let mut waiting = cluster.clone();
    waiting.options.burst = 12;
    waiting.options.deviations.remove(&Deviation::IdempotentCreates);
    assert!(
        !names_it(&waiting.plan()),
        "creates without a name hold others up"
    );
    cluster.options.burst = 12;
    let first = cluster.plan();
    let (next, _) = unseen(&cluster, &first, OutcomeResult::Succeeded);
    assert!(names_it(&next.plan()));
    let mut off = next.clone();
    off.options.deviations.remove(&Deviation::SlowStartAcrossPlans);
    let plan = off.plan();
    assert_eq!((plan.verdict, counts(&plan)), (Verdict::StatusOnly, (0, 0)));
    assert_eq!(plan.state.slow_start, off.state.slow_start, "the plan keeps it");
    let (after, _) = unseen(&off, &plan, OutcomeResult::Succeeded);
    assert_eq!(
        after.state.slow_start, off.state.slow_start,
        "the outcomes keep it"
    );
    // Nothing is outstanding; only the batch size differs.
    let mut seen = next;
    seen.state.expectations = None;
    assert!(names_it(&seen.plan()));
    seen.options.deviations.remove(&Deviation::SlowStartAcrossPlans);
    assert_eq!(batches(&seen.plan()), [1, 2, 4, 5]);
    // One create is always one batch, and a slow start with size 1 is that of upstream.
    for (nodes, size, expected) in [
        (1, 5, false),
        (2, 5, true),
        (2, 2, true),
        (2, 1, false),
        (2, 0, false),
    ] {
        let mut cluster = Cluster::new(nodes);
        cluster.state.slow_start = Some(SlowStart {
            size,
            revision_hash: cluster.current_hash(),
            last: cluster.now,
        });
        assert_eq!(names_it(&cluster.plan()), expected, "{nodes} nodes, at {size}");
    }
}

#[test]
fn while_creates_are_outstanding_only_other_nodes_without_a_pod_get_one() {
    let pods = [
        "excess-1@node-0 new ready t=1",
        "excess-2@node-0 new ready t=2",
        "failed@node-1 new failed",
        "old@node-2 old ready",
        "late@lost new unbound",
    ];
    let mut cluster = Cluster::new(6).with(&pods).rolling("100%", "0");
    let pending = |cluster: &mut Cluster, pod: &str, deletes: &[&str]| {
        cluster.state.expectations = Some(nodewise_planner::snapshot::Expectations {
            set_at: at(999),
            creates: vec![ExpectedCreate {
                pod_name: pod.to_owned(),
                node_name: "node-4".to_owned(),
            }],
            delete_uids: deletes.iter().map(|&uid| uid.to_owned()).collect(),
        });
    };
    pending(&mut cluster, "foo-x", &[]);
    let plan = cluster.plan();
    assert_eq!(pod_changes(&plan), (vec!["node-3", "node-5"], vec![]));
    assert_eq!((plan.verdict, expected(&plan.state)), (Verdict::Apply, 3));
    assert!(plan.requeue.is_some(), "expectations expire");
    // Further creates do not extend the five minutes of the earlier ones.
    assert_eq!(
        plan.state.expectations.as_ref().map(|expected| expected.set_at),
        Some(at(999))
    );
    // The observed generation does not change while creates are outstanding (D-90).
    cluster.ds.generation = 9;
    assert_eq!(Some(status(&cluster.plan()).observed_generation), Some(1));

    let only_status = |cluster: &Cluster| assert_eq!(cluster.plan().verdict, Verdict::StatusOnly);
    pending(&mut cluster, "foo-x", &["some-uid"]);
    only_status(&cluster);
    pending(&mut cluster, "", &[]);
    only_status(&cluster);
    pending(&mut cluster, "foo-x", &[]);
    only_status(&cluster.clone().strict());
    cluster.pod("b@node-3 new ready");
    cluster.pod("c@node-5 new ready");
    only_status(&cluster);
}
