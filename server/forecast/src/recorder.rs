//! Joins the plans of one virtual time into a step.

use std::{ops::ControlFlow, time::Duration};

use nodewise_planner::plan::{Action, ActionKind, Plan, Resource, Subresource};

use crate::{Bounds, Budget, Change, Counts, End, Forecast, Limit, Step, Verb};

/// The plans at one time before the play gives up: a plan that repeats itself.
const MOST_PLANS_AT_ONCE: usize = 10_000;
/// The plans without any change before the rollout counts as stuck.
const MOST_IDLE_PLANS: usize = 5;

/// Receives the steps.
pub(crate) struct Recorder<'a> {
    bounds: Bounds,
    stop: &'a dyn Fn() -> bool,
    each: &'a mut dyn FnMut(Step) -> ControlFlow<()>,
    current: Option<Step>,
    plans_at_once: usize,
    idle: usize,
    /// Whether changes of pods name their nodes. Those of a ReplicaSet are on any node.
    names_nodes: bool,
    last: Option<Counts>,
    total: Forecast,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        bounds: Bounds,
        stop: &'a dyn Fn() -> bool,
        each: &'a mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Self {
        Self {
            bounds,
            stop,
            each,
            current: None,
            plans_at_once: 0,
            idle: 0,
            names_nodes: true,
            last: None,
            total: Forecast {
                end: End::Cancelled,
                took: Duration::ZERO,
                steps: 0,
                plans: 0,
                counts: Counts::default(),
                worst_unavailable: 0,
                worst_surging: 0,
                failed_pods: 0,
                failing_nodes: Vec::new(),
                budget: Budget::default(),
            },
        }
    }

    /// For pods that the scheduler places.
    pub(crate) fn without_nodes(mut self) -> Self {
        self.names_nodes = false;
        self
    }

    /// Adds a plan at this time. `worst` is the number of nodes or replicas that are unavailable while the plan is applied.
    pub(crate) fn add(&mut self, at: Duration, plan: &Plan, counts: Counts, budget: Budget, worst: u32) {
        self.total.plans += 1;
        self.plans_at_once += 1;
        let step = self.current.get_or_insert(Step {
            at,
            changes: Vec::new(),
            counts,
            worst_unavailable: worst,
            worst_surging: counts.surging,
            budget,
        });
        let phases = plan.phases.iter().flat_map(|phase| &phase.batches);
        let changes = phases.flat_map(|batch| &batch.actions).filter_map(change);
        let names_nodes = self.names_nodes;
        step.changes.extend(changes.map(|mut change| {
            if !names_nodes {
                change.node.clear();
            }
            change
        }));
        step.worst_unavailable = step.worst_unavailable.max(worst);
        step.worst_surging = step.worst_surging.max(counts.surging);
        step.counts = counts;
        step.budget = budget;
    }

    /// Whether another plan may follow at the same time.
    pub(crate) fn may_plan_again(&self) -> bool {
        self.plans_at_once < MOST_PLANS_AT_ONCE
    }

    /// Ends the present time: gives its step to the caller, unless nothing happened. `next` is when the next step may come.
    pub(crate) fn close(&mut self, next: Option<Duration>) -> Option<End> {
        self.plans_at_once = 0;
        if (self.stop)() {
            return Some(End::Cancelled);
        }
        let step = self.current.take()?;
        (self.total.took, self.total.counts) = (step.at, step.counts);
        let is_new = !step.changes.is_empty() || self.last != Some(step.counts);
        self.idle = if is_new { 0 } else { self.idle + 1 };
        if is_new {
            if self.total.steps == self.bounds.steps {
                return Some(End::Bound(Limit::Steps));
            }
            self.last = Some(step.counts);
            self.total.steps += 1;
            self.total.worst_unavailable = self.total.worst_unavailable.max(step.worst_unavailable);
            self.total.worst_surging = self.total.worst_surging.max(step.worst_surging);
            let budget = &mut self.total.budget;
            budget.max_unavailable = budget.max_unavailable.max(step.budget.max_unavailable);
            budget.max_surge = budget.max_surge.max(step.budget.max_surge);
            if (self.each)(step).is_break() {
                return Some(End::Cancelled);
            }
        }
        next.filter(|next| *next > self.bounds.time)
            .map(|_| End::Bound(Limit::Time))
    }

    /// Whether plans asked for time to pass several times, and nothing changed.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle >= MOST_IDLE_PLANS
    }

    pub(crate) fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    pub(crate) fn stop(&self) -> &'a dyn Fn() -> bool {
        self.stop
    }

    /// The result.
    pub(crate) fn finish(mut self, end: End, failed_pods: usize) -> Forecast {
        self.total.end = end;
        self.total.failed_pods = failed_pods;
        self.total
    }
}

/// A write for the step. Statuses and Events are left out.
fn change(action: &Action) -> Option<Change> {
    let (verb, resource, name, node) = match &action.kind {
        ActionKind::CreateRevision { name, .. } => (Verb::Create, "controllerrevisions", name, ""),
        ActionKind::UpdateRevision { revision, .. }
        | ActionKind::AdoptRevision { revision, .. }
        | ActionKind::ReleaseRevision { revision, .. } => {
            (Verb::Patch, "controllerrevisions", &revision.name, "")
        }
        ActionKind::DeleteRevision { revision, .. } => {
            (Verb::Delete, "controllerrevisions", &revision.name, "")
        }
        ActionKind::AdoptPod { pod, .. }
        | ActionKind::ReleasePod { pod, .. }
        | ActionKind::RelabelPod { pod, .. } => (Verb::Patch, "pods", &pod.name, ""),
        ActionKind::CreatePod { pod_name, node_name } => (Verb::Create, "pods", pod_name, node_name.as_str()),
        ActionKind::DeletePod { pod, node_name, .. } | ActionKind::EvictPod { pod, node_name } => {
            (Verb::Delete, "pods", &pod.name, node_name.as_str())
        }
        ActionKind::CreateObject { resource, name, .. } => (Verb::Create, plural(*resource), name, ""),
        ActionKind::PatchObject {
            resource,
            object,
            subresource: Subresource::None,
            ..
        } => (Verb::Patch, plural(*resource), &object.name, ""),
        ActionKind::DeleteObject { resource, object, .. } => {
            (Verb::Delete, plural(*resource), &object.name, "")
        }
        ActionKind::PatchObject { .. }
        | ActionKind::UpdateStatus { .. }
        | ActionKind::EmitEvent { .. }
        | ActionKind::Measure(_) => return None,
    };
    Some(Change {
        verb,
        resource,
        name: name.clone(),
        node: node.to_owned(),
        reason: Some(action.reason),
        message: action.message.clone(),
    })
}

fn plural(resource: Resource) -> &'static str {
    match resource {
        Resource::ReplicaSets => "replicasets",
        Resource::Deployments => "deployments",
        Resource::RolloutPolicies => "rolloutpolicies",
    }
}

/// Whether a plan writes anything but Events.
pub(crate) fn writes(plan: &Plan) -> bool {
    let mut actions = plan
        .phases
        .iter()
        .filter(|phase| phase.when != nodewise_planner::plan::When::AfterFailure)
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions);
    actions.any(|action| !matches!(action.kind, ActionKind::EmitEvent { .. }))
}
