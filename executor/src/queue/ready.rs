//! Keys that wait for a worker: urgent ones first, each class in order of arrival.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// How pressing it is to look at a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// In turn.
    #[default]
    Normal,
    /// Before all that are in turn.
    Urgent,
}

/// Urgent keys that a worker for all may take in a row while others wait: those are never left standing.
pub(super) const MOST_URGENT_IN_A_ROW: u32 = 8;

#[derive(Debug)]
pub(super) struct Ready<K> {
    urgent: BTreeMap<u64, Queued<K>>,
    normal: BTreeMap<u64, Queued<K>>,
    /// Where each key waits. Tickets are numbered by arrival.
    places: HashMap<K, (Urgency, u64)>,
    next_ticket: u64,
    urgent_in_a_row: u32,
}

#[derive(Debug)]
pub(super) struct Queued<K> {
    pub(super) key: K,
    pub(super) since: Instant,
}

impl<K> Default for Ready<K> {
    fn default() -> Self {
        Self {
            urgent: BTreeMap::new(),
            normal: BTreeMap::new(),
            places: HashMap::new(),
            next_ticket: 0,
            urgent_in_a_row: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Lets a key wait. If it does so already it keeps its place, but for becoming urgent.
    pub(super) fn push(&mut self, key: &K, urgency: Urgency, now: Instant) {
        let waiting = match self.places.get(key) {
            Some((Urgency::Normal, ticket)) if urgency == Urgency::Urgent => self.normal.remove(ticket),
            Some(_) => return,
            None => None,
        };
        let queued = Queued {
            key: key.clone(),
            since: waiting.map_or(now, |queued| queued.since),
        };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.places.insert(key.clone(), (urgency, ticket));
        match urgency {
            Urgency::Urgent => self.urgent.insert(ticket, queued),
            Urgency::Normal => self.normal.insert(ticket, queued),
        };
    }

    /// The next key for a worker that takes all.
    pub(super) fn pop(&mut self) -> Option<Queued<K>> {
        let yields = self.urgent_in_a_row >= MOST_URGENT_IN_A_ROW && !self.normal.is_empty();
        let urgent = if yields { None } else { self.urgent.pop_first() };
        self.urgent_in_a_row = match urgent {
            Some(_) => self.urgent_in_a_row.saturating_add(1),
            None => 0,
        };
        let (_, queued) = urgent.or_else(|| self.normal.pop_first())?;
        self.places.remove(&queued.key);
        Some(queued)
    }

    /// The next key for a worker that takes urgent ones only, and of these those that it may take.
    pub(super) fn pop_urgent(&mut self, may_take: impl Fn(&K) -> bool) -> Option<Queued<K>> {
        let (&ticket, _) = self.urgent.iter().find(|(_, queued)| may_take(&queued.key))?;
        let queued = self.urgent.remove(&ticket)?;
        self.places.remove(&queued.key);
        Some(queued)
    }
}
