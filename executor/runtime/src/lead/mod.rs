//! Leader election with a Lease: of several executors, only the leader works.
//!
//! A Lease does not fence writes: when a new leader starts, calls of the old leader may still be in flight. Deterministic pod
//! names, uid preconditions and resourceVersions make those calls harmless. Calls that are not yet in flight are not sent:
//! [`crate::actuator::KubeActuator`] checks [`LeaderStatus::leads`] before each write.
//!
//! The election is our own code: kube has none, and we need that of client-go (timing, Events, metrics), with one addition: the
//! actuator asks when the lease ends, before it sends a write.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use nodewise_projection::WRITER;
use nodewise_proto::v1;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    events::{EventNote, EventRecorder},
    metrics::Metrics,
};

mod election;
mod lease;

pub use election::{Election, Record, Timing, TimingError};
pub use lease::{KubeLeaseStore, LeaseError, LeaseStore, Version};

/// The name of the Lease.
pub const LEASE_NAME: &str = WRITER;
/// The health check fails this long after the lease of a leader has expired without a renewal.
const HEALTH_GRACE: Duration = Duration::from_secs(20);

/// Returns an identity that differs between two processes on one host.
#[must_use]
pub fn identity(host: &str) -> String {
    format!("{host}_{:032x}", rand::random::<u128>())
}

/// A candidate in the election for one Lease.
pub struct Elector<L> {
    leases: L,
    election: Election,
    timing: Timing,
    version: Option<Version>,
    identity: String,
    namespace: String,
    leader_status: LeaderStatus,
    metrics: Metrics,
    events: Option<EventRecorder>,
}

/// When the leader last renewed the Lease; `None` on a standby. The health check and the actuator read it. Clones share the
/// value.
#[derive(Clone, Debug, Default)]
pub struct LeaderStatus(Arc<Mutex<Option<Instant>>>);

impl LeaderStatus {
    /// Fails if this process leads and has not renewed for the lease duration plus 20 s.
    pub fn check(&self, timing: Timing, now: Instant) -> Result<(), String> {
        match self.renewed() {
            Some(renewed) if now.duration_since(renewed) > timing.lease_duration + HEALTH_GRACE => Err(
                format!("the lease was not renewed for {:?}", now.duration_since(renewed)),
            ),
            _ => Ok(()),
        }
    }

    /// Whether this process certainly leads: the last renewal is recent enough to write.
    #[must_use]
    pub fn leads(&self, timing: Timing, now: Instant) -> bool {
        self.renewed()
            .is_some_and(|renewed| now < renewed + timing.write_limit())
    }

    fn renewed(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, renewed: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }
}

impl<L: LeaseStore> Elector<L> {
    /// Creates a candidate for the Lease behind `leases`. The namespace is used in messages only.
    pub fn new(leases: L, identity: String, namespace: String, timing: Timing, metrics: Metrics) -> Self {
        metrics.set_leader(false);
        Self {
            leases,
            election: Election::new(identity.clone(), timing),
            timing,
            version: None,
            identity,
            namespace,
            leader_status: LeaderStatus::default(),
            metrics,
            events: None,
        }
    }

    /// Also emits an Event when this process becomes leader or stops leading.
    #[must_use]
    pub fn with_events(self, events: EventRecorder) -> Self {
        Self {
            events: Some(events),
            ..self
        }
    }

    /// Records renewals in this shared value.
    #[must_use]
    pub fn with_leader_status(self, leader_status: LeaderStatus) -> Self {
        Self {
            leader_status,
            ..self
        }
    }

    /// Runs the election until `shutdown` is cancelled. Each term calls `lead` with a new token, which is cancelled when the
    /// term ends; its future returns whether all writes of the term have ended. At shutdown the candidate keeps the lease until
    /// `lead` has returned. It then releases the lease, or lets it expire if a write may still be under way. When the lease is
    /// lost, `lead` may run until [`Timing::write_limit`] after the last renewal and is then dropped.
    pub async fn run<F, Fut>(mut self, shutdown: CancellationToken, mut lead: F)
    where
        F: FnMut(CancellationToken) -> Fut,
        Fut: Future<Output = bool>,
    {
        while self.acquire(&shutdown).await {
            self.began();
            let term = CancellationToken::new();
            let work = lead(term.clone());
            let kept = self.lead(work, &term, &shutdown).await;
            self.ended();
            if kept {
                self.release().await;
            }
            if shutdown.is_cancelled() {
                return;
            }
        }
    }

    /// Runs the work and renews the lease. True if the work returned while the lease was held, and all its writes have ended.
    async fn lead(
        &mut self,
        work: impl Future<Output = bool>,
        term: &CancellationToken,
        shutdown: &CancellationToken,
    ) -> bool {
        let mut work = std::pin::pin!(work);
        let lost = async {
            loop {
                sleep(self.timing.retry_period).await;
                if !self.renew().await {
                    return;
                }
            }
        };
        tokio::select! {
            has_ended = &mut work => return has_ended,
            () = lost => {}
            // This branch never completes. After a shutdown, the work drains while the other branch keeps renewing.
            () = async { shutdown.cancelled().await; term.cancel(); std::future::pending().await } => {}
        }
        let why = if self.election.is_held_by_another() {
            "another executor holds it"
        } else {
            "kube-apiserver did not let it be renewed in time, as the warnings before say"
        };
        tracing::error!(identity = self.identity, lease = %self, "lost the lease: stopping all work: {why}");
        term.cancel();
        if timeout_at(self.last_renewal() + self.timing.write_limit(), work)
            .await
            .is_err()
        {
            tracing::warn!(
                identity = self.identity,
                "the work had not stopped when the lease ended, and was cancelled; the next holder of the lease goes on with it"
            );
        }
        false
    }

