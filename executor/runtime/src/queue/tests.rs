//! The state machine at explicit times, and the async queue on a paused clock.

use super::*;
use std::sync::Arc;

use crate::metrics::Metrics;

const SECOND: Duration = Duration::from_secs(1);

fn queue(now: Instant) -> Queue<&'static str> {
    Queue::new(RateLimits::default(), Duration::ZERO, now)
}

#[test]
fn the_longest_delay_does_not_overflow() {
    let now = Instant::now();
    let mut queue = queue(now);
    queue.add_after("a", Duration::MAX, now);
    assert!(matches!(queue.next(now), Next::Wait(Some(_))));
}

// D-106: a key that is added three times while it is queued is processed once; added during its work, exactly once more.
// a key is never processed twice at the same time.
#[test]
fn adds_are_merged_and_a_key_is_never_handed_out_twice() {
    let now = Instant::now();
    let mut queue = queue(now);
    for _ in 0..3 {
        queue.add(&"a", Urgency::Normal, now);
    }
    assert_eq!(queue.next(now), Next::Key("a"));
    for _ in 0..3 {
        queue.add(&"a", Urgency::Normal, now);
    }
    assert_eq!(
        queue.next(now),
        Next::Wait(None),
        "in work: not handed out a second time"
    );
    queue.done(&"a", now);
    assert_eq!(queue.next(now), Next::Key("a"));
    queue.done(&"a", now);
    assert_eq!(queue.next(now), Next::Wait(None));
    assert!(queue.is_idle());
}

// Delays of 10 s, 2 s and 30 s for one key fire once, after 2 s.
#[test]
fn the_earliest_delay_of_a_key_counts() {
    let start = Instant::now();
    let mut queue = queue(start);
    for seconds in [10, 2, 30] {
        queue.add_after("a", seconds * SECOND, start);
    }
    assert_eq!(queue.next(start), Next::Wait(Some(start + 2 * SECOND)));
    assert_eq!(queue.next(start + 2 * SECOND), Next::Key("a"));
    queue.done(&"a", start + 2 * SECOND);
    for seconds in [10, 30] {
        let next = queue.next(start + seconds * SECOND);
        assert!(matches!(next, Next::Wait(_)), "fired again at {seconds} s");
    }
}

// An immediate add keeps the delayed add. A delay of zero adds at once.
#[test]
fn an_immediate_add_does_not_cancel_a_delayed_one() {
    let start = Instant::now();
    let mut queue = queue(start);
    queue.add_after("a", SECOND, start);
    queue.add(&"a", Urgency::Normal, start);
    assert_eq!(queue.next(start), Next::Key("a"));
    queue.done(&"a", start);
    assert_eq!(queue.next(start + SECOND), Next::Key("a"));
    queue.add_after("b", Duration::ZERO, start);
    assert_eq!(queue.next(start + SECOND), Next::Key("b"));
}

// The delay of a key doubles from 5 ms to 1000 s. `forget` resets it.
#[test]
fn failures_of_a_key_double_its_delay() {
    // Late enough that the shared token bucket is full at each call.
    let mut now = Instant::now();
    let mut queue = queue(now);
    let mut delays = Vec::new();
    for _ in 0..40 {
        now += 60 * SECOND;
        delays.extend(queue.add_rate_limited("a", now));
    }
    let expected = (0..40).map(|n| Duration::from_millis(5 << n.min(30)).min(1000 * SECOND));
    assert_eq!(delays, expected.collect::<Vec<_>>());
    queue.forget(&"a");
    assert_eq!(queue.add_rate_limited("a", now), Some(Duration::from_millis(5)));
}

