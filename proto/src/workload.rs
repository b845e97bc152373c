//! Names and times on which the service and its clients must agree.

use std::time::Duration;

/// `Workload.kind` of an apps/v1 DaemonSet, and `kind` in owner references to it.
pub const DAEMON_SET: &str = "DaemonSet";

/// `Workload.kind` of an apps/v1 ReplicaSet, and `kind` in owner references to it.
pub const REPLICA_SET: &str = "ReplicaSet";

/// `Workload.kind` of an apps/v1 Deployment, and `kind` in owner references to it.
pub const DEPLOYMENT: &str = "Deployment";

/// The kinds of workload that there are plans for.
pub const KINDS: [&str; 3] = [DAEMON_SET, REPLICA_SET, DEPLOYMENT];

/// `GetCapabilitiesResponse.features` of a service that heeds `DaemonSet.rollout_policies`.
pub const ROLLOUT_POLICIES_FEATURE: &str = "RolloutPolicies";

/// `GetCapabilitiesResponse.features` of a service that reads `Bucket.data_with_shared_labels`.
pub const SHARED_LABELS_FEATURE: &str = "SharedLabels";

/// The kind of the workload of a snapshot; `None` if it has none.
#[must_use]
pub fn kind_of(snapshot: &crate::v1::Snapshot) -> Option<&'static str> {
    use crate::v1::workload::Kind;
    Some(match snapshot.workload.as_ref()?.kind.as_ref()? {
        Kind::DaemonSet(_) => DAEMON_SET,
        Kind::ReplicaSet(_) => REPLICA_SET,
        Kind::Deployment(_) => DEPLOYMENT,
    })
}

/// A kind of workload by its name; `None` if there are no plans for that kind.
#[must_use]
pub fn known(kind: &str) -> Option<&'static str> {
    KINDS.into_iter().find(|known| *known == kind)
}

/// The label of pods and ControllerRevisions that holds the hash of their revision.
pub const HASH_LABEL: &str = "controller-revision-hash";

/// The label of ReplicaSets and pods that holds the hash of a Deployment's template.
pub const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

/// The default of `PlanOptions.burst` for a DaemonSet: the most pods that a plan creates, and the most that it deletes.
pub const DEFAULT_BURST: u32 = 250;

/// The default of `PlanOptions.burst` for a ReplicaSet.
pub const REPLICA_SET_BURST: u32 = 500;

/// How long a plan waits for a create or delete that no watch has shown yet.
pub const EXPECTATION_LIFETIME: Duration = Duration::from_mins(5);
