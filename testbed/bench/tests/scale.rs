//! Runs the section about very large clusters on a small one.

use anyhow::Result;
use nodewise_bench::objects::LargeSize;
use nodewise_bench::scale::{self, Programs, Round, Size};
use nodewise_conformance::binaries;

#[tokio::test]
async fn caches_and_plans_are_measured() -> Result<()> {
    let built = tokio::task::spawn_blocking(binaries).await??;
    let programs = Programs {
        caches: env!("CARGO_BIN_EXE_nodewise-bench-caches").into(),
        server: built.server.clone(),
    };
    let size = |pods| Size {
        cluster: LargeSize {
            nodes: 300,
            pods,
            daemon_sets: 2,
        },
        calls: [2, 4],
        rounds: 1,
    };
    let Round {
        caches: round,
        pods_alone_mb,
    } = scale::run(size(20_000), &programs).await?;
    // A pod takes at least its name, its uid and the name of its node.
    assert!(
        pods_alone_mb > round.empty_mb + 20_000.0 * 80.0 / 1e6,
        "{pods_alone_mb} MB"
    );
    assert!(round.empty_mb > 0.0 && round.nodes_peak_mb > 0.0, "{round:?}");
    assert!(round.pods_mb > round.nodes_mb, "{round:?}");
    assert!(round.pods_peak_mb > round.empty_mb && round.requests_peak_mb >= round.pods_peak_mb);
    assert!(round.reading > 0.0 && round.caching > 0.0);
    assert!(round.inline.p50 > 0.0 && round.changed.p50 > 0.0);
    assert!(round.changed.sent_kb < round.inline.sent_kb, "{round:?}");
    assert!(round.inline.server_peak_mb > 1.0 && round.changed.server_peak_mb > 1.0);

    let finding = scale::measure(size(700), &programs).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    assert_eq!(finding.targets.len(), 1);

    // What is wrong with its arguments ends the program.
    assert!(scale::run(size(500), &programs).await.is_err());
    Ok(())
}
