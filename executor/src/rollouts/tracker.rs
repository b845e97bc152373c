//! The course of one workload's rollouts: what has happened since its last status.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::moment;
use nodewise_proto::v1::{self, RolloutState};

use super::news::{NAMED, News, Stuck};

/// A rollout is told to be stuck if its oldest cause is as old as this. A container that fails once and then runs is no reason for an
/// Event.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);

/// The most reasons that are told in one period in which a rollout is stuck. The reasons of containers are texts of others.
const MOST_REASONS: usize = 8;

/// A rollout that began so long ago is over when an executor finds the workload without older pods: what is not ready then failed later.
const RECENT: SignedDuration = SignedDuration::from_hours(1);

/// The course of the rollouts of one workload.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// The revision of the last status; `None` before the first one.
    revision: Option<String>,
    /// The rollout to it, until it is complete. Pods that fail later do not belong to it.
    rollout: Option<Rollout>,
}

#[derive(Debug)]
struct Rollout {
    began: Timestamp,
    /// How many quarters were told to be done.
    quarters: u32,
    /// The most units that were done.
    most: u32,
    /// The reasons for which it was told to be stuck since it has made progress, and since when. Empty if it was not.
    told: Vec<(String, Timestamp)>,
    /// A main reason that was not told, in the last status of a rollout that was told to be stuck; and since when.
    other: Option<(String, Timestamp)>,
}

impl Rollout {
    /// When to tell of a rollout that is stuck since a time: first for its oldest cause; then for each main reason that was not told,
    /// if it stays. Otherwise a pod that ends late would hide that the next one cannot pull its image. `None` if all was told.
    fn tells_at(
        &mut self,
        status: &v1::WorkloadStatus,
        since: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let reason = main_reason(status);
        let other = self.other.take();
        let seen = if self.told.is_empty() {
            since
        } else if self.told.len() == MOST_REASONS || self.told.iter().any(|(told, _)| told == reason) {
            return None;
        } else {
            let seen = other
                .filter(|(known, _)| known == reason)
                .map_or(now, |(_, seen)| seen);
            self.other = Some((reason.to_owned(), seen));
            seen
        };
        Some(seen.saturating_add(SETTLED).unwrap_or(now))
    }
}

/// The reason of most of the nodes or pods. Two reasons that alternate while one thing fails are one.
fn main_reason(status: &v1::WorkloadStatus) -> &str {
    status
        .causes
        .first()
        .map_or("", |cause| one_of_a_pair(&cause.reason))
}

fn one_of_a_pair(reason: &str) -> &str {
    match reason {
        "ErrImagePull" => "ImagePullBackOff",
        "Error" => "CrashLoopBackOff",
        reason => reason,
    }
}

impl Tracker {
    /// Whether the rollout was told to be stuck, and has made no progress since.
    pub(super) fn is_stuck(&self) -> bool {
        self.rollout
            .as_ref()
            .is_some_and(|rollout| !rollout.told.is_empty())
    }

    /// What a status says that no earlier one has said; and when to look again although nothing happens. `has_older` says whether there
    /// are pods of older revisions, and `began` when the rollout of a workload began that was not seen before.
    pub(super) fn observe(
        &mut self,
        status: &v1::WorkloadStatus,
        revision: &str,
        has_older: bool,
        began: impl FnOnce() -> Timestamp,
        now: Timestamp,
    ) -> (Vec<News>, Option<Timestamp>) {
        let counts = status.counts.unwrap_or_default();
        let is_complete = status.state() == RolloutState::Complete;
        let mut news = Vec::new();
        if self.revision.as_deref() != Some(revision) {
            let is_first = self.revision.replace(revision.to_owned()).is_none();
            let began = if is_first { began() } else { now };
            // A workload that is found complete has no rollout, and nor has one without nodes or replicas, or whose pods fail long after.
            let has_rollout = if is_first {
                !is_complete && (has_older || counts.done == 0 || now.duration_since(began) < RECENT)
            } else {
                !is_complete || counts.desired > 0
            };
            self.rollout = has_rollout.then(|| Rollout {
                began,
                quarters: quarters(&counts),
                most: counts.done,
                told: Vec::new(),
                other: None,
            });
            news.extend(self.rollout.as_ref().map(|rollout| News::Begun {
                revision: revision.to_owned(),
                began: rollout.began,
                status: status.message.clone(),
            }));
        }
        let Some(rollout) = &mut self.rollout else {
            return (news, None);
        };
        if is_complete {
            news.push(News::Complete {
                revision: revision.to_owned(),
                took: now.duration_since(rollout.began).max(SignedDuration::ZERO),
                status: status.message.clone(),
            });
            self.rollout = None;
            return (news, None);
        }
        let done = quarters(&counts);
        if counts.done > rollout.most {
            if !std::mem::take(&mut rollout.told).is_empty() {
                news.push(News::GoesOn {
                    status: status.message.clone(),
                });
            }
            rollout.other = None;
            rollout.most = counts.done;
        }
        if done > rollout.quarters {
            rollout.quarters = done;
            news.push(News::Quarter {
                quarters: done,
                status: status.message.clone(),
            });
        }
        if status.state() != RolloutState::Stuck {
            rollout.other = None;
            return (news, None);
        }
        let since = status.stuck_since.and_then(moment).unwrap_or(now);
        let Some(at) = rollout.tells_at(status, since, now) else {
            return (news, None);
        };
        if at > now {
            return (news, Some(at));
        }
        let is_repeated = rollout.told.iter().any(|(_, earlier)| *earlier == since);
        news.push(News::Stuck(Stuck::of(status, revision, since, is_repeated)));
        rollout.other = None;
        // Whoever reads the message knows all reasons that it names.
        let others = status
            .causes
            .iter()
            .take(NAMED)
            .skip(1)
            .map(|cause| one_of_a_pair(&cause.reason));
        let reasons = [main_reason(status)].into_iter().chain(others);
        rollout
            .told
            .extend(reasons.map(|reason| (reason.to_owned(), since)));
        rollout.told.truncate(MOST_REASONS);
        (news, None)
    }
}

