//! A client for the parts of Prometheus' HTTP API that tests use.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Labels or annotations, by name.
pub type Labels = BTreeMap<String, String>;

/// The value of one series at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The labels of the series; the metric's name is the label `__name__`.
    pub labels: Labels,
    /// The value.
    pub value: f64,
}

/// A scrape target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The labels of all its samples: `job` and `instance`.
    pub labels: Labels,
    /// The URL.
    pub url: String,
    /// Whether the last scrape succeeded. `false` before the first scrape.
    pub up: bool,
    /// The error of the last scrape, or empty.
    pub last_error: String,
}

/// An exemplar of a series, such as the trace of a slow request.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// The labels of the series.
    pub series: Labels,
    /// The exemplar's own labels, such as `trace_id`.
    pub labels: Labels,
    /// The observed value.
    pub value: f64,
    /// When the value was observed, or else scraped.
    pub time: Timestamp,
}

/// An active alert.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Alert {
    /// The labels; the rule's name is `alertname`.
    pub labels: Labels,
    /// The annotations.
    pub annotations: Labels,
    /// Whether it is pending or firing.
    pub state: AlertState,
}

impl Alert {
    /// The name of the alerting rule.
    #[must_use]
    pub fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }
}

/// The state of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// The condition holds, but not yet for the duration in the rule.
    Pending,
    /// The alert fires.
    Firing,
}

/// A client for one Prometheus.
pub(super) struct Api {
    url: String,
    client: kube::Client,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Api").field(&self.url).finish()
    }
}

impl Api {
    /// Uses kube's HTTP client, which works with any HTTP server and adds no dependency.
    pub(super) fn new(port: u16) -> Result<Self> {
        let url = format!("http://127.0.0.1:{port}");
        let client = kube::Client::try_from(kube::Config::new(url.parse()?))?;
        Ok(Self { url, client })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Fails until Prometheus is ready.
    pub(super) async fn ready(&self) -> Result<()> {
        let (status, said) = self.get("/-/ready").await?;
        ensure!(status.is_success(), "{status}: {said}");
        Ok(())
    }

    pub(super) async fn query(&self, promql: &str) -> Result<Vec<Sample>> {
        match self.ask(&format!("query?{}", question(promql))).await? {
            QueryResult::Vector(series) => series
                .into_iter()
                .map(|Series { metric, value }| {
                    Ok(Sample {
                        labels: metric,
                        value: value.1.parse()?,
                    })
                })
                .collect(),
            QueryResult::Scalar(value) => Ok(vec![Sample {
                labels: Labels::new(),
                value: value.1.parse()?,
            }]),
        }
    }

    pub(super) async fn targets(&self) -> Result<Vec<Target>> {
        let targets: Targets = self.ask("targets?state=active").await?;
        let targets = targets.active_targets.into_iter().map(|target| Target {
            labels: target.labels,
            url: target.scrape_url,
            up: target.health == "up",
            last_error: target.last_error,
        });
        Ok(targets.collect())
    }

    pub(super) async fn exemplars(&self, promql: &str) -> Result<Vec<Exemplar>> {
        // Without a time range Prometheus returns no exemplars.
        let all = format!("query_exemplars?start=0&end=9999999999&{}", question(promql));
        let mut exemplars = Vec::new();
        for series in self.ask::<Vec<ExemplarSeries>>(&all).await? {
            for exemplar in series.exemplars {
                exemplars.push(Exemplar {
                    series: series.series_labels.clone(),
                    labels: exemplar.labels,
                    value: exemplar.value.parse()?,
                    time: timestamp(exemplar.timestamp)?,
                });
            }
        }
        Ok(exemplars)
    }

    pub(super) async fn alerts(&self) -> Result<Vec<Alert>> {
        let alerts: Alerts = self.ask("alerts").await?;
        Ok(alerts.alerts)
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let (status, said) = self.get(&format!("/api/v1/{path}")).await?;
        let answer = serde_json::from_str(&said)
            .with_context(|| format!("Prometheus answered {status} to {path}: {said}"))?;
        match answer {
            Answer::Success { data } => Ok(data),
            Answer::Error { error } => bail!("Prometheus refuses {path}: {error}"),
        }
    }

    async fn get(&self, path: &str) -> Result<(http::StatusCode, String)> {
        let request = http::Request::get(path).body(Body::empty())?;
        let response = self.client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect_bytes().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Answer<T> {
    Success { data: T },
    Error { error: String },
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum QueryResult {
    Vector(Vec<Series>),
    Scalar(Value),
}

/// A timestamp in seconds, and a number as a string.
#[derive(Deserialize)]
struct Value(#[expect(dead_code, reason = "tests ask about now")] f64, String);

#[derive(Deserialize)]
struct Series {
    metric: Labels,
    value: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Targets {
    active_targets: Vec<ActiveTarget>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActiveTarget {
    labels: Labels,
    scrape_url: String,
    health: String,
    last_error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExemplarSeries {
    series_labels: Labels,
    exemplars: Vec<RawExemplar>,
}

#[derive(Deserialize)]
struct RawExemplar {
    labels: Labels,
    value: String,
    timestamp: f64,
}

#[derive(Deserialize)]
struct Alerts {
    alerts: Vec<Alert>,
}

fn question(promql: &str) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair("query", promql)
        .finish()
}

fn timestamp(seconds: f64) -> Result<Timestamp> {
    let since = jiff::SignedDuration::try_from_secs_f64(seconds)?;
    Ok(Timestamp::from_duration(since)?)
}
