//! Rules and dashboard in a real run: Prometheus scrapes a server and a leading executor during rollouts.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{DEADLINE, Server, daemon_set};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::{Alert, AlertState, Prometheus, eventually};
use nodewise_tls::testing::Authority;
use tempfile::TempDir;

use crate::{
    dashboard::{Dashboard, Panel},
    rules::{RULES, promtool_reads},
};

/// A rate window that is long enough for a short test.
const WINDOW: &str = "2m";

/// Series that do not exist while everything works. They start with the first problem.
const TROUBLE: [&str; 13] = [
    "_controller_stale_sync_skips_total",
    "leader_election_slowpath_total",
    "nodewise_blocked_nodes",
    "nodewise_divergence",
    "nodewise_other_owner_writes_total",
    "nodewise_plan_errors_total",
    "nodewise_plan_hedges_total",
    "nodewise_reconcile_failures",
    "nodewise_replica_evictions_total",
    "nodewise_rollout_stuck",
    "nodewise_unreadable_objects_total",
    "workqueue_retries_total",
    "rpc_response_status_code!=\"OK\"",
];

/// The series that only an executor in mode `own` has.
const OF_OWNERS: [&str; 2] = ["nodewise_foreign_pod_deletes_total", "nodewise_expectations"];

fn is_of_owners(question: &str) -> bool {
    OF_OWNERS.iter().any(|name| question.contains(name))
}

/// The series of RolloutPolicies, of which there are none here.
const OF_POLICIES: [&str; 2] = ["nodewise_rollout_policy_", "nodewise_rollout_stage_"];

fn is_of_trouble(question: &str) -> bool {
    let mut names = TROUBLE.iter().chain(&OF_POLICIES);
    names.any(|name| question.contains(name))
}

/// The queries of panels, with the panels' titles.
fn questions<'a>(panels: impl Iterator<Item = &'a Panel>) -> impl Iterator<Item = (&'a str, String)> {
    let targets = panels.flat_map(|panel| panel.targets.iter().map(|target| (&*panel.title, target)));
    targets.map(|(title, target)| (title, target.question(WINDOW)))
}

/// The dashboard row for rollouts. It must have data in observe mode too.
const ROLLOUTS: &str = "Rollouts";

/// Another server, without clients, because a panel shows the expiry of certificates. The certificates are in the
/// folder.
async fn server_with_tls(setup: &Setup) -> Result<(Server, TempDir)> {
    let folder = tempfile::tempdir().context("making a folder for certificates")?;
    let files = Authority::new("an authority")
        .issue(&["127.0.0.1"])
        .write(folder.path(), "server");
    let [certificate, key] = files.map(|path| path.display().to_string());
    let flags = [
        "--http-listen",
        "127.0.0.1:0",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let server = Server::start(setup.cluster().plane(), "127.0.0.1:0", &flags).await?;
    Ok((server, folder))
}

#[tokio::test(flavor = "multi_thread")]
async fn rollouts_fill_the_dashboard_without_alerts_until_the_service_ends() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(10).leader_election()).await?;
    let (with_tls, _certificates) = server_with_tls(&setup).await?;
    let prometheus = Prometheus::builder()
        .target("nodewise-server", setup.server().http_address().await?)
        .target("nodewise-server", with_tls.http_address().await?)
        .target("nodewise-executor", setup.executor_http())
        .rules(crate::file(RULES))
        .start()
        .await?;
    prometheus.wait_until_up(DEADLINE).await?;

    let load = setup.load(2).await?;
    let dashboard = Dashboard::read()?;
    for (title, question) in questions(dashboard.charts()) {
        prometheus.query(&question).await.context(title.to_owned())?;
    }
    let mut empty: BTreeSet<_> = questions(dashboard.charts())
        .filter(|(_, question)| !is_of_trouble(question))
        .collect();
    eventually(DEADLINE, "data in every panel", async || {
        for asked in empty.clone() {
            let samples = prometheus.query(&asked.1).await?;
            // A ratio of zero calls is not a number.
            if samples.iter().any(|sample| sample.value.is_finite()) {
                empty.remove(&asked);
            }
        }
        ensure!(empty.is_empty(), "these show nothing: {empty:#?}");
        Ok(())
    })
    .await?;
    for name in load.stop().await? {
        setup.wait_for_rollout(&name).await?;
    }
    let alerts = prometheus.alerts().await?;
    let firing = alerts.iter().filter(|alert| alert.state == AlertState::Firing);
    ensure!(firing.count() == 0, "{alerts:#?}");

    drop(with_tls);
    setup.kill_server()?;
    eventually(DEADLINE, "an alert that waits", async || {
        let alerts = prometheus.alerts().await?;
        let names: BTreeSet<_> = alerts.iter().map(Alert::name).collect();
        let expected = BTreeSet::from(["NodewiseDown", "NodewiseServiceUnreachable"]);
        ensure!(names.is_superset(&expected), "{names:?}");
        Ok(())
    })
    .await
}

