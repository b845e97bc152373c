//! The metric of measurements for RolloutPolicies, by provider and outcome.

use nodewise_proto::v1::{AnalysisVerdict, measurement::Result};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

const PROVIDERS: [&str; 3] = ["prometheus", "webhook", "verdict"];
const ERROR: &str = "error";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    provider: &'static str,
    outcome: &'static str,
}

/// The metric family.
pub(super) struct Measurements(Family<Labels, Counter>);

impl Default for Measurements {
    /// Errors have series from the start, so that the first one shows as a change.
    fn default() -> Self {
        let family = Family::<Labels, Counter>::default();
        for provider in PROVIDERS {
            let outcome = ERROR;
            drop(family.get_or_create(&Labels { provider, outcome }));
        }
        Self(family)
    }
}

impl Measurements {
    pub(super) fn count(&self, provider: &'static str, result: &Result) {
        let outcome = match result {
            Result::Value(_) => "value",
            Result::Verdict(measured) => match measured.verdict() {
                AnalysisVerdict::Pass => "pass",
                AnalysisVerdict::Fail => "fail",
                AnalysisVerdict::Inconclusive | AnalysisVerdict::Unspecified => "inconclusive",
            },
            Result::Error(_) => ERROR,
        };
        self.0.get_or_create(&Labels { provider, outcome }).inc();
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Measurements for checks of RolloutPolicies, by provider (prometheus, webhook, verdict) and outcome: value (the condition of the check decides), pass, fail, inconclusive, error (it could not be made)";
        own.register("measurements", help, self.0.clone());
    }
}
