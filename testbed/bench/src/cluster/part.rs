//! The measurement of one part of a rollout.

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use jiff::Timestamp;
use nodewise_testbed::{AuditEvent, Component, ControlPlane};

use super::owner::Owner;
use crate::figure::figure;
use crate::measure;

/// The measurements of one part of a rollout.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Wall-clock time, in seconds.
    pub(super) seconds: f64,
    /// CPU time of each process of the owner, in seconds, in the order of [`Owner::cpu_times`].
    pub(super) process_cpu: Vec<f64>,
    /// CPU time of kube-apiserver, in seconds, whatever it was used for.
    pub(super) apiserver_cpu: f64,
    /// The number of the owner's requests to the apiserver.
    pub(super) calls: f64,
}

/// As part of a sentence: "5.1 s, 2.2 CPU s, 5,056 calls, 8.1 CPU s of kube-apiserver".
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [seconds, cpu, calls] = [self.seconds, self.cpu_seconds(), self.calls].map(figure);
        let apiserver = figure(self.apiserver_cpu);
        write!(
            f,
            "{seconds} s, {cpu} CPU s, {calls} calls, {apiserver} CPU s of kube-apiserver"
        )
    }
}

impl Part {
    /// Carries out a part and measures it. `user` is the owner's name at the apiserver. Also returns all audit events since the part
    /// began.
    pub(super) async fn measure(
        plane: &ControlPlane,
        owner: &Owner,
        user: &str,
        part: impl AsyncFnOnce() -> Result<()>,
    ) -> Result<(Self, Vec<AuditEvent>)> {
        let apiserver = plane.pid(Component::Apiserver)?;
        let apiserver_before = measure::cpu_time(apiserver)?;
        let (cpu, began, clock) = (owner.cpu_times()?, Timestamp::now(), Instant::now());
        part().await?;
        let (took, cpu_until) = (clock.elapsed(), owner.cpu_times()?);
        let apiserver_cpu = measure::cpu_time(apiserver)?.saturating_sub(apiserver_before);
        let process_cpu = cpu_until.iter().zip(cpu);
        let process_cpu = process_cpu.map(|(until, from)| until.saturating_sub(from).as_secs_f64());
        let mut events = plane.audit_events().await?;
        events.retain(|event| event.received >= began);
        let calls = events.iter().filter(|event| event.user == user && event.complete);
        #[expect(clippy::cast_precision_loss, reason = "some ten thousand calls")]
        let calls = calls.count() as f64;
        let part = Self {
            seconds: took.as_secs_f64(),
            process_cpu: process_cpu.collect(),
            apiserver_cpu: apiserver_cpu.as_secs_f64(),
            calls,
        };
        Ok((part, events))
    }

    /// CPU time of the owner, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.process_cpu.iter().sum()
    }
}
