//! Reduces the Events that reach the apiserver (D-102), as client-go does: repeated Events are counted, many similar Events
//! are combined, and Events of an object that causes too many are dropped. Pure: the time is passed in.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

use super::EventNote;

/// From this many distinct messages on, Events with one reason are combined.
const SIMILAR_EVENTS: usize = 10;
/// After this long without similar Events, their messages are counted anew.
const SIMILAR_WINDOW: Duration = Duration::from_mins(10);
/// Events that one object may cause at once, per component, type and reason.
const SPAM_BURST: f64 = 25.0;
/// Time after which one more Event is allowed.
const SPAM_REFILL: Duration = Duration::from_mins(5);
/// Most entries of each table. The least recently used entry is evicted.
const CAPACITY: usize = 4096;

/// What to do with an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Drop the Event.
    Filtered,
    /// Create an Event with this message. Report its name to [`Correlator::sent`].
    Create { message: String },
    /// Patch the Event of this name. It now stands for `count` occurrences.
    Patch {
        name: String,
        message: String,
        count: u32,
    },
}

/// The key under which Events are counted as one: with a message, exact repetitions; without a message, all similar Events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    source: Source,
    reason: String,
    message: Option<String>,
}

/// Where an Event comes from: a part of the keys.
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

/// Counts, combines and limits Events.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: LruMap<Identity, Similar>,
    observed: LruMap<Identity, Observed>,
    /// By the source and the reason: Events about a hundred pods must not hide that a rollout is stuck.
    buckets: LruMap<(Source, String), Bucket>,
}

impl Correlator {
    /// Decides what to do with one Event. Pass the returned identity to [`Correlator::sent`].
    pub(super) fn correlate(&mut self, note: &EventNote, now: Instant) -> (Identity, Decision) {
        let source = Source::of(note);
        let (identity, message) = self.aggregate(&source, note, now);
        let observed = self.observed.entry(identity.clone(), Observed::default);
        observed.count = observed.count.saturating_add(1);
        let decision = if observed.name.is_empty() {
            Decision::Create { message }
        } else {
            Decision::Patch {
                name: observed.name.clone(),
                message,
                count: observed.count,
            }
        };
        if self.is_spam((source, note.reason.clone()), now) {
            (identity, Decision::Filtered)
        } else {
            (identity, decision)
        }
    }

    /// Records the name of the Event that stands for an identity. An empty name means that there is none.
    pub(super) fn sent(&mut self, identity: &Identity, name: &str) {
        let observed = self.observed.entry(identity.clone(), Observed::default);
        name.clone_into(&mut observed.name);
        observed.count = if name.is_empty() { 0 } else { observed.count.max(1) };
    }

