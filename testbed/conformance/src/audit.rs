//! Reads the apiserver's audit log while the apiserver writes it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use kube::Client;
use nodewise_testbed::{AuditEvent, AuditTail, ControlPlane};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::deadline::DEADLINE;

/// The interval between reads of the log. It is short, so that a test can kill an executor right after one of its
/// writes.
const PAUSE: Duration = Duration::from_millis(2);

/// All audit events of one control plane so far. Reading ends when the value is dropped.
#[derive(Debug)]
pub struct Audit {
    events: Arc<Mutex<Vec<AuditEvent>>>,
    count: watch::Receiver<usize>,
    /// The error that ended the reading of the log.
    broken: Arc<Mutex<Option<anyhow::Error>>>,
    reading: JoinHandle<()>,
}

/// A position in the audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditPosition(usize);

impl AuditPosition {
    /// The start of the log.
    pub const BEGINNING: Self = Self(0);
}

impl Audit {
    pub(crate) fn of(plane: &ControlPlane) -> Result<Self> {
        let events = Arc::default();
        let broken = Arc::<Mutex<Option<anyhow::Error>>>::default();
        let (told, count) = watch::channel(0);
        let (tail, read, why) = (plane.audit_tail()?, Arc::clone(&events), Arc::clone(&broken));
        let reading = tokio::spawn(async move {
            let error = follow(tail, read, &told).await;
            *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            // Closing the channel wakes the waiting tests.
            drop(told);
        });
        Ok(Self {
            events,
            count,
            broken,
            reading,
        })
    }

    /// The position after the last event read so far. Events of the last few milliseconds may still be missing.
    #[must_use]
    pub fn position(&self) -> AuditPosition {
        AuditPosition(self.events().len())
    }

    /// The events read so far that come after `position`.
    #[must_use]
    pub fn since(&self, position: AuditPosition) -> Vec<AuditEvent> {
        self.events()[position.0..].to_vec()
    }

    /// Waits for the first event after `position` that `wanted` accepts.
    ///
    /// # Errors
    /// The log can no longer be read.
    pub async fn first(
        &self,
        position: AuditPosition,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<AuditEvent> {
        let (mut count, mut looked) = (self.count.clone(), position.0);
        loop {
            {
                let events = self.events();
                if let Some(found) = events[looked..].iter().find(|event| wanted(event)) {
                    return Ok(found.clone());
                }
                looked = events.len();
            }
            if count.wait_for(|count| *count > looked).await.is_err() {
                let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
                bail!("the audit log cannot be read any more: {broken:#?}");
            }
        }
    }

    /// Waits until every request that was answered before this call is in the log.
    ///
    /// # Errors
    /// The apiserver does not answer.
    pub async fn caught_up(&self, client: &Client) -> Result<()> {
        let position = self.position();
        // The apiserver logs a response just after it has sent it. A marker request is logged after all earlier ones.
        let mark = format!("/version?mark={:032x}", rand::random::<u128>());
        client
            .request_text(http::Request::get(&mark).body(Vec::new())?)
            .await
            .context("asking the apiserver for its version")?;
        let seen = self.first(position, |event| event.uri == mark);
        timeout(DEADLINE, seen)
            .await
            .context("the audit log stands still")??;
        Ok(())
    }

    fn events(&self) -> MutexGuard<'_, Vec<AuditEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Reads the log until reading fails, and returns the error.
async fn follow(
    mut tail: AuditTail,
    events: Arc<Mutex<Vec<AuditEvent>>>,
    told: &watch::Sender<usize>,
) -> anyhow::Error {
    let mut looks = tokio::time::interval(PAUSE);
    loop {
        looks.tick().await;
        let new = match tail.read() {
            Ok(new) => new,
            Err(error) => return error,
        };
        if !new.is_empty() {
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            events.extend(new);
            told.send_replace(events.len());
        }
    }
}
