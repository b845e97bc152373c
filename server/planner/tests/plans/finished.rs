//! Failed and succeeded pods, and back-off.

use std::time::Duration;

use jiff::Timestamp;
use nodewise_planner::{
    plan::Plan,
    snapshot::{Deviation, FailedPodBackoff},
};

use crate::support::{Cluster, at, counts, events, pod_changes};

fn backoff(node: &str, seconds: u64, last: Timestamp) -> FailedPodBackoff {
    FailedPodBackoff {
        observed_generation: 1,
        node_name: node.to_owned(),
        delay: Duration::from_secs(seconds),
        last,
    }
}

fn failed(entries: Vec<FailedPodBackoff>) -> Cluster {
    let mut cluster = Cluster::new(1).with(&["a@node-0 failed"]);
    cluster.state.failed_pod_backoffs = entries;
    cluster
}

fn requeue(plan: &Plan) -> Option<Duration> {
    plan.requeue.as_ref().map(|requeue| requeue.delay)
}

#[test]
fn a_failed_pod_is_deleted_with_an_event() {
    let mut cluster = failed(vec![]);
    let plan = cluster.plan();
    // D-95, D-101
    let message = "Found failed daemon pod default/a on node node-0, will try to kill it";
    assert_eq!(events(&plan), [("FailedDaemonPod", message)]);
    assert_eq!(pod_changes(&plan), (vec![], vec!["a"]));
    assert_eq!(
        plan.state.failed_pod_backoffs,
        [backoff("node-0", 1, cluster.now)],
        "D-97: 1 s at first"
    );
    assert_eq!(cluster.sync(), (0, 1));
    assert_eq!(cluster.sync(), (1, 0), "the create comes later");
}

#[test]
fn a_succeeded_pod_is_deleted_without_backoff() {
    let plan = Cluster::new(1).with(&["a@node-0 succeeded"]).plan();
    // D-96
    let message = "Found succeeded daemon pod default/a on node node-0, will try to delete it";
    assert_eq!(events(&plan), [("SucceededDaemonPod", message)]);
    assert_eq!((counts(&plan), plan.state.failed_pod_backoffs), ((0, 1), vec![]));
}

#[test]
fn d_98_of_several_failed_pods_one_is_deleted_at_a_time() {
    let plan = Cluster::new(1)
        .with(&["a@node-0 t=1", "b@node-0 failed", "c@node-0 t=2", "d@node-0 t=3"])
        .plan();
    assert_eq!(
        (pod_changes(&plan).1, events(&plan).len()),
        (vec!["b", "c", "d"], 1)
    );
    // D-98
    let plan = Cluster::new(1)
        .with(&["a@node-0 failed", "b@node-0 failed", "c@node-0 failed"])
        .plan();
    assert_eq!((pod_changes(&plan).1, events(&plan).len()), (vec!["a"], 1));
    assert_eq!(requeue(&plan), Some(Duration::from_secs(1)), "for the others");
}

#[test]
fn d_95_a_failed_pod_in_backoff_waits() {
    let last = Timestamp::from_second(990).unwrap();
    let exactly = at(998);
    // (case, delay, last deletion, deleted, requeue of upstream, earliest requeue)
    let table = [
        ("D-95", 16, last, false, Some(16), Some(6)),
        ("D-95: exactly at the end", 2, exactly, true, None, None),
        ("D-97: just begun", 1, at(1_000), false, Some(1), Some(1)),
        (
            "D-97: the clock was set back",
            4,
            at(1_001),
            false,
            Some(4),
            Some(4),
        ),
        (
            "D-97: by years",
            900,
            at(100_000_000),
            false,
            Some(900),
            Some(900),
        ),
        ("D-97: long over", 900, at(50), true, None, None),
    ];
    for (what, delay, last, deleted, whole, earliest) in table {
        let cluster = failed(vec![backoff("node-0", delay, last)]);
        let plan = cluster.plan();
        assert_eq!(counts(&plan).1 == 1, deleted, "{what}");
        assert_eq!(events(&plan).len() == 1, deleted, "{what}");
        assert_eq!(requeue(&plan), earliest.map(Duration::from_secs), "{what}");
        //
        let upstream = cluster.strict().plan();
        assert_eq!(requeue(&upstream), whole.map(Duration::from_secs), "{what}");
        if !deleted {
            assert_eq!(
                plan.state.failed_pod_backoffs,
                [backoff("node-0", delay, last.min(at(1_000)))],
                "{what}: unchanged, apart from a time in the future"
            );
        }
    }
    let mut cluster = failed(vec![backoff("node-0", 2, at(998))]);
    cluster.now = at(1_000) - jiff::SignedDuration::from_nanos(1);
    assert_eq!(counts(&cluster.plan()), (0, 0), "1 ns before");
}

// The clock was set back by an hour: the back-off ends after its delay from now.
#[test]
fn d_97_a_backoff_of_the_future_lasts_no_longer_than_its_delay() {
    let mut cluster = failed(vec![backoff("node-0", 16, at(4_600))]);
    for passed in [0, 7, 15] {
        cluster.now = at(1_000 + passed);
        let plan = cluster.plan();
        let left = u64::try_from(16 - passed).unwrap();
        assert_eq!(counts(&plan), (0, 0), "after {passed} s");
        assert_eq!(
            requeue(&plan),
            Some(Duration::from_secs(left)),
            "after {passed} s"
        );
        cluster.state = plan.state;
    }
    cluster.now = at(1_016);
    let plan = cluster.plan();
    assert_eq!(counts(&plan), (0, 1), "after 16 s");
    assert_eq!(plan.state.failed_pod_backoffs, [backoff("node-0", 32, at(1_016))]);
}