// Over all keys, 100 retries at once, then 10 per second. Plain adds are not limited.
#[test]
fn retries_share_a_token_bucket() {
    let now = Instant::now();
    let mut queue = Queue::new(RateLimits::default(), Duration::ZERO, now);
    for key in 0..100 {
        assert_eq!(
            queue.add_rate_limited(key, now),
            Some(Duration::from_millis(5)),
            "{key}"
        );
    }
    assert_eq!(queue.add_rate_limited(100, now), Some(Duration::from_millis(100)));
    assert_eq!(queue.add_rate_limited(101, now), Some(Duration::from_millis(200)));
    let later = now + SECOND;
    assert_eq!(
        queue.add_rate_limited(102, later),
        Some(Duration::from_millis(5)),
        "refilled by 10, 2 owed"
    );
    queue.add(&200, Urgency::Normal, now);
    assert_eq!(queue.next(now), Next::Key(200));
}

// After the shutdown, adds are ignored. Queued keys are handed out, and a key that became dirty during its work is handed out
// once more.
#[test]
fn shutting_down_drains() {
    let now = Instant::now();
    let mut queue = queue(now);
    queue.add(&"a", Urgency::Normal, now);
    queue.add(&"b", Urgency::Normal, now);
    queue.add_after("c", SECOND, now);
    assert_eq!(queue.next(now), Next::Key("a"));
    queue.add(&"a", Urgency::Normal, now);
    queue.shut_down(now);
    queue.add(&"d", Urgency::Normal, now);
    assert_eq!(queue.next(now), Next::Key("b"));
    assert_eq!(queue.next(now), Next::Wait(None), "a is still in work and dirty");
    queue.done(&"a", now);
    assert_eq!(queue.next(now), Next::Key("a"));
    queue.done(&"a", now);
    queue.done(&"b", now);
    assert_eq!(queue.next(now + 2 * SECOND), Next::Finished);
}

#[tokio::test(start_paused = true)]
async fn workers_wait_for_keys_and_timers() {
    let queue = Arc::new(WorkQueue::new(
        RateLimits::default(),
        Duration::ZERO,
        Metrics::new("nodewise-executor").queue("daemonset"),
    ));
    let worker = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move {
            let mut taken = Vec::new();
            while let Some(QueuedKey { key, .. }) = queue.take(KeyFilter::All).await {
                queue.done(&key);
                taken.push(key);
            }
            taken
        }
    });
    queue.add_after("late", 5 * SECOND);
    queue.add_after("later", 500 * SECOND);
    tokio::task::yield_now().await;
    queue.add(&"now", Urgency::Normal);
    tokio::time::sleep(6 * SECOND).await;
    queue.shut_down();
    assert_eq!(worker.await.expect("the worker ends"), ["now", "late"]);
}

#[tokio::test(start_paused = true)]
async fn metrics_follow_the_queue() {
    let metrics = Metrics::new("nodewise-executor");
    let queue = WorkQueue::new(RateLimits::default(), Duration::ZERO, metrics.queue("daemonset"));
    queue.add(&"a", Urgency::Normal);
    queue.add(&"a", Urgency::Normal);
    queue.add(&"b", Urgency::Normal);
    queue.add_after("c", SECOND);
    tokio::time::advance(2 * SECOND).await;
    let taken = queue.take(KeyFilter::All).await.expect("a key");
    assert_eq!(
        taken,
        QueuedKey {
            key: "a",
            waited: 2 * SECOND
        }
    );
    let text = metrics.encode();
    for line in [
        "workqueue_depth{name=\"daemonset\"} 2",
        "workqueue_adds_total{name=\"daemonset\"} 3",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        text.contains("workqueue_retries_total{name=\"daemonset\"} 1"),
        "{text}"
    );
}

use Urgency::{Normal, Urgent};

const MS: Duration = Duration::from_millis(1);

/// A queue with a cooldown of 20 ms.
fn queue_with_cooldown(now: Instant) -> Queue<&'static str> {
    Queue::new(RateLimits::default(), 20 * MS, now)
}

