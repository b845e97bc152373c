//! Tests that `--server` gives the same output as the planner in the binary.

mod common;

use common::{NOW, data, nodewise};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gives_the_same_output() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let server = tokio::spawn(nodewise_server::run(
        nodewise_server::Config::default(),
        listener,
        stop.clone().cancelled_owned(),
    ));
    tokio::task::spawn_blocking(move || {
        for file in ["steady.json", "new.json", "rollout.json", "mixed.json"] {
            let file = data(file);
            let shared = ["-f", &file, "--now", NOW];
            for command in [
                &["plan"][..],
                &["plan", "--output", "json", "--profile", "upstream-strict"],
                &["explain", "daemonset", "agent"],
                &[
                    "explain",
                    "daemonset",
                    "agent",
                    "--node",
                    "node-1",
                    "--output",
                    "json",
                ],
            ] {
                let local = [command, &shared].concat();
                let remote = [local.as_slice(), &["--server", &url]].concat();
                assert_eq!(nodewise(&remote).ok(), nodewise(&local).ok(), "{local:?}");
            }
        }
        // Errors are the same as well.
        let text = std::fs::read_to_string(data("new.json")).unwrap();
        let bad = text.replacen(
            "\"uid\": \"7d1f0a52-0000-4000-8000-000000000001\"",
            "\"uid\": \"\"",
            1,
        );
        assert_ne!(text, bad);
        let local = common::nodewise_with_input(&["plan", "-f", "-"], &bad);
        let remote = common::nodewise_with_input(&["plan", "-f", "-", "--server", &url], &bad);
        assert_eq!(local.code, Some(1));
        assert_eq!(remote.stderr, local.stderr);
    })
    .await
    .unwrap();
    stop.cancel();
    server.await.unwrap().unwrap();
}
