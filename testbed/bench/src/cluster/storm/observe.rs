//! Observes an owner during a storm: how often it plans or syncs, how long keys wait in its queues, and its memory.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::{MissedTickBehavior, interval};

use super::super::owner::{Owner, OwnerKind};
use crate::samples;

/// How often the owner is observed. More often, its metrics would be a part of its CPU time.
pub(super) const EVERY: Duration = Duration::from_millis(250);
/// The queue of DaemonSets in kube-controller-manager.
const QUEUE: [(&str, &str); 1] = [("name", "daemonset")];

/// What was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Observed {
    /// The longest time in which no plan or sync ended, in seconds.
    pub(super) longest_gap: f64,
    /// The longest mean time in [`EVERY`] that keys waited in a queue, in seconds.
    pub(super) longest_wait: f64,
    /// The most resident memory in the first half of the storm, in MB.
    pub(super) first_half_mb: f64,
    /// The same for the second half.
    pub(super) second_half_mb: f64,
}

/// An observation.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The time since the first one.
    at: Duration,
    /// How many plans the executor has received, or syncs kube-controller-manager has ended.
    done: f64,
    /// How many keys workers have taken from all queues, and how long they waited together, in seconds. kube-controller-manager
    /// has a second queue, of changed nodes.
    taken: f64,
    waited: f64,
    memory_mb: f64,
}

impl Sample {
    async fn take(owner: &Owner, who: OwnerKind, begun: Instant) -> Result<Self> {
        let text = owner.metrics().await?;
        let of_all = |name| samples::sum(&text, name, &[]);
        Ok(Self {
            done: match who {
                OwnerKind::Upstream => samples::sum(&text, "workqueue_work_duration_seconds_count", &QUEUE)?,
                // An executor also takes a key from its queue to find that its caches are behind its writes.
                OwnerKind::Nodewise => of_all("nodewise_plans_total")?,
            },
            taken: of_all("workqueue_queue_duration_seconds_count")?,
            waited: of_all("workqueue_queue_duration_seconds_sum")?,
            memory_mb: owner.memory_mb()?,
            at: begun.elapsed(),
        })
    }
}

/// Observes the owner while something happens, of which the storm takes this time from the beginning.
pub(super) async fn during<T>(
    owner: &Owner,
    who: OwnerKind,
    storm: Duration,
    happens: impl Future<Output = Result<T>>,
) -> Result<(T, Observed)> {
    let begun = Instant::now();
    let mut all = vec![Sample::take(owner, who, begun).await?];
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let result = {
        let observe = async {
            loop {
                ticks.tick().await;
                all.push(Sample::take(owner, who, begun).await?);
            }
        };
        tokio::select! {
            result = happens => result?,
            failed = observe => return failed,
        }
    };
    all.push(Sample::take(owner, who, begun).await?);
    Ok((result, observed(&all, storm)))
}

fn observed(samples: &[Sample], storm: Duration) -> Observed {
    let mut observed = Observed::default();
    let mut last_end = Duration::ZERO;
    for pair in samples.windows(2) {
        let [before, now] = [pair[0], pair[1]];
        observed.longest_gap = observed
            .longest_gap
            .max(now.at.saturating_sub(last_end).as_secs_f64());
        if now.done > before.done {
            last_end = now.at;
        }
        if now.taken > before.taken {
            let mean = (now.waited - before.waited) / (now.taken - before.taken);
            observed.longest_wait = observed.longest_wait.max(mean);
        }
    }
    let most = |from: Duration, to: Duration| {
        let within = samples
            .iter()
            .filter(|sample| from <= sample.at && sample.at < to);
        within.map(|sample| sample.memory_mb).fold(0.0, f64::max)
    };
    observed.first_half_mb = most(Duration::ZERO, storm / 2);
    observed.second_half_mb = most(storm / 2, storm);
    observed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: f64, done: f64, waited: f64, memory_mb: f64) -> Sample {
        Sample {
            at: Duration::from_secs_f64(at),
            done,
            taken: done,
            waited,
            memory_mb,
        }
    }

    #[test]
    fn gaps_waits_and_memory_are_observed() {
        let samples = [
            sample(0.0, 4.0, 1.0, 50.0),
            sample(0.25, 6.0, 1.2, 60.0),
            sample(0.5, 6.0, 1.2, 70.0),
            sample(0.75, 6.0, 1.2, 65.0),
            sample(1.0, 7.0, 1.7, 71.0),
            // After the storm.
            sample(1.25, 8.0, 1.8, 99.0),
        ];
        let observed = observed(&samples, Duration::from_secs_f64(1.1));
        assert!((observed.longest_gap - 0.75).abs() < 1e-9, "{observed:?}");
        assert!((observed.longest_wait - 0.5).abs() < 1e-9, "{observed:?}");
        assert!((observed.first_half_mb - 70.0).abs() < 1e-9, "{observed:?}");
        assert!((observed.second_half_mb - 71.0).abs() < 1e-9, "{observed:?}");
    }

    #[test]
    fn an_owner_that_does_nothing_has_one_gap() {
        let samples = [sample(0.0, 4.0, 1.0, 50.0), sample(3.0, 4.0, 1.0, 50.0)];
        let observed = observed(&samples, Duration::from_secs(3));
        assert!((observed.longest_gap - 3.0).abs() < 1e-9 && observed.longest_wait == 0.0);
    }
}
