//! The object and the parts of its spec that concern the whole rollout.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Duration, IntOrPercent, RolloutPolicyStatus, Stage, TimeOfDay, schema};

/// How the new revision of DaemonSets reaches the nodes.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "nodewise.dev",
    version = "v1alpha1",
    kind = "RolloutPolicy",
    plural = "rolloutpolicies",
    shortname = "rop",
    namespaced,
    status = "RolloutPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    schema = "manual",
    printcolumn = r#"{"name": "Target", "type": "string", "jsonPath": ".status.summary.target", "description": "The DaemonSet, or how many there are."}"#,
    printcolumn = r#"{"name": "Stage", "type": "string", "jsonPath": ".status.summary.stage", "description": "The stage that the rollout is in."}"#,
    printcolumn = r#"{"name": "Updated", "type": "string", "jsonPath": ".status.summary.updated", "description": "How many nodes run the new revision, of how many."}"#,
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.summary.state", "description": "What the rollout does or waits for."}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPolicySpec {
    /// The DaemonSets of this namespace that the policy applies to. If several policies apply to one DaemonSet, the
    /// oldest one counts; the others have the condition Accepted=False with the reason Conflict.
    pub targets: Targets,
    /// Whether the rollout is paused. While it is, no pod that runs is replaced. Pods that are missing are created,
    /// from the stable revision where the new one is not admitted yet. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The nodes that stay on the stable revision: a number such as 5, or a percentage of the eligible nodes such
    /// as "10%", rounded up. They are the last ones in the order of the rollout. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrPercent>,
    /// The stages of the rollout, one after another. A node belongs to the first stage that selects it. Nodes that
    /// no stage selects form a last stage. Without stages all nodes form one stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub stages: Vec<Stage>,
    /// What to do with nodes that are not ready or in maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Which revision a pod gets that is missing on a node where the update is not admitted yet, such as a node
    /// that is new. Stable: the last revision whose rollout succeeded. Update: the new revision. Default: Stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unadmitted: Option<Unadmitted>,
    /// The order of the nodes within a stage. Nodes without an available pod always come first. Name: by the name
    /// of the node. OldestPod: nodes whose pod is older come first. Default: Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<NodeOrder>,
    /// The most nodes that are begun within a length of time. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// How old pods are removed. Delete: they are deleted, as the DaemonSet controller does it. Evict: through the
    /// Eviction API, which heeds PodDisruptionBudgets; a pod that a budget protects stays until the budget allows
    /// it. Default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// When pods that run may be replaced. Outside of every window the rollout waits; a rollback does not. Default:
    /// always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub windows: Vec<Window>,
    /// The seconds that a pod of the new revision has to become available. After them its node has failed. Default:
    /// 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::at_least_one")]
    pub progress_deadline_seconds: Option<u32>,
    /// How often the containers of a pod of the new revision may restart. After one restart more its node has
    /// failed. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub max_restarts: Option<u32>,
    /// How many nodes must fail until the new revision is rejected: a number such as 3, or a percentage of the
    /// nodes that were admitted such as "5%". Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive_int_or_percent")]
    pub failure_threshold: Option<IntOrPercent>,
    /// What happens when the new revision is rejected. No further node gets it in either case. Rollback: the nodes
    /// that have it go back to the stable revision; the DaemonSet is not changed. Pause: they keep it until a
    /// person decides. Default: Rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

/// Which DaemonSets a policy applies to. Exactly one field is set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::targets)]
pub struct Targets {
    /// The names of DaemonSets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub names: Vec<String>,
    /// Selects DaemonSets by their labels. An empty selector selects all of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<LabelSelector>,
}

/// What to do with nodes that are not well.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// What to do with nodes that were not ready before they got the new revision. Exempt: they are neither
    /// touched, nor waited for, nor counted as unavailable, and get their turn when they are ready. Count: they
    /// count as unavailable, as for the DaemonSet controller. Default: Exempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<NotReady>,
    /// The most nodes that may be exempt: a number such as 5, or a percentage of the eligible nodes such as "10%",
    /// rounded up. With more the rollout holds. Default: 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_exempt: Option<IntOrPercent>,
    /// What to do with nodes that are cordoned or have the condition MaintenanceInProgress. Exempt: as for
    /// notReady. First: they are updated first, because they are drained anyway. Count: they are treated like all
    /// others. Default: Exempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_maintenance: Option<Maintenance>,
}

/// What to do with nodes that were not ready before the rollout reached them.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum NotReady {
    /// They are left alone until they are ready.
    #[default]
    Exempt,
    /// They count as unavailable.
    Count,
}

/// What to do with nodes in maintenance.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum Maintenance {
    /// They are left alone until the maintenance is over.
    #[default]
    Exempt,
    /// They are updated first.
    First,
    /// They are treated like all others.
    Count,
}

/// Which revision a pod gets where the update is not admitted.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum Unadmitted {
    /// The last revision whose rollout succeeded.
    #[default]
    Stable,
    /// The revision of the present template.
    Update,
}

/// The order of the nodes within a stage.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum NodeOrder {
    /// By the name of the node.
    #[default]
    Name,
    /// By the age of the pod, the oldest first.
    OldestPod,
}

/// How many nodes may be begun within a length of time.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// The most nodes that are begun within any interval of this length, at least 1.
    #[schemars(schema_with = "schema::at_least_one")]
    pub nodes: u32,
    /// The length of the interval, such as 1m, at least 1s.
    #[schemars(schema_with = "schema::interval")]
    pub interval: Duration,
}

/// How old pods are removed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum Disruption {
    /// By a delete of the pod.
    #[default]
    Delete,
    /// Through the Eviction API.
    Evict,
}

/// A span of time that comes again, in which pods that run may be replaced.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::window)]
pub struct Window {
    /// The days on which the window begins: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Default: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 7), extend("x-kubernetes-list-type" = "set"))]
    pub days: Vec<Weekday>,
    /// The time at which the window begins, such as "09:00". Default: the window lasts the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<TimeOfDay>,
    /// The time at which the window ends, such as "16:00". An end before the start is on the next day. Default: the
    /// window lasts the whole day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<TimeOfDay>,
    /// The time zone of days and times: a name of the IANA time zone database such as Europe/Berlin. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time_zone")]
    pub time_zone: Option<String>,
}

/// A day of the week.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// What happens when a revision is rejected.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
pub enum OnFailure {
    /// The nodes go back to the stable revision.
    #[default]
    Rollback,
    /// A person decides.
    Pause,
}
