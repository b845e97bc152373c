//! What a replica must know for a request.
//!
//! During an upgrade the replicas of a service differ. One that does not know a field of the snapshot ignores it, and its plan would be
//! wrong. So a replica is asked only what it knows.

use nodewise_proto::v1::{self, workload::Kind};
use nodewise_proto::workload::{DAEMON_SET, ROLLOUT_POLICIES_FEATURE, kind_of};
use tonic_types::FieldViolation;

use crate::capabilities::Capabilities;
use crate::fault::{Failed, Fault};

/// The field of the request that needs the feature [`ROLLOUT_POLICIES_FEATURE`].
const ROLLOUT_POLICIES_FIELD: &str = "snapshot.workload.daemon_set.rollout_policies";

/// What a replica must know for a request. Nothing for what every version knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    kind: Option<&'static str>,
    policies: bool,
}

impl Needs {
    /// What this snapshot needs. Every version plans for DaemonSets without policies.
    pub(super) fn of(snapshot: Option<&v1::Snapshot>) -> Self {
        let kind = snapshot.and_then(kind_of).filter(|kind| *kind != DAEMON_SET);
        let workload = snapshot.and_then(|snapshot| snapshot.workload.as_ref());
        let policies = match workload.and_then(|workload| workload.kind.as_ref()) {
            Some(Kind::DaemonSet(daemon_set)) => !daemon_set.rollout_policies.is_empty(),
            _ => false,
        };
        Self { kind, policies }
    }

    /// Whether every version knows what is needed.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that the replica at `url` knows what is needed.
    pub(super) fn check(&self, known: &Capabilities, url: &str) -> Result<(), Failed> {
        if let Some(kind) = self
            .kind
            .filter(|kind| !known.kinds.iter().any(|known| known == kind))
        {
            let kinds = known.kinds.join(", ");
            return Err(Failed {
                reason: format!("{url}: its version plans for {kinds}, and not for {kind}; upgrade it"),
                fault: Fault::Temporary,
                violations: Vec::new(),
                retry_after: None,
            });
        }
        if self.policies && !known.has(ROLLOUT_POLICIES_FEATURE) {
            let what = format!(
                "its version does not know {ROLLOUT_POLICIES_FEATURE}, and the workload has a RolloutPolicy; upgrade it"
            );
            return Err(Failed {
                reason: format!("{url}: {what}"),
                fault: Fault::Outdated(ROLLOUT_POLICIES_FEATURE),
                violations: vec![FieldViolation::new(ROLLOUT_POLICIES_FIELD, what)],
                retry_after: None,
            });
        }
        Ok(())
    }
}
