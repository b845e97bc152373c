//! All state of the executor, behind one lock: the caches, the held state of each workload, own-write records, and
//! reports that could not be delivered. Everything starts empty with each term of leadership.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nodewise_projection::{Key, OwnershipSelector, Revision, Workload};
use nodewise_proto::v1;
use nodewise_runtime::{
    actuator::ObjectKey,
    expectations::{DeletionRule, ReconcileStates},
    gate::{self, OwnWriteGate},
    queue::Urgency,
};
use tokio::time::Instant;

use crate::foreign_deletes::{ForeignDeletes, Found};
use crate::metrics::Metrics;
use crate::overlaps::Overlaps;
use crate::rollouts::{Report, Rollouts};
use nodewise_runtime::effects::{Observation, Wake};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::Kind;
use nodewise_runtime::snapshot::LiveObjects;
use nodewise_runtime::store::{Store, Transition};

mod reconciled_kind;

pub use reconciled_kind::ReconciledKind;
use reconciled_kind::Shown;

/// Maximum number of undelivered reports of a workload. Older ones are dropped, which only costs time.
const MAX_UNDELIVERED: usize = 8;

/// Maximum number of objects of a resource, read live, that are kept for the next plan: a few for each plan of one reconcile.
const MAX_LIVE: usize = 16;

/// The state of the executor.
#[derive(Debug)]
pub struct State {
    /// Cached objects.
    pub store: Store,
    /// Held state of each workload: expectations, back-off, name collisions.
    pub reconcile_states: ReconcileStates,
    /// Own-write records.
    pub gate: OwnWriteGate,
    /// The kinds of workload that are reconciled.
    kinds: Vec<ReconciledKind>,
    undelivered: HashMap<Key, Vec<v1::ReportRequest>>,
    /// Objects that interrupted reconciles read live, with the uid of the workload.
    read_live: HashMap<Key, (Arc<str>, LiveObjects)>,
    /// Workloads to enqueue because of objects that were read live. The next watch event returns them.
    pending_wakes: Vec<Wake>,
    /// Overlaps of selectors that were logged.
    overlaps: Overlaps,
    /// How far the rollouts are.
    pub(crate) rollouts: Rollouts,
}

impl State {
    /// Creates an empty state, for no kind of workload.
    #[must_use]
    pub fn new(bucket_count: u32, options: &v1::PlanOptions) -> Self {
        let deletion_rule = if options.enables(v1::Deviation::DeletionsByUid) {
            DeletionRule::ByUid
        } else {
            DeletionRule::Counted
        };
        Self {
            store: Store::new(&[], bucket_count),
            reconcile_states: ReconcileStates::new(deletion_rule),
            gate: OwnWriteGate::default(),
            kinds: Vec::new(),
            undelivered: HashMap::new(),
            read_live: HashMap::new(),
            pending_wakes: Vec::new(),
            overlaps: Overlaps::default(),
            rollouts: Rollouts::default(),
        }
    }

    /// Creates an empty state for all workloads of one kind.
    #[must_use]
    pub fn of<K: Kind>(bucket_count: u32, options: &v1::PlanOptions) -> Self {
        let mut state = Self::new(bucket_count, options);
        state.add_kind(ReconciledKind::new::<K>(options, OwnershipSelector::default()));
        state
    }

    /// Adds a kind of workload.
    pub fn add_kind(&mut self, kind: ReconciledKind) {
        for cached in kind.cached() {
            self.store.add_kind(*cached);
        }
        if !kind.counts_deletions() {
            self.reconcile_states.track_by_uid(kind.resource().kind);
        }
        self.kinds.push(kind);
    }

    /// Whether all that plans for workloads of this kind need was listed.
    #[must_use]
    pub fn is_ready(&self, kind: &str) -> bool {
        self.kind(kind).is_some_and(|kind| kind.is_ready(&self.store))
    }

    fn kind(&self, kind: &str) -> Option<&ReconciledKind> {
        self.kinds.iter().find(|known| known.resource().kind == kind)
    }

    fn owns(&self, workload: &Workload) -> bool {
        self.kind(workload.key.kind)
            .is_some_and(|kind| kind.owns(workload))
    }

    /// The deletes of pods by others, if they are tracked for this kind of workload; and the caches.
    pub(crate) fn foreign_deletes(&mut self, kind: &str) -> Option<(&mut ForeignDeletes, &Store)> {
        let mut kinds = self.kinds.iter_mut();
        let kind = kinds.find(|known| known.resource().kind == kind)?;
        Some((kind.foreign_deletes.as_mut()?, &self.store))
    }

