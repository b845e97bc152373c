//! Names and times on which the service and its clients must agree.

use std::time::Duration;

/// `Workload.kind` of an apps/v1 DaemonSet, and `kind` in owner references to it.
pub const DAEMON_SET: &str = "DaemonSet";

/// The kinds of workload that there are plans for.
pub const KINDS: [&str; 1] = [DAEMON_SET];

/// A kind of workload by its name; `None` if there are no plans for that kind.
#[must_use]
pub fn known(kind: &str) -> Option<&'static str> {
    KINDS.into_iter().find(|known| *known == kind)
}

/// The label of pods and ControllerRevisions that holds the hash of their revision.
pub const HASH_LABEL: &str = "controller-revision-hash";

/// The default of `PlanOptions.burst`: the most pods that a plan creates, and the most that it deletes.
pub const DEFAULT_BURST: u32 = 250;

/// How long a plan waits for a create or delete that no watch has shown yet.
pub const EXPECTATION_LIFETIME: Duration = Duration::from_mins(5);