/// Processes the next key in no time.
fn process<K: Clone + Eq + std::hash::Hash + Ord>(queue: &mut Queue<K>, now: Instant) -> Option<K> {
    match queue.next(now) {
        Next::Key(key) => {
            queue.done(&key, now);
            Some(key)
        }
        _ => None,
    }
}

// A burst of events leads to two reconciles: one at once, and one after the cooldown.
#[test]
fn bursts_are_coalesced() {
    let start = Instant::now();
    let mut queue = queue_with_cooldown(start);
    queue.add(&"a", Normal, start);
    assert_eq!(
        process(&mut queue, start),
        Some("a"),
        "the first is never delayed"
    );
    let mut processed = Vec::new();
    for ms in 1..60 {
        let now = start + ms * MS;
        if ms <= 15 {
            queue.add(&"a", Normal, now);
        }
        processed.extend(process(&mut queue, now).map(|_| ms));
    }
    assert_eq!(processed, [20]);
    assert!(queue.is_idle());
    let later = start + SECOND;
    queue.add(&"a", Normal, later);
    assert_eq!(
        process(&mut queue, later),
        Some("a"),
        "nor the first after a quiet time"
    );
}

#[test]
fn only_dirty_keys_wait_for_a_cooldown() {
    let start = Instant::now();
    let mut queue = queue_with_cooldown(start);
    for key in ["a", "b"] {
        queue.add(&key, Normal, start);
        process(&mut queue, start);
    }
    assert_eq!(queue.next(start), Next::Wait(None), "nothing is to be done then");
    queue.add(&"b", Normal, start + 5 * MS);
    queue.add(&"c", Normal, start + 5 * MS);
    assert_eq!(
        process(&mut queue, start + 5 * MS),
        Some("c"),
        "others are not held up"
    );
    assert_eq!(queue.next(start + 5 * MS), Next::Wait(Some(start + 20 * MS)));
    assert_eq!(queue.next(start + 20 * MS), Next::Key("b"));
}

// A key that is added during its work waits for the cooldown, which starts when the work ends.
#[test]
fn a_cooldown_starts_when_the_work_ends() {
    let start = Instant::now();
    let mut queue = queue_with_cooldown(start);
    queue.add(&"a", Normal, start);
    assert_eq!(queue.next(start), Next::Key("a"));
    queue.add(&"a", Normal, start + MS);
    queue.done(&"a", start + 100 * MS);
    assert_eq!(queue.next(start + 100 * MS), Next::Wait(Some(start + 120 * MS)));
    queue.add(&"a", Urgent, start + 110 * MS);
    assert_eq!(
        queue.next(start + 119 * MS),
        Next::Wait(Some(start + 120 * MS)),
        "urgent keys cool down, too"
    );
    assert_eq!(queue.next(start + 120 * MS), Next::Key("a"));
}

// Retries and delayed adds fire when they are due, and cover other adds of the same key.
#[test]
fn delays_skip_the_cooldown() {
    let start = Instant::now();
    let mut queue = queue_with_cooldown(start);
    queue.add(&"a", Normal, start);
    assert_eq!(queue.next(start), Next::Key("a"));
    assert_eq!(queue.add_rate_limited("a", start), Some(5 * MS));
    queue.done(&"a", start);
    queue.add(&"a", Normal, start + MS);
    assert_eq!(queue.next(start + MS), Next::Wait(Some(start + 5 * MS)));
    assert_eq!(process(&mut queue, start + 5 * MS), Some("a"));
    assert_eq!(
        queue.next(start + 20 * MS),
        Next::Wait(None),
        "processed once for both"
    );
    assert!(queue.is_idle());
    queue.add_after("a", Duration::ZERO, start + 21 * MS);
    assert_eq!(queue.next(start + 21 * MS), Next::Key("a"));
    // Also a delay that ends during the work.
    queue.add_after("a", Duration::ZERO, start + 22 * MS);
    queue.done(&"a", start + 23 * MS);
    assert_eq!(queue.next(start + 23 * MS), Next::Key("a"));
    queue.done(&"a", start + 24 * MS);
    queue.add(&"a", Normal, start + 25 * MS);
    assert_eq!(
        queue.next(start + 25 * MS),
        Next::Wait(Some(start + 44 * MS)),
        "after that it cools down"
    );
}

