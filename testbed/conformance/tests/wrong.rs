//! The kit can fail: executors that are wrong in one way each fail the cases that are about it, and those without that defect
//! pass the same ones.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{Case, Run, all_cases};

/// What is wrong, the case that must fail, and a part of why.
const DEFECTS: [(&str, &str, &str); 8] = [
    ("all-at-once", "slow-start-batches", "a batch of"),
    (
        "names-revisions-itself",
        "writes-are-planned",
        "no plan named this",
    ),
    (
        "ignores-budgets",
        "roll-max-unavailable-number",
        "the budget to be used",
    ),
    ("goes-on-alone", "service-away", "written without a plan"),
    ("asks-all-the-time", "idle", "nothing had changed"),
    ("sends-everything", "buckets-by-digest", "buckets were sent again"),
    ("loses-unknown-fields", "unknown-fields", "it had something to do"),
    ("deaf", "sigterm-at-rest", "SIGTERM must end it"),
];

/// The example that is built beside this test.
fn wrong_executor() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(|deps| deps.parent());
    let path = folder.context("a target folder")?.join("examples/wrong_executor");
    ensure!(path.exists(), "{} is built with the tests", path.display());
    Ok(path)
}

fn cases(ids: &[&str]) -> Vec<Case> {
    let mut cases = all_cases();
    cases.retain(|case| ids.contains(&case.id));
    assert_eq!(cases.len(), ids.len(), "{ids:?}");
    cases
}

async fn failures(executor: String, ids: &[&str], deadline: Duration) -> Result<Vec<(&'static str, String)>> {
    let run = Run {
        executor,
        lanes: 1,
        deadline,
        logs: None,
    };
    let outcomes = run.run(&cases(ids), |_| ()).await?;
    assert_eq!(outcomes.len(), ids.len());
    let failed = outcomes.into_iter().filter_map(|outcome| Some((outcome.id, outcome.failure?)));
    Ok(failed.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_defect_is_noticed() -> Result<()> {
    let program = wrong_executor()?;
    for (defect, case, reason) in DEFECTS {
        let command = format!("{} {defect}", program.display());
        let failed = failures(command, &[case], Duration::from_secs(15)).await?;
        let why = failed.first().with_context(|| format!("{case} passes an executor that is {defect}"))?;
        ensure!(why.1.contains(reason), "{defect} fails {case}, but so: {}", why.1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_defect_the_same_cases_pass() -> Result<()> {
    let ids = DEFECTS.map(|(_, case, _)| case);
    let command = format!("{} none", wrong_executor()?.display());
    let failed = failures(command, &ids, Duration::from_mins(1)).await?;
    ensure!(failed.is_empty(), "{failed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_nothing_or_ends_fails_and_says_so() -> Result<()> {
    let ids = ["create-one-pod-per-node", "sigterm-at-rest"];
    let failed = failures("sleep 600".into(), &ids, Duration::from_secs(5)).await?;
    ensure!(failed.len() == 2, "{failed:?}");
    let failed = failures("false".into(), &ids, Duration::from_mins(1)).await?;
    ensure!(
        failed.len() == 2 && failed.iter().all(|(_, why)| why.contains("has ended")),
        "{failed:?}"
    );
    Ok(())
}