/// An executor in observe mode watches rollouts of the built-in controller: the dashboard shows them, and no alert
/// requires a leader.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_shows_rollouts_without_leader_alerts() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).observe()).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    let prometheus = Prometheus::builder()
        .target("nodewise-executor", setup.executor_http())
        .target("nodewise-server", setup.server().http_address().await?)
        .rules(crate::file(RULES))
        .start()
        .await?;
    prometheus.wait_until_up(DEADLINE).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    let dashboard = Dashboard::read()?;
    let asked: Vec<_> = questions(dashboard.charts_of(ROLLOUTS))
        .filter(|(_, question)| !is_of_trouble(question) && !is_of_owners(question))
        .collect();
    ensure!(!asked.is_empty(), "no panel in row {ROLLOUTS}");
    for (title, question) in asked {
        eventually(DEADLINE, title, async || {
            let samples = prometheus.query(&question).await?;
            let is_shown = samples.iter().any(|sample| sample.value.is_finite());
            ensure!(is_shown, "nothing for {question}");
            Ok(())
        })
        .await?;
    }
    let alerts = prometheus.alerts().await?;
    // An alert that needs minutes to fire would be pending already.
    let is_of_observers =
        |alert: &Alert| ["NodewiseLeaderLost", "NodewiseRolloutStuck"].contains(&alert.name());
    let wrong = alerts
        .iter()
        .any(|alert| alert.state == AlertState::Firing || is_of_observers(alert));
    ensure!(!wrong, "{alerts:#?}");
    for metrics in [
        setup.executor_get("/metrics").await?.1,
        setup.server_get("/metrics").await?.1,
    ] {
        promtool_reads(&metrics)?;
    }
    // The alerts' own expressions find a stuck rollout of the built-in controller, with seconds instead of minutes.
    let stuck = [
        expression("NodewiseRolloutStuck", "> 900", "> 3")?,
        expression("NodewiseRolloutBlocked", "> 180", "> 3")?,
    ];
    setup.patch("agent", setup.never_ready_patch(2)).await?;
    eventually(DEADLINE, "a rollout that is stuck", async || {
        for stuck in &stuck {
            let samples = prometheus.query(stuck).await?;
            ensure!(samples.len() == 1, "{} samples of {stuck}", samples.len());
        }
        Ok(())
    })
    .await
}

/// The expression of an alert with another limit.
fn expression(alert: &str, limit: &str, other: &str) -> Result<String> {
    let rules = std::fs::read_to_string(crate::file(RULES))?;
    let rule = rules
        .split_once(&format!("alert: {alert}\n"))
        .and_then(|(_, rest)| rest.split_once("expr: |"))
        .and_then(|(_, rest)| rest.split_once("        labels:"));
    let (rule, _) = rule.with_context(|| format!("no rule {alert}"))?;
    let (expression, _) = rule.split_once("        for:").unwrap_or((rule, ""));
    ensure!(
        expression.contains(limit),
        "{alert} has another limit than {limit}"
    );
    Ok(expression.replacen(limit, other, 1))
}