    /// Combines an Event with similar ones if there are many.
    fn aggregate(&mut self, source: &Source, note: &EventNote, now: Instant) -> (Identity, String) {
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

    fn is_spam(&mut self, of: (Source, String), now: Instant) -> bool {
        let bucket = self.buckets.entry(of, || Bucket {
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
    fn of(note: &EventNote) -> Self {
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

/// A map that evicts the least recently used entry when it is full.
#[derive(Debug)]
struct LruMap<K, V> {
    entries: HashMap<K, (u64, V)>,
    uses: u64,
}

impl<K, V> Default for LruMap<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            uses: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V> LruMap<K, V> {
    fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.entries.len() >= CAPACITY && !self.entries.contains_key(&key) {
            self.evict_oldest();
        }
        self.uses += 1;
        let (used, value) = self.entries.entry(key).or_insert_with(|| (0, new()));
        *used = self.uses;
        value
    }

    fn evict_oldest(&mut self) {
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

    fn note(kind: &str, reason: &str, message: &str) -> EventNote {
        let object = v1::WorkloadReference {
            kind: "DaemonSet".into(),
            name: "agent".into(),
            ..Default::default()
        };
        let (kind, reason, message) = (kind.into(), reason.into(), message.into());
        EventNote {
            component: "daemonset-controller",
            object,
            kind,
            reason,
            message,
            once: None,
        }
    }

    /// Correlates an Event and records a create as successful.
    fn send(correlator: &mut Correlator, note: &EventNote, now: Instant) -> Decision {
        let (identity, decision) = correlator.correlate(note, now);
        if let Decision::Create { message } = &decision {
            correlator.sent(&identity, message);
        }
        decision
    }

    // D-102: 60 creates lead to 9 single Events and one combined Event with a count of 16.
    #[test]
    fn sixty_creates() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let decisions: Vec<_> = (0..60)
            .map(|i| {
                send(
                    &mut correlator,
                    &note("Normal", "SuccessfulCreate", &format!("Created pod: p-{i}")),
                    now,
                )
            })
            .collect();
        for (i, decision) in decisions[..9].iter().enumerate() {
            assert_eq!(
                *decision,
                Decision::Create {
                    message: format!("Created pod: p-{i}")
                }
            );
        }
        assert_eq!(
            decisions[9],
            Decision::Create {
                message: "(combined from similar events): Created pod: p-9".into()
            }
        );
        let Decision::Patch { name, message, count } = &decisions[24] else {
            panic!("{:?}", decisions[24])
        };
        assert_eq!(name, "(combined from similar events): Created pod: p-9");
        assert_eq!(
            (message.as_str(), *count),
            ("(combined from similar events): Created pod: p-24", 16)
        );
        assert!(
            decisions[25..]
                .iter()
                .all(|decision| *decision == Decision::Filtered)
        );
    }

    // D-102: equal Events are counted in one Event.
    #[test]
    fn repetitions_are_counted() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let failure = note("Warning", "FailedCreate", "Error creating: quota");
        assert_eq!(
            send(&mut correlator, &failure, now),
            Decision::Create {
                message: "Error creating: quota".into()
            }
        );
        for count in 2..5 {
            let (name, message) = (failure.message.clone(), failure.message.clone());
            assert_eq!(
                send(&mut correlator, &failure, now),
                Decision::Patch { name, message, count }
            );
        }
    }

    // Each type and reason has its own limit, with one more Event every 300 s.
    #[test]
    fn throttled_by_type_and_refilled() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let warning = note("Warning", "FailedCreate", "Error creating: quota");
        for _ in 0..25 {
            assert_ne!(send(&mut correlator, &warning, now), Decision::Filtered);
        }
        assert_eq!(send(&mut correlator, &warning, now), Decision::Filtered);
        let other = note("Warning", "RolloutStuck", "RolloutStuck: n1");
        assert_ne!(send(&mut correlator, &other, now), Decision::Filtered);
        let normal = note("Normal", "SuccessfulDelete", "Deleted pod: p");
        assert_ne!(send(&mut correlator, &normal, now), Decision::Filtered);
        let almost = now + Duration::from_secs(299);
        assert_eq!(send(&mut correlator, &warning, almost), Decision::Filtered);
        let decision = send(&mut correlator, &warning, almost + Duration::from_secs(2));
        assert!(
            matches!(decision, Decision::Patch { count: 28, .. }),
            "filtered Events are counted, too: {decision:?}"
        );
    }

    // After 600 s without similar Events, Events are single again.
    #[test]
    fn similar_events_expire() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        for i in 0..12 {
            send(
                &mut correlator,
                &note("Normal", "SuccessfulCreate", &i.to_string()),
                now,
            );
        }
        let later = now + SIMILAR_WINDOW + Duration::from_secs(1);
        let decision = send(
            &mut correlator,
            &note("Normal", "SuccessfulCreate", "late"),
            later,
        );
        assert_eq!(
            decision,
            Decision::Create {
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
        let (_, decision) = correlator.correlate(&event, now);
        assert_eq!(
            decision,
            Decision::Create {
                message: "Created pod: p".into()
            }
        );
    }

    #[test]
    fn a_full_map_evicts_the_least_recently_used() {
        let mut table = LruMap::<usize, usize>::default();
        for i in 0..CAPACITY {
            table.entry(i, || i);
        }
        table.entry(0, || unreachable!("still there"));
        table.entry(CAPACITY, || CAPACITY);
        assert_eq!(table.entries.len(), CAPACITY);
        assert!(table.entries.contains_key(&0) && !table.entries.contains_key(&1));
    }
}