    /// A workload from the cache, if it is owned.
    #[must_use]
    pub fn owned(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.store.workload(key).filter(|workload| self.owns(workload))
    }

    /// Whether a workload is cached but not owned.
    #[must_use]
    pub fn is_left_alone(&self, key: &Key) -> bool {
        self.store
            .workload(key)
            .is_some_and(|workload| !self.owns(workload))
    }

    /// Forgets everything that depends on resourceVersions if this list shows that they have restarted. A new list is
    /// never older than what was seen before, unless etcd was restored from a backup (D-112). Expectations stay; they
    /// expire.
    fn handle_version_restart(&mut self, event: &ClusterEvent) {
        let Some(listed) = event.listed() else { return };
        let resource = event.resource();
        let reached = self.store.reached(resource);
        if !gate::is_behind(reached, listed) {
            return;
        }
        tracing::warn!(
            %resource, reached, listed,
            "a list is older than what the watch had reached, as after a restore of etcd: forgetting what was written, and waiting for new lists"
        );
        self.store.handle_version_restart();
        self.gate.handle_version_restart();
        self.read_live.clear();
    }

    /// Handles a watch event. Returns which workloads to enqueue, and when.
    pub fn handle_event(&mut self, event: ClusterEvent, metrics: &Metrics) -> Vec<Wake> {
        self.handle_version_restart(&event);
        let was_relisting = self.store.relisting().is_some();
        let had_lost_any = self.store.has_lost_any();
        // Only a list can make a kind ready.
        let were_ready: Vec<_> = match event.listed() {
            Some(_) => self.kinds.iter().map(|kind| kind.is_ready(&self.store)).collect(),
            None => Vec::new(),
        };
        let resource = event.resource();
        let mut shown = Shown {
            // Pods that vanish through a restore of etcd were not deleted by anybody.
            shows_deletes: event.listed().is_some() && !was_relisting,
            wakes: std::mem::take(&mut self.pending_wakes),
            came: Vec::new(),
        };
        // By kind.
        let mut wake_all = vec![None; self.kinds.len()];
        let Self {
            store,
            kinds,
            reconcile_states,
            gate,
            undelivered,
            read_live,
            overlaps,
            rollouts,
            ..
        } = self;
        for kind in kinds.iter_mut() {
            if let Some(deletes) = &mut kind.foreign_deletes {
                deletes.handle_event(store, &event);
            }
        }
        let mut held = HeldState {
            reconcile_states,
            gate,
            undelivered,
            read_live,
            overlaps,
            rollouts,
            metrics,
        };
        store.apply_each(event, &mut |store, transition| {
            if let Transition::Policy(change) = &transition {
                metrics.policy_changed(change);
            }
            for (kind, wake_all) in kinds.iter_mut().zip(&mut wake_all) {
                let mut observe = |seen| held.observe(seen);
                let all = kind.handle(store, &transition, &mut shown, &mut observe, metrics);
                *wake_all = all.max(*wake_all);
            }
        });
        for (kind, was_ready) in self.kinds.iter().zip(were_ready) {
            if kind.is_ready(&self.store) && !was_ready {
                let name = kind.resource().kind;
                let all = self.store.workloads_of(name);
                let owned = all.filter(|workload| kind.owns(workload) && !workload.is_scaled_to_zero());
                shown.came.retain(|workload| workload.key.kind != name);
                shown.came.extend(owned.cloned());
            }
        }
        let changed = self.store.take_unready_changes();
        if !changed.is_empty() {
            self.rollouts.pods_changed(changed, Instant::now());
        }
        self.create_metrics(&shown.came, metrics);
        for (resource, count) in self.store.take_cuts() {
            metrics.cut(resource, count);
        }
        metrics.runtime().watched(resource, self.store.reached(resource));
        let opened = self.gate.take_ready(|resource| self.store.reached(resource));
        shown.wakes.extend(opened.into_iter().map(Wake::now));
        let is_complete_again = was_relisting && self.store.relisting().is_none();
        if is_complete_again || (had_lost_any && !self.store.has_lost_any()) {
            for urgency in &mut wake_all {
                *urgency = (*urgency).max(Some(Urgency::Normal));
            }
        }
        for (kind, urgency) in self.kinds.iter().zip(wake_all) {
            if let Some(urgency) = urgency {
                let all = self.every_workload(kind.resource().kind);
                shown
                    .wakes
                    .extend(all.into_iter().map(|key| Wake::with(key, urgency)));
            }
        }
        shown.wakes
    }

