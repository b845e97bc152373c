//! Evictions of one workload that a PodDisruptionBudget did not allow.
//!
//! The outcomes of plans add them, and a plan only says which are not needed any more. So each is of a pod that the workload
//! controlled when it was evicted, and a service cannot make others.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use nodewise_projection::timestamp;
use nodewise_proto::v1;

use crate::apply::Blocked;

/// The wait after the first refusal. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// The most entries. Plans drop entries; while there are none, each plan may add a burst of them.
const MOST: usize = 10_000;

/// The evictions, by the uid of the pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BlockedEvictions(BTreeMap<String, v1::BlockedEviction>);

impl BlockedEvictions {
    /// Adds an eviction that was not allowed `now`. `sent` are those in the request for the plan that asked for it.
    pub(super) fn record(&mut self, blocked: &Blocked, sent: &[v1::BlockedEviction], now: jiff::Timestamp) {
        let uid = &blocked.pod_uid;
        let sent = sent.iter().find(|entry| entry.pod_uid == *uid);
        let before = self.0.get(uid).or(sent).map_or(0, |entry| entry.attempts);
        if before == 0 && self.0.len() >= MOST {
            return;
        }
        let wait = wait(before).max(blocked.retry_after.unwrap_or_default());
        let retry_time = now.checked_add(wait).unwrap_or(jiff::Timestamp::MAX);
        let entry = v1::BlockedEviction {
            pod_uid: uid.clone(),
            message: blocked.message.clone(),
            retry_time: Some(timestamp(retry_time)),
            attempts: before.saturating_add(1),
        };
        self.0.insert(uid.clone(), entry);
    }

    /// Removes the entry of a pod that is gone or being deleted.
    pub(super) fn remove(&mut self, pod_uid: &str) {
        self.0.remove(pod_uid);
    }

    /// Drops the entries that were `sent` with the request and that the plan did not keep. Entries that were added since stay.
    pub(super) fn drop_unneeded(&mut self, sent: &[v1::BlockedEviction], kept: &[v1::BlockedEviction]) {
        let kept: HashSet<&str> = kept.iter().map(|entry| &*entry.pod_uid).collect();
        for entry in sent {
            if !kept.contains(&*entry.pod_uid) {
                self.0.remove(&entry.pod_uid);
            }
        }
    }

    /// Returns the entries for a request, ordered by uid.
    pub(super) fn to_message(&self) -> Vec<v1::BlockedEviction> {
        self.0.values().cloned().collect()
    }
}

/// The wait after a refusal that follows this number of refusals.
fn wait(before: u32) -> Duration {
    let factor = 1_u32.checked_shl(before).unwrap_or(u32::MAX);
    FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).expect("a time")
    }

    fn blocked(pod_uid: &str, retry_after: Option<u64>) -> Blocked {
        Blocked {
            pod_uid: pod_uid.to_owned(),
            message: "budget b needs 3 healthy pods".to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    /// The uid, the attempts and the retry time of each entry.
    fn entries(evictions: &BlockedEvictions) -> Vec<(String, u32, i64)> {
        let all = evictions.to_message().into_iter();
        all.map(|entry| {
            (
                entry.pod_uid,
                entry.attempts,
                entry.retry_time.expect("a time").seconds,
            )
        })
        .collect()
    }

    // L-24: after Retry-After, with back-off.
    #[test]
    fn the_wait_doubles_up_to_five_minutes() {
        let mut evictions = BlockedEvictions::default();
        for (attempts, retry_after, expected) in [
            (1, None, 10),
            (2, Some(5), 20),
            (3, Some(90), 90),
            (4, None, 80),
            (5, None, 160),
            (6, None, 300),
            (7, Some(600), 600),
        ] {
            evictions.record(&blocked("u1", retry_after), &[], at(0));
            assert_eq!(entries(&evictions), [("u1".to_owned(), attempts, expected)]);
        }
        assert_eq!(wait(u32::MAX), LONGEST_WAIT);
    }

    // A plan may leave out the entry of a pod that it evicts again.
    #[test]
    fn an_entry_that_was_sent_counts_as_before() {
        let mut evictions = BlockedEvictions::default();
        evictions.record(&blocked("u1", None), &[], at(0));
        let sent = evictions.to_message();
        evictions.drop_unneeded(&sent, &[]);
        assert_eq!(entries(&evictions), []);
        evictions.record(&blocked("u1", None), &sent, at(100));
        assert_eq!(entries(&evictions), [("u1".to_owned(), 2, 120)]);
    }

    #[test]
    fn entries_vanish_when_a_plan_leaves_them_out() {
        let mut evictions = BlockedEvictions::default();
        for uid in ["u1", "u2"] {
            evictions.record(&blocked(uid, None), &[], at(0));
        }
        let sent = evictions.to_message();
        evictions.record(&blocked("u3", None), &[], at(1));
        evictions.drop_unneeded(&sent, &sent[1..]);
        let uids = |evictions: &BlockedEvictions| {
            entries(evictions)
                .into_iter()
                .map(|(uid, ..)| uid)
                .collect::<Vec<_>>()
        };
        assert_eq!(uids(&evictions), ["u2", "u3"]);
        evictions.remove("u2");
        assert_eq!(uids(&evictions), ["u3"]);
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let mut evictions = BlockedEvictions::default();
        for number in 0..=MOST {
            evictions.record(&blocked(&number.to_string(), None), &[], at(0));
        }
        assert_eq!(evictions.0.len(), MOST);
    }
}
