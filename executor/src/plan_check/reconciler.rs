//! The check of a plan in a reconcile: what the caches show, what has to be read live, and what becomes of a violation.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use nodewise_proto::v1;

use super::{Asked, Caches, Known, MAX_UNSEEN, Violation, check, check_live};
use crate::actuator::{Actuator, ObjectKey, Refusal, WorkloadEvent};
use crate::event::{DaemonSet, Resource, Revision};
use crate::reconcile::{DEFAULT_BURST, Ending, Reconciler};
use crate::state::{Shared, is_enabled};

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

    fn live_pods<'n>(&self, nodes: &HashSet<&'n str>) -> HashMap<&'n str, usize> {
        self.state.lock().store.live_pods(self.workload, nodes)
    }
}

impl<A: Actuator, P> Reconciler<A, P> {
    /// Checks a plan for this workload before anything of it is held or written. `live` are the revisions of the snapshot that were read
    /// live.
    pub(crate) async fn check_plan(
        &self,
        plan: &v1::Plan,
        workload: &DaemonSet,
        live: &[Revision],
    ) -> Result<(), Ending> {
        let asked = Asked {
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
        let refused = |violation: Violation| {
            let is_first = self.state.lock().contradicted.is_first(&workload.key, &violation);
            if is_first {
                return failed(format!("{violation}; that may have changed since the snapshot"));
            }
            self.refuse(workload, &violation)
        };
        let unseen = check(plan, &asked, &shown).map_err(refused)?;
        if unseen.len() > MAX_UNSEEN {
            return Err(failed(format!(
                "the plan names {} objects that the caches do not show; the snapshot it was made from is too old",
                unseen.len()
            )));
        }
        for named in &unseen {
            let key = ObjectKey::new(named.resource, &*workload.key.namespace, &named.reference.name);
            match self.actuator.read(&key).await {
                Ok(object) => check_live(named, &asked, &object).map_err(refused)?,
                Err(error) if error.refusal == Refusal::NotFound => {}
                Err(error) => return Err(failed(format!("reading {key}, which the plan names: {error}"))),
            }
        }
        self.state.lock().contradicted.forget(&workload.key);
        Ok(())
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
