//! One stage of a rollout.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Analysis, Duration, IntOrPercent, schema};

/// Some nodes that get the new revision together. The next stage begins when all of them run it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::stage)]
pub struct Stage {
    /// The name of the stage: at most 63 lower-case letters, digits and hyphens.
    #[schemars(schema_with = "schema::dns_label")]
    pub name: String,
    /// How many of the nodes that match belong to the stage: a number such as 5, or a percentage such as "10%",
    /// rounded up. At least 1 or "1%". Not together with groupBy. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive_int_or_percent")]
    pub replicas: Option<IntOrPercent>,
    /// Selects nodes by their labels. Default: all nodes that no stage before this one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub node_selector: Option<LabelSelector>,
    /// A label of nodes, such as topology.kubernetes.io/zone. The nodes that replicas picks are spread evenly over
    /// its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_key")]
    pub spread_by: Option<String>,
    /// A label of nodes, such as topology.kubernetes.io/zone. The nodes of each value form a wave. Waves run one
    /// after another in the order of the values. Nodes without the label come last. Not together with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_key")]
    pub group_by: Option<String>,
    /// The most nodes without an available pod at a time: a number such as 1, or a percentage of the eligible nodes
    /// such as "10%". At least 1 or "1%". It is never more than the DaemonSet's own, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive_int_or_percent")]
    pub max_unavailable: Option<IntOrPercent>,
    /// The most nodes with a second pod during the update: a number such as 1, or a percentage of the eligible
    /// nodes such as "10%". At least 1 or "1%". It is never more than the DaemonSet's own, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive_int_or_percent")]
    pub max_surge: Option<IntOrPercent>,
    /// How long all pods of the stage must have been available until the stage is complete, such as 10m or 1h30m.
    /// It begins again when one of them no longer is. Default: 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Duration>,
    /// Checks that must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<Analysis>,
    /// Required: the stage waits until a person approves it with the annotation nodewise.dev/approve and the digest
    /// in status.targets[].pendingApproval. Default: the stage needs no approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// Whether a stage needs an approval.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema)]
pub enum Approval {
    /// A person must approve the stage before it begins.
    Required,
}
