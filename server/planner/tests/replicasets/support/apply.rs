//! Applies plans to the world, as the protocol says.

use nodewise_planner::{
    plan::{Action, ActionKind, Condition, PhaseKind, Plan, When},
    report::{self, Outcome, OutcomeResult, Subject},
    snapshot::{ExpectedCreate, PodPhase},
};
use serde_json::Value;

use super::World;

impl World {
    /// Applies a whole plan. New pods are pending, deleted pods are being deleted. Expectations stay.
    pub(crate) fn apply(&mut self, plan: &Plan) -> Vec<Outcome> {
        self.apply_with(plan, &mut |_| OutcomeResult::Succeeded)
    }

    /// Applies a plan and reports. `fate` decides the result of each action.
    pub(crate) fn apply_with(
        &mut self,
        plan: &Plan,
        fate: &mut dyn FnMut(&Action) -> OutcomeResult,
    ) -> Vec<Outcome> {
        self.state = plan.state.clone();
        let (mut outcomes, mut aborted, mut failed) = (Vec::new(), false, false);
        for phase in &plan.phases {
            let mut stopped = aborted
                || match phase.when {
                    When::Always => false,
                    When::AfterSuccess => failed,
                    When::AfterFailure => !failed,
                };
            // Nothing failed, so a phase for failures is no reason to retry.
            let is_needless = phase.when == When::AfterFailure && !failed;
            for batch in &phase.batches {
                let mut batch_failed = false;
                for action in &batch.actions {
                    let result = if stopped {
                        OutcomeResult::Skipped
                    } else {
                        self.attempt(action, fate(action))
                    };
                    batch_failed |= result == OutcomeResult::Failed;
                    outcomes.push(Outcome {
                        ignored: is_needless,
                        ..outcome(outcomes.len(), action, result)
                    });
                }
                stopped |= batch_failed;
                failed |= batch_failed;
                aborted |= batch_failed && phase.kind.aborts_on_failure();
            }
        }
        self.state = report::fold(self.state.clone(), &outcomes, &self.options);
        outcomes
    }

    fn attempt(&mut self, action: &Action, fate: OutcomeResult) -> OutcomeResult {
        if fate != OutcomeResult::Succeeded {
            return fate;
        }
        match &action.kind {
            ActionKind::AdoptPod { pod, .. } | ActionKind::ReleasePod { pod, .. } => {
                let adopts = matches!(action.kind, ActionKind::AdoptPod { .. });
                let controller = adopts.then(|| self.controller().into());
                let mut pods = self.pods.iter_mut();
                let pod = pods.find(|other| other.uid == pod.uid).expect("the pod exists");
                pod.controller = controller;
            }
            ActionKind::CreatePod { pod_name, .. } => {
                if let Some(pod) = self.pods.iter().find(|pod| pod.name == *pod_name) {
                    let is_ours = pod.controller.as_deref() == Some(&self.controller());
                    return if is_ours {
                        OutcomeResult::AlreadyExists
                    } else {
                        OutcomeResult::NameTaken
                    };
                }
                self.create(pod_name);
            }
            ActionKind::DeletePod { pod, .. } => {
                if let Some(pod) = self.pods.iter_mut().find(|other| other.uid == pod.uid) {
                    pod.deleting = true;
                }
            }
            ActionKind::PatchObject {
                patch,
                failure_pointer,
                ..
            } => self.patch(patch, failure_pointer),
            other => panic!("no test needs {other:?}"),
        }
        OutcomeResult::Succeeded
    }

    /// Creates a pending pod.
    pub(crate) fn create(&mut self, name: &str) {
        self.created += 1;
        let created = self.created;
        let name = if name.is_empty() {
            format!("generated-{created}")
        } else {
            name.to_owned()
        };
        let now = self.now;
        let pod = self.pod(&format!("{name}@"));
        pod.uid = format!("uid-{created}-of-{name}");
        (pod.phase, pod.created) = (PodPhase::Pending, Some(now));
    }

    fn patch(&mut self, patch: &[u8], failure_pointer: &str) {
        let mut patch: Value = serde_json::from_slice(patch).expect("a patch is JSON");
        assert_eq!(patch["metadata"]["uid"], *self.rs.uid);
        if !failure_pointer.is_empty() {
            let text = patch
                .pointer_mut(failure_pointer)
                .expect("the pointer leads somewhere");
            let message = format!("{}refused", text.as_str().expect("to a string"));
            *text = message.into();
        }
        let written = &patch["status"];
        let number = |field: &str| i32::try_from(written[field].as_i64().expect(field)).expect(field);
        let status = &mut self.rs.status;
        status.replicas = number("replicas");
        status.fully_labeled_replicas = number("fullyLabeledReplicas");
        status.ready_replicas = number("readyReplicas");
        status.available_replicas = number("availableReplicas");
        status.observed_generation = number("observedGeneration").into();
        status.terminating_replicas =
            (!written["terminatingReplicas"].is_null()).then(|| number("terminatingReplicas"));
        let conditions = written["conditions"].as_array().expect("a list").iter();
        status.conditions = conditions.map(served_condition).collect();
    }

    /// Lets the caches show everything: pods that were being deleted are gone, expectations are met.
    pub(crate) fn observe(&mut self) {
        self.pods.retain(|pod| !pod.deleting);
        self.state.expectations = None;
    }

    /// Makes all pods ready that are not finished.
    pub(crate) fn all_ready(&mut self) {
        let now = self.now;
        for pod in &mut self.pods {
            if !pod.phase.is_terminal() {
                (pod.phase, pod.ready, pod.ready_since) = (PodPhase::Running, true, Some(now));
            }
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

fn served_condition(served: &Value) -> Condition {
    let text = |field: &str| served[field].as_str().unwrap_or_default().to_owned();
    Condition {
        r#type: text("type"),
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        last_transition_time: text("lastTransitionTime").parse().ok(),
        last_update_time: None,
        served: Some(served.into()),
    }
}

fn outcome(index: usize, action: &Action, result: OutcomeResult) -> Outcome {
    let subject = match &action.kind {
        ActionKind::CreatePod { pod_name, node_name } => Some(Subject::CreatedPod(ExpectedCreate {
            pod_name: pod_name.clone(),
            node_name: node_name.clone(),
        })),
        ActionKind::DeletePod { pod, .. } => Some(Subject::DeletedPodUid(pod.uid.clone())),
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

/// A fate that lets so many creates succeed, and then all fail.
pub(crate) fn creates_until(mut left: usize) -> impl FnMut(&Action) -> OutcomeResult {
    move |action| {
        if !matches!(action.kind, ActionKind::CreatePod { .. }) {
            return OutcomeResult::Succeeded;
        }
        match left.checked_sub(1) {
            Some(less) => {
                left = less;
                OutcomeResult::Succeeded
            }
            None => OutcomeResult::Failed,
        }
    }
}

/// A fate by which all actions of a phase have this result.
pub(crate) fn all_of(
    plan: &Plan,
    kind: PhaseKind,
    result: OutcomeResult,
) -> impl FnMut(&Action) -> OutcomeResult {
    let concerned: Vec<Action> = super::actions(plan, kind).into_iter().cloned().collect();
    move |action| {
        if concerned.contains(action) {
            result
        } else {
            OutcomeResult::Succeeded
        }
    }
}