// A shutdown does not wait for cooldowns.
#[test]
fn shutting_down_ends_all_cooldowns() {
    let now = Instant::now();
    let mut queue = queue_with_cooldown(now);
    for key in ["a", "b"] {
        queue.add(&key, Normal, now);
    }
    assert_eq!(process(&mut queue, now), Some("a"));
    queue.add(&"a", Normal, now);
    assert_eq!(queue.next(now), Next::Key("b"));
    queue.add(&"b", Normal, now);
    queue.shut_down(now);
    assert_eq!(queue.next(now), Next::Key("a"));
    queue.done(&"b", now);
    assert_eq!(queue.next(now), Next::Key("b"), "not even after the shutdown");
    queue.done(&"b", now);
    queue.done(&"a", now);
    assert_eq!(queue.next(now), Next::Finished);
    assert_eq!(queue.next_urgent(now), Next::Finished);
}

#[test]
fn urgent_keys_come_first_and_each_class_in_order() {
    let now = Instant::now();
    let mut queue = queue(now);
    for (key, urgency) in [
        ("n1", Normal),
        ("u1", Urgent),
        ("n2", Normal),
        ("u2", Urgent),
        ("n3", Normal),
    ] {
        queue.add(&key, urgency, now);
    }
    queue.add(&"n2", Urgent, now);
    queue.add(&"u1", Normal, now);
    queue.add(&"n2", Urgent, now);
    assert_eq!(queue.len(), 5);
    let order: Vec<_> = std::iter::from_fn(|| process(&mut queue, now)).collect();
    assert_eq!(order, ["u1", "u2", "n2", "n1", "n3"]);
}

// With any number of urgent keys, every ninth key is a normal one.
#[test]
fn urgent_keys_do_not_starve_normal_keys() {
    let now = Instant::now();
    let mut queue = Queue::new(RateLimits::default(), Duration::ZERO, now);
    for key in 1_000..1_003 {
        queue.add(&key, Normal, now);
    }
    let mut next_urgent = 0..;
    let mut processed = Vec::new();
    for _ in 0..30 {
        queue.add(&next_urgent.next().expect("without end"), Urgent, now);
        processed.push(process(&mut queue, now).expect("a key"));
    }
    let normal = processed.iter().enumerate().filter(|(_, key)| **key >= 1_000);
    assert_eq!(
        normal.collect::<Vec<_>>(),
        [(8, &1_000), (17, &1_001), (26, &1_002)]
    );
}

// A key that becomes urgent during its work is urgent afterwards.
#[test]
fn urgency_survives_work_and_cooldown() {
    let start = Instant::now();
    let mut queue = queue_with_cooldown(start);
    queue.add(&"a", Normal, start);
    assert_eq!(queue.next(start), Next::Key("a"));
    queue.add(&"a", Urgent, start);
    queue.done(&"a", start);
    queue.add(&"b", Normal, start);
    queue.add(&"c", Normal, start);
    assert_eq!(process(&mut queue, start), Some("b"));
    assert_eq!(
        queue.next(start + 20 * MS),
        Next::Key("a"),
        "before c, which waited longer"
    );
}

