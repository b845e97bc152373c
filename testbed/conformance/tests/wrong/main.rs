//! The kit can fail: executors that are wrong in one way each fail the case that is about it, and without that defect the same
//! cases pass.

mod executor;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{Case, Run, all_cases};

use executor::Defect;

/// What is wrong, the case that must fail, and a part of why.
const DEFECTS: [(Defect, &str, &str); 14] = [
    (Defect::AllAtOnce, "slow-start-batches", "a batch of"),
    (
        Defect::NamesRevisionsItself,
        "writes-are-planned",
        "no plan named this",
    ),
    (
        Defect::IgnoresBudgets,
        "roll-max-unavailable-number",
        "nodes were unavailable, 3 may be",
    ),
    (Defect::GoesOnAlone, "service-away", "written without a plan"),
    (Defect::AsksAllTheTime, "idle", "nothing had changed"),
    (
        Defect::SendsEverything,
        "buckets-by-digest",
        "buckets were sent again",
    ),
    (
        Defect::LosesUnknownFields,
        "unknown-fields",
        "it had something to do",
    ),
    (Defect::HoldsNothing, "late-watches", "was asked for again"),
    (Defect::BelievesAnybody, "tls-foreign", "a server was believed"),
    (
        Defect::DeletesUnchecked,
        "wrong-plan-delete",
        "a wrong plan was carried out",
    ),
    (
        Defect::CreatesUnchecked,
        "wrong-plan-count",
        "a wrong plan was carried out",
    ),
    (
        Defect::CreatesUnchecked,
        "wrong-plan-node",
        "a wrong plan was carried out",
    ),
    (
        Defect::KeepsRefusedState,
        "wrong-plan-state",
        "the rollout of agent",
    ),
    (Defect::Deaf, "sigterm-at-rest", "SIGTERM must end it"),
];

/// Which of them this program is, when it is an executor: its place in the list, or anything else for none.
const DEFECT: &str = "NODEWISE_TEST_DEFECT";

/// This test is what the others start as an executor.
#[test]
#[ignore = "an executor for the other tests"]
fn wrong_executor() -> Result<()> {
    let Ok(defect) = std::env::var(DEFECT) else {
        return Ok(());
    };
    let place = defect.parse().ok();
    let defect = place.and_then(|place: usize| DEFECTS.get(place));
    executor::run(defect.map_or(Defect::None, |defect| defect.0))
}

/// The command that makes this program such an executor.
fn command(defect: impl std::fmt::Display) -> Result<String> {
    let own = std::env::current_exe()?;
    let own = own.display();
    Ok(format!(
        "env {DEFECT}={defect} '{own}' --exact wrong_executor --ignored --nocapture"
    ))
}

fn cases(ids: &[&str]) -> Vec<Case> {
    let mut cases = all_cases();
    cases.retain(|case| ids.contains(&case.id));
    assert_eq!(cases.len(), ids.len(), "{ids:?}");
    cases
}

/// The cases that failed, and why.
async fn failures(executor: String, ids: &[&str], deadline: Duration) -> Result<Vec<(&'static str, String)>> {
    let run = Run {
        executor,
        lanes: 1,
        deadline,
        logs: None,
    };
    let outcomes = run.run(&cases(ids), |_| ()).await?;
    assert_eq!(outcomes.len(), ids.len());
    let failed = outcomes
        .into_iter()
        .filter_map(|outcome| Some((outcome.id, outcome.failure?)));
    Ok(failed.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_defect_is_noticed() -> Result<()> {
    for (place, (defect, case, reason)) in DEFECTS.into_iter().enumerate() {
        let failed = failures(command(place)?, &[case], Duration::from_secs(15)).await?;
        let (_, why) = failed
            .first()
            .with_context(|| format!("{case} passes with {defect:?}"))?;
        ensure!(why.contains(reason), "{defect:?} fails {case}, but so: {why}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_defect_the_same_cases_pass() -> Result<()> {
    let ids = DEFECTS.map(|(_, case, _)| case);
    let failed = failures(command("none")?, &ids, Duration::from_mins(1)).await?;
    ensure!(failed.is_empty(), "{failed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_ignores_the_selector_fails_and_says_so() -> Result<()> {
    // The case's flags become those of the shell, which heeds none.
    let executor = format!("sh -c \"exec {}\"", command("none")?);
    let failed = failures(executor, &["only-selected"], Duration::from_secs(15)).await?;
    ensure!(
        failed
            .iter()
            .any(|(_, why)| why.contains("which is not selected")),
        "{failed:?}"
    );
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
