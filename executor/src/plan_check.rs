//! Whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor holds the rights in the cluster, so it checks
//! everything that the service says before the first write.
//!
//! The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or do not show
//! with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live read tells which
//! ([`Checked::read`]). A violation names the action; nothing of such a plan is written. Where an action is wrong about an object or a node
//! that has changed since the snapshot, this action alone is left out.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::Bytes;
use nodewise_proto::v1::{self, action::Kind};

use crate::apply::{self, LeftOut, kind_name};
use crate::event::{DaemonSet, Pod, Resource, Revision};
use crate::store::{KIND, LivePods};
use nodewise_telemetry::in_short;

mod bounds;
mod events;
mod hashes;
mod json;
mod manifests;
mod names;
mod patches;
mod reconciler;
mod remembered;
mod templates;
#[cfg(test)]
pub(crate) mod vectors;

#[cfg(test)]
pub(crate) use manifests::NODE_NAME_POINTER;
pub(crate) use remembered::retain as retain_rememberable;

/// Most objects of one plan that are read live. When more of them are gone, the snapshot is too old to act on.
pub(crate) const MAX_UNSEEN: usize = 100;

/// What the plan has to answer.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The workload as the snapshot had it.
    pub(crate) workload: &'a DaemonSet,
    /// What was to be decided of the workload.
    pub(crate) scope: v1::Scope,
    /// Revisions of the snapshot that were read live.
    pub(crate) live: &'a [Revision],
    /// The number of the last change that the snapshot shows.
    pub(crate) as_of: u64,
    /// The state that the snapshot had.
    pub(crate) sent: &'a v1::ReconcileState,
    /// Deletes of pods carry the uid as a precondition (the deviation `DELETE_WITH_UID`).
    pub(crate) delete_with_uid: bool,
    /// Most creates of pods, and most deletes.
    pub(crate) burst: usize,
    /// Failed pods beyond the burst are left to later plans (the deviation `DECIDE_AFTER_CUT`), so that no Events are due for them.
    pub(crate) decides_after_cut: bool,
}

/// What the caches show of nodes and of the workload's namespace.
pub(crate) trait Caches {
    /// The pod or revision of this name.
    fn object(&self, resource: Resource, name: &str) -> Option<Known>;
    /// Whether there is a node of this name.
    fn has_node(&self, name: &str) -> bool;
    /// The number of the last change of an object. Of one that the caches do not show, that of the last change that took any object of the
    /// resource out.
    fn changed(&self, resource: Resource, name: &str) -> u64;
    /// The JSON of the revisions that the workload controls.
    fn own_revisions(&self) -> Vec<Bytes>;
    /// The hash labels of the revisions that a snapshot would show, empty where there is none.
    fn hashes(&self) -> HashSet<String>;
    /// The number of the last change of any revision of the namespace, or that took any revision out.
    fn revisions_changed(&self) -> u64;
    /// Of these nodes those that there are, and the pods of the workload that live on each or are meant for it: neither finished nor being
    /// deleted.
    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods>;
}

/// What is known of an object.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) uid: String,
    pub(crate) controller: Option<v1::ControllerReference>,
    pub(crate) labels: Vec<v1::Label>,
}

impl Known {
    /// The object of this resource as the apiserver served it; the error says why it cannot be read.
    fn read(resource: Resource, object: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(object);
        if resource == Resource::Revisions {
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
    /// The action, by its id and kind; absent when the plan as a whole is wrong.
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
            action: Some((action.id, kind_name(action))),
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

/// An object that an action is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    action: &'a v1::Action,
    /// Pods or revisions.
    pub(crate) resource: Resource,
    /// Its name and uid.
    pub(crate) reference: &'a v1::ObjectReference,
    /// Whether it may be an orphan.
    orphan: Orphan,
}

/// What an action may do to an object without a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orphan {
    /// Nothing.
    Refused,
    /// Adopt it, where the selector matches; or whatever this plan does to it after its adoption.
    IfSelected,
    /// Release it once more: an earlier plan has released it since the snapshot.
    Accepted,
}

/// What is left to do about a plan that breaks no rule by what the caches show.
#[derive(Debug, Default)]
pub(crate) struct Checked<'a> {
    /// Objects that have to be read live before the plan may be applied.
    pub(crate) unseen: Vec<Named<'a>>,
    left_out: LeftOut,
}

/// Checks a plan.
pub(crate) fn check<'a>(
    plan: &'a v1::Plan,
    asked: &Asked<'_>,
    caches: &impl Caches,
) -> Result<Checked<'a>, Violation> {
    check_workload(plan, asked.workload)?;
    check_scope(plan, asked.scope)?;
    bounds::check(plan, asked)?;
    remembered::check(plan, asked, caches)?;
    manifests::check(plan, asked, caches)?;
    let adopted: HashSet<&str> = plan.actions().filter_map(adopts).collect();
    let mut all_named = Vec::new();
    for action in plan.actions() {
        if let Some(Kind::EmitEvent(event)) = &action.kind {
            events::check(event).map_err(|what| Violation::of(action, what))?;
        }
        let Some(named) = named(action, &adopted)? else {
            continue;
        };
        check_precondition(&named, asked)?;
        patches::check(action, named.reference, asked.workload)
            .map_err(|what| Violation::of(action, what))?;
        all_named.push(named);
    }
    // What may have changed since the snapshot comes last: it must not hide what is wrong in any case.
    let mut checked = Checked::default();
    for named in all_named {
        match caches.object(named.resource, &named.reference.name) {
            Some(known) if known.uid == named.reference.uid => {
                checked.check_controller(&named, asked, caches, &known)?;
            }
            _ => checked.unseen.push(named),
        }
    }
    bounds::check_nodes(plan, asked, caches, &mut checked)?;
    hashes::check(plan, asked, caches, &mut checked)?;
    Ok(checked)
}

