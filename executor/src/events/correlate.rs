//! Thins events out before they reach the apiserver (D-102): repeated ones are counted, many similar ones are combined, and
//! an object that causes too many is throttled. Pure; the time is passed in.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

use super::Note;

/// From this many distinct messages on, events of one reason are combined.
const SIMILAR_EVENTS: usize = 10;
/// Silence after which similar events are counted afresh.
const SIMILAR_WINDOW: Duration = Duration::from_mins(10);
/// Events that one object may cause at once.
const SPAM_BURST: f64 = 25.0;
/// Time after which one more is granted.
const SPAM_REFILL: Duration = Duration::from_mins(5);
/// Most entries of each table; the least recently used goes first.
const CAPACITY: usize = 4096;

/// What to do with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Say nothing.
    Filtered,
    /// Create an Event with this message, to be announced with [`Correlator::sent`].
    Create { message: String },
    /// Patch the Event of this name, which stands for `count` occurrences now.
    Patch {
        name: String,
        message: String,
        count: u32,
    },
}

/// Identifies what events are counted as one: with a message an exact repetition, without one all similar events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    source: Source,
    reason: String,
    message: Option<String>,
}

/// What is throttled as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    component: &'static str,
    object: (String, String, String, String),
    kind: String,
}

#[derive(Debug)]
struct Similar {
    messages: HashSet<String>,
    last: Instant,
}

#[derive(Debug, Default)]
struct Observed {
    name: String,
    count: u32,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    refilled: Instant,
}

/// Remembers what was said.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: Recent<Identity, Similar>,
    observed: Recent<Identity, Observed>,
    buckets: Recent<Source, Bucket>,
}

impl Correlator {
    /// Decides about one event. The identity names it for [`Correlator::sent`].
    pub(super) fn correlate(&mut self, note: &Note, now: Instant) -> (Identity, Verdict) {
        let source = Source::of(note);
        let (identity, message) = self.aggregate(&source, note, now);
        let observed = self.observed.entry(identity.clone(), Observed::default);
        observed.count = observed.count.saturating_add(1);
        let verdict = if observed.name.is_empty() {
            Verdict::Create { message }
        } else {
            Verdict::Patch {
                name: observed.name.clone(),
                message,
                count: observed.count,
            }
        };
        if self.is_spam(source, now) {
            (identity, Verdict::Filtered)
        } else {
            (identity, verdict)
        }
    }

    /// An Event of this name stands for the identity now; an empty name: none does.
    pub(super) fn sent(&mut self, identity: &Identity, name: &str) {
        let observed = self.observed.entry(identity.clone(), Observed::default);
        name.clone_into(&mut observed.name);
        observed.count = if name.is_empty() { 0 } else { observed.count.max(1) };
    }

    /// Combines an event with similar ones when there are many.
    fn aggregate(&mut self, source: &Source, note: &Note, now: Instant) -> (Identity, String) {
        let all = Identity {
            source: source.clone(),
            reason: note.reason.clone(),
            message: None,
        };
        let similar = self.similar.entry(all.clone(), || Similar {
            messages: HashSet::new(),
            last: now,
        });
        if now.duration_since(similar.last) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(note.message.clone());
        if similar.messages.len() < SIMILAR_EVENTS {
            return (
                Identity {
                    message: Some(note.message.clone()),
                    ..all
                },
                note.message.clone(),
            );
        }
        similar.messages.remove(&note.message);
        (all, format!("(combined from similar events): {}", note.message))
    }

    fn is_spam(&mut self, source: Source, now: Instant) -> bool {
        let bucket = self.buckets.entry(source, || Bucket {
            tokens: SPAM_BURST,
            refilled: now,
        });
        let gained = now.duration_since(bucket.refilled).as_secs_f64() / SPAM_REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + gained).min(SPAM_BURST);
        bucket.refilled = now;
        let spam = bucket.tokens < 1.0;
        if !spam {
            bucket.tokens -= 1.0;
        }
        spam
    }
}

impl Source {
    fn of(note: &Note) -> Self {
        let object = &note.object;
        Self {
            component: note.component,
            object: (
                object.kind.clone(),
                object.namespace.clone(),
                object.name.clone(),
                object.uid.clone(),
            ),
            kind: note.kind.clone(),
        }
    }
}

