//! Checks whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor holds the rights in the
//! cluster, so it checks the whole plan before the first write.
//!
//! The check is pure: its inputs are the plan, the request and the caches. An object that the caches do not show with
//! the given uid is returned as unseen: it may have been deleted since the snapshot, or it may belong to another
//! workload. One live read decides which ([`Checked::read`]). A violation names the action, and nothing of such a plan
//! is written. If an action is wrong only because an object or a node has changed since the snapshot, that action alone
//! is left out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use nodewise_projection::{Revision, RolloutPolicy, Workload};
use nodewise_proto::v1::{self, action::Kind};

use nodewise_runtime::Resource;
use nodewise_runtime::apply::LeftOut;
use nodewise_runtime::store::LivePods;
use nodewise_telemetry::in_short;

mod bounds;
mod events;
mod hashes;
mod json;
#[cfg(test)]
pub(crate) mod kind_vectors;
mod kinds;
mod known;
mod manifests;
mod named;
mod names;
mod object_patches;
mod objects;
mod owned;
mod patches;
mod policies;
mod reconciler;
mod replica_sets;
mod rollback;
mod sizes;
mod state;
mod templates;
mod totals;
#[cfg(test)]
pub(crate) mod vectors;

use kinds::KindRules;
pub(crate) use kinds::rules;
pub(crate) use known::Known;
#[cfg(test)]
pub(crate) use manifests::NODE_NAME_POINTER;
pub(crate) use named::Named;
pub(crate) use state::retain as retain_valid_entries;

/// Maximum number of objects of one plan that are read live. If more are unseen, the snapshot is too old to act on.
pub(crate) const MAX_UNSEEN: usize = 100;

/// The request that the plan answers.
#[derive(Debug)]
pub(crate) struct RequestContext<'a> {
    /// The workload, as it was when the snapshot was taken.
    pub(crate) workload: &'a Workload,
    /// The resource of the workload.
    pub(crate) resource: Resource,
    /// The resource of the objects that workloads of its kind control. The workload's own if there are none.
    pub(crate) controls: Resource,
    /// What plans for its kind may contain.
    pub(crate) rules: &'static KindRules,
    /// The scope of the request.
    pub(crate) scope: v1::Scope,
    /// Revisions of the snapshot that were read live.
    pub(crate) live: &'a [Revision],
    /// The RolloutPolicies of the snapshot.
    pub(crate) policies: &'a [Arc<RolloutPolicy>],
    /// The number of the last cache change that the snapshot contains.
    pub(crate) as_of: u64,
    /// The state in the snapshot.
    pub(crate) sent: &'a v1::ReconcileState,
    /// Deletes of pods carry the uid as a precondition (the deviation `DELETE_WITH_UID`).
    pub(crate) delete_with_uid: bool,
    /// Maximum number of creates of pods, and of deletes.
    pub(crate) burst: usize,
    /// Failed pods beyond the burst are left to later plans (the deviation `DECIDE_AFTER_CUT`), so the plan has no
    /// Events about them.
    pub(crate) decides_after_cut: bool,
}

impl RequestContext<'_> {
    /// Whether this is the workload.
    fn is_workload(&self, object: Option<&v1::ObjectReference>) -> bool {
        object.is_some_and(|object| {
            *object.uid == *self.workload.uid && *object.name == *self.workload.key.name
        })
    }
}

/// The cached nodes, and the cached objects of the workload's namespace.
pub(crate) trait Caches {
    /// The object of this name.
    fn object(&self, resource: Resource, name: &str) -> Option<Known>;
    /// Whether a node of this name exists.
    fn has_node(&self, name: &str) -> bool;
    /// The number of the last cache change of an object. For an object that is not cached: the number of the last
    /// change that removed any object of the resource.
    fn changed(&self, resource: Resource, name: &str) -> u64;
    /// The JSON of the revisions that the workload controls.
    fn own_revisions(&self) -> Vec<Bytes>;
    /// The JSON of the objects of this resource that the workload controls, and of those without a controller that it
    /// selects.
    fn controlled(&self, resource: Resource) -> Vec<Bytes>;
    /// The hash labels of the revisions that a snapshot would contain; empty for a revision without the label.
    fn hashes(&self) -> HashSet<String>;
    /// The number of the last cache change of any revision of the namespace, or of the last one that removed any
    /// revision.
    fn revisions_changed(&self) -> u64;
    /// For each of these nodes that exists: the live pods of the workload that are on it or meant for it. Live pods are
    /// neither finished nor being deleted.
    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods>;
    /// The live pods of the workload, if it has more than `most` pods in any state.
    fn live_pods_beyond(&self, most: usize) -> Option<LivePods>;
    /// The names of the pods that were created for the workload and that the cache does not show yet.
    fn unseen_creates(&self) -> Vec<String>;
}

