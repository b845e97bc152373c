//! CPU affinity. Processes inherit it from the thread that starts them.

use std::thread;

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this thread may use.
///
/// # Errors
/// The system call fails.
pub fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("asking which cores may be used")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Runs `work` on a new thread that is pinned to these cores. Threads and processes that it starts inherit the
/// affinity.
///
/// # Errors
/// The cores may not be used, the work fails, or it panics.
pub fn on<T: Send>(cores: &[usize], work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let mut set = CpuSet::new();
    for &core in cores {
        ensure!(core < CpuSet::MAX_CPU, "there is no core {core}");
        set.set(core);
    }
    let keep = || sched_setaffinity(None, &set).with_context(|| format!("keeping to the cores {cores:?}"));
    thread::scope(|scope| {
        let thread = scope.spawn(|| keep().and_then(|()| work()));
        thread.join().map_err(|_| anyhow!("what was measured panicked"))?
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn work_and_its_processes_are_pinned() -> Result<()> {
        let all = allowed()?;
        let last = *all.last().context("a core")?;
        let told = on(&[last], || {
            assert_eq!(allowed()?, [last]);
            let status = Command::new("cat").arg("/proc/self/status").output()?;
            Ok(String::from_utf8(status.stdout)?)
        })?;
        let line = told
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(line.map(str::trim), Some(last.to_string().as_str()));
        assert_eq!(allowed()?, all, "nobody else does");
        Ok(())
    }

    #[test]
    fn errors_are_returned() {
        assert!(on(&[], || Ok(())).is_err(), "on no core");
        assert!(on(&[CpuSet::MAX_CPU], || Ok(())).is_err());
        let error = allowed().and_then(|all| on(&all, || -> Result<()> { Err(anyhow!("it failed")) }));
        assert_eq!(error.expect_err("an error").to_string(), "it failed");
    }
}
