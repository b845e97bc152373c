//! How the rollout of a workload went since the page watches it.

use std::collections::VecDeque;

use jiff::Timestamp;
use nodewise_proto::v1;
use serde::Serialize;

/// The most counts and events that are kept of a workload. The oldest are forgotten first.
const MAX: usize = 500;

/// What happened to a workload.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Timeline {
    samples: VecDeque<Sample>,
    events: VecDeque<Event>,
    #[serde(skip)]
    last: Option<Seen>,
}

/// Counts at a time.
#[derive(Debug, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Sample {
    at: String,
    done: u32,
    progressing: u32,
    blocked: u32,
    waiting: u32,
    must_not_run: u32,
}

/// Something that people would want to read.
#[derive(Debug, Serialize, PartialEq)]
struct Event {
    at: String,
    /// `rollout`, `state`, `cause` or `solved`.
    what: &'static str,
    text: String,
}

/// What the last status said.
#[derive(Debug, PartialEq)]
struct Seen {
    state: i32,
    revision: String,
    counts: v1::UnitCounts,
    reasons: Vec<String>,
}

impl Timeline {
    /// Records a status. Returns whether anything is new.
    pub(crate) fn record(&mut self, status: &v1::WorkloadStatus) -> bool {
        let at = text(status.observed_at.as_ref());
        let current = status.revisions.iter().find(|revision| revision.is_current);
        let seen = Seen {
            state: status.state,
            revision: current.map(|revision| revision.hash.clone()).unwrap_or_default(),
            counts: status.counts.unwrap_or_default(),
            reasons: status.causes.iter().map(|cause| cause.reason.clone()).collect(),
        };
        if self.last.as_ref() == Some(&seen) {
            return false;
        }
        let last = self.last.take();
        if let Some(revision) =
            current.filter(|_| last.as_ref().is_none_or(|last| last.revision != seen.revision))
        {
            let began = text(revision.created_at.as_ref());
            self.event(
                if began.is_empty() { &at } else { &began },
                "rollout",
                begun(revision),
            );
        }
        let is_new = |reason: &&String| last.as_ref().is_none_or(|last| !last.reasons.contains(reason));
        for reason in seen.reasons.iter().filter(is_new) {
            let mut of_reason = status.causes.iter().filter(|cause| cause.reason == *reason);
            if let Some(cause) = of_reason.next() {
                let since = text(cause.since.as_ref());
                self.event(
                    if since.is_empty() { &at } else { &since },
                    "cause",
                    format!("{}: {}", cause.reason, cause.message),
                );
            }
        }
        if let Some(last) = &last {
            let solved = last
                .reasons
                .iter()
                .filter(|reason| !seen.reasons.contains(reason));
            for reason in solved {
                self.event(&at, "solved", format!("no more {reason}"));
            }
            if last.state != seen.state {
                self.event(&at, "state", status.message.clone());
            }
        }
        let counts = &seen.counts;
        self.samples.push_back(Sample {
            at,
            done: counts.done,
            progressing: counts.progressing,
            blocked: counts.blocked,
            waiting: counts.waiting,
            must_not_run: counts.must_not_run,
        });
        if self.samples.len() > MAX {
            self.samples.pop_front();
        }
        self.last = Some(seen);
        true
    }

    fn event(&mut self, at: &str, what: &'static str, text: String) {
        self.events.push_back(Event {
            at: at.to_owned(),
            what,
            text,
        });
        if self.events.len() > MAX {
            self.events.pop_front();
        }
    }
}

fn begun(revision: &v1::RevisionStatus) -> String {
    let images = revision.images.join(", ");
    if revision.number > 0 {
        format!("revision {}: {images}", revision.number)
    } else {
        format!("new template: {images}")
    }
}

/// A time as RFC 3339; empty if it is absent.
fn text(time: Option<&nodewise_proto::Timestamp>) -> String {
    time.and_then(|time| Timestamp::new(time.seconds, time.nanos).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: v1::RolloutState, blocked: u32, reasons: &[&str]) -> v1::WorkloadStatus {
        let cause = |reason: &&str| v1::BlockCause {
            reason: (*reason).to_owned(),
            message: "no such image".to_owned(),
            ..v1::BlockCause::default()
        };
        v1::WorkloadStatus {
            state: state.into(),
            message: format!("{blocked} blocked"),
            causes: reasons.iter().map(cause).collect(),
            counts: Some(v1::UnitCounts {
                blocked,
                ..v1::UnitCounts::default()
            }),
            revisions: vec![v1::RevisionStatus {
                number: 2,
                hash: "b".to_owned(),
                is_current: true,
                images: vec!["a=a:2".to_owned()],
                ..v1::RevisionStatus::default()
            }],
            ..v1::WorkloadStatus::default()
        }
    }

    #[test]
    fn events_tell_of_causes_and_of_states() {
        let mut timeline = Timeline::default();
        let going = status(v1::RolloutState::Progressing, 0, &[]);
        assert!(timeline.record(&going));
        assert!(!timeline.record(&going), "nothing is new");
        assert!(timeline.record(&status(v1::RolloutState::Stuck, 2, &["ImagePullBackOff"])));
        assert!(timeline.record(&going));
        let events: Vec<_> = timeline
            .events
            .iter()
            .map(|event| (event.what, &*event.text))
            .collect();
        assert_eq!(
            events,
            [
                ("rollout", "revision 2: a=a:2"),
                ("cause", "ImagePullBackOff: no such image"),
                ("state", "2 blocked"),
                ("solved", "no more ImagePullBackOff"),
                ("state", "0 blocked"),
            ]
        );
        assert_eq!(timeline.samples.len(), 3);
    }
}