    /// Creates the metrics of workloads that came.
    fn create_metrics(&self, came: &[Arc<Workload>], metrics: &Metrics) {
        for workload in came {
            if self.is_ready(workload.key.kind) {
                let stalled = || self.store.stalled(workload, jiff::Timestamp::now());
                metrics.rollout_found(&workload.key, stalled);
            }
            let kind = self.kind(workload.key.kind);
            if kind.is_some_and(|kind| kind.foreign_deletes.is_some()) {
                // Created at the start, so that the first increment shows as a change.
                metrics.foreign_pod_deletes(&workload.key, 0);
            }
        }
    }

    /// The keys of all owned workloads of a kind, sorted.
    #[must_use]
    pub fn every_workload(&self, kind: &'static str) -> Vec<Key> {
        let all = self.store.workloads_of(kind);
        let owned = all.filter(|workload| self.owns(workload));
        owned.map(|workload| workload.key.clone()).collect()
    }

    /// When [`Self::take_due_foreign_deletes`] is due, if deletes by somebody else are pending.
    pub(crate) fn foreign_deletes_due(&self) -> Option<Instant> {
        let tracked = self.kinds.iter().filter_map(|kind| kind.foreign_deletes.as_ref());
        tracked.filter_map(ForeignDeletes::next_due).min()
    }

    /// The deletes of pods by others that count now.
    pub(crate) fn take_due_foreign_deletes(&mut self) -> Vec<Found> {
        let store = &self.store;
        let tracked = self
            .kinds
            .iter_mut()
            .filter_map(|kind| kind.foreign_deletes.as_mut());
        tracked.flat_map(|deletes| deletes.take_due(store)).collect()
    }

    /// Takes what a plan says about the rollout of its workload.
    pub(crate) fn planned(&mut self, workload: &Arc<Workload>, plan: &v1::Plan) {
        self.rollouts.planned(&self.store, workload, plan, Instant::now());
    }

    /// Computes how far the rollouts are of which that is due. `at` is now.
    pub(crate) fn take_due_rollouts(&mut self, at: jiff::Timestamp) -> Vec<Report> {
        self.rollouts.take_due(&self.store, Instant::now(), at)
    }

    /// Forgets a workload that is gone or not owned any more.
    pub fn forget(&mut self, key: &Key, metrics: &Metrics) {
        self.gate.clear(key, None);
        let mut held = HeldState {
            reconcile_states: &mut self.reconcile_states,
            gate: &mut self.gate,
            undelivered: &mut self.undelivered,
            read_live: &mut self.read_live,
            overlaps: &mut self.overlaps,
            rollouts: &mut self.rollouts,
            metrics,
        };
        held.drop_held(key);
        if let Some((deletes, _)) = self.foreign_deletes(key.kind) {
            deletes.forget(key);
        }
    }

    /// Updates the metrics of a workload's open expectations.
    pub fn update_metrics(&self, key: &Key, metrics: &Metrics) {
        set_expectation_metrics(&self.reconcile_states, key, metrics);
    }

    /// The undelivered reports about the workload of this uid, oldest first.
    #[must_use]
    pub fn undelivered(&self, key: &Key, uid: &str) -> Vec<v1::ReportRequest> {
        let reports = self.undelivered.get(key).into_iter().flatten();
        reports
            .filter(|report| {
                report
                    .workload
                    .as_ref()
                    .is_some_and(|workload| workload.uid == uid)
            })
            .cloned()
            .collect()
    }

    /// Keeps a report that could not be delivered. The next plan request contains it.
    pub fn keep_report(&mut self, key: &Key, report: v1::ReportRequest) {
        let reports = self.undelivered.entry(key.clone()).or_default();
        if reports.len() == MAX_UNDELIVERED {
            reports.remove(0);
        }
        reports.push(report);
    }

    /// Forgets the reports about a workload: the service has them.
    pub fn reports_delivered(&mut self, key: &Key) {
        self.undelivered.remove(key);
    }

    /// Handles a revision that was read live for a workload. If its version is newer than the cached one, it is handled
    /// like a watch event: a revision that changes all the time must not delay the workload.
    pub fn take_read(&mut self, workload: &Workload, read: Revision, metrics: &Metrics) {
        let kept = self.store.revision(&read.namespace, &read.name);
        let is_newer = kept.is_some_and(|kept| {
            kept.uid == read.uid && gate::is_behind(&read.resource_version, &kept.resource_version)
        });
        if is_newer {
            self.pending_wakes = self.handle_event(ClusterEvent::RevisionRead(read.clone()), metrics);
        }
        self.store.keep_whole(workload, read);
    }