/// Why a plan must not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Violation {
    /// The action's id and kind; `None` if the plan as a whole is wrong.
    pub(crate) action: Option<(u32, &'static str)>,
    /// What is wrong.
    pub(crate) what: String,
}

impl Violation {
    fn of_plan(what: impl Into<String>) -> Self {
        Self {
            action: None,
            what: in_short(&what.into()),
        }
    }

    fn of(action: &v1::Action, what: impl Into<String>) -> Self {
        Self {
            action: Some((action.id, action.kind_name())),
            what: in_short(&what.into()),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the plan is refused and nothing of it is written: ")?;
        if let Some((id, kind)) = self.action {
            write!(f, "action {id} ({kind}): ")?;
        }
        f.write_str(&self.what)
    }
}

/// The result for a plan that breaks no rule as far as the caches show.
#[derive(Debug, Default)]
pub(crate) struct Checked<'a> {
    /// Objects that have to be read live before the plan may be applied.
    pub(crate) unseen: Vec<Named<'a>>,
    left_out: LeftOut,
}

/// Checks a plan against the caches.
pub(crate) fn check<'a>(
    plan: &'a v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
) -> Result<Checked<'a>, Violation> {
    check_workload(plan, request.workload)?;
    check_verdict(plan)?;
    check_scope(plan, request.scope)?;
    policies::check_confirmation(plan, request)?;
    kinds::check(plan, request)?;
    policies::check_phases(plan, request)?;
    bounds::check(plan, request)?;
    state::check(plan, request, caches)?;
    manifests::check(plan, request, caches)?;
    objects::check(plan, request)?;
    policies::check(plan, request)?;
    let adopted = named::adopted(plan, request);
    let mut all_named = Vec::new();
    for action in plan.actions() {
        events::check(action).map_err(|what| Violation::of(action, what))?;
        let Some(named) = named::named(action, request, &adopted)? else {
            continue;
        };
        named::check_precondition(&named, request)?;
        patches::check(action, named.reference, request.workload)
            .map_err(|what| Violation::of(action, what))?;
        all_named.push(named);
    }
    // Checks that depend on possibly changed objects come last, so that they cannot hide a violation that is certain.
    let mut checked = Checked::default();
    for named in all_named {
        match caches.object(named.resource, &named.reference.name) {
            Some(known) if known.uid == named.reference.uid => {
                checked.check_controller(&named, request, caches, &known)?;
            }
            _ => checked.unseen.push(named),
        }
    }
    if request.rules.has_nodes {
        bounds::check_nodes(plan, request, caches, &mut checked)?;
        hashes::check(plan, request, caches, &mut checked)?;
    } else {
        bounds::check_replicas(plan, request, caches, &mut checked)?;
    }
    rollback::check(plan, request, caches, &mut checked)?;
    totals::check(plan, request, caches, &mut checked)?;
    Ok(checked)
}

impl Checked<'_> {
    /// Checks an unseen object after it was read live. An object that is gone or was replaced is no violation: the
    /// write's uid precondition handles it.
    pub(crate) fn read(
        &mut self,
        named: &Named<'_>,
        request: &RequestContext<'_>,
        caches: &impl Caches,
        object: &[u8],
    ) -> Result<(), Violation> {
        let known = Known::read(named.resource, object).map_err(|error| {
            Violation::of(
                named.action,
                format!("{} cannot be read: {error}", named::describe(named)),
            )
        })?;
        if known.uid == named.reference.uid {
            self.check_controller(named, request, caches, &known)?;
            // The caches do not show whether all objects together may get larger.
            if totals::grows(named.action, &known) {
                let message = || {
                    format!(
                        "{} grows, and the caches do not show it yet",
                        named::describe(named)
                    )
                };
                self.left_out.entry(named.action.id).or_insert_with(message);
            }
            Ok(())
        } else {
            let with_uid = match &named.action.kind {
                Some(Kind::DeletePod(delete)) => delete.uid_precondition,
                _ => true,
            };
            // A delete without a uid precondition would delete the other object.
            let what = || {
                format!(
                    "{} has the uid {} by now, and the delete carries none",
                    named::describe(named),
                    known.uid
                )
            };
            if with_uid {
                Ok(())
            } else {
                let changed = caches.changed(named.resource, &named.reference.name);
                self.leave_out(named.action, request, changed, what())
            }
        }
    }

    /// The workload must control the object, or the object must be an orphan that the action may touch.
    fn check_controller(
        &mut self,
        named: &Named<'_>,
        request: &RequestContext<'_>,
        caches: &impl Caches,
        known: &Known,
    ) -> Result<(), Violation> {
        match named::wrong(named, request, known) {
            Some(what) => {
                let changed = caches.changed(named.resource, &named.reference.name);
                self.leave_out(named.action, request, changed, what)
            }
            None => Ok(()),
        }
    }

    /// Leaves an action out if the object that it is wrong about has changed since the snapshot. If the object has not
    /// changed, the plan was not made from the snapshot: that is a violation.
    fn leave_out(
        &mut self,
        action: &v1::Action,
        request: &RequestContext<'_>,
        changed: u64,
        what: impl Into<String>,
    ) -> Result<(), Violation> {
        let what = what.into();
        if changed <= request.as_of {
            return Err(Violation::of(action, what));
        }
        let message = in_short(&format!("{what}; that has changed since the snapshot"));
        self.left_out.insert(action.id, message);
        Ok(())
    }

    /// The actions that must not be carried out. If an adoption is left out, then so is everything that the plan may
    /// have decided because of that adoption.
    pub(crate) fn left_out(mut self, plan: &v1::Plan) -> LeftOut {
        let is_left_out = |action: &v1::Action| self.left_out.contains_key(&action.id);
        if plan
            .actions()
            .any(|action| action.is_adoption() && is_left_out(action))
        {
            for action in plan.actions() {
                if may_rest_on_adoption(action) {
                    let message = || "an adoption that it may rest on is left out".to_owned();
                    self.left_out.entry(action.id).or_insert_with(message);
                }
            }
        }
        self.left_out
    }
}

