//! Checks of a stage. The terms are those of Argo Rollouts' AnalysisTemplate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Duration, schema};

/// A check of a stage. Exactly one of prometheus, webhook and grpc is set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::analysis)]
pub struct Analysis {
    /// The name of the check: at most 63 lower-case letters, digits and hyphens.
    #[schemars(schema_with = "schema::dns_label")]
    pub name: String,
    /// When the check runs. WhileSoaking: after all pods of the stage are available. BeforeStage: before the stage
    /// begins. Default: WhileSoaking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<AnalysisTime>,
    /// Asks Prometheus. successCondition decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusQuery>,
    /// Asks an HTTP endpoint: a POST of the rollout's status as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Asks a gRPC service, nodewise.v1.VerdictService. Its answer decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcVerdict>,
    /// The name of a file with a bearer token for the call. Whoever installs Nodewise mounts such files for the
    /// executor. Default: no token is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::dns_subdomain")]
    pub credential: Option<String>,
    /// A CEL expression over the variable result that is true if the measurement is good, such as "result < 0.01".
    /// Required with prometheus. Optional with webhook, where without it every answer with a status of 200 to 299
    /// is good. Not allowed with grpc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub success_condition: Option<String>,
    /// The time between two measurements, such as 30s or 5m, at least 1s. Default: 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::interval")]
    pub interval: Option<Duration>,
    /// How many measurements are made, at least 1. Those that err do not count. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::at_least_one")]
    pub count: Option<u32>,
    /// How many measurements may fail. With one more the check has failed, and the new revision is rejected.
    /// Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub failure_limit: Option<u32>,
    /// How many measurements may be inconclusive. With one more the rollout holds until a person decides. Default:
    /// 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub inconclusive_limit: Option<u32>,
    /// How many measurements in a row may err, because the call did not succeed. With one more the rollout holds
    /// until a call succeeds. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub consecutive_error_limit: Option<u32>,
}

/// When a check runs.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum AnalysisTime {
    /// After all pods of the stage are available.
    #[default]
    WhileSoaking,
    /// Before the stage begins.
    BeforeStage,
}

/// An instant query to Prometheus.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusQuery {
    /// The URL of Prometheus, such as http://prometheus.monitoring:9090. The executor must allow its host.
    #[schemars(schema_with = "schema::url")]
    pub address: String,
    /// The query in PromQL.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
}

/// An HTTP endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The URL, such as https://checks.example.org/rollout. The executor must allow its host.
    #[schemars(schema_with = "schema::url")]
    pub url: String,
}

/// A service that implements nodewise.v1.VerdictService.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrpcVerdict {
    /// Host and port, such as checks.monitoring:9000. The executor must allow the host.
    #[schemars(schema_with = "schema::host_and_port")]
    pub address: String,
    /// Whether the connection uses TLS. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
}
