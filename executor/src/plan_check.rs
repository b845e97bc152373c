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

use bytes::Bytes;
use nodewise_projection::{Pod, Revision, Workload};
use nodewise_proto::v1::{self, action::Kind};

use nodewise_runtime::Resource;
use nodewise_runtime::apply::{self, LeftOut};
use nodewise_runtime::store::LivePods;
use nodewise_telemetry::in_short;

mod bounds;
mod events;
mod hashes;
mod json;
mod manifests;
mod names;
mod patches;
mod reconciler;
mod state;
mod templates;
#[cfg(test)]
pub(crate) mod vectors;

#[cfg(test)]
pub(crate) use manifests::NODE_NAME_POINTER;
pub(crate) use state::retain as retain_valid_entries;

/// Maximum number of objects of one plan that are read live. If more are unseen, the snapshot is too old to act on.
pub(crate) const MAX_UNSEEN: usize = 100;

/// The request that the plan answers.
#[derive(Debug)]
pub(crate) struct RequestContext<'a> {
    /// The workload, as it was when the snapshot was taken.
    pub(crate) workload: &'a Workload,
    /// The scope of the request.
    pub(crate) scope: v1::Scope,
    /// Revisions of the snapshot that were read live.
    pub(crate) live: &'a [Revision],
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

/// The cached nodes, and the cached objects of the workload's namespace.
pub(crate) trait Caches {
    /// The pod or revision of this name.
    fn object(&self, resource: Resource, name: &str) -> Option<Known>;
    /// Whether a node of this name exists.
    fn has_node(&self, name: &str) -> bool;
    /// The number of the last cache change of an object. For an object that is not cached: the number of the last
    /// change that removed any object of the resource.
    fn changed(&self, resource: Resource, name: &str) -> u64;
    /// The JSON of the revisions that the workload controls.
    fn own_revisions(&self) -> Vec<Bytes>;
    /// The hash labels of the revisions that a snapshot would contain; empty for a revision without the label.
    fn hashes(&self) -> HashSet<String>;
    /// The number of the last cache change of any revision of the namespace, or of the last one that removed any
    /// revision.
    fn revisions_changed(&self) -> u64;
    /// For each of these nodes that exists: the live pods of the workload that are on it or meant for it. Live pods are
    /// neither finished nor being deleted.
    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods>;
}

/// The fields of an object that the check reads.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) uid: String,
    pub(crate) controller: Option<v1::ControllerReference>,
    pub(crate) labels: Vec<v1::Label>,
}

impl Known {
    /// Reads an object of this resource, as the apiserver sent it. The error says why it cannot be read.
    fn read(resource: Resource, object: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(object);
        if resource == Resource::REVISIONS {
            let revision = Revision::from_text(&text).map_err(|error| error.to_string())?;
            return Ok(Self::from(&revision));
        }
        let pod = Pod::from_text(&text).map_err(|error| error.to_string())?;
        Ok(Self::from(pod.projection))
    }
}

impl From<v1::Pod> for Known {
    fn from(pod: v1::Pod) -> Self {
        Self {
            uid: pod.uid,
            controller: pod.controller,
            labels: pod.labels,
        }
    }
}

impl From<&Revision> for Known {
    fn from(revision: &Revision) -> Self {
        Self {
            uid: revision.uid.clone(),
            controller: revision.controller.clone(),
            labels: revision.labels.clone(),
        }
    }
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

/// An object that an action names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    action: &'a v1::Action,
    /// Pods or revisions.
    pub(crate) resource: Resource,
    /// The object's name and uid.
    pub(crate) reference: &'a v1::ObjectReference,
    /// What the action may do if the object is an orphan.
    orphan: Orphan,
}

