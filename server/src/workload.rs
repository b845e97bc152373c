//! The kinds of workload. This is the one place where the service chooses the functions of a kind.

use nodewise_planner::{
    daemonset::{self, DaemonSet},
    deployment::{self, Deployment, Set},
    identities::DuplicateIdentity,
    plan::Plan,
    plan_cache::CacheCounts,
    replicaset::{self, ReplicaSet},
    snapshot::{Bucket, Digest, Options, Revision, Snapshot, State},
};
use nodewise_proto::{
    v1,
    workload::{DAEMON_SET, DEPLOYMENT, REPLICA_SET},
};
use serde_json::Value;

use crate::refusal::{Refusal, Violation};

/// A snapshot of a workload of any kind.
pub(crate) enum AnySnapshot {
    /// Of a DaemonSet.
    DaemonSet(Snapshot<DaemonSet>),
    /// Of a ReplicaSet.
    ReplicaSet(Snapshot<ReplicaSet>),
    /// Of a Deployment.
    Deployment(Snapshot<Deployment>),
}

/// Results of earlier plans for one workload.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Of a DaemonSet.
    DaemonSet(daemonset::plan_cache::PlanCache),
    /// Of a ReplicaSet.
    ReplicaSet(replicaset::plan_cache::PlanCache),
    /// A Deployment has none.
    Deployment,
}

/// Evaluates an expression for the snapshot or workload of any kind.
macro_rules! each {
    ($any:expr, $snapshot:ident => $value:expr) => {
        match $any {
            AnySnapshot::DaemonSet($snapshot) => $value,
            AnySnapshot::ReplicaSet($snapshot) => $value,
            AnySnapshot::Deployment($snapshot) => $value,
        }
    };
}

impl AnySnapshot {
    /// metadata.uid of the workload.
    pub(crate) fn uid(&self) -> &str {
        each!(self, snapshot => &snapshot.workload.uid)
    }

    /// The options.
    pub(crate) fn options(&self) -> &Options {
        each!(self, snapshot => &snapshot.options)
    }

    /// The buckets.
    pub(crate) fn buckets(&self) -> &[Bucket] {
        each!(self, snapshot => &snapshot.buckets)
    }

    /// The state.
    pub(crate) fn state_mut(&mut self) -> &mut State {
        each!(self, snapshot => &mut snapshot.state)
    }

    /// spec.replicas; 0 for a DaemonSet.
    pub(crate) fn replicas(&self) -> usize {
        let replicas = match self {
            Self::DaemonSet(_) => 0,
            Self::ReplicaSet(snapshot) => snapshot.workload.replicas,
            Self::Deployment(snapshot) => snapshot.workload.replicas,
        };
        usize::try_from(replicas).unwrap_or_default()
    }

    /// The number of revisions or ReplicaSets.
    pub(crate) fn revisions(&self) -> usize {
        match self {
            Self::Deployment(snapshot) => snapshot.workload.sets.len(),
            Self::DaemonSet(Snapshot { revisions, .. }) | Self::ReplicaSet(Snapshot { revisions, .. }) => {
                revisions.len()
            }
        }
    }

    /// The templates that new pods may be made from: the workload's, and those of its revisions or ReplicaSets.
    pub(crate) fn templates(&self) -> impl Iterator<Item = Value> {
        let (template, revisions, sets) = match self {
            Self::DaemonSet(Snapshot {
                workload, revisions, ..
            }) => (&workload.template, revisions.as_slice(), &[][..]),
            Self::ReplicaSet(Snapshot { workload, .. }) => (&workload.template, &[][..], &[][..]),
            Self::Deployment(Snapshot { workload, .. }) => {
                (&workload.template, &[][..], workload.sets.as_slice())
            }
        };
        let of_revision = |revision: &Revision| revision.data.to_value()["spec"]["template"].take();
        let of_set = |set: &Set| set.template.to_value();
        [template.to_value()]
            .into_iter()
            .chain(revisions.iter().map(of_revision))
            .chain(sets.iter().map(of_set))
    }

