//! Connects the plan check to a reconcile: supplies the caches and live reads, and turns a violation into a failed
//! reconcile.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use nodewise_projection::{Key, Revision, Workload};
use nodewise_proto::v1;

use super::{Caches, Known, MAX_UNSEEN, RequestContext, Violation, check, rules};
use crate::reconcile::{Ending, Planned, Reconciler};
use crate::state::{Shared, State};
use nodewise_runtime::apply::LeftOut;
use nodewise_runtime::kind::Kind;
use nodewise_runtime::store::LivePods;
use nodewise_runtime::{
    Resource,
    actuator::{Actuator, ObjectKey, Refusal, WorkloadEvent},
};

/// The cached nodes, and the caches of the workload's namespace. Each call locks the state anew, so that watches do not
/// wait while a manifest is parsed.
pub(super) struct WorkloadCaches<'a> {
    pub(super) state: &'a Shared,
    pub(super) workload: &'a Workload,
}

impl Caches for WorkloadCaches<'_> {
    fn object(&self, resource: Resource, name: &str) -> Option<Known> {
        let (state, namespace) = (self.state.lock(), &self.workload.key.namespace);
        match resource {
            Resource::PODS => state.store.pod(namespace, name).map(Known::from),
            Resource::REVISIONS => state
                .store
                .revision(namespace, name)
                .map(|found| Known::from(&**found)),
            other => {
                let key = Key::new(other.kind, namespace, name);
                let object = state.store.workload(&key)?.object.clone();
                drop(state);
                Known::read(other, &object).ok()
            }
        }
    }

    fn controlled(&self, resource: Resource) -> Vec<Bytes> {
        let state = self.state.lock();
        let controlled = state.store.controlled(resource.kind, self.workload);
        let orphans = state.store.orphans(resource.kind, self.workload);
        controlled
            .chain(orphans)
            .map(|found| found.object.clone())
            .collect()
    }

    fn own_revisions(&self) -> Vec<Bytes> {
        let state = self.state.lock();
        let own = state
            .store
            .revisions(self.workload)
            .filter(|found| found.controller.is_some());
        own.filter_map(|revision| revision.object.clone()).collect()
    }

    fn changed(&self, resource: Resource, name: &str) -> u64 {
        let state = self.state.lock();
        state.store.changed(resource, &self.workload.key.namespace, name)
    }

    fn has_node(&self, name: &str) -> bool {
        self.state.lock().store.has_node(name)
    }

    fn hashes(&self) -> HashSet<String> {
        let state = self.state.lock();
        let revisions = state.store.revisions(self.workload);
        revisions.map(|revision| revision.hash().to_owned()).collect()
    }

    fn revisions_changed(&self) -> u64 {
        let state = self.state.lock();
        state.store.revisions_changed(&self.workload.key.namespace)
    }

    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods> {
        self.state.lock().store.live_pods(self.workload, nodes)
    }

    fn live_pods_beyond(&self, most: usize) -> Option<LivePods> {
        self.state.lock().store.live_pods_beyond(self.workload, most)
    }

    fn unseen_creates(&self) -> Vec<String> {
        let mut state = self.state.lock();
        let State { gate, store, .. } = &mut *state;
        let Workload { key, uid, .. } = self.workload;
        gate.unseen_creates(key, uid, store.reached(Resource::PODS))
    }
}

impl<K: Kind, A: Actuator, P> Reconciler<K, A, P> {
    /// Checks a plan before it is held or written. Returns the actions that must not be carried out. `live` are the
    /// revisions of the snapshot that were read live.
    pub(crate) async fn check_plan(&self, planned: &Planned, live: &[Revision]) -> Result<LeftOut, Ending> {
        let Planned {
            plan,
            workload,
            sent,
            as_of,
            policies,
            ..
        } = planned;
        let rules = rules(workload.key.kind);
        let request = RequestContext {
            as_of: *as_of,
            sent,
            workload,
            resource: K::RESOURCE,
            controls: <K::Controls as Kind>::RESOURCE,
            rules,
            scope: self.options.scope(),
            live,
            policies,
            delete_with_uid: self.options.enables(v1::Deviation::DeleteWithUid),
            burst: self.options.burst.unwrap_or(rules.burst) as usize,
            decides_after_cut: self.options.enables(v1::Deviation::DecideAfterCut),
        };
        let caches = WorkloadCaches {
            state: &self.state,
            workload,
        };
        let refused = |violation: Violation| self.refuse(workload, &violation);
        let mut checked = check(plan, &request, &caches).map_err(refused)?;
        let unseen = std::mem::take(&mut checked.unseen);
        if unseen.len() > MAX_UNSEEN {
            return Err(failed(format!(
                "the plan names {} objects that the caches do not show; the snapshot it was made from is too old",
                unseen.len()
            )));
        }
        for named in &unseen {
            let key = ObjectKey::new(named.resource, &*workload.key.namespace, &named.reference.name);
            match self.actuator.read(&key).await {
                Ok(object) => checked.read(named, &request, &caches, &object).map_err(refused)?,
                Err(error) if error.refusal == Refusal::NotFound => {}
                Err(error) => return Err(failed(format!("reading {key}, which the plan names: {error}"))),
            }
        }
        let left_out = checked.left_out(plan);
        for (id, message) in &left_out {
            tracing::debug!("action {id} is left out: {message}");
        }
        Ok(left_out)
    }

    /// Reports a violation and ends the reconcile, as after a refused request.
    fn refuse(&self, workload: &Workload, violation: &Violation) -> Ending {
        self.metrics.plan_violation(K::RESOURCE.kind);
        self.actuator.emit(WorkloadEvent {
            workload: workload.reference(),
            kind: "Warning".to_owned(),
            reason: "PlanRefused".to_owned(),
            message: violation.to_string(),
            once: None,
        });
        let reason = violation.to_string();
        Ending::Refused { reason }
    }
}

fn failed(reason: String) -> Ending {
    Ending::Failed { after: None, reason }
}
