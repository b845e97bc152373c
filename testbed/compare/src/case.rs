//! A case: what the caches hold, where the API differs from them, and what the controller remembers. The Go half of the
//! comparison reads the same JSON; `testbed/upstream/README.md` describes it member by member.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Stands, in any string of a case, for the hash that a new revision of the first DaemonSet would get.
pub const HASH: &str = "@hash";

/// One cluster, at the moment of a sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Where it came from; also orders what has no order.
    #[serde(default)]
    pub seed: u64,
    /// The controller's clock (RFC 3339, up to nanoseconds).
    pub now: String,
    /// The cache of DaemonSets. The first is the one that is synced.
    pub daemon_sets: Vec<Value>,
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
    /// Creates and deletes outstanding.
    #[serde(default)]
    pub expectations: Option<Expectations>,
    /// Back-off of failed pods of the first DaemonSet.
    #[serde(default)]
    pub backoff: Vec<Backoff>,
    /// Most creates, and most deletes, of one step.
    pub burst: u32,
    /// Kubernetes feature gates that are on; all others are as by default.
    #[serde(default)]
    pub feature_gates: Vec<String>,
    /// Patches of pods show in the pod cache at once.
    pub echo: bool,
    /// Calls that the API refuses.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// A ControllerRevision. Its data is kept as text, since upstream compares bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The object without `data`.
    pub object: Value,
    /// The JSON text of `data`.
    pub data: String,
}

/// Where the API differs from the caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Live {
    /// The first DaemonSet: absent when it is as cached, `Some(None)` when it is gone.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub daemon_set: Option<Option<Value>>,
    /// Objects that are gone: `pods/NAME`, `controllerrevisions/NAME`.
    #[serde(default)]
    pub gone: Vec<String>,
    /// Revisions that the cache does not show.
    #[serde(default)]
    pub revisions: Vec<Revision>,
}

/// Tells `null` from an absent member.
#[expect(
    clippy::option_option,
    reason = "an absent member and null are different things"
)]
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Value>>, D::Error> {
    Option::<Value>::deserialize(deserializer).map(Some)
}

/// Creates and deletes that were started and not yet observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectations {
    /// Creates.
    pub adds: i64,
    /// Deletes.
    pub dels: i64,
    /// How long ago they were set. Kept well away from the five minutes after which they expire: upstream's clock for
    /// them is the real one.
    #[serde(default)]
    pub age_seconds: u64,
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

/// A call that the API refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Which kind of call.
    pub op: String,
    /// The object, for `create-pod` the node; empty for all.
    #[serde(default)]
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// The status reason.
    pub reason: String,
    /// The reason of the first cause; empty for none.
    #[serde(default)]
    pub cause: String,
    /// Refuses only so many calls; 0 refuses all.
    #[serde(default)]
    pub times: u32,
}
