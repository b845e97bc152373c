//! The check of a plan in a reconcile: what the caches show, what has to be read live, and what becomes of a violation.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use nodewise_proto::v1;

use super::{Asked, Caches, Known, MAX_UNSEEN, Violation, check};
use crate::actuator::{Actuator, ObjectKey, Refusal, WorkloadEvent};
use crate::apply::LeftOut;
use crate::event::{DaemonSet, Resource, Revision};
use crate::reconcile::{DEFAULT_BURST, Ending, Planned, Reconciler};
use crate::state::{Shared, is_enabled};
use crate::store::LivePods;

/// The caches of nodes, and of the namespace of one workload. Each look takes the lock anew, so that no watch waits while a manifest is read.
pub(super) struct Shown<'a> {
    pub(super) state: &'a Shared,
    pub(super) workload: &'a DaemonSet,
}

impl Caches for Shown<'_> {
    fn object(&self, resource: Resource, name: &str) -> Option<Known> {
        let (state, namespace) = (self.state.lock(), &self.workload.key.namespace);
        match resource {
            Resource::Pods => state.store.pod(namespace, name).map(Known::from),
            Resource::Revisions => state
                .store
                .revision(namespace, name)
                .map(|found| Known::from(&**found)),
            Resource::DaemonSets | Resource::Nodes => None,
        }
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
}

impl<A: Actuator, P> Reconciler<A, P> {
    /// Checks a plan before anything of it is held or written; answers with what is not to be carried out of it. `live` are the revisions of
    /// the snapshot that were read live.
    pub(crate) async fn check_plan(&self, planned: &Planned, live: &[Revision]) -> Result<LeftOut, Ending> {
        let Planned {
            plan,
            workload,
            sent,
            as_of,
        } = planned;
        let asked = Asked {
            as_of: *as_of,
            sent,
            workload,
            scope: self.options.scope(),
            live,
            delete_with_uid: is_enabled(&self.options, v1::Deviation::DeleteWithUid),
            burst: self.options.burst.unwrap_or(DEFAULT_BURST) as usize,
            decides_after_cut: is_enabled(&self.options, v1::Deviation::DecideAfterCut),
        };
        let shown = Shown {
            state: &self.state,
            workload,
        };
        let refused = |violation: Violation| self.refuse(workload, &violation);
        let mut checked = check(plan, &asked, &shown).map_err(refused)?;
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
                Ok(object) => checked.read(named, &asked, &shown, &object).map_err(refused)?,
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

    /// Tells of a violation, which ends the reconcile as a refused request does.
    fn refuse(&self, workload: &DaemonSet, violation: &Violation) -> Ending {
        self.metrics.plan_violation();
        self.actuator.emit(WorkloadEvent {
            workload: workload.reference(),
            kind: "Warning".to_owned(),
            reason: "PlanRefused".to_owned(),
            message: violation.to_string(),
        });
        failed(violation.to_string())
    }
}

fn failed(reason: String) -> Ending {
    Ending::Failed { after: None, reason }
}
