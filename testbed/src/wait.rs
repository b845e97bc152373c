//! Waiting for a condition with a deadline, instead of sleeping.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep, timeout_at};

/// The shortest pause between two probes.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `probe` until it succeeds, and returns its value.
///
/// The error of `probe` says what is missing ("17 of 20 pods are ready"). After `deadline`, the returned error contains
/// `what` and the last error. A slow probe, such as a list of thousands of pods, is called less often, to limit its
/// load.
///
/// # Errors
/// The deadline passed.
pub async fn eventually<T>(
    deadline: Duration,
    what: impl Display,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut last = anyhow!("the first look did not come to an end");
    loop {
        let began = Instant::now();
        match timeout_at(end, probe()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => last = error,
            Err(_) => {}
        }
        let pause = PAUSE.max(began.elapsed());
        if Instant::now() + pause >= end {
            return Err(last.context(format!("{what}: not so within {deadline:?}")));
        }
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use anyhow::{Result, ensure};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn returns_the_value_of_the_probe() -> Result<()> {
        let mut looks = 0;
        let value = eventually(Duration::from_secs(5), "three looks", async || {
            looks += 1;
            ensure!(looks >= 3, "{looks} so far");
            Ok(looks)
        })
        .await?;
        assert_eq!(value, 3);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn error_has_the_last_error_of_the_probe() {
        let error = eventually(Duration::from_secs(1), "20 ready pods", async || -> Result<()> {
            Err(anyhow!("17 are ready"))
        })
        .await
        .expect_err("the probe never succeeds");
        assert_eq!(
            format!("{error:#}"),
            "20 ready pods: not so within 1s: 17 are ready"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_hangs_does_not_outlive_the_deadline() {
        let began = Instant::now();
        let probe = async || pending::<Result<()>>().await;
        eventually(Duration::from_secs(2), "an answer", probe)
            .await
            .expect_err("the probe never ends");
        assert!(began.elapsed() <= Duration::from_secs(2));
    }
}
