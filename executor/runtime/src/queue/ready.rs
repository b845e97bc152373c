//! Keys that wait for a worker: urgent keys first, each class in order of arrival.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// The priority of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// In order of arrival.
    #[default]
    Normal,
    /// Before all normal keys.
    Urgent,
}

/// A worker that serves all keys takes at most this many urgent keys in a row while normal keys wait, so that normal keys do
/// not starve.
pub(super) const MAX_URGENT_IN_A_ROW: u32 = 8;

#[derive(Debug)]
pub(super) struct Ready<K> {
    urgent: BTreeMap<u64, Queued<K>>,
    normal: BTreeMap<u64, Queued<K>>,
    /// The position of each key. Tickets are numbered by arrival.
    positions: HashMap<K, (Urgency, u64)>,
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
            positions: HashMap::new(),
            next_ticket: 0,
            urgent_in_a_row: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Queues a key. A key that is already queued keeps its position, unless it becomes urgent.
    pub(super) fn push(&mut self, key: &K, urgency: Urgency, now: Instant) {
        let waiting = match self.positions.get(key) {
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
        self.positions.insert(key.clone(), (urgency, ticket));
        match urgency {
            Urgency::Urgent => self.urgent.insert(ticket, queued),
            Urgency::Normal => self.normal.insert(ticket, queued),
        };
    }

    /// Returns the next key for a worker that serves all keys.
    pub(super) fn pop(&mut self) -> Option<Queued<K>> {
        let yields = self.urgent_in_a_row >= MAX_URGENT_IN_A_ROW && !self.normal.is_empty();
        let urgent = if yields { None } else { self.urgent.pop_first() };
        self.urgent_in_a_row = match urgent {
            Some(_) => self.urgent_in_a_row.saturating_add(1),
            None => 0,
        };
        let (_, queued) = urgent.or_else(|| self.normal.pop_first())?;
        self.positions.remove(&queued.key);
        Some(queued)
    }

    /// Returns the next urgent key for which `may_take` is true.
    pub(super) fn pop_urgent(&mut self, may_take: impl Fn(&K) -> bool) -> Option<Queued<K>> {
        let (&ticket, _) = self.urgent.iter().find(|(_, queued)| may_take(&queued.key))?;
        let queued = self.urgent.remove(&ticket)?;
        self.positions.remove(&queued.key);
        Some(queued)
    }
}
