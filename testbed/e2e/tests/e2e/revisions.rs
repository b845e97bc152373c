//! Revisions that another client has written.

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{ApiProxy, DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// Writes a revision with this raw data that the selector of `workload` matches.
async fn write_raw(setup: &Setup, name: &str, workload: &str, data: &[u8]) -> Result<()> {
    let metadata = json!({ "name": name, "labels": { "app": workload } });
    let before = format!(
        r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{metadata},"revision":1,"data":"#
    );
    let request = axum::http::Request::post("/apis/apps/v1/namespaces/default/controllerrevisions")
        .header("Content-Type", "application/json")
        // Metadata only, because the response would contain the raw data, and this client reads only UTF-8.
        .header(
            "Accept",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .body([before.as_bytes(), data, b"}"].concat())?;
    let written = setup.client().request_text(request).await;
    written.with_context(|| format!("writing revision {name}"))?;
    Ok(())
}

/// How many unreadable revisions the executor has skipped since its start.
async fn skipped_revisions(setup: &Setup) -> Result<usize> {
    let (_, metrics) = setup.executor_get("/metrics").await?;
    let family = r#"nodewise_unreadable_objects_total{group="apps",resource="controllerrevisions"} "#;
    let line = metrics.lines().find_map(|line| line.strip_prefix(family));
    Ok(line.map_or(Ok(0), str::parse)?)
}

/// Data that an apiserver accepts but JSON parsers reject or interpret differently. The apiserver keeps the bytes, and
/// rejects an adoption of most of these revisions because it would store other bytes.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_data_blocks_no_daemon_set() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(2)).await?;
    let names = ["among-them", "neighbour"];
    for name in names {
        setup.create(daemon_set(name).build()).await?;
        setup.wait_for_rollout(name).await?;
    }
    let deep = [r#"{"a":"#.repeat(9_000), "1".into(), "}".repeat(9_000)].concat();
    let odd: [(&str, &[u8]); 6] = [
        ("no-utf8", b"{\"a\":\"\xff\"}"),
        ("half-a-pair", br#"{"a":"\ud800"}"#),
        ("deep", deep.as_bytes()),
        ("large-number", br#"{"a":123456789012345678901234567890.5e270}"#),
        ("member-twice", br#"{"a":1,"a":2}"#),
        ("blanks", br#"{ "a": 1 }"#),
    ];
    for (name, data) in odd {
        write_raw(&setup, name, names[0], data).await?;
    }
    // First from the watch; after a restart from the list.
    for version in [2, 3] {
        for name in names {
            setup.patch(name, image_patch(version)).await?;
            setup.wait_for_rollout(name).await?;
        }
        assert_eq!(skipped_revisions(&setup).await?, 0);
        setup.stop_executor().await?;
        setup.start_executor().await?;
    }
    Ok(())
}

/// Makes the revisions of one DaemonSet unreadable: the labels become a number.
fn spoil(object: &mut Value) {
    if object.get("data").is_some() && object["metadata"]["labels"]["app"] == "spoilt" {
        object["metadata"]["labels"] = json!(7);
    }
}

/// An unreadable revision is skipped and counted. Only its own DaemonSet waits until it becomes readable. No present
/// apiserver serves such an object: it validates metadata and stores no data that is not JSON.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_revision_blocks_only_its_daemon_set() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(2)).await?;
    let names = ["spoilt", "neighbour"];
    for name in names {
        setup.create(daemon_set(name).build()).await?;
        setup.wait_for_rollout(name).await?;
    }
    setup.stop_executor().await?;
    let spoiling = ApiProxy::serving(setup.cluster(), spoil).await?;
    setup.start_executor_with(spoiling.kubeconfig()).await?;
    let listed = skipped_revisions(&setup).await?;
    ensure!(listed > 0, "the list shows one");
    for name in names {
        setup.patch(name, image_patch(2)).await?;
    }
    setup.wait_for_rollout(names[1]).await?;
    // The watch shows the new revision, and the executor reads it when its name is taken.
    eventually(DEADLINE, "more to be passed over", async || {
        let now = skipped_revisions(&setup).await?;
        ensure!(now > listed + 1, "{now} by now, {listed} at first");
        Ok(())
    })
    .await?;
    setup.patch(names[1], image_patch(3)).await?;
    setup.wait_for_rollout(names[1]).await?;
    // After a restart with the real apiserver the revisions are readable.
    setup.stop_executor().await?;
    setup.start_executor().await?;
    setup.wait_for_rollout(names[0]).await?;
    assert_eq!(setup.images(names[0]).await?, ["registry.example/agent:2"; 2]);
    assert_eq!(skipped_revisions(&setup).await?, 0);
    Ok(())
}
