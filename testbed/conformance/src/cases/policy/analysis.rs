//! Checks of a stage. The case is the host that an executor asks.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{expect_versions, wait_for_versions};
use crate::{
    case::{Case, solo},
    fixture::SoloFixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[solo!(
    "policy-analysis-fails",
    "With --analysis-host the executor makes the checks that plans ask for, and no others. When one fails, the canary goes back. A \
     policy that names another host is not accepted.",
    policy_analysis_fails
)];

/// How many measurements may fail. The answers after the first one are bad.
const FAILURE_LIMIT: usize = 1;

/// An HTTP server with a healthy answer to the first request, and unhealthy ones to all others. It ends when dropped.
struct Webhook {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
    serving: JoinHandle<()>,
}

impl Webhook {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, asked) = (listener.local_addr()?, Arc::default());
        let router = Router::new()
            .route("/check", post(answer))
            .with_state(Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            asked,
            serving,
        })
    }

    /// The bodies of the requests so far.
    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(asked): State<Arc<Mutex<Vec<Value>>>>, Json(body): Json<Value>) -> Json<Value> {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.push(body);
    Json(json!({ "healthy": asked.len() == 1 }))
}

/// A policy whose canary is checked by this webhook.
fn policy(url: &str) -> Value {
    let check = json!({
        "name": "health", "webhook": { "url": url }, "successCondition": "result.healthy", "interval": "1s", "count": 10,
        "failureLimit": FAILURE_LIMIT,
    });
    json!({ "stages": [{ "name": "canary", "replicas": 1, "analysis": [check] }, { "name": "rest" }] })
}

// L-26, L-28, L-31, L-32
async fn policy_analysis_fails(solo: &mut SoloFixture) -> Result<()> {
    let webhook = Webhook::start().await?;
    solo.start_with_flags(&format!("--analysis-host {}", webhook.address))?;
    let foreign = policy("http://checks.example:80/check");
    let watch = solo.start_watched(4, 2).await?;
    solo.create_policy("agents", &["agent"], foreign).await?;
    solo.eventually("the policy not to be accepted", async || {
        let accepted = solo.policy_condition("agents", "Accepted").await?;
        let message = accepted["message"].as_str().unwrap_or_default();
        ensure!(
            accepted["status"] == "False" && message.contains("checks.example"),
            "{accepted}"
        );
        Ok(())
    })
    .await?;
    solo.delete_policy("agents").await?;

    let url = format!("http://{}/check", webhook.address);
    super::create(solo, policy(&url)).await?;
    solo.patch("agent", image_patch(2)).await?;
    let target = solo.wait_for_state(2, "RolledBack").await?;
    ensure!(
        target["rejectedRevision"]["reason"] == "AnalysisFailed",
        "it was rejected for another reason: {target}"
    );
    wait_for_versions(solo, 4, 0).await?;
    let asked = webhook.asked();
    // One was healthy, and so many and one more were not.
    ensure!(
        asked.len() == 1 + FAILURE_LIMIT + 1,
        "the webhook was asked {} times",
        asked.len()
    );
    let last = asked.last().context("it was asked")?;
    ensure!(last.is_object(), "the webhook got no status: {last}");
    expect_versions(solo, 4, 0).await?;
    watch.seen().await?.expect_rollout(2, 4 + 1 + 1)
}
