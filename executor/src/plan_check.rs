//! Whether a plan may be applied (rule W15 of docs/writing-an-executor.md). The executor holds the rights in the cluster, so it checks
//! everything that the service says before the first write.
//!
//! The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or do not show
//! with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live read tells which
//! ([`check_live`]). A violation names the action; nothing of such a plan is written. An object that is not the workload's may have been so
//! when the snapshot was taken, and a node may have been without pods, so a violation for its sake names it: see [`Contradicted`].

use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::Bytes;
use nodewise_proto::v1::{self, action::Kind};

use crate::apply::{self, kind_name};
use crate::event::{DaemonSet, Pod, Resource, Revision};
use crate::store::KIND;
use nodewise_telemetry::in_short;

mod bounds;
mod contradicted;
mod events;
mod json;
mod manifests;
mod names;
mod patches;
mod reconciler;
mod templates;
#[cfg(test)]
pub(crate) mod vectors;

pub(crate) use contradicted::Contradicted;
#[cfg(test)]
pub(crate) use manifests::NODE_NAME_POINTER;

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
    /// The JSON of the revisions that the workload controls.
    fn own_revisions(&self) -> Vec<Bytes>;
    /// Of these nodes those that there are, and how many pods of the workload live on each or are meant for it: neither finished nor being
    /// deleted.
    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, usize>;
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
    /// What is not as the plan takes it to be, if that is what is wrong: the uid of an object, or `node/` and the name of a node.
    pub(crate) contradicts: Option<String>,
}

impl Violation {
    fn of_plan(what: impl Into<String>) -> Self {
        Self {
            action: None,
            what: in_short(&what.into()),
            contradicts: None,
        }
    }

    fn of(action: &v1::Action, what: impl Into<String>) -> Self {
        Self {
            action: Some((action.id, kind_name(action))),
            what: in_short(&what.into()),
            contradicts: None,
        }
    }

    /// The object may have been as the plan takes it to be when the snapshot was taken.
    fn of_object(named: &Named<'_>, what: impl Into<String>) -> Self {
        Self {
            contradicts: Some(named.reference.uid.clone()),
            ..Self::of(named.action, what)
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

/// Checks a plan; answers with the objects that have to be read live before it may be applied.
pub(crate) fn check<'a>(
    plan: &'a v1::Plan,
    asked: &Asked<'_>,
    caches: &impl Caches,
) -> Result<Vec<Named<'a>>, Violation> {
    check_workload(plan, asked.workload)?;
    check_scope(plan, asked.scope)?;
    bounds::check(plan, asked)?;
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
    bounds::check_nodes(plan, caches)?;
    let mut unseen = Vec::new();
    for named in all_named {
        match caches.object(named.resource, &named.reference.name) {
            Some(known) if known.uid == named.reference.uid => check_controller(&named, asked, &known)?,
            _ => unseen.push(named),
        }
    }
    Ok(unseen)
}

/// Checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is no violation: the write
/// finds that out by the uid.
pub(crate) fn check_live(named: &Named<'_>, asked: &Asked<'_>, object: &[u8]) -> Result<(), Violation> {
    let known = Known::read(named.resource, object).map_err(|error| {
        Violation::of(
            named.action,
            format!("{} cannot be read: {error}", describe(named)),
        )
    })?;
    if known.uid == named.reference.uid {
        check_controller(named, asked, &known)
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
            Err(Violation::of_object(named, what()))
        }
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

/// The object is the workload's, or it is an orphan and may be.
fn check_controller(named: &Named<'_>, asked: &Asked<'_>, known: &Known) -> Result<(), Violation> {
    let selects = || asked.workload.selector.selects(&known.labels);
    let what = match (&known.controller, named.orphan) {
        (Some(controller), _) if *controller.uid == *asked.workload.uid => {
            if !is_release(named.action) || !selects() {
                return Ok(());
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
        (None, Orphan::Accepted) => return Ok(()),
        (None, Orphan::IfSelected) if selects() => return Ok(()),
        (None, Orphan::IfSelected) => format!("{} is not selected by the workload", describe(named)),
        (None, Orphan::Refused) => {
            format!(
                "{} has no controller, and the plan does not adopt it",
                describe(named)
            )
        }
    };
    Err(Violation::of_object(named, what))
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
