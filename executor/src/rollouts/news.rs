//! What is told about a rollout: lines of the log, and Events.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use nodewise_proto::{v1, workload::DAEMON_SET};
use nodewise_runtime::actuator::WorkloadEvent;
use nodewise_status::CREATE_REFUSED;
use nodewise_telemetry::in_short;
use sha2::{Digest as _, Sha256};

/// The most causes, and the most names of a cause, in one message.
pub(super) const NAMED: usize = 3;

/// Something that has happened in a rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    /// It has begun at this time.
    Begun {
        revision: String,
        began: Timestamp,
        status: String,
    },
    /// So many quarters of the nodes or replicas are done.
    Quarter { quarters: u32, status: String },
    /// It is stuck.
    Stuck(Stuck),
    /// It was stuck, and has made progress.
    GoesOn { status: String },
    /// It is complete, after this time.
    Complete {
        revision: String,
        took: SignedDuration,
        status: String,
    },
}

/// Why a rollout is stuck.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stuck {
    revision: String,
    /// The reason of most of its nodes or pods, as Kubernetes names it.
    pub(crate) reason: String,
    /// Since when.
    pub(crate) since: Timestamp,
    /// How many nodes or pods are blocked.
    pub(crate) blocked: u32,
    /// How many nodes or pods were done then.
    done: u32,
    causes: String,
    /// Whether it was told before to be stuck since that time, for another reason.
    is_repeated: bool,
}

impl Stuck {
    pub(super) fn of(
        status: &v1::WorkloadStatus,
        revision: &str,
        since: Timestamp,
        is_repeated: bool,
    ) -> Self {
        let unit = if status.kind == DAEMON_SET { "node" } else { "pod" };
        let counts = status.counts.unwrap_or_default();
        let causes = status
            .causes
            .iter()
            .take(NAMED)
            .map(|cause| described(cause, unit));
        let causes = causes.collect::<Vec<_>>().join("; ");
        let more = match status.causes.len().saturating_sub(NAMED) {
            0 => String::new(),
            1 => "; and 1 more cause".to_owned(),
            more => format!("; and {more} more causes"),
        };
        Self {
            revision: revision.to_owned(),
            reason: status
                .causes
                .first()
                .map(|cause| cause.reason.clone())
                .unwrap_or_default(),
            since,
            blocked: counts.blocked,
            done: counts.done,
            causes: in_short(&format!("{causes}{more}")),
            is_repeated,
        }
    }
}

/// The text of one cause: `on 4 nodes (n1, n2, n3 and 1 more): container web: ImagePullBackOff`.
fn described(cause: &v1::BlockCause, unit: &str) -> String {
    let count = cause.units.len() + cause.more_units as usize;
    let names = cause.units.iter().take(NAMED).map(|name| &**name);
    let names = names.collect::<Vec<_>>().join(", ");
    let message = &cause.message;
    match count {
        0 => message.clone(),
        1 => format!("{unit} {names}: {message}"),
        _ => match count.saturating_sub(NAMED) {
            0 => format!("{count} {unit}s ({names}): {message}"),
            more => format!("{count} {unit}s ({names} and {more} more): {message}"),
        },
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun { revision, status, .. } => {
                write!(f, "the rollout to revision {revision} has begun: {status}")
            }
            Self::Quarter { quarters, status } => {
                let part = match quarters {
                    1 => "a quarter",
                    2 => "half",
                    _ => "three quarters",
                };
                write!(f, "{part} of the rollout is done: {status}")
            }
            Self::Stuck(Stuck {
                revision,
                since,
                causes,
                ..
            }) => write!(
                f,
                "the rollout to revision {revision} is stuck since {}: {causes}",
                seconds(*since)
            ),
            Self::GoesOn { status } => write!(f, "the rollout goes on: {status}"),
            Self::Complete {
                revision,
                took,
                status,
            } => {
                let took = std::time::Duration::from_secs(took.as_secs().unsigned_abs());
                let took = humantime::format_duration(took);
                write!(
                    f,
                    "the rollout to revision {revision} is complete after {took}: {status}"
                )
            }
        }
    }
}

