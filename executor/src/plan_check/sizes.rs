//! How many pods the ReplicaSets of a Deployment may get: no more than spec.replicas and the surge of the Deployment (P-29, P-31).

use serde_json::Value;

use super::known::DEFAULT_REPLICAS;

/// The default of maxSurge, which the apiserver sets.
const DEFAULT_SURGE_PERCENT: i64 = 25;

/// The most pods that the ReplicaSets of this Deployment may get.
pub(super) fn most(deployment: &Value) -> i64 {
    let spec = &deployment["spec"];
    let replicas = spec["replicas"].as_i64().unwrap_or(DEFAULT_REPLICAS);
    if spec["strategy"]["type"] == "Recreate" {
        return replicas;
    }
    let percent = |percent: i64| replicas.saturating_mul(percent).saturating_add(99) / 100;
    let surge = match &spec["strategy"]["rollingUpdate"]["maxSurge"] {
        Value::Null => percent(DEFAULT_SURGE_PERCENT),
        Value::String(text) => {
            let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
            number.map_or(0, percent)
        }
        number => number.as_i64().unwrap_or_default(),
    };
    replicas.saturating_add(surge.max(0))
}
