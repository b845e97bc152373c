//! A case: the content of the caches, the differences between the caches and the API, and the controller's memory. The
//! Go program reads the same JSON; `testbed/upstream/README.md` describes each member.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// In any string of a case, a placeholder for the hash that a new revision of the first DaemonSet, or a new ReplicaSet of
/// the first Deployment, would get.
pub const HASH: &str = "@hash";

/// The kind of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Kind {
    /// A DaemonSet.
    #[default]
    DaemonSet,
    /// A ReplicaSet.
    ReplicaSet,
    /// A Deployment.
    Deployment,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::DaemonSet, Self::ReplicaSet, Self::Deployment];

    /// The name in cases and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DaemonSet => "daemonset",
            Self::ReplicaSet => "replicaset",
            Self::Deployment => "deployment",
        }
    }

    /// Whether this is the kind that a case has if it names none.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
    fn is_daemon_set(&self) -> bool {
        *self == Self::DaemonSet
    }
}

/// One cluster at the time of a sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The kind of the workload that is synced.
    #[serde(default, skip_serializing_if = "Kind::is_daemon_set")]
    pub kind: Kind,
    /// The seed that the case was generated from. It also seeds random orders.
    #[serde(default)]
    pub seed: u64,
    /// The controller's clock (RFC 3339, up to nanoseconds).
    pub now: String,
    /// The cache of DaemonSets. The first one is synced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daemon_sets: Vec<Value>,
    /// The cache of ReplicaSets. The first one is synced if that is the kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_sets: Vec<Value>,
    /// The cache of Deployments. The first one is synced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deployments: Vec<Value>,
    /// The cache of nodes.
    #[serde(default)]
    pub nodes: Vec<Value>,
    /// The cache of pods.
    #[serde(default)]
    pub pods: Vec<Value>,
    /// The cache of ControllerRevisions.
    #[serde(default)]
    pub revisions: Vec<Revision>,
    /// Where the API differs from the caches.
    #[serde(default)]
    pub live: Live,
    /// The outstanding creates and deletes.
    #[serde(default)]
    pub expectations: Option<Expectations>,
    /// The controller's last writes for the ReplicaSet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_writes: Vec<OwnWrite>,
    /// The back-off of failed pods of the first DaemonSet.
    #[serde(default)]
    pub backoff: Vec<Backoff>,
    /// The limit of creates, and of deletes, in one sync.
    pub burst: u32,
    /// The Kubernetes feature gates that are on. All others have their defaults.
    #[serde(default)]
    pub feature_gates: Vec<String>,
    /// The Kubernetes feature gates that are off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates_off: Vec<String>,
    /// Whether patched pods appear in the pod cache at once.
    pub echo: bool,
    /// The calls that the API rejects.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

impl Case {
    /// The workload that is synced.
    pub(crate) fn subject(&self) -> Result<&Value> {
        let (member, workloads) = match self.kind {
            Kind::DaemonSet => ("daemonSets", &self.daemon_sets),
            Kind::ReplicaSet => ("replicaSets", &self.replica_sets),
            Kind::Deployment => ("deployments", &self.deployments),
        };
        workloads
            .first()
            .with_context(|| format!("{member}: there is none"))
    }
}

/// A ControllerRevision. Its data is text, because upstream compares bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The object without `data`.
    pub object: Value,
    /// The JSON text of `data`.
    pub data: String,
}

impl Revision {
    /// The object as an apiserver serves it.
    pub(crate) fn served(&self) -> Result<Value> {
        let mut object = self.object.clone();
        ensure!(object.is_object(), "revisions: not an object: {object}");
        object["data"] = serde_json::from_str(&self.data).context("revisions: data")?;
        Ok(object)
    }
}

/// The differences between the API and the caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Live {
    /// The workload that is synced: `None` if it is as cached, `Some(None)` if it does not exist.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub subject: Option<Option<Value>>,
    /// Objects that do not exist: `pods/NAME`, `controllerrevisions/NAME`.
    #[serde(default)]
    pub gone: Vec<String>,
    /// Revisions that are not in the cache.
    #[serde(default)]
    pub revisions: Vec<Revision>,
    /// Pods that are not in the cache, or different there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<Value>,
    /// ReplicaSets that are not in the cache, or different there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_sets: Vec<Value>,
}

/// Distinguishes `null` from an absent member.
#[expect(
    clippy::option_option,
    reason = "an absent member and null are different things"
)]
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Value>>, D::Error> {
    Option::<Value>::deserialize(deserializer).map(Some)
}

/// Creates and deletes that were started and are not observed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectations {
    /// Creates.
    pub adds: i64,
    /// Deletes.
    pub dels: i64,
    /// How long ago they were set. Never close to five minutes, after which they expire, because upstream uses the real
    /// clock for this.
    #[serde(default)]
    pub age_seconds: u64,
}

/// The last write of a resource, and the version that the cache has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnWrite {
    /// `pods` or `replicasets`.
    pub resource: String,
    /// The version that the write returned.
    pub written: String,
    /// The newest version that the cache has seen.
    pub observed: String,
}

/// The back-off of failed pods on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backoff {
    /// The observed generation that the entry belongs to.
    pub observed_generation: i64,
    /// The node.
    pub node: String,
    /// The current delay: 1, 2, 4, … 512 or 900.
    pub delay_seconds: u64,
    /// When a failed pod was last deleted.
    pub last: String,
}

/// A call that the API rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The kind of call.
    pub op: String,
    /// The object, or the node for `create-pod`; empty for any.
    #[serde(default)]
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// The status reason.
    pub reason: String,
    /// The reason of the first cause; empty for no cause.
    #[serde(default)]
    pub cause: String,
    /// How many calls are rejected; 0 for all.
    #[serde(default)]
    pub times: u32,
}
