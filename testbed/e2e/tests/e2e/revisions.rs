//! Revisions that somebody else has written.

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{ApiProxy, DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// Writes a revision with this text as its data, which a DaemonSet's selector matches.
async fn write_raw(rig: &Rig, name: &str, workload: &str, data: &[u8]) -> Result<()> {
    let metadata = json!({ "name": name, "labels": { "app": workload } });
    let before = format!(
        r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{metadata},"revision":1,"data":"#
    );
    let request = axum::http::Request::post("/apis/apps/v1/namespaces/default/controllerrevisions")
        .header("Content-Type", "application/json")
        // The answer would hold the data as it is, and this client reads nothing but UTF-8.
        .header(
            "Accept",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .body([before.as_bytes(), data, b"}"].concat())?;
    let written = rig.client().request_text(request).await;
    written.with_context(|| format!("writing revision {name}"))?;
    Ok(())
}

/// How many revisions the executor has passed over since it began.
async fn passed_over(rig: &Rig) -> Result<usize> {
    let (_, metrics) = rig.executor_get("/metrics").await?;
    let family = r#"nodewise_unreadable_objects_total{group="apps",resource="controllerrevisions"} "#;
    let line = metrics.lines().find_map(|line| line.strip_prefix(family));
    Ok(line.map_or(Ok(0), str::parse)?)
}

/// All data that an apiserver takes, though readers of JSON refuse it or understand it in more than one way. It keeps the
/// bytes, and refuses to have most of these revisions adopted, since it would write others.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_cannot_be_read_holds_up_nobody() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(2)).await?;
    let names = ["among-them", "neighbour"];
    for name in names {
        rig.create(daemon_set(name).build()).await?;
        rig.rolled_out(name).await?;
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
        write_raw(&rig, name, names[0], data).await?;
    }
    // As the watch shows them, and as the list does.
    for version in [2, 3] {
        for name in names {
            rig.patch(name, image_patch(version)).await?;
            rig.rolled_out(name).await?;
        }
        assert_eq!(passed_over(&rig).await?, 0);
        rig.stop_executor().await?;
        rig.start_executor().await?;
    }
    Ok(())
}

/// Spoils the revisions of one DaemonSet: labels that are a number.
fn spoil(object: &mut Value) {
    if object.get("data").is_some() && object["metadata"]["labels"]["app"] == "spoilt" {
        object["metadata"]["labels"] = json!(7);
    }
}

/// A revision that is none is passed over and counted; only its DaemonSet waits until it can be read. No apiserver of today
/// serves such a thing: it reads metadata before it keeps it, and data that is no JSON it does not store.
#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_cannot_be_read_holds_up_no_neighbour() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(2)).await?;
    let names = ["spoilt", "neighbour"];
    for name in names {
        rig.create(daemon_set(name).build()).await?;
        rig.rolled_out(name).await?;
    }
    rig.stop_executor().await?;
    let spoiling = ApiProxy::serving(rig.cluster(), spoil).await?;
    rig.start_executor_with(spoiling.kubeconfig()).await?;
    let listed = passed_over(&rig).await?;
    ensure!(listed > 0, "the list shows one");
    for name in names {
        rig.patch(name, image_patch(2)).await?;
    }
    rig.rolled_out(names[1]).await?;
    // The new one is shown by the watch, and read when its name is found taken.
    eventually(DEADLINE, "more to be passed over", async || {
        let now = passed_over(&rig).await?;
        ensure!(now > listed + 1, "{now} by now, {listed} at first");
        Ok(())
    })
    .await?;
    rig.patch(names[1], image_patch(3)).await?;
    rig.rolled_out(names[1]).await?;
    // Once it can be read all is well.
    rig.stop_executor().await?;
    rig.start_executor().await?;
    rig.rolled_out(names[0]).await?;
    assert_eq!(rig.images(names[0]).await?, ["registry.example/agent:2"; 2]);
    assert_eq!(passed_over(&rig).await?, 0);
    Ok(())
}
