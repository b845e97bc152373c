//! Measurements for the analysis of a rollout. A plan asks for them, and the executor makes them.

use jiff::Timestamp;

/// Which measurement of which check of which policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasurementId {
    /// metadata.uid of the policy.
    pub policy_uid: String,
    /// The hash of the update revision.
    pub revision_hash: String,
    /// The name of the stage or wave.
    pub stage: String,
    /// The name of the check.
    pub check: String,
    /// The number of the measurement, from 0.
    pub number: u32,
}

/// A measurement to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasurementRequest {
    /// Which.
    pub id: MeasurementId,
    /// metadata.name of the policy.
    pub policy_name: String,
    /// Who is asked.
    pub provider: Provider,
    /// The name of a file with credentials that the operator of the executor has mounted; empty for none.
    pub credential: String,
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// A Prometheus, by an instant query.
    Prometheus {
        /// The URL of the API, without `/api/v1`.
        address: String,
        /// The query, in PromQL.
        query: String,
    },
    /// An HTTP server, by a POST of the rollout's status.
    Webhook {
        /// The URL.
        url: String,
    },
    /// A `nodewise.v1.VerdictService`.
    Grpc {
        /// Host and port.
        address: String,
        /// Whether to use TLS.
        tls: bool,
    },
}

/// A measurement that an executor made.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// What was measured.
    pub id: MeasurementId,
    /// When.
    pub time: Timestamp,
    /// The result.
    pub result: MeasurementResult,
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasurementResult {
    /// A value, about which the check's condition decides.
    Value(serde_json::Value),
    /// The one who was asked has decided.
    Verdict(Verdict, String),
    /// It could not be made.
    Error(String),
}

/// What a measurement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rollout may go on.
    Pass,
    /// The revision is bad.
    Fail,
    /// Neither.
    Inconclusive,
}
