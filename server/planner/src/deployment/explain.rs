//! Explains the state of a Deployment, and what the next plan does with each of its ReplicaSets.

mod sentences;

use crate::{
    core::{
        cancellation::Cancellation,
        plan::{Action, ActionKind},
        snapshot::Snapshot,
        staleness,
    },
    deployment::{
        plan_builder::PlanBuilder,
        revision, sync,
        workload::{Deployment, Set},
    },
};
use sentences::Sentences;

/// The explanation of a Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// One sentence on the state of the Deployment.
    pub message: String,
    /// Further sentences: limits, counts and times.
    pub details: Vec<String>,
    /// The ReplicaSets, the new one first and then the youngest first.
    pub sets: Vec<SetExplanation>,
}

/// The explanation of one ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetExplanation {
    /// The name.
    pub name: String,
    /// The revision; `None` if its annotation is absent or no number.
    pub revision: Option<i64>,
    /// Whether it has the Deployment's template.
    pub is_new: bool,
    /// spec.replicas.
    pub replicas: i32,
    /// Its pods.
    pub pods: i32,
    /// Its ready pods.
    pub ready: i32,
    /// Its pods that have been ready for minReadySeconds.
    pub available: i32,
    /// What the next plan does with it, or what it waits for.
    pub message: String,
}

/// Explains a Deployment.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn explain(snapshot: &Snapshot<Deployment>) -> Explanation {
    explain_until(snapshot, &|| false).expect("nothing asks to stop")
}

/// Like [`explain()`], but returns `None` soon after `stop` returns true.
#[must_use]
pub fn explain_until(snapshot: &Snapshot<Deployment>, stop: &dyn Fn() -> bool) -> Option<Explanation> {
    if let Some(behind) = staleness::stale(&snapshot.own_writes) {
        return Some(only(format!("Nothing is planned: {behind}.")));
    }
    if sync::is_selecting_all(snapshot).is_some() {
        return Some(only("Nothing is planned: the selector is empty.".to_owned()));
    }
    let (builder, ending) = sync::decide(snapshot, Cancellation::new(stop))?;
    let sentences = Sentences::new(&builder, &ending);
    let mut sets: Vec<&Set> = builder.all_sets().collect();
    sets.reverse();
    Some(Explanation {
        message: sentences.state(),
        details: sentences.details(),
        sets: sets
            .into_iter()
            .map(|set| explain_set(&builder, &sentences, set))
            .collect(),
    })
}

fn only(message: String) -> Explanation {
    Explanation {
        message,
        ..Explanation::default()
    }
}

fn explain_set(builder: &PlanBuilder<'_>, sentences: &Sentences<'_, '_>, set: &Set) -> SetExplanation {
    let is_new = builder
        .new
        .as_ref()
        .and_then(|new| new.set)
        .is_some_and(|new| std::ptr::eq(new, set));
    let write = builder
        .sets
        .message(set)
        .or_else(|| builder.old_sets.message(set))
        .or_else(|| deleted(&builder.cleanup, set));
    let mut message = write.unwrap_or_else(|| {
        if is_new {
            sentences.new_set(set)
        } else {
            sentences.old_set(set)
        }
    });
    if set.controller.is_none() {
        message.push_str("; the Deployment adopts it");
    }
    SetExplanation {
        name: set.name.clone(),
        revision: revision::of(set).filter(|revision| *revision != 0),
        is_new,
        replicas: set.replicas,
        pods: set.status.replicas,
        ready: set.status.ready_replicas,
        available: set.status.available_replicas,
        message,
    }
}

/// Why the plan deletes a set; `None` if it does not.
fn deleted(cleanup: &[Action], set: &Set) -> Option<String> {
    let deletes = |action: &&Action| matches!(&action.kind, ActionKind::DeleteObject { object, .. } if object.uid == set.uid);
    let action = cleanup.iter().find(deletes)?;
    Some(format!("{}, so it is deleted", action.message))
}