    /// Tries until this candidate holds the lease. False if `shutdown` was cancelled first.
    async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        tracing::info!(identity = self.identity, lease = %self, "standing by for the lease");
        loop {
            let attempt = async {
                let held = self.try_hold().await;
                if !held {
                    sleep(self.timing.acquire_pause(rand::random())).await;
                }
                held
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return false,
                held = attempt => if held { return true },
            }
        }
    }

    /// Renews within the renew deadline, counted from the last renewal. False if the lease is lost.
    async fn renew(&mut self) -> bool {
        let (deadline, pause) = (
            self.last_renewal() + self.timing.renew_deadline,
            self.timing.retry_period,
        );
        let renewed = timeout_at(deadline, async {
            while !self.try_hold().await {
                if self.election.is_held_by_another() {
                    return false;
                }
                sleep(pause).await;
            }
            true
        });
        renewed.await.unwrap_or(false)
    }

    fn last_renewal(&self) -> Instant {
        self.leader_status.renewed().unwrap_or_else(Instant::now)
    }

    /// Tries once to acquire or renew.
    async fn try_hold(&mut self) -> bool {
        match timeout(self.timing.call_timeout(), self.hold()).await {
            Ok(Ok(held)) => held,
            Ok(Err(error)) => {
                tracing::warn!(%error, lease = %self, "the lease could not be written");
                false
            }
            Err(_) => {
                tracing::warn!(lease = %self, "no answer about the lease within {:?}", self.timing.call_timeout());
                false
            }
        }
    }

    async fn hold(&mut self) -> Result<bool, LeaseError> {
        if let Some(version) = self
            .version
            .clone()
            .filter(|_| self.election.may_renew_without_reading(Instant::now()))
        {
            match self.write(Some(version)).await {
                Ok(()) => return Ok(true),
                Err(error) => {
                    tracing::debug!(%error, "reading the lease before the next try to renew it");
                    self.metrics.lease_slow_path();
                }
            }
        }
        let found = self.leases.read().await?;
        let (record, version) = found.map_or((None, None), |(record, version)| (Some(record), Some(version)));
        self.election.observe(record, Instant::now());
        if !self.election.may_take(Instant::now()) {
            return Ok(false);
        }
        self.write(version).await?;
        Ok(true)
    }

    /// Writes this candidate as the holder. Replaces the lease of that version, or creates it if there is no version.
    async fn write(&mut self, version: Option<Version>) -> Result<(), LeaseError> {
        // The lease counts from when the request was sent, not from when the response arrived.
        let (sent_at, record) = (
            Instant::now(),
            self.election.claim(lease::micros(Timestamp::now())),
        );
        self.version = Some(self.leases.write(&record, version).await?);
        self.election.observe(Some(record), sent_at);
        self.leader_status.set(Some(sent_at));
        Ok(())
    }

    /// Releases the lease, so that the next leader can start at once. Best effort: otherwise the lease expires.
    async fn release(&mut self) {
        let Some(version) = self.version.take() else {
            return;
        };
        let record = self.election.release(lease::micros(Timestamp::now()));
        match timeout(
            self.timing.call_timeout(),
            self.leases.write(&record, Some(version)),
        )
        .await
        {
            Ok(Ok(_)) => tracing::info!(identity = self.identity, "released the lease"),
            Ok(Err(error)) => tracing::warn!(%error, "the lease could not be released and will expire"),
            Err(_) => tracing::warn!("no answer to the release of the lease, which will expire"),
        }
    }

    fn began(&self) {
        tracing::info!(identity = self.identity, lease = %self, "leading");
        self.metrics.set_leader(true);
        self.announce("became leader");
    }

    fn ended(&self) {
        tracing::info!(identity = self.identity, lease = %self, "leads no more");
        self.metrics.set_leader(false);
        self.leader_status.set(None);
        self.announce("stopped leading");
    }

    fn announce(&self, what: &str) {
        let Some(events) = &self.events else { return };
        events.record(EventNote {
            component: WRITER,
            object: v1::WorkloadReference {
                kind: "Lease".to_owned(),
                namespace: self.namespace.clone(),
                name: LEASE_NAME.to_owned(),
                ..v1::WorkloadReference::default()
            },
            kind: "Normal".to_owned(),
            reason: "LeaderElection".to_owned(),
            message: format!("{} {what}", self.identity),
            once: None,
        });
    }
}

impl<L> fmt::Display for Elector<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{LEASE_NAME}", self.namespace)
    }
}

#[cfg(test)]
mod tests;
