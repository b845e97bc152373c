//! The live view of `nodewise rollout status --watch`, in a real terminal, on a real control plane.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodewise_conformance::{daemon_set, deployment};
use nodewise_e2e::{Setup, SetupOptions};

use crate::status::image;

/// The longest time from a change that cannot work to its cause on the screen. The project promises it, on any cluster.
pub(crate) const PROMISED: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_rollout_is_explained_and_undone_by_keys() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(6)).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    let mut terminal = setup.nodewise_in_terminal(&["rollout", "status", "ds/agent", "--watch"])?;
    terminal
        .shows(&["DaemonSet default/agent complete", "6 done of 6 nodes", "q quit"])
        .await?;

    let changed = Instant::now();
    setup.patch("agent", image("registry.example/missing:2")).await?;
    terminal
        .shows(&["stuck", "ImagePullBackOff", "1 blocked"])
        .await?;
    let took = changed.elapsed();
    println!("from the change to the cause on the screen: {took:?}");
    ensure!(took <= PROMISED, "the cause was shown after {took:?}");
    terminal
        .shows(&["Lately", "the template changed", "blocked by ImagePullBackOff"])
        .await?;

    terminal.press("e")?;
    terminal
        .shows(&[
            "Explain",
            "$ nodewise explain daemonset/agent -n default",
            "Esc close",
        ])
        .await?;
    terminal.press("\x1b")?;
    terminal.shows(&["q quit"]).await?;

    // A no changes nothing.
    terminal.press("u")?;
    terminal
        .shows(&[
            "- ",
            "image: registry.example/missing:2",
            "$ kubectl rollout undo daemonset/agent -n default --to-revision=1",
            "Go back to revision 1? [y/n]",
        ])
        .await?;
    terminal.press("n")?;
    terminal.shows(&["q quit", "stuck"]).await?;
    let read = [
        "get",
        "ds/agent",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].image}",
    ];
    assert_eq!(setup.kubectl(&read).await?, "registry.example/missing:2");

    terminal.press("u")?;
    terminal.shows(&["Go back to revision 1? [y/n]"]).await?;
    terminal.press("y")?;
    terminal.shows(&["changed; generation 3"]).await?;
    terminal.shows(&["complete", "6 done of 6 nodes"]).await?;
    assert_eq!(setup.kubectl(&read).await?, "registry.example/agent:1");

    terminal.press("q")?;
    let code = terminal.exit_code().await?;
    ensure!(code == 0, "exit status {code}:\n{}", terminal.text());
    // The last status stays in the terminal.
    terminal
        .shows(&["all 6 nodes are up to date and available"])
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_pause_resume_and_retry_a_deployment() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(2)).await?;
    setup.start_deployment(deployment("web", 3).build()).await?;
    let mut terminal = setup.nodewise_in_terminal(&["rollout", "status", "deploy/web", "--watch"])?;
    terminal
        .shows(&["Deployment default/web complete", "p pause"])
        .await?;
    for (question, legend) in [
        ("Do you want to pause", "p resume"),
        ("Do you want to resume", "p pause"),
    ] {
        terminal.press("p")?;
        terminal.shows(&[question, "$ kubectl rollout"]).await?;
        terminal.press("y")?;
        terminal.shows(&[legend, "q quit"]).await?;
    }
    terminal.press("r")?;
    terminal.shows(&["no pod holds up the rollout"]).await?;
    setup
        .patch_deployment("web", image("registry.example/crashing:2"))
        .await?;
    terminal.shows(&["stuck", "CrashLoopBackOff"]).await?;
    // The simulated kubelet keeps no logs; the view says so and stays.
    terminal.press("l")?;
    terminal.shows(&["the log of pod web-", "q quit"]).await?;
    terminal.press("r")?;
    terminal
        .shows(&["- pod web-", "$ kubectl delete pod -n default web-", "Delete "])
        .await?;
    terminal.press("y")?;
    terminal.shows(&["deleted"]).await?;
    terminal.press("q")?;
    let code = terminal.exit_code().await?;
    ensure!(code == 3, "exit status {code}:\n{}", terminal.text());
    Ok(())
}
