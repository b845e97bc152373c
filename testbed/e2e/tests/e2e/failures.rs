//! What no executor can be asked to bear, and this one bears.

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{daemon_set, image_patch};
use nodewise_e2e::{Rig, RigOptions};
use serde_json::json;

/// An apiserver takes any time in a status, and serves the last day of the year 9999 and years of five digits as they are: a
/// pod that has one is seen, or nothing would go on for any DaemonSet.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_beyond_all_years_stops_nothing() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(2)).await?;
    for name in ["agent", "neighbour"] {
        rig.create(daemon_set(name).build()).await?;
        rig.rolled_out(name).await?;
    }
    let served = ["9999-12-31T23:59:59Z", "10000-01-01T23:58:59Z"];
    let written = [served[0], "9999-12-31T23:59:59-23:59"];
    for (pod, time) in rig.live_pods("agent").await?.iter().zip(written) {
        let name = pod.metadata.name.as_deref().context("name")?;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
        let patch = json!({ "status": { "conditions": [ready] } }).to_string();
        // Not by way of the API types, which do not read such a time.
        let request = axum::http::Request::patch(format!("/api/v1/namespaces/default/pods/{name}/status"))
            .header("Content-Type", "application/strategic-merge-patch+json")
            .body(patch.into_bytes())?;
        let answer = rig.client().request_text(request).await?;
        ensure!(served.iter().any(|time| answer.contains(time)), "{answer}");
    }
    // As the list shows them, and before as the watch did.
    rig.stop_executor().await?;
    rig.start_executor().await?;
    for name in ["neighbour", "agent"] {
        rig.patch(name, image_patch(2)).await?;
        rig.rolled_out(name).await?;
    }
    Ok(())
}
