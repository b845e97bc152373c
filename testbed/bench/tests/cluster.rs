//! Runs the rollout section on a small cluster with a real apiserver: both owners and the bare loop.

use anyhow::Result;
use nodewise_bench::cluster::{self, Programs, Size, deployments};
use nodewise_conformance::binaries;

const SIZE: Size = Size {
    nodes: 20,
    foreign_pods: 30,
    rounds: 1,
};

async fn programs() -> Result<Programs> {
    let built = tokio::task::spawn_blocking(binaries).await??;
    Ok(Programs {
        server: built.server.clone(),
        executor: built.executor.clone(),
    })
}

#[tokio::test]
async fn concurrent_writes_are_measured() -> Result<()> {
    let finding = cluster::writes::measure(SIZE, &programs().await?).await?;
    let ways: Vec<_> = finding.rows.iter().map(|row| [&*row[0], &*row[1]]).collect();
    let expected = [
        ["64", "exempt"],
        ["250", "exempt"],
        ["64", "ServiceAccount"],
        ["250", "ServiceAccount"],
        ["250", "exempt, bare loop"],
    ];
    assert_eq!(ways, expected);
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    Ok(())
}

#[tokio::test]
async fn both_owners_are_measured() -> Result<()> {
    let finding = cluster::measure(SIZE, &programs().await?).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    // A rollout has one create per node, plus the revision and the status.
    let calls = finding.rows.iter().find(|row| row[0] == "create: API calls");
    let calls = calls.expect("calls are counted");
    for owner in 1..=2 {
        let count: f64 = calls[owner].parse()?;
        assert!(count > 21.0, "{calls:?}");
    }
    assert_eq!(finding.targets.len(), 7);
    Ok(())
}

#[tokio::test]
async fn rollouts_in_stages_are_measured() -> Result<()> {
    let finding = cluster::stages::measure(SIZE, &programs().await?).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    let calls = finding.rows.iter().find(|row| row[0] == "API calls");
    let calls = calls.expect("calls are counted");
    for setting in 1..=2 {
        let count: f64 = calls[setting].parse()?;
        assert!(count >= 40.0, "a delete and a create for each node: {calls:?}");
    }
    Ok(())
}

#[tokio::test]
async fn deployments_are_measured() -> Result<()> {
    let size = deployments::Size {
        pods: 20,
        small: 3,
        at_rest: 4,
        rounds: 1,
    };
    let finding = deployments::measure(size, &programs().await?).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    // At least one create for each pod; one status for each Deployment at rest.
    for (part, least) in [
        ("create", 20.0),
        ("scale to 0", 20.0),
        ("small ones, rolling update", 60.0),
        ("at rest", 4.0),
    ] {
        let calls = finding
            .rows
            .iter()
            .find(|row| row[0] == format!("{part}: API calls"));
        let calls = calls.expect("calls are counted");
        for owner in 1..=2 {
            let count: f64 = calls[owner].parse()?;
            assert!(count >= least, "{calls:?}");
        }
    }
    assert_eq!(finding.targets.len(), 10);
    Ok(())
}
