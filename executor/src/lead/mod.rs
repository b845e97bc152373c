//! Leader election by a Lease, so that of several executors one works.
//!
//! Leading is no fence: an old leader may have calls under way when a new one starts (M-12). Names that collide, uid
//! preconditions and resource versions keep those harmless. What is not under way yet is not sent any more: before each
//! write [`crate::actuator::KubeActuator`] asks [`Pulse::leads`].

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use nodewise_proto::v1;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    actuator::WRITER,
    events::{EventRecorder, Note},
    metrics::Metrics,
};

mod election;
mod lease;

pub use election::{Election, Record, Timing, TimingError};
pub use lease::{KubeLeases, LeaseError, Leases, Version};

/// The name of the Lease.
pub const LEASE_NAME: &str = WRITER;
/// How long after the lease has run out the health check gives a leader that did not notice (M-38).
const HEALTH_GRACE: Duration = Duration::from_secs(20);

/// A name that differs between two processes on one host (M-4).
#[must_use]
pub fn identity(host: &str) -> String {
    format!("{host}_{:032x}", rand::random::<u128>())
}

/// Takes part in the election for one Lease.
pub struct Elector<L> {
    leases: L,
    election: Election,
    timing: Timing,
    version: Option<Version>,
    identity: String,
    namespace: String,
    pulse: Pulse,
    metrics: Metrics,
    events: Option<EventRecorder>,
}

/// When the leader last renewed; `None` on a standby. For the health check, and for whatever writes.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<Instant>>>);

impl Pulse {
    /// Fails when this process leads and did not renew for the lease's duration and 20 s more (M-38).
    pub fn check(&self, timing: Timing, now: Instant) -> Result<(), String> {
        match self.renewed() {
            Some(renewed) if now.duration_since(renewed) > timing.lease_duration + HEALTH_GRACE => Err(
                format!("the lease was not renewed for {:?}", now.duration_since(renewed)),
            ),
            _ => Ok(()),
        }
    }

    /// Whether this process leads for certain: it renewed lately enough to write.
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

impl<L: Leases> Elector<L> {
    /// A candidate of that identity for the Lease behind `leases`, whose namespace is only for messages.
    pub fn new(leases: L, identity: String, namespace: String, timing: Timing, metrics: Metrics) -> Self {
        metrics.set_leader(false);
        Self {
            leases,
            election: Election::new(identity.clone(), timing),
            timing,
            version: None,
            identity,
            namespace,
            pulse: Pulse::default(),
            metrics,
            events: None,
        }
    }

    /// Also says in Events who leads (M-13).
    #[must_use]
    pub fn with_events(self, events: EventRecorder) -> Self {
        Self {
            events: Some(events),
            ..self
        }
    }

    /// Tells by this pulse when it renewed, instead of by one that nobody else has.
    #[must_use]
    pub fn with_pulse(self, pulse: Pulse) -> Self {
        Self { pulse, ..self }
    }

    /// Leads whenever possible, until `shutdown` is cancelled: each term calls `lead` anew with a token that is cancelled
    /// when the term ends. At shutdown the lease is kept until `lead` has returned, and then released; when
    /// the lease is lost, `lead` has part of what is left of its duration to return and is then dropped.
    pub async fn run<F, Fut>(mut self, shutdown: CancellationToken, mut lead: F)
    where
        F: FnMut(CancellationToken) -> Fut,
        Fut: Future<Output = ()>,
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

    /// Works and renews. True when the work has returned while the lease was held.
    async fn lead(
        &mut self,
        work: impl Future<Output = ()>,
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
            () = &mut work => return true,
            () = lost => {}
            // Never ends: drains while the lease goes on being renewed.
            () = async { shutdown.cancelled().await; term.cancel(); std::future::pending().await } => {}
        }
        tracing::error!(identity = self.identity, "lost the lease: stopping all work");
        term.cancel();
        if timeout_at(self.last_renewal() + self.timing.write_limit(), work)
            .await
            .is_err()
        {
            tracing::error!(
                identity = self.identity,
                "work had not stopped when the lease came to its end: dropped"
            );
        }
        false
    }

    /// Tries until the lease is ours. False when `shutdown` came first.
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

    /// Renews within the renew deadline, counted from the last renewal. False when the lease is lost.
    async fn renew(&mut self) -> bool {
        let (deadline, pause) = (
            self.last_renewal() + self.timing.renew_deadline,
            self.timing.retry_period,
        );
        let renewed = timeout_at(deadline, async {
            while !self.try_hold().await {
                if self.election.is_taken() {
                    return false;
                }
                sleep(pause).await;
            }
            true
        });
        renewed.await.unwrap_or(false)
    }

    fn last_renewal(&self) -> Instant {
        self.pulse.renewed().unwrap_or_else(Instant::now)
    }

    /// One try to acquire or renew.
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
            .filter(|_| self.election.may_renew_blindly(Instant::now()))
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

    /// Writes ourselves into the lease of that version; without one creates it.
    async fn write(&mut self, version: Option<Version>) -> Result<(), LeaseError> {
        // What counts is when we set out, not when the answer came.
        let (set_out, record) = (
            Instant::now(),
            self.election.claim(lease::micros(Timestamp::now())),
        );
        self.version = Some(self.leases.write(&record, version).await?);
        self.election.observe(Some(record), set_out);
        self.pulse.set(Some(set_out));
        Ok(())
    }

    /// Lets a successor start at once. Best effort: otherwise the lease expires.
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
        self.pulse.set(None);
        self.announce("stopped leading");
    }

    fn announce(&self, what: &str) {
        let Some(events) = &self.events else { return };
        events.record(Note {
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