/// A table that forgets what was not used for longest once it is full.
#[derive(Debug)]
struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    uses: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            uses: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.entries.len() >= CAPACITY && !self.entries.contains_key(&key) {
            self.forget_oldest();
        }
        self.uses += 1;
        let (used, value) = self.entries.entry(key).or_insert_with(|| (0, new()));
        *used = self.uses;
        value
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, (used, _))| used)
            .map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use nodewise_proto::v1;

    use super::*;

    fn note(kind: &str, reason: &str, message: &str) -> Note {
        let object = v1::WorkloadReference {
            kind: "DaemonSet".into(),
            name: "agent".into(),
            ..Default::default()
        };
        let (kind, reason, message) = (kind.into(), reason.into(), message.into());
        Note {
            component: "daemonset-controller",
            object,
            kind,
            reason,
            message,
        }
    }

    /// Correlates and pretends that the apiserver took what was to be created.
    fn send(correlator: &mut Correlator, note: &Note, now: Instant) -> Verdict {
        let (identity, verdict) = correlator.correlate(note, now);
        if let Verdict::Create { message } = &verdict {
            correlator.sent(&identity, message);
        }
        verdict
    }

    // D-102, M-36: 60 creates give 9 single events and one that ends with count 16.
    #[test]
    fn sixty_creates() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let verdicts: Vec<_> = (0..60)
            .map(|i| {
                send(
                    &mut correlator,
                    &note("Normal", "SuccessfulCreate", &format!("Created pod: p-{i}")),
                    now,
                )
            })
            .collect();
        for (i, verdict) in verdicts[..9].iter().enumerate() {
            assert_eq!(
                *verdict,
                Verdict::Create {
                    message: format!("Created pod: p-{i}")
                }
            );
        }
        assert_eq!(
            verdicts[9],
            Verdict::Create {
                message: "(combined from similar events): Created pod: p-9".into()
            }
        );
        let Verdict::Patch { name, message, count } = &verdicts[24] else {
            panic!("{:?}", verdicts[24])
        };
        assert_eq!(name, "(combined from similar events): Created pod: p-9");
        assert_eq!(
            (message.as_str(), *count),
            ("(combined from similar events): Created pod: p-24", 16)
        );
        assert!(verdicts[25..].iter().all(|verdict| *verdict == Verdict::Filtered));
    }

    // D-102: equal events are counted in one.
    #[test]
    fn repetitions_are_counted() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let failure = note("Warning", "FailedCreate", "Error creating: quota");
        assert_eq!(
            send(&mut correlator, &failure, now),
            Verdict::Create {
                message: "Error creating: quota".into()
            }
        );
        for count in 2..5 {
            let (name, message) = (failure.message.clone(), failure.message.clone());
            assert_eq!(
                send(&mut correlator, &failure, now),
                Verdict::Patch { name, message, count }
            );
        }
    }

    // M-36: one bucket per event type, one more event per 300 s.
    #[test]
    fn throttled_by_type_and_refilled() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let warning = note("Warning", "FailedCreate", "Error creating: quota");
        for _ in 0..25 {
            assert_ne!(send(&mut correlator, &warning, now), Verdict::Filtered);
        }
        assert_eq!(send(&mut correlator, &warning, now), Verdict::Filtered);
        let normal = note("Normal", "SuccessfulDelete", "Deleted pod: p");
        assert_ne!(send(&mut correlator, &normal, now), Verdict::Filtered);
        let almost = now + Duration::from_secs(299);
        assert_eq!(send(&mut correlator, &warning, almost), Verdict::Filtered);
        let verdict = send(&mut correlator, &warning, almost + Duration::from_secs(2));
        assert!(
            matches!(verdict, Verdict::Patch { count: 28, .. }),
            "filtered ones are counted too: {verdict:?}"
        );
    }

    // M-36: after 600 s without similar events they are single again.
    #[test]
    fn similar_events_are_forgotten() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        for i in 0..12 {
            send(
                &mut correlator,
                &note("Normal", "SuccessfulCreate", &i.to_string()),
                now,
            );
        }
        let later = now + SIMILAR_WINDOW + Duration::from_secs(1);
        let verdict = send(
            &mut correlator,
            &note("Normal", "SuccessfulCreate", "late"),
            later,
        );
        assert_eq!(
            verdict,
            Verdict::Create {
                message: "late".into()
            }
        );
    }

    #[test]
    fn a_lost_event_is_created_again() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let event = note("Normal", "SuccessfulCreate", "Created pod: p");
        let (identity, _) = correlator.correlate(&event, now);
        correlator.sent(&identity, "agent.1");
        correlator.sent(&identity, "");
        let (_, verdict) = correlator.correlate(&event, now);
        assert_eq!(
            verdict,
            Verdict::Create {
                message: "Created pod: p".into()
            }
        );
    }

    #[test]
    fn a_full_table_forgets_the_least_recently_used() {
        let mut table = Recent::<usize, usize>::default();
        for i in 0..CAPACITY {
            table.entry(i, || i);
        }
        table.entry(0, || unreachable!("still there"));
        table.entry(CAPACITY, || CAPACITY);
        assert_eq!(table.entries.len(), CAPACITY);
        assert!(table.entries.contains_key(&0) && !table.entries.contains_key(&1));
    }
}
