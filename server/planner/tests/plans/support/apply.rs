//! Applies plans to the small cluster.

use nodewise_planner::{
    plan::{Action, ActionKind, PhaseKind, Plan, When},
    report::{Outcome, OutcomeResult, Subject},
    snapshot::{ExpectedCreate, Labels, Pod, PodPhase, Revision, Target},
};
use serde_json::Value;

use super::{Cluster, HASH_LABEL, labels_of};

impl Cluster {
    /// Applies a whole plan. New pods are bound and pending, deleted pods are being deleted. Expectations stay.
    pub(crate) fn apply(&mut self, plan: &Plan) -> Vec<Outcome> {
        self.apply_with(plan, &mut |_| OutcomeResult::Succeeded)
    }

    /// Applies a plan as the protocol says. `fate` decides the result of each action.
    pub(crate) fn apply_with(
        &mut self,
        plan: &Plan,
        fate: &mut dyn FnMut(&Action) -> OutcomeResult,
    ) -> Vec<Outcome> {
        self.state = plan.state.clone();
        self.creating = plan.pod_manifest.as_ref().map_or_else(String::new, |manifest| {
            let pod: Value = serde_json::from_slice(&manifest.json).expect("a manifest is JSON");
            pod["metadata"]["labels"][HASH_LABEL]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        outcomes(plan, &mut |action| self.attempt(action, fate(action)))
    }

    fn attempt(&mut self, action: &Action, fate: OutcomeResult) -> OutcomeResult {
        if fate != OutcomeResult::Succeeded {
            return fate;
        }
        if let ActionKind::CreatePod { pod_name, node_name } = &action.kind
            && let Some(pod) = self.pods.iter().find(|pod| &pod.name == pod_name)
        {
            let ours = pod.controller.as_deref() == Some(&self.controller());
            let same = ours && pod.target.node() == Some(node_name);
            return if same {
                OutcomeResult::AlreadyExists
            } else {
                OutcomeResult::NameTaken
            };
        }
        self.write(action);
        OutcomeResult::Succeeded
    }

    /// Applies one action.
    pub(crate) fn write(&mut self, action: &Action) {
        match &action.kind {
            ActionKind::CreateRevision { name, manifest } => self.create_revision(name, manifest),
            ActionKind::UpdateRevision {
                revision,
                patch,
                number,
            } => {
                let patch: Value = serde_json::from_slice(patch).expect("a patch is JSON");
                let found = self.revisions.iter_mut().find(|other| other.uid == revision.uid);
                let found = found.expect("the revision exists");
                found.number = number.unwrap_or(found.number);
                found.labels = merged(&found.labels, &patch);
            }
            ActionKind::DeleteRevision { revision, .. } => {
                self.revisions.retain(|other| other.uid != revision.uid);
            }
            ActionKind::AdoptPod { pod, .. } => {
                let controller = Some(self.controller().into());
                self.pod_mut(&pod.uid).controller = controller;
            }
            ActionKind::ReleasePod { pod, .. } => self.pod_mut(&pod.uid).controller = None,
            ActionKind::RelabelPod { pod, patch } => {
                let patch: Value = serde_json::from_slice(patch).expect("a patch is JSON");
                let pod = self.pod_mut(&pod.uid);
                pod.labels = merged(&pod.labels, &patch);
            }
            ActionKind::CreatePod { pod_name, node_name } => self.create_pod(pod_name, node_name),
            ActionKind::DeletePod { pod, .. } | ActionKind::EvictPod { pod, .. } => {
                if let Some(pod) = self.pods.iter_mut().find(|other| other.uid == pod.uid) {
                    pod.deleting = true;
                }
            }
            ActionKind::UpdateStatus {
                status, collision, ..
            } => {
                self.ds.status = *status;
                if let Some(collision) = collision {
                    self.ds.collision_count = Some(collision.count);
                }
            }
            ActionKind::EmitEvent { reason, message, .. } => self.events.push((reason, message.clone())),
            ActionKind::PatchObject {
                object,
                patch,
                events,
                ..
            } => {
                let patch: Value = serde_json::from_slice(patch).expect("a patch is JSON");
                let mut policies = self.ds.rollout.policies.iter_mut();
                let policy = policies
                    .find(|policy| policy.uid == object.uid)
                    .expect("the policy exists");
                assert_eq!(
                    patch["metadata"]["resourceVersion"], policy.resource_version,
                    "it is the version of the snapshot"
                );
                policy.status = serde_json::from_value(patch["status"].clone()).expect("a status");
                let version: u64 = policy.resource_version.parse().expect("a number");
                policy.resource_version = (version + 1).to_string();
                self.events.extend(
                    events
                        .success
                        .iter()
                        .map(|event| (event.reason, event.message.clone())),
                );
            }
            other => panic!("no test needs {other:?}"),
        }
    }

    fn pod_mut(&mut self, uid: &str) -> &mut Pod {
        self.pods
            .iter_mut()
            .find(|pod| pod.uid == uid)
            .expect("the pod exists")
    }

    fn create_revision(&mut self, name: &str, manifest: &[u8]) {
        let object: Value = serde_json::from_slice(manifest).expect("a manifest is JSON");
        self.revisions.push(Revision {
            name: name.to_owned(),
            uid: format!("uid-of-{name}"),
            labels: labels_of(&object),
            controller: Some(self.controller()),
            created: Some(self.now),
            deleting: false,
            number: object["revision"].as_i64().expect("a revision has a number"),
            data: (&object["data"]).into(),
            read_after_name_collision: false,
        });
    }

    fn create_pod(&mut self, name: &str, node: &str) {
        self.created += 1;
        let name = if name.is_empty() {
            format!("generated-{}", self.created)
        } else {
            name.to_owned()
        };
        let hash = self.creating.clone();
        let labels = [
            ("app".to_owned(), "foo".to_owned()),
            (HASH_LABEL.to_owned(), hash),
        ];
        self.pods.push(Pod {
            uid: format!("uid-{}-of-{name}", self.created),
            name,
            labels: labels.into_iter().collect(),
            controller: Some(self.controller().into()),
            target: Target::Bound(node.to_owned()),
            phase: PodPhase::Pending,
            ready: false,
            ready_since: None,
            created: Some(self.now),
            deleting: false,
            has_finalizers: false,
            deletion_cost: 0,
            restarts: 0,
            sidecar_restarts: 0,
        });
    }

    /// Lets the caches show everything: pods that were being deleted are gone, expectations are met.
    pub(crate) fn observe(&mut self) {
        self.pods.retain(|pod| !pod.deleting || pod.has_finalizers);
        self.state.expectations = None;
    }

    /// Makes all pods ready that are not finished.
    pub(crate) fn all_ready(&mut self) {
        let now = self.now;
        for pod in self
            .pods
            .iter_mut()
            .filter(|pod| !pod.ready && !pod.phase.is_terminal())
        {
            (pod.phase, pod.ready, pod.ready_since) = (PodPhase::Running, true, Some(now));
        }
    }

    /// One sync: plans, applies, observes. Returns the number of created and of deleted pods.
    pub(crate) fn sync(&mut self) -> (usize, usize) {
        let plan = self.plan();
        self.apply(&plan);
        self.observe();
        super::counts(&plan)
    }
}

/// Carries out a plan as the protocol says: in which order, and what is skipped after a failure. `attempt` writes an action.
pub(crate) fn outcomes(plan: &Plan, attempt: &mut dyn FnMut(&Action) -> OutcomeResult) -> Vec<Outcome> {
    let (mut outcomes, mut aborted, mut failed) = (Vec::new(), false, false);
    for phase in &plan.phases {
        let mut stopped = aborted || (phase.when == When::AfterSuccess && failed);
        for batch in &phase.batches {
            let mut batch_failed = false;
            for action in &batch.actions {
                let result = if stopped {
                    OutcomeResult::Skipped
                } else {
                    attempt(action)
                };
                batch_failed |= result == OutcomeResult::Failed;
                outcomes.push(outcome(outcomes.len(), action, result));
            }
            stopped |= batch_failed;
            failed |= batch_failed;
            aborted |= batch_failed && phase.kind.aborts_on_failure();
        }
    }
    outcomes
}

fn merged(labels: &Labels, patch: &Value) -> Labels {
    let own = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let patched = labels_of(patch);
    let patched = patched
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    own.chain(patched.collect::<Vec<_>>()).collect()
}

fn outcome(index: usize, action: &Action, result: OutcomeResult) -> Outcome {
    let subject = match &action.kind {
        ActionKind::CreatePod { pod_name, node_name } => Some(Subject::CreatedPod(ExpectedCreate {
            pod_name: pod_name.clone(),
            node_name: node_name.clone(),
        })),
        ActionKind::DeletePod { pod, .. } | ActionKind::EvictPod { pod, .. } => {
            Some(Subject::DeletedPodUid(pod.uid.clone()))
        }
        _ => None,
    };
    let failed = matches!(result, OutcomeResult::Failed | OutcomeResult::NameTaken);
    Outcome {
        action_id: u32::try_from(index + 1).expect("a plan of a test is short"),
        result,
        message: if failed {
            "refused".to_owned()
        } else {
            String::new()
        },
        http_status: if failed { 403 } else { 200 },
        ignored: false,
        subject,
    }
}

/// The phases of a plan, in order.
pub(crate) fn phases(plan: &Plan) -> Vec<PhaseKind> {
    plan.phases.iter().map(|phase| phase.kind).collect()
}
