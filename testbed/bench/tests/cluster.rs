//! The section of rollouts, small: both owners and the bare loop on a real apiserver.

use anyhow::Result;
use nodewise_bench::cluster::{self, Programs, Size};
use nodewise_conformance::binaries;

#[tokio::test]
async fn both_owners_are_measured() -> Result<()> {
    let built = tokio::task::spawn_blocking(binaries).await??;
    let programs = Programs {
        server: built.server.clone(),
        executor: built.executor.clone(),
    };
    let size = Size {
        nodes: 20,
        foreign_pods: 30,
        rounds: 1,
    };
    let finding = cluster::measure(size, &programs).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    // As many creates as nodes, and the DaemonSet's revision and status: fewer would be no rollout.
    let calls = finding.rows.iter().find(|row| row[0] == "create: API calls");
    let calls = calls.expect("calls are counted");
    for owner in 1..=2 {
        let count: f64 = calls[owner].parse()?;
        assert!(count > 21.0, "{calls:?}");
    }
    assert_eq!(finding.targets.len(), 7);
    Ok(())
}
