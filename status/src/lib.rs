//! How far the rollout of a workload is, and what holds it up.
//!
//! [`of`] computes a [`WorkloadStatus`](nodewise_proto::v1::WorkloadStatus) from the workload, its plan, its explanation and facts about
//! its pods and nodes. It reads no cluster and no clock, so every view that uses it shows the same. The facts are read from objects as
//! the apiserver serves them. A field that cannot be read says nothing; the planner refuses what plans need.

mod causes;
mod controller;
mod counts;
mod daemon_set;
mod facts;
mod inputs;
mod message;
mod next;
mod policy;
mod progress;
mod replicas;
mod span;
mod units;
mod waits;
mod writers;

pub use controller::{Controlled, UnreadyUnit, of_controller};
pub use facts::{NodeFacts, PodFacts, PolicyFacts, TemplateFacts, WorkloadFacts};
pub use inputs::Inputs;
use progress::Situation;
pub use progress::changes_pods;
pub use span::span;
pub use units::{CREATE_REFUSED, DELETION_STUCK, lacks_a_pod};
pub use writers::several_writers;

use nodewise_projection::timestamp;
use nodewise_proto::{v1, workload::DAEMON_SET};

/// The status of a workload.
#[must_use]
pub fn of(inputs: &Inputs<'_>) -> v1::WorkloadStatus {
    let workload = inputs.workload;
    let refusal = units::refusal(inputs);
    let view = if workload.kind == DAEMON_SET {
        daemon_set::view(inputs, refusal.as_ref())
    } else {
        replicas::view(inputs, refusal.as_ref())
    };
    let counts = counts::of(&view.units, view.desired);
    let mut causes = causes::of(&view.units, refusal.as_ref());
    let policy = policy::of(inputs, &view.nodes);
    let state = progress::state(&Situation::of(inputs, &view, refusal.as_ref()), &counts);
    let state = policy
        .as_ref()
        .map_or(state, |policy| policy::state(policy, state));
    causes.extend(policy.as_ref().and_then(policy::cause));
    let pace = progress::pace(inputs, &view, &counts, state);
    let mut status = v1::WorkloadStatus {
        kind: workload.kind.clone(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        observed_at: Some(timestamp(inputs.now)),
        state: state.into(),
        message: String::new(),
        strategy: Some(view.strategy),
        revisions: view.revisions,
        counts: Some(counts),
        started_at: pace.started_at.map(timestamp),
        stuck_since: causes::stuck_since(state, &causes),
        ready_per_minute: pace.ready_per_minute,
        time_left: pace.time_left,
        causes,
        nodes: view.nodes,
        pods: view.pods,
        last_refusal: refusal,
        writers: workload.writers.clone(),
        next: next::of(inputs.plan),
        mode: workload.mode.into(),
        second_owner: several_writers(&workload.writers, inputs.now)
            .into_iter()
            .collect(),
        policy,
    };
    status.message = message::of(&status, workload.is_paused, inputs.now);
    status
}
