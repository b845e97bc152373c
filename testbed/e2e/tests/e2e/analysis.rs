//! The analysis of a rollout: the executor asks a server that speaks the API of Prometheus, and the answers let a stage pass or have
//! the update revision rejected.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use axum::{Router, extract::State, http::HeaderMap, routing::post};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

const NODES: usize = 12;
const CANARIES: usize = 2;
const TOKEN: &str = "token-of-prometheus";

/// What the server of metrics says, and what it was asked.
#[derive(Debug, Default)]
struct Metrics {
    is_bad: AtomicBool,
    /// The form and the header `Authorization` of each call.
    asked: Mutex<Vec<(String, String)>>,
}

impl Metrics {
    fn asked(&self) -> Vec<(String, String)> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

/// Answers an instant query as Prometheus does.
async fn query(State(metrics): State<Arc<Metrics>>, headers: HeaderMap, form: String) -> String {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok());
    let call = (form, token.unwrap_or_default().to_owned());
    let mut asked = metrics.asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.push(call);
    let rate = if metrics.is_bad.load(Ordering::SeqCst) {
        "0.5"
    } else {
        "0"
    };
    let answer = json!({
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1_435_781_451, rate]}]},
    });
    answer.to_string()
}

/// Answers as a webhook that cannot decide while the metrics are bad.
async fn verdict(State(metrics): State<Arc<Metrics>>) -> String {
    let word = if metrics.is_bad.load(Ordering::SeqCst) {
        "inconclusive"
    } else {
        "pass"
    };
    json!({"verdict": word, "message": "too few requests to say"}).to_string()
}

/// Starts the server of metrics. It ends with the set of tasks.
async fn serve(tasks: &mut JoinSet<std::io::Result<()>>) -> Result<(SocketAddr, Arc<Metrics>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, metrics) = (listener.local_addr()?, Arc::new(Metrics::default()));
    let router = Router::new()
        .route("/prometheus/api/v1/query", post(query))
        .route("/verdict", post(verdict))
        .with_state(Arc::clone(&metrics));
    tasks.spawn(async move { axum::serve(listener, router).await });
    Ok((address, metrics))
}

/// The spec of a policy for `agent` whose canaries are checked with Prometheus.
fn policy(prometheus: SocketAddr) -> Value {
    let check = json!({
        "name": "errors",
        "prometheus": {"address": format!("http://{prometheus}/prometheus"), "query": "sum(rate(errors[5m]))"},
        "credential": "prometheus",
        "successCondition": "result < 0.01",
        "interval": "1s",
        "count": 3,
    });
    json!({
        "stages": [
            {"name": "canary", "replicas": CANARIES, "soak": "1s", "analysis": [check]},
            {"name": "rest", "maxUnavailable": "50%"},
        ],
    })
}

/// A cluster on which version 1 of `agent` runs, with a policy of this spec. Also returns the hash of that version.
async fn running(options: SetupOptions, spec: Value) -> Result<(Setup, Value)> {
    let setup = Setup::start(options.rollout_policies()).await?;
    setup
        .create(daemon_set("agent").max_unavailable(NODES).build())
        .await?;
    setup.wait_for_rollout("agent").await?;
    setup.create_policy("agents", &["agent"], spec).await?;
    let first = wait_for_state(&setup, &Value::Null, "Complete").await?;
    Ok((setup, first["updateRevision"]["hash"].clone()))
}

/// Waits until the rollout of a revision other than `before` has this state, and returns it.
async fn wait_for_state(setup: &Setup, before: &Value, state: &str) -> Result<Value> {
    eventually(
        Duration::from_mins(2),
        &format!("the state {state}"),
        async || {
            let policy = setup.policy_api().get("agents").await?;
            let target = policy.data["status"]["targets"][0].clone();
            ensure!(
                target["state"] == state && target["updateRevision"]["hash"] != *before,
                "it is {}: {}; {}; {}",
                target["state"],
                target["message"],
                target["stages"],
                policy.data["status"]["conditions"]
            );
            Ok(target)
        },
    )
    .await
}

