//! The set of replicas, their order for a workload, and the health of the service as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nodewise_tls::client::Connector;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::replica::{Replica, ReplicaState};
use super::target::Address;
use super::{ClientError, rendezvous};
use crate::observer::{Evicted, Observer, ReplicaCounts};

/// The replicas at one time.
pub(super) type Members = Arc<[Arc<Replica>]>;

/// The replicas of the service.
#[derive(Debug)]
pub(super) struct Replicas {
    members: watch::Sender<Members>,
    /// Incremented to trigger a DNS look-up.
    lookup_triggers: watch::Sender<u64>,
    max_message_bytes: usize,
    connector: Option<Connector>,
    observer: Arc<dyn Observer>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// For each target whose last look-up failed: the reason.
    lookup_errors: BTreeMap<usize, String>,
    /// When the log had the warning that no replica answers.
    unreachable_since: Option<Instant>,
}

impl Replicas {
    pub(super) fn new(
        max_message_bytes: usize,
        connector: Option<Connector>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            members: watch::Sender::new(Arc::new([])),
            lookup_triggers: watch::Sender::new(0),
            max_message_bytes,
            connector,
            observer,
            known: Mutex::default(),
        }
    }

    pub(super) fn members(&self) -> Members {
        Arc::clone(&self.members.borrow())
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Members> {
        self.members.subscribe()
    }

    /// Replaces the set of addresses. A replica that stays keeps its connection, its state and its known buckets. Calls to a
    /// removed replica continue.
    pub(super) fn replace(&self, addresses: &[Address]) -> Result<(), ClientError> {
        let before = self.members();
        let mut members: Vec<Arc<Replica>> = Vec::with_capacity(addresses.len());
        for address in addresses {
            let same = |replica: &&Arc<Replica>| replica.address() == address;
            if members.iter().any(|replica| same(&replica)) {
                continue;
            }
            members.push(match before.iter().find(same) {
                Some(stays) => Arc::clone(stays),
                None => Arc::new(Replica::new(
                    address.clone(),
                    self.max_message_bytes,
                    self.connector.as_ref(),
                )?),
            });
        }
        let stays = |replica: &Arc<Replica>| members.iter().any(|member| Arc::ptr_eq(member, replica));
        let (stayed, gone): (Vec<_>, Vec<_>) = before.iter().partition(|replica| stays(replica));
        if gone.is_empty() && stayed.len() == members.len() {
            return Ok(());
        }
        tracing::info!(
            replicas = members.len(),
            came = members.len() - stayed.len(),
            gone = gone.len(),
            "the replicas of the planning service have changed"
        );
        self.members.send_replace(members.into());
        for replica in gone {
            replica.removed().cancel();
        }
        self.publish();
        Ok(())
    }

    /// Notes that the look-up of this target succeeded.
    pub(super) fn found(&self, target: usize) {
        self.known().lookup_errors.remove(&target);
    }

    /// Notes that the look-up of this target failed. Its known replicas stay in the set.
    pub(super) fn not_found(&self, target: usize, reason: &str) {
        let before = self.known().lookup_errors.insert(target, reason.to_owned());
        if before.is_none() {
            tracing::warn!("replicas of the planning service cannot be looked up: {reason}");
        }
        self.publish();
    }

    /// The replicas in the order in which a workload asks them: by state, then by rendezvous hash. If the set is empty, waits for
    /// the first replica, at most until `until`.
    pub(super) async fn order(&self, uid: &str, until: Instant) -> Vec<Arc<Replica>> {
        let mut members = self.members.subscribe();
        if members.borrow().is_empty() {
            self.trigger_lookup();
            // The channel cannot be closed. After a timeout the set is still empty.
            let _ = timeout_at(until, members.wait_for(|members| !members.is_empty())).await;
        }
        let mut order = self.members().to_vec();
        order.sort_by_cached_key(|replica| {
            let weight = rendezvous::weight(uid, replica.address().as_str());
            (replica.state().rank(), weight)
        });
        order
    }

    /// Whether this replica is the first one for the workload, regardless of state.
    pub(super) fn is_home(&self, uid: &str, replica: &Replica) -> bool {
        let members = self.members();
        let weight = |replica: &Replica| rendezvous::weight(uid, replica.address().as_str());
        let least = members.iter().map(|member| weight(member)).min();
        least.is_none_or(|least| weight(replica) == least)
    }

    /// Changes whenever DNS names should be looked up again.
    pub(super) fn lookup_triggers(&self) -> watch::Receiver<u64> {
        self.lookup_triggers.subscribe()
    }

    /// Triggers a DNS look-up: the replicas may have moved.
    fn trigger_lookup(&self) {
        self.lookup_triggers
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn answered(&self, replica: &Replica) {
        replica.answered();
        self.publish();
    }

    /// Applies a healthy probe; see [`Replica::serves`].
    pub(super) fn serves(&self, replica: &Replica, failures: u64) -> bool {
        let counts = replica.serves(failures);
        self.publish();
        counts
    }

    pub(super) fn drains(&self, replica: &Replica) {
        if replica.drains() {
            tracing::info!(replica = %replica.address(), "a replica of the planning service drains; asking others");
            self.observer.replica_evicted(Evicted::Draining);
        }
        self.publish();
    }

    /// Notes a failed call.
    pub(super) fn failed(&self, replica: &Replica, reason: &str, cause: Evicted) {
        if replica.failed(reason) {
            self.evicted(replica, reason, cause);
        }
        self.publish();
    }

    /// Notes that a probe failed or a health watch ended.
    pub(super) fn health_failed(&self, replica: &Replica, reason: &str) {
        if replica.evict(reason) {
            self.evicted(replica, reason, Evicted::Health);
        }
        self.publish();
    }

    fn evicted(&self, replica: &Replica, reason: &str, cause: Evicted) {
        tracing::info!(replica = %replica.address(), "asking others until it answers again: {reason}");
        self.observer.replica_evicted(cause);
        self.trigger_lookup();
    }

    /// Whether the last look-up of any target failed.
    #[cfg(test)]
    pub(super) fn lookup_failed(&self) -> bool {
        !self.known().lookup_errors.is_empty()
    }

    /// Ok if a replica is ready. The error is the reason why none is.
    pub(super) fn health(&self) -> Result<(), String> {
        self.health_of(&self.members())
    }

    fn health_of(&self, members: &Members) -> Result<(), String> {
        if members.is_empty() {
            let known = self.known();
            let reasons: Vec<_> = known.lookup_errors.values().map(String::as_str).collect();
            let colon = if reasons.is_empty() { "" } else { ": " };
            let reasons = reasons.join("; ");
            return Err(format!(
                "no replica of the planning service is known{colon}{reasons}"
            ));
        }
        let mut reason = None;
        for replica in members.iter() {
            match replica.state() {
                ReplicaState::Ready => return Ok(()),
                ReplicaState::Unknown => {}
                ReplicaState::Evicted(why) => reason = Some(why),
                ReplicaState::Draining => {
                    reason = reason.or_else(|| Some(format!("{}: it is draining", replica.url())));
                }
            }
        }
        Err(match reason {
            Some(reason) => format!("no replica of the planning service answers: {reason}"),
            None => "the planning service was not asked yet".to_owned(),
        })
    }

    /// Notifies the observer of the counts, and logs when the service becomes unreachable or reachable.
    fn publish(&self) {
        let members = self.members();
        let mut counts = ReplicaCounts::default();
        for replica in members.iter() {
            match replica.state() {
                ReplicaState::Unknown => counts.unknown += 1,
                ReplicaState::Ready => counts.ready += 1,
                ReplicaState::Evicted(_) => counts.evicted += 1,
                ReplicaState::Draining => counts.draining += 1,
            }
        }
        self.observer.replicas(&counts);
        let all_unknown = counts.unknown > 0 && counts.evicted + counts.draining == 0;
        let health = self.health_of(&members);
        let mut known = self.known();
        match health {
            Ok(()) => {
                if let Some(since) = known.unreachable_since.take() {
                    let seconds = since.elapsed().as_secs();
                    tracing::info!("the planning service answers again, after {seconds}s");
                }
            }
            Err(reason) if !all_unknown && known.unreachable_since.is_none() => {
                known.unreachable_since = Some(Instant::now());
                tracing::warn!("{reason}; nothing is written until one does");
            }
            Err(_) => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
