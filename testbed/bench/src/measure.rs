//! Times over rounds, and what processes take.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use procfs::process::Process;
use serde::{Deserialize, Serialize};

use crate::report::figure;

/// Values of one kind over rounds, the least first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// Of these values.
    ///
    /// # Errors
    /// There are none, or one is no number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Result<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        ensure!(!values.is_empty(), "nothing was measured");
        ensure!(
            values.iter().all(|value| value.is_finite()),
            "{values:?} are not all numbers"
        );
        values.sort_by(f64::total_cmp);
        Ok(Self(values))
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// That of which as many are less as are more; of two in the middle the greater.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// The most.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// How many there are.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.0.len()
    }
}

/// The median, and from the least to the most.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (figure(self.min()), figure(self.max()));
        write!(f, "{}", figure(self.median()))?;
        if min != max {
            write!(f, " ({min}–{max})")?;
        }
        Ok(())
    }
}

/// CPU time that a process took so far, in user and kernel mode, with all its threads.
///
/// # Errors
/// There is no such process.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = of(pid)?.stat().with_context(|| format!("the times of {pid}"))?;
    #[expect(clippy::cast_precision_loss, reason = "ticks of a few minutes")]
    let seconds = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
    Ok(Duration::from_secs_f64(seconds))
}

/// CPU time that each thread of a process took so far, to the nanosecond: [`cpu_time`] counts in hundredths of a second.
#[derive(Clone, Debug)]
pub struct ThreadTimes(BTreeMap<i32, Duration>);

impl ThreadTimes {
    /// Of the threads that live now.
    ///
    /// # Errors
    /// There is no such process, or the kernel does not count.
    pub fn of(pid: u32) -> Result<Self> {
        let mut times = BTreeMap::new();
        for thread in of(pid)?
            .tasks()
            .with_context(|| format!("the threads of {pid}"))?
            .flatten()
        {
            // One that ends meanwhile is none of them.
            if let Ok(times_of) = thread.schedstat() {
                times.insert(thread.tid, Duration::from_nanos(times_of.sum_exec_runtime));
            }
        }
        ensure!(
            times.values().any(|time| !time.is_zero()),
            "the kernel counts no time of the threads of {pid}"
        );
        Ok(Self(times))
    }

    /// What they took after `before`. What threads took that ended meanwhile is not in it: tokio ends those that had nothing to
    /// do for ten seconds.
    #[must_use]
    pub fn since(&self, before: &Self) -> Duration {
        let earlier = |thread| before.0.get(thread).copied().unwrap_or_default();
        let took = self
            .0
            .iter()
            .map(|(thread, time)| time.saturating_sub(earlier(thread)));
        took.sum()
    }
}

/// The most memory that a process had resident so far, in MB (10^6 bytes).
///
/// # Errors
/// There is no such process.
pub fn peak_memory_mb(pid: u32) -> Result<f64> {
    let status = of(pid)?.status().with_context(|| format!("the state of {pid}"))?;
    let kib = status.vmhwm.with_context(|| format!("{pid} has no memory"))?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(kib as f64 * 1_024.0 / 1e6)
}

fn of(pid: u32) -> Result<Process> {
    Process::new(i32::try_from(pid)?).with_context(|| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_an_order() -> Result<()> {
        let spread = Spread::of([3.0, 1.0, 2.0, 10.0])?;
        assert_eq!(
            (spread.min(), spread.median(), spread.max(), spread.rounds()),
            (1.0, 3.0, 10.0, 4)
        );
        assert_eq!(spread.to_string(), "3 (1–10)");
        assert_eq!(Spread::of([2.5])?.to_string(), "2.5");
        assert!(Spread::of([]).is_err());
        assert!(Spread::of([f64::NAN]).is_err());
        Ok(())
    }

    #[test]
    fn this_process_takes_something() -> Result<()> {
        let pid = std::process::id();
        assert!(peak_memory_mb(pid)? > 0.1);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while cpu_time(pid)?.is_zero() {
            assert!(std::time::Instant::now() < end, "no time passes");
        }
        assert!(cpu_time(u32::MAX).is_err());
        Ok(())
    }

    #[test]
    fn threads_of_this_process_take_something() -> Result<()> {
        let pid = std::process::id();
        let before = ThreadTimes::of(pid)?;
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while ThreadTimes::of(pid)?.since(&before).is_zero() {
            assert!(std::time::Instant::now() < end, "no time passes");
        }
        assert!(ThreadTimes::of(u32::MAX).is_err());
        Ok(())
    }

    #[test]
    fn threads_begin_and_end() {
        let times = |threads: &[(i32, u64)]| {
            let threads = threads.iter();
            ThreadTimes(
                threads
                    .map(|&(thread, ms)| (thread, Duration::from_millis(ms)))
                    .collect(),
            )
        };
        let before = times(&[(1, 10), (2, 5)]);
        let after = times(&[(1, 12), (3, 4)]);
        assert_eq!(after.since(&before), Duration::from_millis(6));
    }
}
