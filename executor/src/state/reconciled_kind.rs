//! How the workloads of one kind are reconciled: which of them are owned, and what changes mean for them.

use std::sync::Arc;

use nodewise_projection::{Key, OwnershipSelector, Workload};
use nodewise_proto::v1;
use nodewise_runtime::{Resource, queue::Urgency};

use crate::foreign_deletes::ForeignDeletes;
use crate::metrics::Metrics;
use nodewise_runtime::effects::{Author, Effects, Observation, Rules, Wake};
use nodewise_runtime::kind::{Kind, cached_kinds, needed};
use nodewise_runtime::store::{CachedKind, Change, Store, Transition};

/// A kind of workload that is reconciled.
#[derive(Debug)]
pub struct ReconciledKind {
    resource: Resource,
    cached: Vec<CachedKind>,
    needed: Vec<Resource>,
    has_pods: bool,
    counts_deletions: bool,
    effects: fn(&Store, &Transition, Rules) -> Effects,
    rules: Rules,
    /// The owned workloads. Others are ignored, except for the labels that they name.
    selection: OwnershipSelector,
    /// Present if no other controller should work on the same workloads.
    pub(super) foreign_deletes: Option<ForeignDeletes>,
}

/// What one event has shown so far.
#[derive(Debug)]
pub(super) struct Shown {
    /// Pods that the event no longer shows were deleted.
    pub(super) shows_deletes: bool,
    /// Workloads to enqueue.
    pub(super) wakes: Vec<Wake>,
    /// Owned workloads that came.
    pub(super) came: Vec<Arc<Workload>>,
}

impl ReconciledKind {
    /// The workloads of a kind that `selection` selects, planned with these options.
    #[must_use]
    pub fn new<K: Kind>(options: &v1::PlanOptions, selection: OwnershipSelector) -> Self {
        Self {
            resource: K::RESOURCE,
            cached: cached_kinds::<K>(),
            needed: needed::<K>().collect(),
            has_pods: K::PODS.is_some(),
            counts_deletions: K::COUNTS_DELETIONS,
            effects: K::effects,
            rules: Rules {
                clear_replaced_own_writes: options.enables(v1::Deviation::ClearReplacedOwnWrites),
                wake_on_node_delete: options.enables(v1::Deviation::WakeOnNodeDelete),
                count_repeated_deletions: K::COUNTS_DELETIONS
                    && !options.enables(v1::Deviation::DeletionsByUid),
                revisions: match options.scope() {
                    v1::Scope::Rollouts => Author::Another,
                    _ => Author::Us,
                },
            },
            selection,
            foreign_deletes: None,
        }
    }

    /// Also tracks deletes of pods by others, if workloads of the kind have pods: no other controller should work on these
    /// workloads.
    #[must_use]
    pub fn with_foreign_deletes(mut self) -> Self {
        if self.has_pods {
            self.foreign_deletes = Some(ForeignDeletes::new(self.resource.kind, self.selection.clone()));
        }
        self
    }

    /// The resource of the workloads.
    #[must_use]
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// The kinds of workload that have to be cached for the plans of this one.
    #[must_use]
    pub fn cached(&self) -> &[CachedKind] {
        &self.cached
    }

    /// See [`Kind::COUNTS_DELETIONS`].
    #[must_use]
    pub fn counts_deletions(&self) -> bool {
        self.counts_deletions
    }

    /// Whether all that plans of this kind need was listed.
    pub(super) fn is_ready(&self, store: &Store) -> bool {
        store.are_listed(self.needed.iter().copied())
    }

    pub(super) fn owns(&self, workload: &Workload) -> bool {
        self.selection.owns(workload)
    }

    /// Handles a change of the caches. Returns whether every workload of the kind is enqueued.
    pub(super) fn handle(
        &mut self,
        store: &Store,
        transition: &Transition,
        shown: &mut Shown,
        observe: &mut dyn FnMut(Observation),
        metrics: &Metrics,
    ) -> Option<Urgency> {
        if let Transition::Workload(change) = transition
            && !self.handle_workload(change, shown, metrics)
        {
            return None;
        }
        if shown.shows_deletes
            && let Transition::Pod(namespace, change) = transition
            && let Some(deletes) = self.foreign_deletes.as_mut()
        {
            deletes.handle_list_change(store, namespace, change);
        }
        let Effects {
            wakes,
            wake_all,
            observations,
        } = (self.effects)(store, transition, self.rules);
        // A workload that has lost its label is enqueued once more, to be forgotten then.
        let is_own_change = match transition {
            Transition::Workload(change) => self.is_of_kind(change),
            _ => false,
        };
        let is_of_others =
            |key: &Key| !is_own_change && store.workload(key).is_some_and(|workload| !self.owns(workload));
        for wake in wakes.into_iter().filter(|wake| !is_of_others(&wake.key)) {
            // A list shows the pods of a workload one after the other.
            if shown.wakes.last() != Some(&wake) {
                shown.wakes.push(wake);
            }
        }
        observations
            .into_iter()
            .filter(|seen| !seen.key().is_some_and(is_of_others))
            .for_each(observe);
        wake_all
    }

    fn is_of_kind(&self, change: &Change<Arc<Workload>>) -> bool {
        let workload = change.new.as_ref().or(change.old.as_ref());
        workload.is_some_and(|workload| workload.key.kind == self.resource.kind)
    }

    /// Handles a change of a workload. False if the workload is of this kind, and neither was nor is owned.
    fn handle_workload(&self, change: &Change<Arc<Workload>>, shown: &mut Shown, metrics: &Metrics) -> bool {
        let Change { old, new } = change;
        if !self.is_of_kind(change) {
            return true;
        }
        let old = old.as_ref().filter(|old| self.owns(old));
        let new = new.as_ref().filter(|new| self.owns(new));
        if let Some(workload) = new.filter(|new| new.is_scaled_to_zero()) {
            // There may be many, such as the sets of earlier rollouts. They have no series.
            metrics.forget_workload(&workload.key);
        } else if let Some(workload) = new {
            metrics.workload_status(workload);
            if old.is_none_or(|old| old.uid != workload.uid) {
                shown.came.push(Arc::clone(workload));
            }
        }
        new.is_some() || old.is_some()
    }
}
