//! Prometheus' HTTP API, as far as tests ask it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Labels, or annotations, by name.
pub type Labels = BTreeMap<String, String>;

/// The value of one series at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Which series; the metric's name is the label `__name__`.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

/// Something that is scraped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The labels that all its samples have: `job` and `instance`.
    pub labels: Labels,
    /// Where it is scraped.
    pub url: String,
    /// Whether it was scraped, and the last time without an error.
    pub up: bool,
    /// What went wrong the last time, else empty.
    pub last_error: String,
}

/// One example among what a series counts, such as the trace of a slow request.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Which series.
    pub series: Labels,
    /// Its own labels, such as `trace_id`.
    pub labels: Labels,
    /// The observed value.
    pub value: f64,
    /// When it was observed, or else scraped.
    pub time: Timestamp,
}

/// What an alerting rule says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Alert {
    /// Its labels; the rule's name is `alertname`.
    pub labels: Labels,
    /// What it tells people.
    pub annotations: Labels,
    /// Whether it has lasted long enough.
    pub state: AlertState,
}

impl Alert {
    /// The name of its rule.
    #[must_use]
    pub fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }
}

/// How far an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// Its condition holds, and not yet for as long as the rule wants.
    Pending,
    /// Somebody is told.
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
    /// The client is kube's, which is at hand: it speaks plain HTTP with whatever is at its base.
    pub(super) fn new(port: u16) -> Result<Self> {
        let url = format!("http://127.0.0.1:{port}");
        let client = kube::Client::try_from(kube::Config::new(url.parse()?))?;
        Ok(Self { url, client })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Fails as long as it does not answer questions.
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
        // Without times it would answer for none.
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

/// A time in seconds and a number as text.
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
