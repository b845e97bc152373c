//! The slow start of creates from plan to plan, and what is created while earlier creates are not seen.

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_planner::{
    plan::{PhaseKind, Plan, Verdict},
    report::{Outcome, OutcomeResult, come_back, fold},
    snapshot::{Deviation, ExpectedCreate, SlowStart, State},
};

use crate::support::{Cluster, at, counts, moves};

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

/// The next question when nothing of a plan has been seen, and the outcomes of the plan.
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
fn goes_on_from_plan_to_plan_up_to_the_burst() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 12;
    let mut sizes = Vec::new();
    let mut created: Vec<String> = Vec::new();
    for _ in 0..4 {
        let plan = cluster.plan();
        sizes.push(batches(&plan));
        created.extend(moves(&plan).0.into_iter().map(str::to_owned));
        let (next, _) = unseen(&cluster, &plan, OutcomeResult::Succeeded);
        cluster = next;
        assert_eq!(
            expected(&cluster.state),
            created.len(),
            "what is not seen adds up"
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
        "now it has to be seen"
    );
    assert_eq!(size(&last.state), Some(12), "kept");
}

#[test]
fn a_full_burst_is_followed_at_once_when_all_of_it_was_done() {
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

/// Which of ten plans that follow each other after so many milliseconds write the status.
fn tell(mut cluster: Cluster, milliseconds: i64) -> Vec<bool> {
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
fn while_bursts_follow_each_other_the_status_tells_of_every_quarter() {
    let mut cluster = Cluster::new(40);
    cluster.options.burst = 4;
    let (yes, no) = (true, false);
    assert_eq!(
        tell(cluster.clone(), 999),
        [yes, no, no, yes, no, no, yes, no, no, yes],
        "4 pods a plan, of 40"
    );
    assert_eq!(tell(cluster.clone(), 1_000), [yes; 10], "slowly");
    cluster
        .options
        .deviations
        .remove(&Deviation::SlowStartAcrossPlans);
    assert_eq!(tell(cluster.clone(), 1), [yes; 10], "as upstream");
    // The last one need not wait for another.
    let mut nearly = Cluster::new(7);
    nearly.options.burst = 4;
    assert_eq!(tell(nearly, 1)[..4], [yes, yes, yes, no]);
}

#[test]
fn a_burst_below_the_batch_that_follows_cuts_it() {
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
fn begins_again_after_a_failure() {
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
fn begins_again_when_what_is_known_says_nothing_any_more() {
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
    assert_eq!(size(&nothing_to_create.plan().state), None, "forgotten");
}

#[test]
fn is_told_as_a_deviation_where_it_made_a_difference() {
    let mut cluster = Cluster::new(40);
    let told = |plan: &Plan| plan.deviations.contains(&Deviation::SlowStartAcrossPlans);
    for (burst, expected) in [(12, true), (40, true), (41, false)] {
        cluster.options.burst = burst;
        assert_eq!(
            told(&cluster.plan()),
            expected,
            "after a burst of {burst} the executor comes back at once"
        );
    }
    let mut waiting = cluster.clone();
    waiting.options.burst = 12;
    waiting.options.deviations.remove(&Deviation::IdempotentCreates);
    assert!(!told(&waiting.plan()), "what has no name is waited for");
    cluster.options.burst = 12;
    let first = cluster.plan();
    let (next, _) = unseen(&cluster, &first, OutcomeResult::Succeeded);
    assert!(told(&next.plan()));
    let mut off = next.clone();
    off.options.deviations.remove(&Deviation::SlowStartAcrossPlans);
    let plan = off.plan();
    assert_eq!((plan.verdict, counts(&plan)), (Verdict::StatusOnly, (0, 0)));
    assert_eq!(plan.state.slow_start, off.state.slow_start, "not its business");
    let (after, _) = unseen(&off, &plan, OutcomeResult::Succeeded);
    assert_eq!(after.state.slow_start, off.state.slow_start, "nor a report's");
    // Everything was seen, and the ramp alone makes the difference.
    let mut seen = next;
    seen.state.expectations = None;
    assert!(told(&seen.plan()));
    seen.options.deviations.remove(&Deviation::SlowStartAcrossPlans);
    assert_eq!(batches(&seen.plan()), [1, 2, 4, 5]);
    // One create is a batch of one on either profile, and a ramp at its beginning is upstream's.
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
        assert_eq!(told(&cluster.plan()), expected, "{nodes} nodes, at {size}");
    }
}

#[test]
fn while_creates_are_not_seen_only_nodes_without_a_pod_get_theirs() {
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
    assert_eq!(moves(&plan), (vec!["node-3", "node-5"], vec![]));
    assert_eq!((plan.verdict, expected(&plan.state)), (Verdict::Apply, 3));
    assert!(plan.requeue.is_some(), "expectations expire");
    // What never shows is given up after its five minutes, whatever is created meanwhile.
    assert_eq!(
        plan.state.expectations.as_ref().map(|expected| expected.set_at),
        Some(at(999))
    );
    // An old status is no sign that a new spec was seen to the end (D-90).
    cluster.ds.generation = 9;
    assert_eq!(
        cluster.plan().status.map(|status| status.observed_generation),
        Some(1)
    );

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
