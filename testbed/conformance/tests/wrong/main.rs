//! Tests that the kit can fail. An executor with one defect must fail the case for that defect, and an executor without
//! defects must pass the same cases.

mod executor;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{Candidate, Run, all_cases};

use executor::Defect;

/// Long enough for what a case needs before the defect shows, while other control planes start.
const ENOUGH: Duration = Duration::from_secs(40);

/// The defect, the case that must fail, and a part of the failure message.
const DEFECTS: [(Defect, &str, &str); 23] = [
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
    (Defect::ReappliesOldPlan, "service-away", "written without a plan"),
    (Defect::Polls, "idle", "nothing had changed"),
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
    (Defect::DropsState, "late-watches", "was asked for again"),
    (Defect::TrustsAnyAuthority, "tls-foreign", "a server was believed"),
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
    (Defect::IgnoresSigterm, "sigterm-at-rest", "SIGTERM must end it"),
    (Defect::AllAtOnce, "rs-create", "a batch of"),
    // Which of the two shows first depends on how late the watch is.
    (
        Defect::DropsState,
        "rs-late-watches",
        "were needed|was asked for again",
    ),
    (
        Defect::DeletesUnchecked,
        "rs-wrong-plan-delete",
        "a wrong plan was carried out",
    ),
    (
        Defect::CreatesUnchecked,
        "rs-wrong-plan-pod",
        "a wrong plan was carried out",
    ),
    (
        Defect::CreatesUnchecked,
        "deployment-wrong-plan-action",
        "a wrong plan was carried out",
    ),
    (
        Defect::IgnoresBudgets,
        "deployment-min-ready-seconds",
        "pods were ready",
    ),
    (
        Defect::ForgetsPolicies,
        "policy-two-for-one-daemonset",
        "the policy has no target yet",
    ),
    (
        Defect::DeletesInsteadOfEvicting,
        "policy-evict-pdb",
        "a protected pod is gone",
    ),
    (
        Defect::ForgetsTimers,
        "policy-canary-then-zones",
        "revision 2 is \"Soaking\"",
    ),
];

/// The index of the defect in the list; any other value for none. Set when this program runs as an executor.
const DEFECT: &str = "NODEWISE_TEST_DEFECT";

/// Whether it runs Deployments and ReplicaSets instead of DaemonSets.
const OF_REPLICAS: &str = "NODEWISE_TEST_OF_REPLICAS";

/// The other tests start this test as an executor.
#[test]
#[ignore = "an executor for the other tests"]
fn wrong_executor() -> Result<()> {
    let Ok(defect) = std::env::var(DEFECT) else {
        return Ok(());
    };
    let index = defect.parse().ok();
    let defect = index.and_then(|index: usize| DEFECTS.get(index));
    let of_replicas = std::env::var_os(OF_REPLICAS).is_some();
    executor::run(defect.map_or(Defect::None, |defect| defect.0), of_replicas)
}

/// The command that starts this program as an executor with this defect.
fn command(defect: impl std::fmt::Display) -> Result<String> {
    let own = std::env::current_exe()?;
    let own = own.display();
    Ok(format!(
        "env {DEFECT}={defect} '{own}' --exact wrong_executor --ignored --nocapture"
    ))
}

/// The same with Deployments and ReplicaSets. The shell ignores the flags that the kit appends.
fn command_of_replicas(defect: impl std::fmt::Display) -> Result<String> {
    let command = command(defect)?;
    Ok(format!("env {OF_REPLICAS}=yes sh -c \"exec {command}\""))
}

fn is_of_replicas(case: &str) -> bool {
    case.starts_with("rs-") || case.starts_with("deployment-")
}

/// An executor, and the cases with these ids.
fn candidate(executor: String, ids: &[&str]) -> Candidate {
    let mut cases = all_cases();
    cases.retain(|case| ids.contains(&case.id));
    assert_eq!(cases.len(), ids.len(), "{ids:?}");
    Candidate { executor, cases }
}

/// A failed case, and its message.
type Failure = (&'static str, String);

/// The failed cases of each candidate. The candidates take turns on `lanes` control planes.
async fn failures_of_all(
    candidates: &[Candidate],
    lanes: usize,
    deadline: Duration,
) -> Result<Vec<Vec<Failure>>> {
    let run = Run {
        lanes,
        deadline,
        logs: None,
    };
    let mut all = Vec::new();
    for (outcomes, candidate) in run.run_all(candidates, |_| ()).await?.into_iter().zip(candidates) {
        assert_eq!(outcomes.len(), candidate.cases.len());
        let failed = outcomes
            .into_iter()
            .filter_map(|outcome| Some((outcome.id, outcome.failure?)));
        all.push(failed.collect());
    }
    Ok(all)
}

async fn failures(executor: String, ids: &[&str], deadline: Duration) -> Result<Vec<Failure>> {
    let all = failures_of_all(&[candidate(executor, ids)], 1, deadline).await?;
    Ok(all.into_iter().flatten().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_defect_fails_its_case() -> Result<()> {
    let candidates = DEFECTS
        .iter()
        .enumerate()
        .map(|(index, (_, case, _))| {
            let command = if is_of_replicas(case) {
                command_of_replicas(index)?
            } else {
                command(index)?
            };
            Ok(candidate(command, &[case]))
        })
        .collect::<Result<Vec<_>>>()?;
    let all = failures_of_all(&candidates, 2, ENOUGH).await?;
    for (failed, (defect, case, reason)) in all.iter().zip(DEFECTS) {
        let (_, why) = failed
            .first()
            .with_context(|| format!("{case} passes with {defect:?}"))?;
        let is_expected = reason.split('|').any(|reason| why.contains(reason));
        ensure!(is_expected, "{defect:?} fails {case}, but so: {why}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_defect_the_same_cases_pass() -> Result<()> {
    let ids = DEFECTS.map(|(_, case, _)| case);
    let (of_replicas, others): (Vec<_>, Vec<_>) = ids.into_iter().partition(|case| is_of_replicas(case));
    let candidates = [
        candidate(command("none")?, &others),
        candidate(command_of_replicas("none")?, &of_replicas),
    ];
    let failed = failures_of_all(&candidates, 1, Duration::from_mins(1)).await?;
    ensure!(failed.iter().all(Vec::is_empty), "{failed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_selector_fails_the_case() -> Result<()> {
    // The kit appends the case's flags to the command, so here the shell gets and ignores them.
    let executor = format!("sh -c \"exec {}\"", command("none")?);
    let failed = failures(executor, &["only-selected"], ENOUGH).await?;
    ensure!(
        failed
            .iter()
            .any(|(_, why)| why.contains("which is not selected")),
        "{failed:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_or_ended_executor_fails_the_cases() -> Result<()> {
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
