//! Makes the measurements for the analysis of RolloutPolicies: asks Prometheus, webhooks and VerdictServices (L-31).
//!
//! A policy is written by whoever owns a namespace, and the executor makes the call, from its own place in the network. So it calls
//! only hosts that its operator allows, follows no redirect, uses no proxy of the environment, limits time and answer, and sends a
//! token only to a host for which the operator allowed it (L-32). What cannot be measured is an error and no failure of a revision.

mod address;
mod credentials;
mod dial;
pub mod hosts;
mod post;
mod prometheus;
mod subject;
#[cfg(test)]
mod tests;
mod turns;
mod verdict;
mod webhook;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nodewise_proto::v1::{self, measure::Provider, measurement};
use nodewise_runtime::measurements::{Measurer, Measuring, Subject};
use nodewise_telemetry::in_short;
use nodewise_tls::FileError;
use tokio::time::{Instant, timeout_at};

use crate::metrics::Metrics;
use address::Address;
use credentials::{Credentials, Token};
use dial::Dialer;
use hosts::AllowedHost;
use subject::About;
use turns::{Place, Turns};

/// The default of [`Settings::timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most hosts, as in a snapshot.
pub const MOST_HOSTS: usize = 100;

/// Whom the executor may call for the analysis of policies, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hosts that may be called. Without any, no measurement can be made.
    pub hosts: Vec<AllowedHost>,
    /// The longest time for a call. The interval of the check bounds it as well.
    pub timeout: Duration,
    /// The folder with the files of the credentials.
    pub credentials: Option<PathBuf>,
    /// File with the certificate authorities of the servers; `None`: those of the system.
    pub authorities: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            credentials: None,
            authorities: None,
        }
    }
}

/// Makes the measurements. Clones share the limits of concurrent calls.
#[derive(Clone)]
pub struct Analyzer(Arc<Inner>);

struct Inner {
    hosts: Vec<AllowedHost>,
    timeout: Duration,
    credentials: Credentials,
    dialer: Dialer,
    turns: Turns,
    metrics: Metrics,
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analyzer")
            .field("hosts", &self.0.hosts)
            .finish_non_exhaustive()
    }
}

impl Analyzer {
    /// Creates an analyzer that counts its measurements in these metrics.
    ///
    /// # Errors
    /// The file with the certificate authorities cannot be used.
    pub fn new(settings: Settings, metrics: Metrics) -> Result<Self, FileError> {
        Ok(Self(Arc::new(Inner {
            hosts: settings.hosts,
            timeout: settings.timeout,
            credentials: Credentials::new(settings.credentials),
            dialer: Dialer::new(settings.authorities)?,
            turns: Turns::default(),
            metrics,
        })))
    }
}

impl Measurer for Analyzer {
    fn measure(&self, subject: &Subject, request: &v1::Measure) -> Measuring {
        // A call may wait for long. It keeps what it needs of the policy, and not the policy.
        let place = self.0.turns.wait(&subject.workload.namespace);
        let about = place.and_then(|place| Ok((place, subject::read(subject, request)?)));
        let (inner, request) = (Arc::clone(&self.0), request.clone());
        Box::pin(async move { inner.measure(about, &request).await })
    }

    fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<_> = self.0.hosts.iter().map(AllowedHost::to_string).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

impl Inner {
    async fn measure(
        &self,
        about: Result<(Place, About), String>,
        request: &v1::Measure,
    ) -> measurement::Result {
        let asked = match about {
            Ok((_place, about)) => self.ask(about, request).await,
            Err(error) => Err(error),
        };
        let result = asked.unwrap_or_else(|error| measurement::Result::Error(in_short(&error)));
        let provider = match &request.provider {
            Some(Provider::Prometheus(_)) => "prometheus",
            Some(Provider::Webhook(_)) => "webhook",
            Some(Provider::VerdictService(_)) => "verdict",
            None => return result,
        };
        self.metrics.measured(provider, &result);
        result
    }

    /// Makes one measurement. An error says who was asked, and what was found.
    async fn ask(&self, about: About, request: &v1::Measure) -> Result<measurement::Result, String> {
        let provider = request
            .provider
            .as_ref()
            .ok_or("the measurement has no provider")?;
        let (name, address) = match provider {
            Provider::Prometheus(query) => ("Prometheus", Address::of_url(&query.address)?),
            Provider::Webhook(webhook) => ("the webhook", Address::of_url(&webhook.url)?),
            Provider::VerdictService(verdict) => (
                "the VerdictService",
                Address::of_authority(&verdict.address, verdict.tls)?,
            ),
        };
        hosts::check(&self.hosts, &address)?;
        let namespace = &about.workload.namespace;
        let _turn = self.turns.take(namespace, request.id.as_ref()).await;
        let limit = self.timeout.min(about.interval);
        let deadline = Instant::now() + limit;
        let call = async {
            let token = self.token(&address, &request.credential).await?;
            match provider {
                Provider::Prometheus(query) => {
                    prometheus::ask(&self.dialer, &address, &query.query, token, limit).await
                }
                Provider::Webhook(_) => webhook::ask(&self.dialer, &address, about.status, token).await,
                Provider::VerdictService(_) => {
                    let asked = verdict::request(about, request);
                    verdict::ask(&self.dialer, &address, asked, token, deadline).await
                }
            }
        };
        let result = timeout_at(deadline, call).await.unwrap_or_else(|_| {
            let limit = humantime::format_duration(limit);
            Err(format!("no answer within {limit}"))
        });
        result.map_err(|what| format!("{name} at {address}: {what}"))
    }

    /// The token that the check names, if it may be sent to this address.
    async fn token(&self, address: &Address, credential: &str) -> Result<Option<Token>, String> {
        if credential.is_empty() {
            return Ok(None);
        }
        hosts::check_credential(&self.hosts, address, credential)?;
        if !address.tls && !address.is_loopback() {
            return Err(format!(
                "credential {credential:?} is not sent in plain text: use https"
            ));
        }
        self.credentials.token(credential).await.map(Some)
    }
}
