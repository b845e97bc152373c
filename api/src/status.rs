//! What is remembered and reported: all that must survive the executor.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// The types of conditions.
pub mod condition {
    /// Whether the policy is used.
    pub const ACCEPTED: &str = "Accepted";
    /// Whether the rollout goes on.
    pub const PROGRESSING: &str = "Progressing";
    /// Whether the pods of all targets are available.
    pub const AVAILABLE: &str = "Available";
    /// Whether a rejected revision was rolled back.
    pub const ROLLED_BACK: &str = "RolledBack";
}

/// The condition Accepted in the status of a policy, as the apiserver serves it. `None` if no executor has written one.
#[must_use]
pub fn accepted(status: &Value) -> Option<&Value> {
    let mut conditions = status["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == condition::ACCEPTED)
}

/// What the condition Accepted says about a check whose host the executor may not call.
#[must_use]
pub fn host_not_allowed(host: &str) -> String {
    format!("the executor may not call {host:?}")
}

/// The status of a RolloutPolicy. The executor writes it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPolicyStatus {
    /// The generation of the policy that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions Accepted, Progressing, Available and RolledBack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The columns of kubectl get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The rollout of each DaemonSet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub targets: Vec<TargetStatus>,
}

/// The columns of kubectl get.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The DaemonSet, or how many there are, such as "3 DaemonSets".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub target: String,
    /// The stage that the rollout is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 127))]
    pub stage: String,
    /// How many nodes run the new revision, of how many, such as "12/100".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub updated: String,
    /// What the rollout does or waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub state: String,
}

/// The rollout of one DaemonSet.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// The name of the DaemonSet.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The uid of the DaemonSet. A DaemonSet of the same name with another uid begins anew.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub uid: String,
    /// The revision of the present template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<Revision>,
    /// The last revision whose rollout succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_revision: Option<Revision>,
    /// The revision that no further node gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_revision: Option<RejectedRevision>,
    /// The revision whose rejection a person lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<ResumedRevision>,
    /// What the rollout does or waits for, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub state: String,
    /// What the rollout does or waits for, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// How many nodes should run a pod.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub desired: u32,
    /// How many of them have a pod of the update revision.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub updated: u32,
    /// How many of them have an available pod of any revision.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub available: u32,
    /// How many of them may be without an available pod.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub max_unavailable: u32,
    /// What the annotation nodewise.dev/rollback of the policy must be to reject the update revision and to let its nodes go
    /// back. It is of this rollout, and of no later one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What the policy asks for that is not possible beside the controller that creates the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 64)))]
    pub limited: Vec<String>,
    /// When the rollout of the update revision began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Since when nodes may be without a pod because the rollout deleted it. Absent when a rollout is over and every node has a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disrupted_since: Option<Timestamp>,
    /// When this entry was written last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// The stages in their order. Each wave of a stage with groupBy is a stage here, such as zones/eu-1a.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub stages: Vec<StageStatus>,
    /// The approvals that were given for the update revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["stage"]))]
    pub approvals: Vec<ApprovalRecord>,
    /// The approval that the rollout waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_approval: Option<PendingApproval>,
    /// How many nodes were begun, and when, for the pace of the policy. Only what is not older than its interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub pace: Vec<PaceRecord>,
    /// Up to 10 nodes that hold the rollout up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["node"]))]
    pub blocking: Vec<BlockedNode>,
}

/// A revision of a DaemonSet's template.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The value of the label controller-revision-hash.
    #[schemars(length(max = 63))]
    pub hash: String,
    /// The number of the ControllerRevision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
}

/// A revision that no further node gets.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRevision {
    /// The value of the label controller-revision-hash.
    #[schemars(length(max = 63))]
    pub hash: String,
    /// The number of the ControllerRevision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// Why it was rejected, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub reason: String,
    /// Why it was rejected, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Whether a person asked for the way back, whatever onFailure says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub roll_back: bool,
    /// When it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// What the annotation nodewise.dev/resume of the policy must be to let the revision go on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
}

/// A revision whose rejection a person lifted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumedRevision {
    /// The value of the label controller-revision-hash.
    #[schemars(length(max = 63))]
    pub hash: String,
    /// When the rejection was lifted. Failures before do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// How far a stage is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageStatus {
    /// The name of the stage, or of the wave, such as zones/eu-1a.
    #[schemars(length(max = 127))]
    pub name: String,
    /// How many nodes belong to the stage.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub nodes: u32,
    /// How many of them have a pod of the update revision.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub updated: u32,
    /// How many of them have an available pod of the update revision.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub available: u32,
    /// How many of them are exempt, because they were not ready or are in maintenance.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub exempt: u32,
    /// How many of them have failed with the update revision.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub failed: u32,
    /// What the stage does or waits for: Pending, AwaitingApproval, OutsideWindow, Analyzing, Progressing, Soaking
    /// or Complete.
    #[serde(default)]
    pub state: StageState,
    /// When the stage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Since when all pods of the stage are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_start_time: Option<Timestamp>,
    /// When the stage was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// How far the checks of the stage are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub analysis: Vec<AnalysisStatus>,
}

/// What a stage does or waits for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum StageState {
    /// A stage before it is not complete.
    #[default]
    Pending,
    /// It waits for an approval.
    AwaitingApproval,
    /// It waits for a window.
    OutsideWindow,
    /// It waits for checks.
    Analyzing,
    /// Its nodes are updated.
    Progressing,
    /// All its pods are available, and the soak runs.
    Soaking,
    /// It is complete.
    Complete,
}

/// How far a check is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisStatus {
    /// The name of the check.
    #[schemars(length(max = 63))]
    pub name: String,
    /// How many measurements were made.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub measurements: u32,
    /// How many of them were good.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub successful: u32,
    /// How many of them failed.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub failed: u32,
    /// How many of them were inconclusive.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub inconclusive: u32,
    /// How many of them erred.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub errors: u32,
    /// How many of the last ones erred in a row.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub consecutive_errors: u32,
    /// When the last measurement was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The value of the last measurement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub value: String,
    /// What the last measurement said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// An approval that was given.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    /// The name of the stage.
    #[schemars(length(max = 127))]
    pub stage: String,
    /// The digest that was approved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// When it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// An approval that the rollout waits for.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingApproval {
    /// The name of the stage.
    #[schemars(length(max = 127))]
    pub stage: String,
    /// How many nodes the stage has.
    #[serde(default)]
    #[schemars(schema_with = "schema::count")]
    pub nodes: u32,
    /// The digest to approve, with the annotation nodewise.dev/approve of the policy. It changes with the policy,
    /// the update revision and the nodes of the stage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// Since when the rollout waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The digest in the annotation that was refused because it is out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub refused_digest: Option<String>,
}

/// How many nodes were begun at a time.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaceRecord {
    /// When they were begun.
    pub time: Timestamp,
    /// How many.
    #[schemars(schema_with = "schema::count")]
    pub nodes: u32,
}

/// A node that holds the rollout up.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedNode {
    /// The name of the node.
    #[schemars(length(max = 253))]
    pub node: String,
    /// Why it holds the rollout up, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
}
