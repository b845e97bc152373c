//! The course of one workload's rollouts: what has happened since its last status.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::moment;
use nodewise_proto::v1::{self, RolloutState};

use super::news::{News, Stuck};

/// A rollout is told to be stuck if its oldest cause is as old as this. A container that fails once and then runs is no reason for an
/// Event.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);

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
    /// Whether it was told to be stuck, and has made no progress since.
    is_stuck: bool,
}

impl Tracker {
    /// Whether the rollout was told to be stuck, and has made no progress since.
    pub(super) fn is_stuck(&self) -> bool {
        self.rollout.as_ref().is_some_and(|rollout| rollout.is_stuck)
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
                is_stuck: false,
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
            if std::mem::take(&mut rollout.is_stuck) {
                news.push(News::GoesOn {
                    status: status.message.clone(),
                });
            }
            rollout.most = counts.done;
        }
        if done > rollout.quarters {
            rollout.quarters = done;
            news.push(News::Quarter {
                quarters: done,
                status: status.message.clone(),
            });
        }
        let mut again = None;
        if status.state() == RolloutState::Stuck && !rollout.is_stuck {
            let since = status.stuck_since.and_then(moment).unwrap_or(now);
            let told = since.saturating_add(SETTLED).unwrap_or(now);
            if told <= now {
                rollout.is_stuck = true;
                news.push(News::Stuck(Stuck::of(status, revision, since)));
            } else {
                again = Some(told);
            }
        }
        (news, again)
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

    /// A status with so many of eight nodes done, and stuck since a time.
    fn status(done: u32, stuck_since: Option<i64>) -> v1::WorkloadStatus {
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
            let (news, _) =
                tracker.observe(&status(*done, *stuck), revision, *done < 8, || at(-500), at(*now));
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

    // An executor that starts takes the times from the cluster.
    #[test]
    fn a_restart_resets_no_time() {
        check(&[
            (0, "b", 2, Some(-400), &["begun -500", "stuck -400"]),
            (10, "b", 8, None, &["complete 510"]),
        ]);
        let mut tracker = Tracker::default();
        let (_, again) = tracker.observe(&status(2, Some(-4)), "b", true, || at(-500), at(0));
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
            let (news, _) = tracker.observe(&status(done, Some(-400)), "b", has_older, || at(began), at(0));
            let told: Vec<_> = names(&news)
                .into_iter()
                .filter(|name| !name.starts_with("quarter"))
                .collect();
            assert_eq!(told, expected, "{what}");
            assert_eq!(tracker.is_stuck(), !expected.is_empty(), "{what}");
        }
    }
}