/// How many whole quarters are done.
fn quarters(counts: &v1::UnitCounts) -> u32 {
    let quarters = u64::from(counts.done) * 4 / u64::from(counts.desired.max(1));
    u32::try_from(quarters.min(3)).unwrap_or(3)
}

#[cfg(test)]
mod tests {
    use nodewise_projection::timestamp;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).expect("a time")
    }

    /// A status with so many of eight nodes done, and stuck since a time, for these reasons.
    fn status(done: u32, stuck_since: Option<i64>, reasons: &[&str]) -> v1::WorkloadStatus {
        let state = match stuck_since {
            Some(_) => RolloutState::Stuck,
            None if done == 8 => RolloutState::Complete,
            None => RolloutState::Progressing,
        };
        v1::WorkloadStatus {
            kind: "DaemonSet".to_owned(),
            state: state.into(),
            counts: Some(v1::UnitCounts {
                desired: 8,
                done,
                ..v1::UnitCounts::default()
            }),
            stuck_since: stuck_since.map(|since| timestamp(at(since))),
            causes: (reasons.iter())
                .map(|reason| v1::BlockCause {
                    reason: (*reason).to_owned(),
                    ..v1::BlockCause::default()
                })
                .collect(),
            ..v1::WorkloadStatus::default()
        }
    }

    fn names(news: &[News]) -> Vec<String> {
        let name = |news: &News| match news {
            News::Begun { began, .. } => format!("begun {}", began.duration_since(at(0)).as_secs()),
            News::Quarter { quarters, .. } => format!("quarter {quarters}"),
            News::Stuck(stuck) => format!("stuck {}", stuck.since.duration_since(at(0)).as_secs()),
            News::GoesOn { .. } => "goes on".to_owned(),
            News::Complete { took, .. } => format!("complete {}", took.as_secs()),
        };
        news.iter().map(name).collect()
    }

    /// A status: its time, the revision, the units that are done, since when it is stuck, and the expected news.
    type Step = (i64, &'static str, u32, Option<i64>, &'static [&'static str]);

    fn check(steps: &[Step]) {
        let mut tracker = Tracker::default();
        for (now, revision, done, stuck, expected) in steps {
            let (news, _) = tracker.observe(
                &status(*done, *stuck, &["Error"]),
                revision,
                *done < 8,
                || at(-500),
                at(*now),
            );
            assert_eq!(names(&news), *expected, "at {now}");
        }
    }

    #[test]
    fn a_rollout_is_told_from_its_begin_to_its_end() {
        check(&[
            (0, "a", 8, None, &[]),
            (1, "b", 0, None, &["begun 1"]),
            (2, "b", 1, None, &[]),
            (3, "b", 2, None, &["quarter 1"]),
            (4, "b", 1, None, &[]),
            (5, "b", 2, None, &[]),
            (6, "b", 7, None, &["quarter 3"]),
            (9, "b", 8, None, &["complete 8"]),
            // A pod fails, a node comes: that is no rollout.
            (20, "b", 7, Some(19), &[]),
            (40, "b", 7, Some(19), &[]),
            (50, "b", 8, None, &[]),
            // It was over when it was seen.
            (60, "c", 8, None, &["begun 60", "complete 0"]),
        ]);
    }

    #[test]
    fn each_period_in_which_it_is_stuck_is_told_once() {
        check(&[
            (0, "a", 8, None, &[]),
            (1, "b", 0, None, &["begun 1"]),
            (5, "b", 1, Some(4), &[]),
            (14, "b", 1, Some(4), &["stuck 4"]),
            // A container that crashes runs for a while.
            (20, "b", 1, None, &[]),
            (25, "b", 1, Some(4), &[]),
            (30, "b", 2, None, &["goes on", "quarter 1"]),
            (31, "b", 1, Some(30), &[]),
            (60, "b", 1, Some(30), &["stuck 30"]),
            // Someone goes back.
            (70, "a", 6, None, &["begun 70"]),
            (75, "a", 8, None, &["complete 5"]),
        ]);
    }

    // A pod that ends late, or that no node has room for, is not why the rollout is stuck later.
    #[test]
    fn each_main_reason_that_stays_is_told_once() {
        let mut tracker = Tracker::default();
        tracker.observe(&status(8, None, &[]), "a", true, || at(-500), at(0));
        for (now, done, reasons, expected, again) in [
            (1, 0, &["DeletionStuck"][..], &["begun 1"][..], Some(10)),
            (10, 0, &["DeletionStuck"], &["stuck 0"], None),
            (20, 0, &["ImagePullBackOff"], &[], Some(30)),
            (24, 0, &["DeletionStuck"], &[], None),
            (26, 0, &["ErrImagePull"], &[], Some(36)),
            (30, 0, &["ImagePullBackOff", "DeletionStuck"], &[], Some(36)),
            (36, 0, &["ImagePullBackOff", "OutOfcpu"], &["stuck 0"], None),
            // All of these were told.
            (40, 0, &["OutOfcpu"], &[], None),
            (60, 0, &["DeletionStuck"], &[], None),
            (80, 0, &["ErrImagePull"], &[], None),
            // It goes on, and is stuck again for a reason that was told before.
            (90, 1, &["ImagePullBackOff"], &["goes on", "stuck 0"], None),
        ] {
            let status = status(done, Some(0), reasons);
            let (news, next) = tracker.observe(&status, "b", true, || at(-500), at(now));
            assert_eq!(names(&news), expected, "at {now}");
            assert_eq!(next, again.map(at), "at {now}");
        }
        for number in 0..20 {
            let reason = format!("Reason{number}");
            for now in [100 + number * 20, 110 + number * 20] {
                tracker.observe(&status(1, Some(0), &[&reason]), "b", true, || at(-500), at(now));
            }
        }
        let told = tracker.rollout.expect("it is not complete").told;
        assert_eq!(told.len(), MOST_REASONS);
    }

    // A container that crashes runs for a while.
    #[test]
    fn a_reason_that_comes_and_goes_is_not_told() {
        let mut tracker = Tracker::default();
        tracker.observe(
            &status(2, Some(-400), &["DeletionStuck"]),
            "b",
            true,
            || at(-500),
            at(0),
        );
        for round in 0..5 {
            let begin = round * 20;
            for (now, stuck) in [(begin + 1, Some(-400)), (begin + 9, None)] {
                let status = status(2, stuck, &["OOMKilled"]);
                let (news, _) = tracker.observe(&status, "b", true, || at(-500), at(now));
                assert_eq!(names(&news), [""; 0], "at {now}");
            }
        }
    }

    // An executor that starts takes the times from the cluster.
    #[test]
    fn a_restart_resets_no_time() {
        check(&[
            (0, "b", 2, Some(-400), &["begun -500", "stuck -400"]),
            (10, "b", 8, None, &["complete 510"]),
        ]);
        let mut tracker = Tracker::default();
        let (_, again) = tracker.observe(&status(2, Some(-4), &["Error"]), "b", true, || at(-500), at(0));
        assert_eq!(again, Some(at(6)));
    }

    #[test]
    fn a_pod_that_fails_long_after_the_rollout_does_not_belong_to_it() {
        for (what, done, has_older, began, expected) in [
            ("a pod fails after days", 7, false, -90_000, &[][..]),
            (
                "older pods wait",
                7,
                true,
                -90_000,
                &["begun -90000", "stuck -400"],
            ),
            (
                "no pod was ever ready",
                0,
                false,
                -90_000,
                &["begun -90000", "stuck -400"],
            ),
            (
                "the last pod of a rollout",
                7,
                false,
                -600,
                &["begun -600", "stuck -400"],
            ),
        ] {
            let mut tracker = Tracker::default();
            let (news, _) = tracker.observe(
                &status(done, Some(-400), &["Error"]),
                "b",
                has_older,
                || at(began),
                at(0),
            );
            let told: Vec<_> = names(&news)
                .into_iter()
                .filter(|name| !name.starts_with("quarter"))
                .collect();
            assert_eq!(told, expected, "{what}");
            assert_eq!(tracker.is_stuck(), !expected.is_empty(), "{what}");
        }
    }
}