    /// The workload as a message.
    pub(crate) fn reference(&self) -> v1::WorkloadReference {
        let kind = match self {
            Self::DaemonSet(_) => DAEMON_SET,
            Self::ReplicaSet(_) => REPLICA_SET,
            Self::Deployment(_) => DEPLOYMENT,
        };
        each!(self, snapshot => v1::WorkloadReference {
            kind: kind.to_owned(),
            namespace: snapshot.workload.namespace.clone(),
            name: snapshot.workload.name.clone(),
            uid: snapshot.workload.uid.clone(),
            resource_version: snapshot.workload.resource_version.clone(),
        })
    }

    /// The snapshot of a DaemonSet; an error for another kind.
    pub(crate) fn into_daemon_set(self) -> Result<Snapshot<DaemonSet>, Refusal> {
        match self {
            Self::DaemonSet(snapshot) => Ok(snapshot),
            _ => Err(Refusal::Invalid {
                violations: vec![Violation {
                    field: "snapshot.workload".to_owned(),
                    description: "must be a DaemonSet".to_owned(),
                }],
                more: 0,
            }),
        }
    }

    /// The memory to plan with: `recalled`, if it is of this kind, or an empty one.
    pub(crate) fn memory(&self, recalled: Option<Memory>) -> Memory {
        match (self, recalled) {
            (Self::DaemonSet(_), Some(memory @ Memory::DaemonSet(_)))
            | (Self::ReplicaSet(_), Some(memory @ Memory::ReplicaSet(_))) => memory,
            (Self::DaemonSet(_), _) => Memory::DaemonSet(daemonset::plan_cache::PlanCache::default()),
            (Self::ReplicaSet(_), _) => Memory::ReplicaSet(replicaset::plan_cache::PlanCache::default()),
            (Self::Deployment(_), _) => Memory::Deployment,
        }
    }

    /// Plans for the workload. `None` once `stop` is true. `memory` must be of the same kind.
    pub(crate) fn plan(&self, memory: &mut Memory, stop: &dyn Fn() -> bool) -> Option<Plan> {
        match (self, memory) {
            (Self::DaemonSet(snapshot), Memory::DaemonSet(cache)) => {
                daemonset::plan_until(snapshot, cache, stop)
            }
            (Self::ReplicaSet(snapshot), Memory::ReplicaSet(cache)) => {
                replicaset::plan_until(snapshot, cache, stop)
            }
            (Self::Deployment(snapshot), _) => deployment::plan_until(snapshot, stop),
            (Self::DaemonSet(_) | Self::ReplicaSet(_), _) => {
                unreachable!("AnySnapshot::memory gives a memory of the snapshot's kind")
            }
        }
    }
}

impl Memory {
    /// Checks that no two pods have the same name or uid, and remembers those of unchanged buckets.
    pub(crate) fn identify(&mut self, buckets: &[Bucket]) -> Result<(), Vec<DuplicateIdentity>> {
        match self {
            Self::DaemonSet(cache) => cache.identify(buckets),
            Self::ReplicaSet(cache) => cache.identify(buckets),
            Self::Deployment => Ok(()),
        }
    }

    /// The pod lists that newer ones have replaced since the last call.
    pub(crate) fn superseded_pods(&self) -> &[Digest] {
        match self {
            Self::DaemonSet(cache) => cache.superseded_pods(),
            Self::ReplicaSet(cache) => cache.superseded_pods(),
            Self::Deployment => &[],
        }
    }

    /// The node lists that newer ones have replaced in the last plan, once.
    pub(crate) fn take_superseded_nodes(&mut self) -> Vec<Digest> {
        match self {
            Self::DaemonSet(cache) => cache.take_superseded_nodes(),
            Self::ReplicaSet(_) | Self::Deployment => Vec::new(),
        }
    }

    /// How many bucket results the last plan computed and reused.
    pub(crate) fn take_counts(&mut self) -> CacheCounts {
        match self {
            Self::DaemonSet(cache) => cache.take_counts(),
            Self::ReplicaSet(cache) => cache.take_counts(),
            Self::Deployment => CacheCounts::default(),
        }
    }

    /// Bytes that the results take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::DaemonSet(cache) => cache.bytes(),
            Self::ReplicaSet(cache) => cache.bytes(),
            Self::Deployment => 0,
        }
    }
}