    /// Handles a revision of this uid that a live read did not find.
    pub fn take_gone(&mut self, key: &ObjectKey, uid: &str, metrics: &Metrics) {
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let kept = self.store.revision(&namespace, &name);
        // Another object may have this name by now.
        if kept.is_some_and(|kept| kept.uid == uid) {
            self.pending_wakes = self.handle_event(ClusterEvent::RevisionGone { namespace, name }, metrics);
        }
    }

    /// Keeps objects that a reconcile read live and that then has to wait for a cache. The caches may not show them yet when
    /// the next plan is requested.
    pub fn keep_live(&mut self, key: &Key, uid: &Arc<str>, live: LiveObjects) {
        if live.is_empty() {
            return;
        }
        let kept = self.read_live.entry(key.clone());
        let (of, kept) = kept.or_insert_with(|| (Arc::clone(uid), LiveObjects::default()));
        if of != uid {
            (*of, *kept) = (Arc::clone(uid), LiveObjects::default());
        }
        // A faulty service could have the same object read again and again.
        kept.extend(live);
        kept.truncate(MAX_LIVE);
    }

    /// Takes the objects that were kept. In the next snapshot they replace the cached ones of the same names, as they
    /// would have without the wait: the cache may show an earlier object, or lack the mark that the name was taken.
    pub fn take_live(&mut self, key: &Key, uid: &Arc<str>) -> LiveObjects {
        let kept = self.read_live.remove(key).filter(|(of, _)| of == uid);
        kept.map_or_else(LiveObjects::default, |(_, live)| live)
    }
}

/// The state without the caches.
struct HeldState<'a> {
    reconcile_states: &'a mut ReconcileStates,
    gate: &'a mut OwnWriteGate,
    undelivered: &'a mut HashMap<Key, Vec<v1::ReportRequest>>,
    read_live: &'a mut HashMap<Key, (Arc<str>, LiveObjects)>,
    overlaps: &'a mut Overlaps,
    rollouts: &'a mut Rollouts,
    metrics: &'a Metrics,
}

impl HeldState<'_> {
    fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::PodCreated {
                key,
                pod_name,
                node_name,
            } => {
                self.reconcile_states.observe_create(&key, &pod_name, &node_name);
                set_expectation_metrics(self.reconcile_states, &key, self.metrics);
            }
            Observation::PodDeleted {
                key,
                pod_name,
                pod_uid,
            } => {
                self.reconcile_states.observe_deletion(&key, &pod_name, &pod_uid);
                set_expectation_metrics(self.reconcile_states, &key, self.metrics);
            }
            Observation::NameUsed {
                key,
                uid,
                pod_name,
                node_name,
            } => self
                .reconcile_states
                .record_used_name(&key, &uid, node_name, pod_name),
            Observation::Gone { key, own_writes_of } => {
                self.gate.clear(&key, Some(&own_writes_of));
                self.drop_held(&key);
            }
            Observation::Overlap(keys) => self.overlaps.log(&keys),
        }
    }

    fn drop_held(&mut self, key: &Key) {
        self.reconcile_states.forget(key);
        self.undelivered.remove(key);
        self.read_live.remove(key);
        self.rollouts.forget(key);
        self.metrics.forget_workload(key);
    }
}

fn set_expectation_metrics(reconcile_states: &ReconcileStates, key: &Key, metrics: &Metrics) {
    let (creates, deletes) = reconcile_states.outstanding(key);
    metrics.expectations(key, creates, deletes);
}