// Work without effect (the caches were behind, or the service was away) does not use up the urgency.
#[test]
fn urgency_survives_work_without_effect() {
    let now = Instant::now();
    for (first, keep_urgent, expected) in [
        (Urgent, true, ["a", "b"]),
        (Urgent, false, ["b", "a"]),
        (Normal, true, ["b", "a"]),
    ] {
        let mut queue = queue(now);
        queue.add(&"a", first, now);
        assert_eq!(queue.next(now), Next::Key("a"));
        if keep_urgent {
            queue.keep_urgent(&"a");
        }
        queue.done(&"a", now);
        queue.add(&"b", Normal, now);
        queue.add(&"a", Normal, now);
        let order = [(); 2].map(|()| process(&mut queue, now).expect("a key"));
        assert_eq!(order, expected, "{first:?}, keeps its urgency: {keep_urgent}");
        queue.add(&"b", Normal, now);
        queue.add(&"a", Normal, now);
        assert_eq!(process(&mut queue, now), Some("b"), "once");
    }
}

// A worker that serves urgent keys only is blocked neither by normal keys nor by slow keys.
#[test]
fn an_urgent_only_worker_skips_normal_and_slow_keys() {
    let start = Instant::now();
    let mut queue = queue(start);
    queue.add(&"normal", Normal, start);
    assert_eq!(queue.next_urgent(start), Next::Wait(None));
    assert_eq!(queue.next(start), Next::Key("normal"));
    queue.add(&"long", Urgent, start);
    assert_eq!(
        queue.next_urgent(start),
        Next::Key("long"),
        "nothing is known of it yet"
    );
    let now = start + 2 * SECOND;
    queue.done(&"long", now);
    queue.add(&"long", Urgent, now);
    queue.add(&"short", Urgent, now);
    assert_eq!(queue.next_urgent(now), Next::Key("short"));
    assert_eq!(queue.next_urgent(now), Next::Wait(None));
    assert_eq!(process(&mut queue, now), Some("long"), "not long this time");
    queue.add(&"long", Urgent, now);
    assert_eq!(queue.next_urgent(now), Next::Key("long"));
}

// Random use: no key is handed out twice at a time, none is lost, and none is handed out during its cooldown unless it was
// delayed.
#[test]
fn random_use_keeps_the_invariants() {
    use rand::{RngExt as _, SeedableRng as _};

    const COOLDOWN: u32 = 20;
    let start = Instant::now();
    for seed in 0..200 {
        let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
        let mut queue = Queue::new(RateLimits::default(), COOLDOWN * MS, start);
        let (mut working, mut asked) = (Vec::new(), std::collections::HashSet::new());
        let (mut cooldown_until, mut overdue) = ([0; 6], std::collections::HashSet::new());
        for ms in 0..400 {
            let (now, key) = (start + ms * MS, random.random_range(0..6_usize));
            match random.random_range(0..6) {
                0 | 1 => {
                    let urgency = if random.random_bool(0.5) { Urgent } else { Normal };
                    queue.add(&key, urgency, now);
                    asked.insert(key);
                }
                2 if random.random_bool(0.2) => {
                    queue.add_after(key, Duration::ZERO, now);
                    asked.insert(key);
                    cooldown_until[key] = 0;
                    overdue.extend(working.iter().copied().filter(|working| *working == key));
                }
                2 | 3 => {
                    let next = if random.random_bool(0.5) {
                        queue.next(now)
                    } else {
                        queue.next_urgent(now)
                    };
                    if let Next::Key(key) = next {
                        assert!(asked.remove(&key), "{key} was not asked for");
                        assert!(!working.contains(&key), "{key} is in work");
                        assert!(ms >= cooldown_until[key], "{key} is cooling down");
                        working.push(key);
                    }
                }
                _ => {
                    if let Some(key) = working.pop() {
                        queue.done(&key, now);
                        cooldown_until[key] = if overdue.remove(&key) { 0 } else { ms + COOLDOWN };
                    }
                }
            }
        }
        let end = start + SECOND;
        for key in &working {
            queue.done(key, end);
        }
        let after = end + SECOND;
        while let Some(key) = process(&mut queue, after) {
            assert!(asked.remove(&key));
        }
        assert!(asked.is_empty() && queue.is_idle(), "seed {seed}: {asked:?} left");
    }
}