// L-26, L-28, L-31, L-32.
#[tokio::test(flavor = "multi_thread")]
async fn what_prometheus_says_lets_a_stage_pass_or_rejects_the_revision() -> Result<()> {
    let mut tasks = JoinSet::new();
    let (prometheus, metrics) = serve(&mut tasks).await?;
    let credentials = tempfile::tempdir()?;
    std::fs::write(credentials.path().join("prometheus"), format!("{TOKEN}\n"))?;
    let options = SetupOptions::nodes(NODES)
        .executor_arg(&format!("--analysis-host={prometheus}=prometheus"))
        .executor_arg(&format!(
            "--analysis-credentials={}",
            credentials.path().display()
        ));
    let (setup, first) = running(options, policy(prometheus)).await?;
    let before = metrics.asked().len();

    // Good: the stage passes after three measurements.
    setup.patch("agent", image_patch(2)).await?;
    let good = wait_for_state(&setup, &first, "Complete").await?;
    let check = &good["stages"][0]["analysis"][0];
    assert_eq!(
        (&check["name"], &check["successful"]),
        (&json!("errors"), &json!(3)),
        "{good}"
    );
    assert_eq!(
        (&check["failed"], &check["errors"]),
        (&json!(0), &json!(0)),
        "{good}"
    );
    assert_eq!(setup.count_of_version("agent", 2).await?, NODES);
    let asked = metrics.asked();
    ensure!(asked.len() - before == 3, "{} calls", asked.len() - before);
    for (form, token) in asked {
        ensure!(
            form.starts_with("query=sum%28rate%28errors%5B5m%5D%29%29&timeout="),
            "{form}"
        );
        assert_eq!(token, format!("Bearer {TOKEN}"));
    }

    // Bad: no node but the canaries gets the revision, and they go back.
    metrics.is_bad.store(true, Ordering::SeqCst);
    setup.patch("agent", image_patch(3)).await?;
    let bad = wait_for_state(&setup, &good["updateRevision"]["hash"], "RolledBack").await?;
    let rejected = &bad["rejectedRevision"];
    assert_eq!(rejected["reason"], "AnalysisFailed", "{bad}");
    let message = rejected["message"].as_str().context("a message")?;
    ensure!(
        message.contains("check errors") && message.contains("0.5"),
        "{message}"
    );
    assert_eq!(bad["stages"][1]["updated"], json!(0), "{bad}");
    eventually(DEADLINE, "version 2 on every node", async || {
        let count = setup.count_of_version("agent", 2).await?;
        ensure!(count == NODES, "{count} of version 2");
        Ok(())
    })
    .await?;
    Ok(())
}

// L-27, L-31: an inconclusive check holds the rollout until a person lets it go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_inconclusive_waits_for_a_person() -> Result<()> {
    let mut tasks = JoinSet::new();
    let (address, metrics) = serve(&mut tasks).await?;
    let options = SetupOptions::nodes(NODES).executor_arg(&format!("--analysis-host={address}"));
    let mut asks_webhook = policy(address);
    asks_webhook["stages"][0]["analysis"] = json!([{
        "name": "requests", "webhook": {"url": format!("http://{address}/verdict")}, "interval": "1s", "count": 2,
    }]);
    let (setup, first) = running(options, asks_webhook).await?;
    metrics.is_bad.store(true, Ordering::SeqCst);
    setup.patch("agent", image_patch(2)).await?;
    let held = wait_for_state(&setup, &first, "AnalysisHeld").await?;
    assert_eq!(held["stages"][0]["analysis"][0]["inconclusive"], 1, "{held}");

    // It stays so, and a person is told what to do.
    let status = setup
        .nodewise(&["rollout", "status", "ds/agent", "-n", "default"])
        .await?;
    let shown = String::from_utf8(status.stdout)?;
    ensure!(
        shown.contains("$ nodewise rollout resume daemonset/agent -n default"),
        "{shown}"
    );
    let resume = ["rollout", "resume", "ds/agent", "-n", "default", "--yes"];
    let dry_run = setup.nodewise(&[&resume[..], &["--dry-run"]].concat()).await?;
    ensure!(dry_run.status.success(), "{dry_run:?}");
    let held = wait_for_state(&setup, &first, "AnalysisHeld").await?;
    assert_eq!(held["stages"][0]["analysis"][0]["inconclusive"], 1, "{held}");

    // Resumed, the check is made again, and passes.
    metrics.is_bad.store(false, Ordering::SeqCst);
    let resumed = setup.nodewise(&resume).await?;
    ensure!(resumed.status.success(), "{resumed:?}");
    let done = wait_for_state(&setup, &first, "Complete").await?;
    let check = &done["stages"][0]["analysis"][0];
    assert_eq!(
        (&check["inconclusive"], &check["successful"]),
        (&json!(0), &json!(2)),
        "{done}"
    );
    assert_eq!(setup.count_of_version("agent", 2).await?, NODES);
    Ok(())
}