/// A [`State`] that the watches and the workers share.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// Shares a state.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    /// Locks the state. No caller holds the lock across an `await`.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::daemon_set::{DAEMON_SETS, DaemonSets};
    use crate::testing::listed;
    use nodewise_proto::workload::DAEMON_SET;
    use nodewise_runtime::{Delta, Resource};

    fn live(revisions: Vec<Revision>) -> LiveObjects {
        LiveObjects {
            revisions,
            ..LiveObjects::default()
        }
    }

    // D-110: a workload that waits for a cache is enqueued by any event that shows that the cache is up to date, even
    // if no cached object changed.
    #[test]
    fn a_workload_that_waits_for_a_cache_is_enqueued_by_any_event() {
        let (known, metrics) = (|version| crate::testing::pod("p", version), Metrics::new());
        let foreign = |version| {
            let mut pod = crate::testing::pod("foreign", version);
            pod.projection.controller = Some(v1::ControllerReference {
                kind: "ReplicaSet".into(),
                ..Default::default()
            });
            pod
        };
        let listed = |version: &str| Delta::Listed {
            objects: vec![known("11")],
            resource_version: version.to_owned(),
        };
        let events: [(&str, &dyn Fn(&'static str) -> ClusterEvent); 5] = [
            ("of its pod, with nothing that is kept changed", &|version| {
                ClusterEvent::Pods(Delta::Applied(known(version)))
            }),
            ("of a pod that is not kept", &|version| {
                ClusterEvent::Pods(Delta::Applied(foreign(version)))
            }),
            ("of such a pod that goes", &|version| {
                ClusterEvent::Pods(Delta::Deleted(foreign(version)))
            }),
            ("a bookmark", &|version| {
                ClusterEvent::Bookmark(Resource::PODS, version.into())
            }),
            ("a list of the same", &|version| {
                ClusterEvent::Pods(listed(version))
            }),
        ];
        for (case, event) in events {
            let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
            for event in crate::testing::first_lists() {
                state.handle_event(event, &metrics);
            }
            state.handle_event(ClusterEvent::Pods(Delta::Applied(known("11"))), &metrics);
            let key = crate::testing::key();
            state.gate.record(&key, &Arc::from("u1"), Resource::PODS, "20");
            let refused = state
                .gate
                .check(&key, |resource| state.store.reached(resource))
                .is_err();
            assert!(refused, "{case}");
            for (version, expected) in [("19", vec![]), ("20", vec![Wake::now(key)]), ("21", vec![])] {
                assert_eq!(
                    state.handle_event(event(version), &metrics),
                    expected,
                    "{case} at {version}"
                );
                assert_eq!(state.store.reached(Resource::PODS), version, "{case}");
            }
        }
    }

    // D-112: after a restore of etcd, no watch reaches the versions of earlier writes.
    #[test]
    fn a_list_older_than_the_cache_clears_own_writes() {
        let listed = |version: &str| {
            ClusterEvent::Pods(Delta::Listed {
                objects: Vec::new(),
                resource_version: version.to_owned(),
            })
        };
        let key = crate::testing::key();
        // (version that the watch had reached, version of the list, whether the workload may continue)
        for (reached, version, expected) in [
            ("1000", "500", true),
            ("1000", "999", true),
            ("1000", "1000", false),
            ("1000", "1001", false),
            ("1000", "odd", true),
        ] {
            let metrics = Metrics::new();
            let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
            for event in crate::testing::first_lists() {
                state.handle_event(event, &metrics);
            }
            state.handle_event(ClusterEvent::Bookmark(Resource::PODS, reached.into()), &metrics);
            metrics.runtime().written(Resource::PODS, "2000");
            state.gate.record(&key, &Arc::from("u1"), Resource::PODS, "2000");
            state.gate.record(&key, &Arc::from("u1"), DAEMON_SETS, "1");
            let check = |state: &mut State| {
                let State { gate, store, .. } = state;
                gate.check(&key, |resource| store.reached(resource)).is_ok()
            };
            assert!(!check(&mut state));
            let wakes = |woken: Vec<Wake>| woken.contains(&Wake::now(key.clone()));
            let mut woken = wakes(state.handle_event(listed(version), &metrics));
            let begins_anew = expected && version != "odd";
            assert_eq!(state.store.relisting().is_some(), begins_anew, "{version}");
            // The other watches still show the time before the restore, and send no list.
            let bookmark = ClusterEvent::Bookmark(Resource::NODES, "1001".into());
            state.handle_event(bookmark, &metrics);
            for event in crate::testing::first_lists() {
                if begins_anew && event.resource() != Resource::PODS {
                    woken = wakes(state.handle_event(event, &metrics));
                }
            }
            assert_eq!(woken, expected, "{version}");
            assert_eq!(state.store.relisting(), None, "{version}");
            assert_eq!(check(&mut state), expected, "{version}");
        }
    }

    // D-112: objects that were read or marked at an old version may look different now.
    #[test]
    fn a_restart_of_versions_clears_what_depends_on_them() {
        let (key, uid, metrics) = (crate::testing::key(), Arc::from("u1"), Metrics::new());
        let revision = || {
            let object =
                serde_json::json!({"metadata": {"namespace": "ns", "name": "r", "resourceVersion": "7"}});
            Revision::from_json(&object).expect("a revision")
        };
        let list = |version: &str| {
            ClusterEvent::Revisions(Delta::Listed {
                objects: vec![revision()],
                resource_version: version.to_owned(),
            })
        };
        let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
        for event in crate::testing::first_lists() {
            state.handle_event(event, &metrics);
        }
        for (version, stays) in [("20", true), ("21", true), ("15", false)] {
            state.keep_live(&key, &uid, live(vec![revision()]));
            state.handle_event(list(version), &metrics);
            if version == "20" {
                state.store.seal(Resource::REVISIONS, "ns", "r");
            }
            assert_eq!(state.store.is_sealed(&revision()), stays, "{version}");
            assert_eq!(state.take_live(&key, &uid).is_empty(), !stays, "{version}");
        }
        // The pod has the same version but another state.
        let mut pod = crate::testing::pod("p", "11");
        state.handle_event(ClusterEvent::Pods(Delta::Applied(pod.clone())), &metrics);
        pod.projection.phase = v1::PodPhase::Failed.into();
        let list = Delta::Listed {
            objects: vec![pod],
            resource_version: "9".to_owned(),
        };
        state.handle_event(ClusterEvent::Pods(list), &metrics);
        let phase = state.store.pod("ns", "p").map(|pod| pod.phase());
        assert_eq!(phase, Some(v1::PodPhase::Failed));
    }

    // The rollout did not begin with the executor: a restart must not hide that the rollout is stuck.
    #[test]
    fn a_stalled_rollout_keeps_its_age_after_a_restart() {
        let hour_ago = jiff::Timestamp::now() - SignedDuration::from_hours(1);
        let revision = Revision::from_json(&serde_json::json!({"metadata": {
            "namespace": "ns", "name": "r", "resourceVersion": "11", "creationTimestamp": hour_ago.to_string(),
            "ownerReferences": [{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}],
        }}));
        let workload = Workload::daemon_set_from_json(&serde_json::json!({
            "metadata": {"namespace": "ns", "name": "foo", "uid": "u1", "resourceVersion": "10", "generation": 2},
            "spec": {"selector": {"matchLabels": {"app": "foo"}}},
            "status": {"observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3},
        }));
        let (revision, workload) = (revision.expect("a revision"), workload.expect("a DaemonSet"));
        let lists = [
            ClusterEvent::Workloads(DAEMON_SETS, listed(vec![workload])),
            ClusterEvent::Nodes(listed(Vec::new())),
            ClusterEvent::Pods(listed(Vec::new())),
            ClusterEvent::Revisions(listed(vec![revision])),
            ClusterEvent::Policies(listed(Vec::new())),
        ];
        for first in 0..lists.len() {
            let (metrics, mut lists) = (Metrics::new(), lists.clone());
            let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
            lists.rotate_left(first);
            for list in lists {
                state.handle_event(list, &metrics);
            }
            let scrape = metrics.encode();
            let series =
                "nodewise_rollout_since_progress_seconds{kind=\"DaemonSet\",namespace=\"ns\",name=\"foo\"} ";
            let age = scrape.lines().find_map(|line| line.strip_prefix(series));
            let age: f64 = age.expect("an age").parse().expect("a number");
            assert!((3_600.0..3_660.0).contains(&age), "{age}, {first}");
        }
    }

    // D-105: each workload is enqueued once, however many nodes an event brings.
    #[test]
    fn many_nodes_enqueue_each_workload_once() {
        let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
        for event in crate::testing::first_lists() {
            state.handle_event(event, &Metrics::new());
        }
        let node = |index: usize| {
            let object =
                serde_json::json!({"metadata": {"name": format!("n{index}"), "resourceVersion": "11"}});
            nodewise_projection::Node::from_json(&object).expect("a node")
        };
        let list = crate::testing::listed((0..1_000).map(node).collect());
        let woken = state.handle_event(ClusterEvent::Nodes(list), &Metrics::new());
        assert_eq!(woken, [Wake::urgent(Key::new(DAEMON_SET, "ns", "foo"))]);
        // One added node makes the event urgent, however many nodes were removed.
        let list = crate::testing::listed(vec![node(1_000)]);
        let woken = state.handle_event(ClusterEvent::Nodes(list), &Metrics::new());
        assert_eq!(woken, [Wake::urgent(Key::new(DAEMON_SET, "ns", "foo"))]);
        let list = crate::testing::listed(Vec::new());
        let woken = state.handle_event(ClusterEvent::Nodes(list), &Metrics::new());
        assert_eq!(woken, [Wake::now(Key::new(DAEMON_SET, "ns", "foo"))]);
    }

    // A plan may be made between the events of the workload and of the revision. No other event shows that the revision
    // exists.
    #[test]
    fn revisions_of_another_controller_enqueue() {
        let controlled = serde_json::json!({"metadata": {
            "namespace": "ns", "name": "r", "resourceVersion": "11",
            "ownerReferences": [{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}],
        }});
        for (scope, expected) in [
            (v1::Scope::Workload, vec![]),
            (v1::Scope::Rollouts, vec![Wake::now(crate::testing::key())]),
        ] {
            let options = v1::PlanOptions {
                scope: scope.into(),
                ..Default::default()
            };
            let mut state = State::of::<DaemonSets>(1, &options);
            for event in crate::testing::first_lists() {
                state.handle_event(event, &Metrics::new());
            }
            let revision = Revision::from_json(&controlled).expect("a revision");
            let woken =
                state.handle_event(ClusterEvent::Revisions(Delta::Applied(revision)), &Metrics::new());
            assert_eq!(woken, expected, "{scope:?}");
        }
    }

    // W17: DaemonSets that are not selected are ignored.
    #[test]
    fn unselected_daemon_sets_are_ignored() {
        use crate::testing::{daemon_set, key, labelled, pod};
        let metrics = Metrics::new();
        let mut state = crate::testing::selective_state();
        for event in crate::testing::first_lists() {
            assert_eq!(state.handle_event(event, &metrics), []);
        }
        let changed =
            |version: &str| ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", version)));
        let node = nodewise_projection::Node::from_json(&serde_json::json!({"metadata": {"name": "n1"}}));
        let node = ClusterEvent::Nodes(Delta::Applied(node.expect("a node")));
        let pod = |version| ClusterEvent::Pods(Delta::Applied(pod("p", version)));
        for event in [changed("11"), node, pod("11")] {
            assert_eq!(state.handle_event(event, &metrics), []);
        }
        assert!(!metrics.encode().contains("name=\"foo\""));
        let wakes = [Wake::now(key())];
        let selected = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(labelled("12")));
        assert_eq!(state.handle_event(selected, &metrics), wakes);
        assert_eq!(state.every_workload(DAEMON_SET), [key()]);
        assert!(metrics.encode().contains("name=\"foo\""));
        // The workload is enqueued to be forgotten.
        assert_eq!(state.handle_event(changed("13"), &metrics), wakes);
        let gone = ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(daemon_set("u1", "14")));
        for event in [changed("14"), pod("14"), gone] {
            assert_eq!(state.handle_event(event, &metrics), []);
        }
    }

    // A Deployment leaves many of them behind. Each would have several series.
    #[test]
    fn a_workload_that_is_scaled_to_zero_has_no_series() {
        use crate::replica_set::{REPLICA_SETS, ReplicaSets};
        let metrics = Metrics::new();
        let mut state = State::of::<ReplicaSets>(1, &v1::PlanOptions::default());
        let set = |version: &str, replicas: u32, current: u32| {
            let object = serde_json::json!({
                "metadata": {"namespace": "ns", "name": "foo", "uid": "u1", "resourceVersion": version},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "foo"}}},
                "status": {"replicas": current},
            });
            Workload::replica_set_from_json(&object).expect("a ReplicaSet")
        };
        state.handle_event(ClusterEvent::Pods(listed(Vec::new())), &metrics);
        let list = ClusterEvent::Workloads(REPLICA_SETS, listed(vec![set("10", 0, 0)]));
        let woken = state.handle_event(list, &metrics);
        assert_eq!(woken.len(), 1, "it is reconciled all the same");
        for (version, replicas, current, expected) in [
            ("11", 0, 0, false),
            ("12", 3, 0, true),
            ("13", 0, 3, true),
            ("14", 0, 0, false),
        ] {
            let event = Delta::Applied(set(version, replicas, current));
            state.handle_event(ClusterEvent::Workloads(REPLICA_SETS, event), &metrics);
            assert_eq!(metrics.encode().contains("name=\"foo\""), expected, "{version}");
        }
    }

    // W17: a change of a ReplicaSet enqueues no Deployment that another controller owns.
    #[test]
    fn unselected_deployments_are_ignored() {
        use crate::deployment::{DEPLOYMENTS, Deployments};
        use crate::replica_set::REPLICA_SETS;
        let (options, metrics) = (v1::PlanOptions::default(), Metrics::new());
        let mut state = State::new(1, &options);
        state.add_kind(ReconciledKind::new::<Deployments>(
            &options,
            crate::testing::owned(),
        ));
        let deployment = |version: &str, labels: serde_json::Value| {
            let object = serde_json::json!({
                "metadata": {"namespace": "ns", "name": "foo", "uid": "d1", "resourceVersion": version, "labels": labels},
                "spec": {"selector": {"matchLabels": {"app": "foo"}}},
            });
            let deployment = Workload::deployment_from_json(&object).expect("a Deployment");
            ClusterEvent::Workloads(DEPLOYMENTS, Delta::Applied(deployment))
        };
        let set = |version: &str| {
            let owner =
                serde_json::json!({"kind": "Deployment", "name": "foo", "uid": "d1", "controller": true});
            let object = serde_json::json!({"metadata": {
                "namespace": "ns", "name": "s", "uid": "s1", "resourceVersion": version, "ownerReferences": [owner],
            }});
            let set = Workload::replica_set_from_json(&object).expect("a ReplicaSet");
            ClusterEvent::Workloads(REPLICA_SETS, Delta::Applied(set))
        };
        assert_eq!(
            state.handle_event(deployment("10", serde_json::json!({})), &metrics),
            []
        );
        assert_eq!(state.handle_event(set("10"), &metrics), []);
        let mine = deployment("11", serde_json::json!({"owned": "yes"}));
        let key = Key::new(DEPLOYMENTS.kind, "ns", "foo");
        assert_eq!(state.handle_event(mine, &metrics), [Wake::now(key.clone())]);
        assert_eq!(state.handle_event(set("11"), &metrics), [Wake::now(key)]);
    }

    #[test]
    fn the_newest_reports_are_kept_until_delivered() {
        let key = Key::new(DAEMON_SET, "ns", "foo");
        let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
        let report = |plan: usize| v1::ReportRequest {
            workload: Some(v1::WorkloadReference {
                uid: "u1".into(),
                ..Default::default()
            }),
            plan_id: plan.to_string(),
            ..Default::default()
        };
        for plan in 0..10 {
            state.keep_report(&key, report(plan));
        }
        assert_eq!(
            state.undelivered(&key, "u1"),
            (2..10).map(report).collect::<Vec<_>>()
        );
        assert_eq!(
            state.undelivered(&key, "u2"),
            [],
            "of another workload of the same name"
        );
        state.reports_delivered(&key);
        assert_eq!(state.undelivered(&key, "u1"), []);
    }

    #[test]
    fn live_revisions_are_kept_for_one_workload() {
        let (key, metrics) = (Key::new(DAEMON_SET, "ns", "foo"), Metrics::new());
        let (uid, other) = (Arc::from("u1"), Arc::from("u2"));
        let revision = |name: &str| {
            Revision::from_json(&serde_json::json!({"metadata": {"namespace": "ns", "name": name}}))
                .expect("a revision")
        };
        let names = |live: LiveObjects| -> Vec<_> {
            live.revisions
                .into_iter()
                .map(|revision| revision.name.clone())
                .collect()
        };
        let mut state = State::of::<DaemonSets>(1, &v1::PlanOptions::default());
        state.keep_live(&key, &uid, live(vec![revision("a")]));
        state.keep_live(&key, &uid, LiveObjects::default());
        state.keep_live(&key, &uid, live(vec![revision("b")]));
        assert_eq!(names(state.take_live(&key, &uid)), ["a", "b"]);
        assert_eq!(names(state.take_live(&key, &uid)), [""; 0], "they were taken");
        for index in 0..MAX_LIVE + 2 {
            state.keep_live(&key, &uid, live(vec![revision("a")]));
            state.keep_live(&key, &uid, live(vec![revision(&format!("b{index}"))]));
        }
        let kept = names(state.take_live(&key, &uid));
        assert_eq!(kept.len(), MAX_LIVE, "each once, and not any number of them");
        assert_eq!(kept.iter().filter(|name| *name == "a").count(), 1);
        state.keep_live(&key, &uid, live(vec![revision("a")]));
        state.keep_live(&key, &other, live(vec![revision("b")]));
        assert_eq!(
            names(state.take_live(&key, &uid)),
            [""; 0],
            "of a workload that was replaced"
        );
        state.keep_live(&key, &other, live(vec![revision("b")]));
        assert_eq!(names(state.take_live(&key, &other)), ["b"]);
        state.keep_live(&key, &uid, live(vec![revision("a")]));
        state.forget(&key, &metrics);
        assert_eq!(
            names(state.take_live(&key, &uid)),
            [""; 0],
            "nothing is kept of what is gone"
        );
    }
}