/// A time in whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl News {
    /// Writes the line of the log.
    pub(crate) fn log(&self, kind: &str, key: &impl fmt::Display) {
        match self {
            Self::Begun { began, .. } => tracing::info!(kind, %key, began = seconds(*began), "{self}"),
            Self::Stuck(stuck) => tracing::warn!(
                kind,
                %key,
                reason = stuck.reason,
                blocked = stuck.blocked,
                since = seconds(stuck.since),
                "{self}"
            ),
            Self::Quarter { .. } | Self::GoesOn { .. } | Self::Complete { .. } => {
                tracing::info!(kind, %key, "{self}");
            }
        }
    }

    /// The Event about this workload. `None` for what only the log has.
    pub(super) fn event(&self, workload: v1::WorkloadReference) -> Option<WorkloadEvent> {
        let (kind, reason, once) = match self {
            Self::Stuck(stuck) => {
                // A started executor does not know since when creates are refused, so that time does not tell one period from another.
                let period = match &*stuck.reason {
                    CREATE_REFUSED => format!("after {}", stuck.done),
                    _ => stuck.since.to_string(),
                };
                let period = format!("{} {} {period}", workload.uid, stuck.revision);
                // The Event of the first reason is found again by an executor that starts, whatever the reason is then.
                let period = if stuck.is_repeated {
                    format!("{period} {}", stuck.reason)
                } else {
                    period
                };
                ("Warning", "RolloutStuck", Some(hash(&period)))
            }
            Self::Complete { .. } => ("Normal", "RolloutComplete", None),
            Self::Begun { .. } | Self::Quarter { .. } | Self::GoesOn { .. } => return None,
        };
        Some(WorkloadEvent {
            workload,
            kind: kind.to_owned(),
            reason: reason.to_owned(),
            message: in_short(&self.to_string()),
            once,
        })
    }
}

/// A short hash that does not depend on the process.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{first:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(units: &[&str], more_units: u32) -> Stuck {
        let cause = v1::BlockCause {
            reason: "ImagePullBackOff".to_owned(),
            message: "container web: ImagePullBackOff".to_owned(),
            units: units.iter().map(|&unit| unit.to_owned()).collect(),
            more_units,
            ..v1::BlockCause::default()
        };
        let status = v1::WorkloadStatus {
            kind: DAEMON_SET.to_owned(),
            causes: vec![cause],
            ..v1::WorkloadStatus::default()
        };
        Stuck::of(
            &status,
            "abc",
            Timestamp::from_second(1_767_225_600).expect("a time"),
            false,
        )
    }

    #[test]
    fn a_message_names_the_cause_and_some_nodes() {
        for (units, more, expected) in [
            (&["n1"][..], 0, "node n1: container web: ImagePullBackOff"),
            (
                &["n1", "n2"],
                0,
                "2 nodes (n1, n2): container web: ImagePullBackOff",
            ),
            (
                &["n1", "n2", "n3", "n4"],
                2,
                "6 nodes (n1, n2, n3 and 3 more): container web: ImagePullBackOff",
            ),
            (&[], 0, "container web: ImagePullBackOff"),
        ] {
            let message = News::Stuck(stuck(units, more)).to_string();
            let expected =
                format!("the rollout to revision abc is stuck since 2026-01-01T00:00:00Z: {expected}");
            assert_eq!(message, expected);
        }
    }

    // Another process must send the Event under the same name.
    #[test]
    fn an_event_is_the_same_for_the_same_period_only() {
        let workload = |uid: &str| v1::WorkloadReference {
            uid: uid.to_owned(),
            ..v1::WorkloadReference::default()
        };
        let once = |stuck: Stuck, uid: &str| News::Stuck(stuck).event(workload(uid)).expect("an Event").once;
        let first = once(stuck(&["n1"], 0), "u1");
        assert_eq!(first.as_deref().map(str::len), Some(16));
        assert_eq!(once(stuck(&["n1", "n2"], 0), "u1"), first, "another message");
        assert_ne!(once(stuck(&["n1"], 0), "u2"), first);
        let mut later = stuck(&["n1"], 0);
        later.since = Timestamp::from_second(1_767_225_601).expect("a time");
        assert_ne!(once(later, "u1"), first);
        let repeated = Stuck {
            is_repeated: true,
            ..stuck(&["n1"], 0)
        };
        assert_ne!(once(repeated, "u1"), first, "another reason");
        // A started executor takes the first refusal that it sees for the first one.
        let refused = |seconds, done| Stuck {
            reason: CREATE_REFUSED.to_owned(),
            since: Timestamp::from_second(seconds).expect("a time"),
            done,
            ..stuck(&["n1"], 0)
        };
        assert_eq!(once(refused(1, 5), "u1"), once(refused(2, 5), "u1"));
        assert_ne!(
            once(refused(1, 5), "u1"),
            once(refused(2, 6), "u1"),
            "a node was gained"
        );
    }
}
