//! Names and times on which the service and its clients must agree.

use std::time::Duration;

/// `Workload.kind` of an apps/v1 DaemonSet, and `kind` in owner references to it.
pub const DAEMON_SET: &str = "DaemonSet";

/// The label of pods and ControllerRevisions that holds the hash of their revision.
pub const HASH_LABEL: &str = "controller-revision-hash";

/// The default of `PlanOptions.burst`: the most pods that a plan creates, and the most that it deletes.
pub const DEFAULT_BURST: u32 = 250;

/// How long a plan waits for a create or delete that no watch has shown yet.
pub const EXPECTATION_LIFETIME: Duration = Duration::from_mins(5);
