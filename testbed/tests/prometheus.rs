//! Tests of Prometheus: scrapes, exemplars, rules and queries.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodewise_testbed::{AlertState, Prometheus, Sample, Tool, eventually};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const DEADLINE: Duration = Duration::from_mins(1);

/// A histogram of one request with its trace, and a gauge.
const METRICS: &str = "\
# TYPE seconds histogram
seconds_bucket{le=\"1.0\"} 1 # {trace_id=\"0af7\"} 0.5
seconds_bucket{le=\"+Inf\"} 1
seconds_sum 0.5
seconds_count 1
# TYPE queue gauge
queue{kind=\"a b\"} 7
# EOF
";

const RULES: &str = r#"
groups:
  - name: tests
    rules:
      - record: queue:doubled
        expr: queue * 2
      - alert: QueueIsLong
        expr: queue > 5
        labels: {severity: page}
        annotations: {summary: "{{ $value }} wait"}
      - alert: QueueStaysLong
        expr: queue > 5
        for: 10m
      - alert: QueueIsVeryLong
        expr: queue > 500
"#;

/// Serves the metrics until the test's runtime ends.
async fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{METRICS}",
                METRICS.len()
            );
            // Errors are ignored: the scraper may have disconnected.
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Ok(address)
}

fn rules(dir: &TempDir, text: &str) -> Result<std::path::PathBuf> {
    let path = dir.path().join("rules.yaml");
    fs::write(&path, text)?;
    Ok(path)
}

/// The answer to a question, once there is one: Prometheus says that a target is up before it shows what it has read.
async fn samples(prometheus: &Prometheus, promql: &str) -> Result<Vec<Sample>> {
    eventually(DEADLINE, "the samples", async || {
        let found = prometheus.query(promql).await?;
        ensure!(!found.is_empty(), "there are none");
        Ok(found)
    })
    .await
}

#[tokio::test]
async fn it_scrapes_and_answers() -> Result<()> {
    let dir = TempDir::new()?;
    let address = serve().await?;
    let prometheus = Prometheus::builder()
        .target("tests", address)
        .rules(rules(&dir, RULES)?)
        .start()
        .await?;
    prometheus.wait_until_up(DEADLINE).await?;
    let targets = prometheus.targets().await?;
    assert_eq!(targets.len(), 1);
    assert_eq!(targets[0].labels["job"], "tests");
    assert_eq!(targets[0].url, format!("http://{address}/metrics"));

    let queue = samples(&prometheus, "queue{kind='a b'} + 0.5").await?;
    assert_eq!(queue.len(), 1);
    assert_eq!((queue[0].value, queue[0].labels["kind"].as_str()), (7.5, "a b"));
    let values = async |promql| {
        let samples = prometheus.query(promql).await?;
        anyhow::Ok(
            samples
                .iter()
                .map(|sample| sample.value.to_string())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(values("1 + 1").await?, ["2"]);
    assert!(prometheus.query("nothing").await?.is_empty());
    let refused = prometheus.query("queue{").await.expect_err("this is no question");
    assert!(refused.to_string().contains("parse error"), "{refused:#}");

    let exemplars = prometheus.exemplars("seconds_bucket").await?;
    assert_eq!(exemplars.len(), 1);
    assert_eq!(
        (exemplars[0].value, exemplars[0].labels["trace_id"].as_str()),
        (0.5, "0af7")
    );
    assert_eq!(exemplars[0].series["le"], "1.0");

    eventually(DEADLINE, "the rules", async || {
        let doubled = values("queue:doubled").await?;
        ensure!(doubled == ["14"], "{doubled:?}");
        let mut alerts = prometheus.alerts().await?;
        alerts.sort_by(|a, b| a.name().cmp(b.name()));
        let names: Vec<_> = alerts.iter().map(|alert| (alert.name(), alert.state)).collect();
        let expected = [
            ("QueueIsLong", AlertState::Firing),
            ("QueueStaysLong", AlertState::Pending),
        ];
        ensure!(names == expected, "{alerts:?}");
        ensure!(alerts[0].annotations["summary"] == "7 wait", "{alerts:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_target_is_down() -> Result<()> {
    // Nothing listens on a port that was just released.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let prometheus = Prometheus::builder().target("gone", address).start().await?;
    eventually(DEADLINE, "a failed scrape", async || {
        let targets = prometheus.targets().await?;
        let target = targets.first().context("it has no target")?;
        ensure!(!target.up && target.last_error.contains("refused"), "{target:?}");
        Ok(())
    })
    .await?;
    let up = samples(&prometheus, "up").await?;
    assert_eq!((up.len(), up[0].value.to_string().as_str()), (1, "0"));
    Ok(())
}

#[tokio::test]
async fn invalid_rules_are_reported_by_both_programs() -> Result<()> {
    let dir = TempDir::new()?;
    let path = rules(
        &dir,
        "groups: [{name: wrong, rules: [{record: x, expr: 'sum('}]}]",
    )?;
    let error = Prometheus::builder()
        .rules(&path)
        .start()
        .await
        .expect_err("it must not start with them");
    assert!(format!("{error:#}").contains("parse error"), "{error:#}");
    let checked = Command::new(Tool::Promtool.path()?)
        .args(["check", "rules"])
        .arg(&path)
        .output()?;
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(
        !checked.status.success() && said.contains("parse error"),
        "{said}"
    );
    fs::write(&path, RULES)?;
    let checked = Command::new(Tool::Promtool.path()?)
        .args(["check", "rules"])
        .arg(&path)
        .output()?;
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    Ok(())
}