/// What an action may do to an object without a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orphan {
    /// Nothing.
    Refused,
    /// Adopt it if the selector matches, or act on it after its adoption by the same plan.
    IfSelected,
    /// Release it again: an earlier plan has released it since the snapshot.
    Released,
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
    check_scope(plan, request.scope)?;
    bounds::check(plan, request)?;
    state::check(plan, request, caches)?;
    manifests::check(plan, request, caches)?;
    let adopted: HashSet<&str> = plan.actions().filter_map(adopts).collect();
    let mut all_named = Vec::new();
    for action in plan.actions() {
        if let Some(Kind::EmitEvent(event)) = &action.kind {
            events::check(event).map_err(|what| Violation::of(action, what))?;
        }
        let Some(named) = named(action, &adopted)? else {
            continue;
        };
        check_precondition(&named, request)?;
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
    bounds::check_nodes(plan, request, caches, &mut checked)?;
    hashes::check(plan, request, caches, &mut checked)?;
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
                format!("{} cannot be read: {error}", describe(named)),
            )
        })?;
        if known.uid == named.reference.uid {
            self.check_controller(named, request, caches, &known)
        } else {
            let with_uid = match &named.action.kind {
                Some(Kind::DeletePod(delete)) => delete.uid_precondition,
                _ => true,
            };
            // A delete without a uid precondition would delete the other object.
            let what = || {
                format!(
                    "{} has the uid {} by now, and the delete carries none",
                    describe(named),
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
        match wrong_controller(named, request, known) {
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

    /// The actions that must not be carried out. If an adoption is left out, then so are all deletes of pods and
    /// revisions and all relabels, because the plan may have decided them because of that adoption.
    pub(crate) fn left_out(mut self, plan: &v1::Plan) -> LeftOut {
        let is_left_out = |action: &v1::Action| self.left_out.contains_key(&action.id);
        if plan
            .actions()
            .any(|action| action.is_adoption() && is_left_out(action))
        {
            for action in plan.actions() {
                if matches!(
                    action.kind,
                    Some(Kind::DeletePod(_) | Kind::DeleteRevision(_) | Kind::RelabelPod(_))
                ) {
                    let message = || "an adoption that it may rest on is left out".to_owned();
                    self.left_out.entry(action.id).or_insert_with(message);
                }
            }
        }
        self.left_out
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

/// Checks the plan's scope. A service that does not support scopes plans for whole workloads.
fn check_scope(plan: &v1::Plan, scope: v1::Scope) -> Result<(), Violation> {
    let is_of_rollouts =
        |action: &v1::Action| matches!(action.kind, Some(Kind::DeletePod(_) | Kind::EmitEvent(_)));
    if scope != v1::Scope::Rollouts
        || plan.scope() == v1::Scope::Rollouts && plan.actions().all(is_of_rollouts)
    {
        return Ok(());
    }
    Err(Violation::of_plan(
        "the service planned for the whole workload, and was asked for its rollout alone: it is too old for --mode companion",
    ))
}

/// The uid of the object that an action adopts.
fn adopts(action: &v1::Action) -> Option<&str> {
    let (_, reference) = apply::object(action).filter(|_| action.is_adoption())?;
    reference.map(|reference| &*reference.uid)
}

/// The existing object that an action names; `None` if it names none.
fn named<'a>(action: &'a v1::Action, adopted: &HashSet<&str>) -> Result<Option<Named<'a>>, Violation> {
    // An action of an unknown kind is not carried out, so it needs no check.
    let Some((resource, reference)) = apply::object(action) else {
        return Ok(None);
    };
    let Some(reference) = reference.filter(|reference| !reference.name.is_empty()) else {
        return Err(Violation::of(action, "it names no object"));
    };
    if !names::is_of_object(&reference.name) {
        let what = format!("it names {:?}, and no object can be called so", reference.name);
        return Err(Violation::of(action, what));
    }
    if reference.uid.is_empty() {
        return Err(Violation::of(
            action,
            format!("it names {} without a uid", reference.name),
        ));
    }
    let orphan = match &action.kind {
        _ if is_release(action) => Orphan::Released,
        _ if adopted.contains(&*reference.uid) => Orphan::IfSelected,
        _ => Orphan::Refused,
    };
    Ok(Some(Named {
        action,
        resource,
        reference,
        orphan,
    }))
}

fn is_release(action: &v1::Action) -> bool {
    matches!(action.kind, Some(Kind::ReleasePod(_) | Kind::ReleaseRevision(_)))
}

/// A delete by name alone deletes whatever object has the name at that time. It is accepted only if the request allows
/// it.
fn check_precondition(named: &Named<'_>, request: &RequestContext<'_>) -> Result<(), Violation> {
    match &named.action.kind {
        Some(Kind::DeletePod(delete)) if !delete.uid_precondition && request.delete_with_uid => {
            let name = &named.reference.name;
            let what = format!("it deletes {name} without its uid as a precondition");
            Err(Violation::of(named.action, what))
        }
        _ => Ok(()),
    }
}

/// Why an action may not touch this object: the workload does not control it, and it is not an orphan that the action
/// may touch.
fn wrong_controller(named: &Named<'_>, request: &RequestContext<'_>, known: &Known) -> Option<String> {
    let selects = || request.workload.selector.selects(&known.labels);
    let what = match (&known.controller, named.orphan) {
        (Some(controller), _) if *controller.uid == *request.workload.uid => {
            if !is_release(named.action) || !selects() {
                return None;
            }
            format!(
                "{} is selected by the workload, and the plan releases it",
                describe(named)
            )
        }
        (Some(controller), _) => format!(
            "{} is controlled by {} {} with uid {:?}, not by the workload",
            describe(named),
            controller.kind,
            controller.name,
            controller.uid
        ),
        (None, Orphan::Released) => return None,
        (None, Orphan::IfSelected) if selects() => return None,
        (None, Orphan::IfSelected) => format!("{} is not selected by the workload", describe(named)),
        (None, Orphan::Refused) => {
            format!(
                "{} has no controller, and the plan does not adopt it",
                describe(named)
            )
        }
    };
    Some(what)
}

/// The object's kind and name, for messages.
fn describe(named: &Named<'_>) -> String {
    let kind = if named.resource == Resource::PODS {
        "pod"
    } else {
        "ControllerRevision"
    };
    format!("{kind} {}", named.reference.name)
}
