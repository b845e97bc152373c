//! What the effects of a change have in common for all kinds of workload: the change of a workload itself, and finding the
//! workloads that an object belongs to. [`pods`] has what the kinds have in common that control pods.

use std::sync::Arc;

use nodewise_projection::{Key, KeySet, Revision, Workload};
use nodewise_proto::v1;
use nodewise_runtime::effects::{Effects, Observation, Rules, Wake};
use nodewise_runtime::queue::Urgency;
use nodewise_runtime::store::{Change, Store};

pub(crate) mod pods;
#[cfg(test)]
pub(crate) mod testing;

/// The effects of a change of a workload of this kind. A workload of another kind has none.
pub(crate) fn workload(
    kind: &'static str,
    change: &Change<Arc<Workload>>,
    rules: Rules,
    effects: &mut Effects,
) {
    let any = change.new.as_ref().or(change.old.as_ref());
    let Some(any) = any.filter(|any| any.key.kind == kind) else {
        return;
    };
    let key = any.key.clone();
    let gone = match (&change.old, &change.new) {
        (Some(old), None) => Some(&old.uid),
        (Some(old), Some(new)) if old.uid != new.uid => Some(if rules.clear_replaced_own_writes {
            &old.uid
        } else {
            &new.uid
        }),
        _ => None,
    };
    let is_new = match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.uid != new.uid,
        (old, _) => old.is_none(),
    };
    effects.observations.extend(gone.map(|uid| Observation::Gone {
        key: key.clone(),
        own_writes_of: Arc::clone(uid),
    }));
    let urgency = if is_new { Urgency::Urgent } else { Urgency::Normal };
    effects.wakes.push(Wake::with(key, urgency));
}

/// The workloads of a kind in one namespace.
#[derive(Clone, Copy)]
pub(crate) struct Workloads<'a> {
    pub(crate) store: &'a Store,
    pub(crate) kind: &'static str,
    pub(crate) namespace: &'a str,
}

impl<'a> Workloads<'a> {
    /// The workload that controls an object.
    pub(crate) fn owner(&self, controller: Option<&v1::ControllerReference>) -> Option<&'a Arc<Workload>> {
        self.store.resolve(self.kind, self.namespace, controller)
    }

    fn wake_owner(&self, controller: Option<&v1::ControllerReference>, effects: &mut Effects) {
        let owner = self.owner(controller);
        effects
            .wakes
            .extend(owner.map(|owner| Wake::now(owner.key.clone())));
    }

    fn wake_former_owner(
        &self,
        old: Option<&v1::ControllerReference>,
        new: Option<&v1::ControllerReference>,
        effects: &mut Effects,
    ) {
        if old != new {
            self.wake_owner(old, effects);
        }
    }

    fn wake_matching(&self, labels: &[v1::Label], known: Option<&KeySet>, effects: &mut Effects) {
        let matching = self.store.matching(self.kind, self.namespace, labels, known);
        let keys: Vec<Key> = matching.iter().map(|workload| workload.key.clone()).collect();
        effects.wakes.extend(keys.iter().cloned().map(Wake::now));
        if keys.len() > 1 {
            effects.observations.push(Observation::Overlap(keys));
        }
    }

    /// The effects of a change of an object, other than a pod, that workloads control or may adopt. `ignores_new`: an object
    /// that came together with its controller is no news.
    pub(crate) fn controlled_object(
        &self,
        (old, new): (Option<Controlled<'_>>, Option<Controlled<'_>>),
        ignores_new: bool,
        effects: &mut Effects,
    ) {
        match (old, new) {
            (None, Some(new)) if new.deleting => self.wake_owner(new.controller, effects),
            (None, Some(new)) if new.controller.is_some() => {
                if !ignores_new {
                    self.wake_owner(new.controller, effects);
                }
            }
            (None, Some(new)) => self.wake_matching(new.labels, new.known, effects),
            (Some(old), Some(new)) => {
                self.wake_former_owner(old.controller, new.controller, effects);
                self.wake_owner(new.controller, effects);
                let is_changed = old.labels != new.labels || old.controller != new.controller;
                if new.controller.is_none() && is_changed {
                    self.wake_matching(new.labels, new.known, effects);
                }
            }
            (Some(old), None) => self.wake_owner(old.controller, effects),
            (None, None) => {}
        }
    }
}

/// An object that workloads control or may adopt.
#[derive(Clone, Copy)]
pub(crate) struct Controlled<'a> {
    controller: Option<&'a v1::ControllerReference>,
    labels: &'a [v1::Label],
    /// The keys of the labels that are cached; `None` if all are.
    known: Option<&'a KeySet>,
    deleting: bool,
}

impl<'a> From<&'a Revision> for Controlled<'a> {
    fn from(revision: &'a Revision) -> Self {
        Self {
            controller: revision.controller.as_ref(),
            labels: &revision.labels,
            known: revision.known.as_deref(),
            deleting: revision.deleting,
        }
    }
}

impl<'a> From<&'a Workload> for Controlled<'a> {
    fn from(workload: &'a Workload) -> Self {
        Self {
            controller: workload.controller.as_ref(),
            labels: &workload.labels,
            known: None,
            deleting: workload.deleting,
        }
    }
}
