//! Programs of two versions together: an earlier executor with this service, and the reverse. docs/upgrades.md says that both work.
//! `make skew` builds the earlier programs and runs these tests.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{daemon_set, deployment, image_patch};
use nodewise_e2e::{OWNER_COMPONENTS, Setup, SetupOptions};
use serde_json::json;

/// The path of an earlier version's program.
fn earlier(program: &str) -> Result<PathBuf> {
    let folder = env::var_os("NODEWISE_EARLIER_PROGRAMS")
        .context("NODEWISE_EARLIER_PROGRAMS is not set; run these tests with `make skew`")?;
    Ok(PathBuf::from(folder).join(program))
}

/// Workloads are created, rolled out and scaled. No request of the executor is refused.
async fn work(options: SetupOptions) -> Result<()> {
    let setup = Setup::start(options.controllers("*", OWNER_COMPONENTS)).await?;
    setup.roll_out("agent", daemon_set("agent").build()).await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_until_settled("agent").await?;
    let web = deployment("web", 5).rolling(1, 1).build();
    setup.start_deployment(web).await?;
    setup.patch_deployment("web", image_patch(2)).await?;
    setup.wait_for_sizes("web", &[(1, 0), (2, 5)]).await?;
    setup
        .patch_deployment("web", json!({ "spec": { "replicas": 2 } }))
        .await?;
    setup.wait_for_sizes("web", &[(1, 0), (2, 2)]).await?;
    setup.executor_requests().await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs programs of an earlier version; `make skew` builds them"]
async fn an_earlier_executor_works_with_this_service() -> Result<()> {
    work(SetupOptions::nodes(3).executor_program(earlier("nodewise-executor")?)).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs programs of an earlier version; `make skew` builds them"]
async fn this_executor_works_with_an_earlier_service() -> Result<()> {
    work(SetupOptions::nodes(3).server_program(earlier("nodewise-server")?)).await
}

// L-44: a service that does not know policies would roll out at once. Other workloads go on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs programs of an earlier version; `make skew` builds them"]
async fn an_earlier_service_rolls_out_nothing_that_has_a_policy() -> Result<()> {
    let options = SetupOptions::nodes(3).server_program(earlier("nodewise-server")?);
    let setup = Setup::start(options.rollout_policies()).await?;
    setup.roll_out("agent", daemon_set("agent").build()).await?;
    setup
        .create_policy(
            "agents",
            &["agent"],
            json!({"stages": [{"name": "canary", "replicas": 1}]}),
        )
        .await?;
    setup.patch("agent", image_patch(2)).await?;
    setup
        .eventually("the owner to be told", async || {
            let events = setup.events("ServiceTooOld").await?;
            ensure!(!events.is_empty(), "there is no Event");
            Ok(())
        })
        .await?;
    setup.roll_out("other", daemon_set("other").build()).await?;
    ensure!(
        setup.count_of_version("agent", 2).await? == 0,
        "a node has the new image"
    );
    setup.delete_policy("agents").await?;
    setup.wait_until_settled("agent").await?;
    ensure!(
        setup.count_of_version("agent", 2).await? == 3,
        "nothing holds it now"
    );
    Ok(())
}
