//! Runs the rollout section on a small cluster with a real apiserver: both owners and the bare loop.

use std::time::Duration;

use anyhow::Result;
use nodewise_bench::cluster::{self, Programs, Size, deployments, storm};
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
    let apiserver = finding
        .rows
        .iter()
        .find(|row| row[0] == "rolling update: CPU seconds of kube-apiserver");
    let apiserver = apiserver.expect("its CPU time is measured");
    for owner in 1..=2 {
        assert!(apiserver[owner].parse::<f64>()? > 0.0, "{apiserver:?}");
    }
    assert_eq!(finding.targets.len(), 9);
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
async fn storms_are_measured() -> Result<()> {
    let size = storm::Size {
        nodes: SIZE.nodes,
        foreign_pods: SIZE.foreign_pods,
        lasts: Duration::from_secs(3),
        flaps: 2,
        rounds: 1,
    };
    let finding = storm::measure(size, &programs().await?).await?;
    assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
    for (name, least) in [
        ("rolling update: seconds", 0.1),
        // As often as the metrics are read.
        ("longest time without a plan or sync: seconds", 0.2),
        // At least one change in the storm, and another one after it.
        ("changes of nodes", 2.0),
        // A delete and a create for each node.
        ("API calls", 40.0),
        ("memory, first half: MB", 1.0),
        ("memory, second half: MB", 1.0),
    ] {
        let row = finding.rows.iter().find(|row| row[0] == name);
        let row = row.expect(name);
        for owner in 1..=2 {
            assert!(row[owner].replace(',', "").parse::<f64>()? >= least, "{row:?}");
        }
    }
    assert_eq!(finding.targets.len(), 2);
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