#[test]
fn retry_failed_adds_matching_keys_at_once() {
    let now = Instant::now();
    let mut queue = queue(now);
    for key in ["failed", "not meant", "delayed"] {
        queue.add(&key, Urgency::Normal, now);
        assert_eq!(queue.next(now), Next::Key(key));
        if key == "delayed" {
            queue.add_after(key, SECOND, now);
        } else {
            queue.add_rate_limited(key, now);
        }
        queue.done(&key, now);
    }
    queue.retry_failed(|key| *key != "not meant", now);
    assert_eq!(queue.next(now), Next::Key("failed"));
    assert!(
        matches!(queue.next(now), Next::Wait(Some(_))),
        "the others wait for their time"
    );
    // The key is being processed, and the cause of its failure changes once more.
    queue.retry_failed(|_| true, now);
    let delay = queue.add_rate_limited("failed", now);
    assert_eq!(
        delay,
        Some(RateLimits::default().base_delay * 2),
        "its failures still count"
    );
    queue.done(&"failed", now);
    let next = [queue.next(now), queue.next(now)];
    assert!(next.contains(&Next::Key("failed")), "{next:?}");
}

#[test]
fn a_delay_is_never_longer_than_the_maximum() {
    let now = Instant::now();
    let mut queue = queue(now);
    let limits = RateLimits::default();
    for _ in 0..20_000 {
        queue.add_rate_limited("often", now);
    }
    let delay = queue.add_rate_limited("another", now);
    assert!(delay <= Some(limits.max_delay), "{delay:?}");
}

// P-63: after so many retries in a row the key waits for the next add.
#[test]
fn a_key_is_given_up_after_its_retries() {
    let now = Instant::now();
    let limits = RateLimits {
        max_retries: Some(15),
        ..RateLimits::default()
    };
    let mut queue = Queue::new(limits, Duration::ZERO, now);
    for _ in 0..2 {
        for _ in 0..15 {
            assert!(queue.add_rate_limited("a", now).is_some());
        }
        assert_eq!(queue.add_rate_limited("a", now), None);
    }
    queue.forget(&"a");
    queue.retry_failed(|_| true, now);
    assert!(
        queue.add_rate_limited("a", now).is_some(),
        "success resets the count"
    );
}

// A service that refuses requests may be mended at any time.
#[test]
fn what_is_not_its_own_fault_does_not_give_a_key_up() {
    let now = Instant::now();
    let limits = RateLimits {
        max_retries: Some(15),
        max_delay: Duration::from_mins(1),
        ..RateLimits::default()
    };
    let mut queue = Queue::new(limits, Duration::ZERO, now);
    let delays: Vec<_> = (0..40)
        .map(|_| queue.add_rate_limited_without_end(&"a", now))
        .collect();
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!(delays[39], limits.max_delay);
    for _ in 0..15 {
        assert!(queue.add_rate_limited("a", now).is_some(), "a failure of its own");
    }
    assert_eq!(queue.add_rate_limited("a", now), None);
}

// The cause of the failure may be gone, as when a quota was raised.
#[test]
fn retry_failed_adds_a_key_that_was_given_up() {
    let now = Instant::now();
    let limits = RateLimits {
        max_retries: Some(0),
        ..RateLimits::default()
    };
    let mut queue = Queue::new(limits, Duration::ZERO, now);
    queue.add(&"a", Urgency::Normal, now);
    assert_eq!(queue.next(now), Next::Key("a"));
    assert_eq!(queue.add_rate_limited("a", now), None);
    queue.done(&"a", now);
    assert_eq!(queue.next(now), Next::Wait(None));
    queue.retry_failed(|_| true, now);
    assert_eq!(queue.next(now), Next::Key("a"));
    queue.forget(&"a");
    queue.done(&"a", now);
    queue.retry_failed(|_| true, now);
    assert_eq!(queue.next(now), Next::Wait(None));
}
