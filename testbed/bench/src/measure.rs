//! Values over rounds, and CPU time and memory of processes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use procfs::process::Process;
use serde::{Deserialize, Serialize};

use crate::figure::figure;

/// The values of a quantity over all rounds, sorted ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// Sorts these values.
    ///
    /// # Errors
    /// There are no values, or one is not finite.
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

    /// The minimum.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The median; of two middle values the greater one.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// The maximum.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The number of values.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.0.len()
    }
}

/// The median, with minimum and maximum.
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

/// The CPU time of a process so far, in user and kernel mode, over all threads.
///
/// # Errors
/// The process does not exist.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = of(pid)?.stat().with_context(|| format!("the times of {pid}"))?;
    #[expect(clippy::cast_precision_loss, reason = "ticks of a few minutes")]
    let seconds = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
    Ok(Duration::from_secs_f64(seconds))
}

/// The CPU time of each thread of a process so far, in nanoseconds. [`cpu_time`] has a resolution of 10 ms.
#[derive(Clone, Debug)]
pub struct ThreadTimes(BTreeMap<i32, Duration>);

impl ThreadTimes {
    /// Reads the CPU time of the present threads.
    ///
    /// # Errors
    /// The process does not exist, or the kernel does not account CPU time.
    pub fn of(pid: u32) -> Result<Self> {
        let mut times = BTreeMap::new();
        for thread in of(pid)?
            .tasks()
            .with_context(|| format!("the threads of {pid}"))?
            .flatten()
        {
            // A thread that has just ended is skipped.
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

    /// The CPU time since `before`, without threads that have ended since: tokio ends threads that were idle for ten
    /// seconds.
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

/// The resident memory of a process now, in MB (10^6 bytes).
///
/// # Errors
/// The process does not exist.
pub fn memory_mb(pid: u32) -> Result<f64> {
    let status = of(pid)?.status().with_context(|| format!("the state of {pid}"))?;
    Ok(megabytes(
        status.vmrss.with_context(|| format!("{pid} has no memory"))?,
    ))
}

/// The peak resident memory of a process so far, in MB (10^6 bytes).
///
/// # Errors
/// The process does not exist.
pub fn peak_memory_mb(pid: u32) -> Result<f64> {
    let status = of(pid)?.status().with_context(|| format!("the state of {pid}"))?;
    Ok(megabytes(
        status.vmhwm.with_context(|| format!("{pid} has no memory"))?,
    ))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1_024.0 / 1e6
}

fn of(pid: u32) -> Result<Process> {
    Process::new(i32::try_from(pid)?).with_context(|| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_min_median_and_max() -> Result<()> {
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
    fn process_usage_is_measured() -> Result<()> {
        let pid = std::process::id();
        assert!(memory_mb(pid)? > 0.1 && peak_memory_mb(pid)? > 0.1);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while cpu_time(pid)?.is_zero() {
            assert!(std::time::Instant::now() < end, "no time passes");
        }
        assert!(cpu_time(u32::MAX).is_err());
        Ok(())
    }

    #[test]
    fn thread_times_are_measured() -> Result<()> {
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
    fn thread_times_ignore_ended_threads() {
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
