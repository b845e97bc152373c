//! The ReplicaSets of a Deployment: claims, and which of them is the new one (P-12 to P-17).

use std::borrow::Cow;

use crate::{
    core::{
        cancellation::Cancellation,
        claims::{self, Claim},
        plan::{Action, ActionKind, Batch, ObjectClaim, PatchType, Reason, Resource, Subresource},
        status::ReplicaSetStatus,
    },
    deployment::{
        set_write, template,
        workload::{Deployment, Set},
    },
};

/// The new ReplicaSet of a Deployment.
#[derive(Debug, Clone)]
pub(crate) struct NewSet<'a> {
    /// Its name.
    pub(crate) name: Cow<'a, str>,
    /// Its size before the plan changes it. If the plan creates it, the size that it is created with (P-55).
    pub(crate) size: i32,
    /// Its status.
    pub(crate) status: Cow<'a, ReplicaSetStatus>,
    /// The set in the snapshot; `None` if the plan creates it.
    pub(crate) set: Option<&'a Set>,
}

impl<'a> NewSet<'a> {
    /// A set of the snapshot.
    pub(crate) fn existing(set: &'a Set) -> Self {
        Self {
            name: Cow::Borrowed(&set.name),
            size: set.replicas,
            status: Cow::Borrowed(&set.status),
            set: Some(set),
        }
    }

    /// A set that the plan creates.
    pub(crate) fn created(name: String, size: i32) -> Self {
        Self {
            name: Cow::Owned(name),
            size,
            status: Cow::Owned(ReplicaSetStatus::default()),
            set: None,
        }
    }
}

/// The ReplicaSets of a snapshot after its claims, by age.
#[derive(Debug, Default)]
pub(crate) struct Claimed<'a> {
    /// The sets that the Deployment owns or adopts.
    pub(crate) owned: Vec<&'a Set>,
    /// The sets that it releases.
    pub(crate) released: Vec<&'a Set>,
    adopts: bool,
    actions: Vec<Action>,
}

impl<'a> Claimed<'a> {
    /// Claims sets. Sets that the executor read because of a name collision are left out if `taken` is their name.
    pub(crate) fn of(deployment: &'a Deployment, taken: &str) -> Self {
        let mut sets: Vec<&Set> = deployment
            .sets
            .iter()
            .filter(|set| !set.read_after_name_collision || set.name != taken)
            .collect();
        sets.sort_by(|a, b| Set::by_age(a, b));
        let mut claimed = Self::default();
        for set in sets {
            claimed.claim(deployment, set);
        }
        claimed
    }

    fn claim(&mut self, deployment: &Deployment, set: &'a Set) {
        let owner = deployment.owner();
        let (reason, message, claim, patch) =
            match claims::claim_by_uid(owner, &set.labels, set.controller.as_ref(), set.deleting) {
                Claim::Ignore => return,
                Claim::Owned => {
                    self.owned.push(set);
                    return;
                }
                Claim::Adopt => {
                    self.owned.push(set);
                    self.adopts = true;
                    (
                        Reason::SelectorMatches,
                        format!(
                            "ReplicaSet {} has no controller and matches the selector",
                            set.name
                        ),
                        ObjectClaim::Adopt,
                        claims::adopt_patch(owner, &set.uid),
                    )
                }
                Claim::Release => {
                    self.released.push(set);
                    (
                        Reason::SelectorDoesNotMatch,
                        format!("ReplicaSet {} no longer matches the selector", set.name),
                        ObjectClaim::Release,
                        claims::release_patch(owner, &set.uid),
                    )
                }
            };
        self.actions.push(Action {
            reason,
            message,
            kind: ActionKind::PatchObject {
                resource: Resource::ReplicaSets,
                object: set_write::reference(set),
                subresource: Subresource::None,
                patch_type: PatchType::StrategicMerge,
                patch,
                failure_pointer: String::new(),
                claim: Some(claim),
                events: Box::default(),
            },
        });
    }

    /// The batches of phase Claims. All claims are in one batch, so that a failed claim does not stop the others.
    pub(crate) fn take_batches(&mut self) -> Vec<Batch> {
        let actions = std::mem::take(&mut self.actions);
        if actions.is_empty() {
            return Vec::new();
        }
        vec![Batch {
            actions,
            confirm_workload: self.adopts,
        }]
    }

    /// The new set and the old ones (P-16). The new set is the oldest with the Deployment's template, even if it is being deleted
    /// (P-17).
    ///
    /// `None` if cancelled.
    pub(crate) fn divide(
        &self,
        deployment: &Deployment,
        cancellation: Cancellation<'_>,
    ) -> Option<(Option<&'a Set>, Vec<&'a Set>)> {
        let mut old = self.owned.clone();
        for (index, set) in self.owned.iter().enumerate() {
            // A template may have megabytes.
            cancellation.check()?;
            if template::equal(&set.template, &deployment.template) {
                old.remove(index);
                return Some((Some(*set), old));
            }
        }
        Some((None, old))
    }
}