impl Checked<'_> {
    /// Checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is no violation: the
    /// write finds that out by the uid.
    pub(crate) fn read(
        &mut self,
        named: &Named<'_>,
        asked: &Asked<'_>,
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
            self.check_controller(named, asked, caches, &known)
        } else {
            let with_uid = match &named.action.kind {
                Some(Kind::DeletePod(delete)) => delete.uid_precondition,
                _ => true,
            };
            // Without a precondition the delete would take the other object.
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
                self.leave_out(named.action, asked, changed, what())
            }
        }
    }

    /// The object is the workload's, or it is an orphan and may be.
    fn check_controller(
        &mut self,
        named: &Named<'_>,
        asked: &Asked<'_>,
        caches: &impl Caches,
        known: &Known,
    ) -> Result<(), Violation> {
        match wrong_controller(named, asked, known) {
            Some(what) => {
                let changed = caches.changed(named.resource, &named.reference.name);
                self.leave_out(named.action, asked, changed, what)
            }
            None => Ok(()),
        }
    }

    /// Leaves an action out if what it is wrong about has changed since the snapshot. If it has not, the plan was not made from the
    /// snapshot.
    fn leave_out(
        &mut self,
        action: &v1::Action,
        asked: &Asked<'_>,
        changed: u64,
        what: impl Into<String>,
    ) -> Result<(), Violation> {
        let what = what.into();
        if changed <= asked.as_of {
            return Err(Violation::of(action, what));
        }
        let message = in_short(&format!("{what}; that has changed since the snapshot"));
        self.left_out.insert(action.id, message);
        Ok(())
    }

    /// What is not to be carried out of the plan. What an adoption makes superfluous stays while it is left out: no pod and no revision is
    /// deleted in favour of what is not adopted, and no pod gets its hash.
    pub(crate) fn left_out(mut self, plan: &v1::Plan) -> LeftOut {
        let is_left_out = |action: &v1::Action| self.left_out.contains_key(&action.id);
        if plan
            .actions()
            .any(|action| apply::is_adoption(action) && is_left_out(action))
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

/// The plan is for the workload that was asked about.
fn check_workload(plan: &v1::Plan, workload: &DaemonSet) -> Result<(), Violation> {
    let Some(planned) = &plan.workload else {
        return Err(Violation::of_plan("it names no workload"));
    };
    let asked = (
        KIND,
        &*workload.key.namespace,
        &*workload.key.name,
        &*workload.uid,
    );
    if (&*planned.kind, &*planned.namespace, &*planned.name, &*planned.uid) == asked {
        return Ok(());
    }
    Err(Violation::of_plan(format!(
        "it is for {} {}/{} with uid {:?}, and was asked for {KIND} {} with uid {:?}",
        planned.kind, planned.namespace, planned.name, planned.uid, workload.key, workload.uid
    )))
}

/// A service that does not know of scopes plans for whole workloads.
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

/// The uid of what an action adopts.
fn adopts(action: &v1::Action) -> Option<&str> {
    let (_, reference) = apply::object(action).filter(|_| apply::is_adoption(action))?;
    reference.map(|reference| &*reference.uid)
}

/// The object that exists already which an action is about; `None` when there is none.
fn named<'a>(action: &'a v1::Action, adopted: &HashSet<&str>) -> Result<Option<Named<'a>>, Violation> {
    // What an action of an unknown kind would write is not known; it is not carried out.
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
        _ if is_release(action) => Orphan::Accepted,
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

/// A delete by name alone takes any object that has the name by then. Only the caller may ask for such deletes.
fn check_precondition(named: &Named<'_>, asked: &Asked<'_>) -> Result<(), Violation> {
    match &named.action.kind {
        Some(Kind::DeletePod(delete)) if !delete.uid_precondition && asked.delete_with_uid => {
            let name = &named.reference.name;
            let what = format!("it deletes {name} without its uid as a precondition");
            Err(Violation::of(named.action, what))
        }
        _ => Ok(()),
    }
}

/// Why an action may not be about this object: it is neither the workload's nor an orphan that may be.
fn wrong_controller(named: &Named<'_>, asked: &Asked<'_>, known: &Known) -> Option<String> {
    let selects = || asked.workload.selector.selects(&known.labels);
    let what = match (&known.controller, named.orphan) {
        (Some(controller), _) if *controller.uid == *asked.workload.uid => {
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
        (None, Orphan::Accepted) => return None,
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

/// An object, for people.
fn describe(named: &Named<'_>) -> String {
    let kind = if named.resource == Resource::Pods {
        "pod"
    } else {
        "ControllerRevision"
    };
    format!("{kind} {}", named.reference.name)
}