#[test]
fn d_97_delays_double_up_to_fifteen_minutes() {
    let mut cluster = failed(vec![]);
    let mut delays = vec![];
    for _ in 0..12 {
        let plan = cluster.plan();
        assert_eq!(counts(&plan), (0, 1));
        cluster.state.failed_pod_backoffs = plan.state.failed_pod_backoffs;
        let entry = &cluster.state.failed_pod_backoffs[0];
        delays.push(entry.delay.as_secs());
        cluster.now += jiff::SignedDuration::try_from(entry.delay).unwrap();
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
}

#[test]
fn d_99_entries_older_than_half_an_hour_are_dropped() {
    let minutes = |minutes: i64| at(1_000) + jiff::SignedDuration::from_mins(minutes);
    let mut cluster = failed(vec![
        backoff("node-0", 900, at(1_000)),
        backoff("node-5", 4, at(1_000)),
    ]);
    cluster.now = minutes(30);
    let plan = cluster.plan();
    assert_eq!(plan.state.failed_pod_backoffs.len(), 2, "D-99: exactly 30 min");
    assert_eq!(
        plan.state.failed_pod_backoffs[0].delay,
        Duration::from_mins(15),
        "D-97"
    );
    cluster.now = minutes(30) + jiff::SignedDuration::from_nanos(1);
    let plan = cluster.plan();
    assert_eq!(
        plan.state.failed_pod_backoffs,
        [backoff("node-0", 1, cluster.now)],
        "D-97, D-99: a new entry"
    );
    // Old entries are also dropped in a plan without decisions about pods.
    cluster.state.expectations = Some(nodewise_planner::snapshot::Expectations {
        set_at: cluster.now,
        creates: vec![],
        delete_uids: vec!["x".to_owned()],
    });
    assert_eq!(cluster.plan().state.failed_pod_backoffs, [], "D-99");
}

#[test]
fn d_98_a_new_generation_has_its_own_backoff() {
    let mut cluster = failed(vec![backoff("node-0", 900, at(999))]);
    assert_eq!(counts(&cluster.plan()), (0, 0));
    cluster.ds.generation = 2;
    assert_eq!(counts(&cluster.plan()), (0, 0), "D-98: not before it is observed");
    cluster.ds.status.observed_generation = 2;
    let plan = cluster.plan();
    assert_eq!(counts(&plan), (0, 1), "D-98");
    let delays: Vec<_> = plan
        .state
        .failed_pod_backoffs
        .iter()
        .map(|e| (e.observed_generation, e.delay.as_secs()))
        .collect();
    assert_eq!(delays, [(1, 900), (2, 1)]);
}

#[test]
fn q_9_surge_and_backoff() {
    let mut cluster = failed(vec![backoff("node-0", 16, at(999))]).rolling("0", "1");
    // D-100: upstream creates another pod in every sync.
    assert_eq!(counts(&cluster.plan()), (1, 0));
    cluster.options.deviations.insert(Deviation::SurgeHonoursBackoff);
    let plan = cluster.plan();
    assert_eq!(counts(&plan), (0, 0), "Q-9");
    assert!(plan.deviations.contains(&Deviation::SurgeHonoursBackoff));
    // The first failed pod is replaced at once, with or without the deviation.
    cluster.state.failed_pod_backoffs.clear();
    assert_eq!(counts(&cluster.plan()), (1, 1), "Q-9");
}

#[test]
fn d_96_a_succeeded_pod_is_deleted_while_a_failed_one_waits() {
    let mut cluster = failed(vec![backoff("node-0", 16, at(999))]);
    cluster.pod("b@node-0 succeeded");
    assert_eq!(pod_changes(&cluster.plan()).1, ["b"], "D-96");
}

#[test]
fn an_outdated_failed_pod_does_not_wait() {
    let mut cluster = failed(vec![backoff("node-0", 16, at(999))]);
    cluster.pods.clear();
    cluster.pod("a@node-0 old failed");
    let plan = cluster.plan();
    // D-43
    assert_eq!(
        (counts(&plan), events(&plan).len()),
        ((0, 1), 0),
        "by the rolling update"
    );
}

#[test]
fn d_95_q_18_the_earliest_of_several_timers_is_set() {
    // (delays on node-0 and node-1, which ends first)
    for (delays, (seconds, pod)) in [((30, 10), (9, "b")), ((10, 30), (9, "a")), ((20, 20), (19, "a"))] {
        let mut cluster = Cluster::new(2).with(&["a@node-0 failed", "b@node-1 failed"]);
        cluster.state.failed_pod_backoffs = vec![
            backoff("node-0", delays.0, at(999)),
            backoff("node-1", delays.1, at(999)),
        ];
        let timer = cluster.plan().requeue.expect("failed pods wait");
        assert_eq!(timer.delay, Duration::from_secs(seconds), "{delays:?}");
        assert!(
            timer.reason.contains(&format!("failed pod {pod} ")),
            "{delays:?}: {}",
            timer.reason
        );
    }
}
