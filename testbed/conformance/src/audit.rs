//! What the apiserver has answered, while it answers.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use kube::Client;
use nodewise_testbed::{AuditEvent, AuditTail, ControlPlane};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::space::DEADLINE;

/// How often the log is looked at: so often that who is killed for what it says has hardly gone on.
const PAUSE: Duration = Duration::from_millis(2);

/// All requests of one control plane so far; ends when dropped.
#[derive(Debug)]
pub struct Audit {
    events: Arc<Mutex<Vec<AuditEvent>>>,
    count: watch::Receiver<usize>,
    /// Why it cannot be read any more.
    broken: Arc<Mutex<Option<anyhow::Error>>>,
    reading: JoinHandle<()>,
}

/// A place in the audit log.
#[derive(Debug, Clone, Copy)]
pub struct Place(usize);

impl Place {
    /// Before everything.
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
            // Who waits learns of it by the end of the channel.
            drop(told);
        });
        Ok(Self {
            events,
            count,
            broken,
            reading,
        })
    }

    /// The place after everything that is known by now; what was answered a moment ago may not be.
    #[must_use]
    pub fn place(&self) -> Place {
        Place(self.events().len())
    }

    /// What was answered since then and is known by now.
    #[must_use]
    pub fn since(&self, place: Place) -> Vec<AuditEvent> {
        self.events()[place.0..].to_vec()
    }

    /// Waits for the first answer since then that `wanted` wants.
    ///
    /// # Errors
    /// The log cannot be read any more.
    pub async fn first(&self, place: Place, wanted: impl Fn(&AuditEvent) -> bool) -> Result<AuditEvent> {
        let (mut count, mut looked) = (self.count.clone(), place.0);
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

    /// Waits until everything that was answered before this call is known.
    ///
    /// # Errors
    /// The apiserver does not answer.
    pub async fn caught_up(&self, client: &Client) -> Result<()> {
        let place = self.place();
        // An answer is written down just after it was given. So one more question is asked, and when that one can be read,
        // the earlier ones can be too.
        let mark = format!("/version?mark={:032x}", rand::random::<u128>());
        client
            .request_text(http::Request::get(&mark).body(Vec::new())?)
            .await
            .context("asking the apiserver for its version")?;
        let seen = self.first(place, |event| event.uri == mark);
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

/// Reads until that fails.
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
