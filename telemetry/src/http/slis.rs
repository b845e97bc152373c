//! `/metrics/slis`: the results of health checks, under the names that all components of Kubernetes use for these service level
//! indicators.

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Check {
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckResult {
    name: String,
    r#type: &'static str,
    status: &'static str,
}

/// The results of all probes. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Slis {
    last: Family<Check, Gauge>,
    total: Family<CheckResult, Counter>,
}

impl Slis {
    /// Counts the result of the check `name` in a probe of `endpoint`: `healthz`, `livez` or `readyz`.
    pub(super) fn count(&self, endpoint: &'static str, name: &str, passed: bool) {
        let check = Check {
            name: name.to_owned(),
            r#type: endpoint,
        };
        self.last.get_or_create(&check).set(passed.into());
        let result = CheckResult {
            name: check.name,
            r#type: endpoint,
            status: if passed { "success" } else { "error" },
        };
        self.total.get_or_create(&result).inc();
    }

    /// The metrics in the OpenMetrics format.
    pub(super) fn encode(&self) -> String {
        let mut registry = Registry::default();
        let help = "Result of the last probe of a health check: 1 if it passed, 0 if it failed";
        registry.register("kubernetes_healthcheck", help, self.last.clone());
        let help = "Results of the probes of a health check, by status: success or error";
        registry.register("kubernetes_healthchecks", help, self.total.clone());
        let mut encoded = String::new();
        let _ = text::encode(&mut encoded, &registry);
        encoded
    }
}