/// Whether a plan may have decided an action because it adopts an object: deletes, relabels, and changes of objects that
/// the workload controls.
fn may_rest_on_adoption(action: &v1::Action) -> bool {
    match &action.kind {
        Some(Kind::PatchObject(patch)) => {
            patch.claim() == v1::Claim::Unspecified && patch.subresource.is_empty()
        }
        Some(
            Kind::DeletePod(_)
            | Kind::EvictPod(_)
            | Kind::DeleteRevision(_)
            | Kind::RelabelPod(_)
            | Kind::CreateObject(_)
            | Kind::DeleteObject(_),
        ) => true,
        _ => false,
    }
}

/// Checks that the plan is for the requested workload.
fn check_workload(plan: &v1::Plan, workload: &Workload) -> Result<(), Violation> {
    let Some(planned) = &plan.workload else {
        return Err(Violation::of_plan("it names no workload"));
    };
    let asked = (
        workload.key.kind,
        &*workload.key.namespace,
        &*workload.key.name,
        &*workload.uid,
    );
    if (&*planned.kind, &*planned.namespace, &*planned.name, &*planned.uid) == asked {
        return Ok(());
    }
    Err(Violation::of_plan(format!(
        "it is for {} {}/{} with uid {:?}, and was asked for {} {} with uid {:?}",
        planned.kind,
        planned.namespace,
        planned.name,
        planned.uid,
        workload.key.kind,
        workload.key,
        workload.uid
    )))
}

/// Checks that a plan does not contain what its verdict rules out.
fn check_verdict(plan: &v1::Plan) -> Result<(), Violation> {
    let excluded = |action: &v1::Action| match plan.verdict() {
        v1::Verdict::Apply => false,
        v1::Verdict::StatusOnly => matches!(
            action.kind,
            Some(Kind::CreatePod(_) | Kind::DeletePod(_) | Kind::EvictPod(_))
        ),
        v1::Verdict::Unspecified | v1::Verdict::Stale | v1::Verdict::Noop => true,
    };
    let Some(action) = plan.actions().find(|action| excluded(action)) else {
        return Ok(());
    };
    let verdict = v1::Verdict::try_from(plan.verdict).map_or_else(
        |_| plan.verdict.to_string(),
        |known| known.as_str_name().to_owned(),
    );
    Err(Violation::of(
        action,
        format!("the verdict of the plan is {verdict}, which rules it out"),
    ))
}

/// Checks the plan's scope. A service that does not support scopes plans for whole workloads.
fn check_scope(plan: &v1::Plan, scope: v1::Scope) -> Result<(), Violation> {
    // What plans write to the statuses of policies is checked elsewhere.
    let is_of_rollouts = |action: &v1::Action| {
        matches!(
            action.kind,
            Some(
                Kind::DeletePod(_)
                    | Kind::EvictPod(_)
                    | Kind::EmitEvent(_)
                    | Kind::PatchObject(_)
                    | Kind::Measure(_)
            )
        )
    };
    if scope != v1::Scope::Rollouts
        || plan.scope() == v1::Scope::Rollouts && plan.actions().all(is_of_rollouts)
    {
        return Ok(());
    }
    Err(Violation::of_plan(
        "the service planned for the whole workload, and was asked for its rollout alone: it is too old for --mode companion",
    ))
}
