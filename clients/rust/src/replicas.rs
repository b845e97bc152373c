//! The set of replicas: who is in it, how each stands, and so whether the service can be reached at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nodewise_tls::client::Connector;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::replica::{Replica, Standing};
use super::target::Address;
use super::{ClientError, rendezvous};
use crate::observer::{Evicted, Observer, ReplicaCounts};

/// The replicas at one time.
pub(super) type Members = Arc<[Arc<Replica>]>;

/// The replicas of the service.
#[derive(Debug)]
pub(super) struct Replicas {
    members: watch::Sender<Members>,
    /// Counts the reasons to look again where they are.
    doubts: watch::Sender<u64>,
    max_message_bytes: usize,
    connector: Option<Connector>,
    observer: Arc<dyn Observer>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Why the replicas of a target could not be found lately, by the target's number.
    search: BTreeMap<usize, String>,
    /// Whether it was said that nobody answers.
    away: bool,
}

impl Replicas {
    pub(super) fn new(
        max_message_bytes: usize,
        connector: Option<Connector>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            members: watch::Sender::new(Arc::new([])),
            doubts: watch::Sender::new(0),
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

    /// From now on the replicas are at these addresses. One that stays keeps its connection, its standing and what it is
    /// believed to have; of one that goes calls under way go on.
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
            replica.gone().cancel();
        }
        self.note();
        Ok(())
    }

    /// The replicas of this target were found.
    pub(super) fn found(&self, target: usize) {
        self.known().search.remove(&target);
    }

    /// Those of this target could not be found just now; who was known stays known.
    pub(super) fn not_found(&self, target: usize, reason: &str) {
        let before = self.known().search.insert(target, reason.to_owned());
        if before.is_none() {
            tracing::warn!("replicas of the planning service cannot be looked up: {reason}");
        }
        self.note();
    }

    /// The replicas in the order in which a workload asks them: those that do not serve last, else by rendezvous hash. Waits
    /// for the first ones if there are none yet.
    pub(super) async fn order(&self, uid: &str, until: Instant) -> Vec<Arc<Replica>> {
        let mut members = self.members.subscribe();
        if members.borrow().is_empty() {
            self.doubt();
            // It cannot be closed, and when the time is up there are none.
            let _ = timeout_at(until, members.wait_for(|members| !members.is_empty())).await;
        }
        let mut order = self.members().to_vec();
        order.sort_by_cached_key(|replica| {
            let weight = rendezvous::weight(uid, replica.address().as_str());
            (replica.standing().rank(), weight)
        });
        order
    }

    /// Whether this replica is the one that the workload belongs to.
    pub(super) fn is_home(&self, uid: &str, replica: &Replica) -> bool {
        let members = self.members();
        let weight = |replica: &Replica| rendezvous::weight(uid, replica.address().as_str());
        let least = members.iter().map(|member| weight(member)).min();
        least.is_none_or(|least| weight(replica) == least)
    }

    /// Told whenever a name should be looked up again.
    pub(super) fn doubts(&self) -> watch::Receiver<u64> {
        self.doubts.subscribe()
    }

    /// Whoever was known may have moved.
    fn doubt(&self) {
        self.doubts.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn answered(&self, replica: &Replica) {
        replica.answered();
        self.note();
    }

    /// It said so to a probe that was sent when so many calls had failed. Whether that counts.
    pub(super) fn serves(&self, replica: &Replica, failures: u64) -> bool {
        let counts = replica.serves(failures);
        self.note();
        counts
    }

    pub(super) fn drains(&self, replica: &Replica) {
        if replica.drains() {
            tracing::info!(replica = %replica.address(), "a replica of the planning service drains; asking others");
            self.observer.replica_evicted(Evicted::Draining);
        }
        self.note();
    }

    /// A call failed.
    pub(super) fn failed(&self, replica: &Replica, reason: &str, cause: Evicted) {
        if replica.failed(reason) {
            self.evicted(replica, reason, cause);
        }
        self.note();
    }

    /// A probe failed, or the connection on which its health is followed.
    pub(super) fn unwell(&self, replica: &Replica, reason: &str) {
        if replica.evict(reason) {
            self.evicted(replica, reason, Evicted::Health);
        }
        self.note();
    }

    fn evicted(&self, replica: &Replica, reason: &str, cause: Evicted) {
        tracing::info!(replica = %replica.address(), "asking others until it answers again: {reason}");
        self.observer.replica_evicted(cause);
        self.doubt();
    }

    /// Whether nobody could be found lately.
    #[cfg(test)]
    pub(super) fn search_failed(&self) -> bool {
        !self.known().search.is_empty()
    }

    /// Why the service cannot be reached, if so, or that it was not tried yet.
    pub(super) fn health(&self) -> Result<(), String> {
        self.health_of(&self.members())
    }

    fn health_of(&self, members: &Members) -> Result<(), String> {
        if members.is_empty() {
            let known = self.known();
            let reasons: Vec<_> = known.search.values().map(String::as_str).collect();
            let colon = if reasons.is_empty() { "" } else { ": " };
            let reasons = reasons.join("; ");
            return Err(format!(
                "no replica of the planning service is known{colon}{reasons}"
            ));
        }
        let mut reason = None;
        for replica in members.iter() {
            match replica.standing() {
                Standing::Ready => return Ok(()),
                Standing::Unknown => {}
                Standing::Evicted(why) => reason = Some(why),
                Standing::Draining => {
                    reason = reason.or_else(|| Some(format!("{}: it is draining", replica.url())));
                }
            }
        }
        Err(match reason {
            Some(reason) => format!("no replica of the planning service answers: {reason}"),
            None => "the planning service was not asked yet".to_owned(),
        })
    }

    /// Says and counts what has changed.
    fn note(&self) {
        let members = self.members();
        let mut counts = ReplicaCounts::default();
        for replica in members.iter() {
            match replica.standing() {
                Standing::Unknown => counts.unknown += 1,
                Standing::Ready => counts.ready += 1,
                Standing::Evicted(_) => counts.evicted += 1,
                Standing::Draining => counts.draining += 1,
            }
        }
        self.observer.replicas(&counts);
        let nobody_known_yet = counts.unknown > 0 && counts.evicted + counts.draining == 0;
        let health = self.health_of(&members);
        let mut known = self.known();
        match health {
            Ok(()) if std::mem::take(&mut known.away) => tracing::info!("the planning service answers again"),
            Err(reason) if !nobody_known_yet && !std::mem::replace(&mut known.away, true) => {
                tracing::warn!("{reason}; nothing is written until one does");
            }
            _ => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
