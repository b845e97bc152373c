//! The decisions of the next plan, by node, and the rule that decides about each node.

use std::{collections::BTreeMap, time::Duration};

use super::{
    NodeExplanation, NodeState, PodExplanation, Rule, budget::Budget, sentences, size_limit::SizeLimit,
};
use crate::{
    core::{
        cancellation::Cancellation,
        expectations,
        plan::Reason,
        snapshot::{Scope, Snapshot},
    },
    daemonset::{
        backoff::Backoffs,
        bucket_summary::Detail,
        cluster_view::NodeEntry,
        companion,
        context::PlanContext,
        eligibility::Decision,
        placement::{self, Waiting},
        plan_cache::PlanCache,
        pod_changes::{self, PodChanges},
        pod_classifier::OwnPod,
        rollout::{self, node_content::Content, step::Step},
        slow_start,
        sync::{self, Inactive},
        workload::{DaemonSet, UpdateStrategy},
    },
};

/// State, rule and message of an explanation.
type Verdict = (NodeState, Rule, String);

/// The inputs of explanations.
pub(super) struct Decisions<'a> {
    snapshot: &'a Snapshot<DaemonSet>,
    context: PlanContext<'a>,
    inactive: Option<Inactive>,
    /// The time until outstanding expectations expire; `None` if there are none.
    pending: Option<Duration>,
    /// The creates and deletes, without the limit of the burst.
    changes: PodChanges<'a>,
    /// Position in `changes.creates`, by index of the entry.
    creates: BTreeMap<usize, usize>,
    /// If creates of an earlier plan are outstanding: position among the creates that may be made meanwhile, by index of the entry.
    ahead: BTreeMap<usize, usize>,
    /// Position in `changes.deletes` of the first delete on a node, by node name.
    deletes: BTreeMap<&'a str, usize>,
    waiting: BTreeMap<&'a str, Waiting<'a>>,
    /// The rollout's step. Its changes wait for placement.
    step: Step<'a>,
    budget: Budget<'a>,
}

impl<'a> Decisions<'a> {
    /// Makes the decisions of a plan, even if expectations hold them up. `None` if cancelled.
    pub(super) fn of(snapshot: &'a Snapshot<DaemonSet>, cancellation: Cancellation<'_>) -> Option<Self> {
        let context = PlanContext::of(
            snapshot,
            &mut PlanCache::default(),
            Detail::Everything,
            cancellation,
        )?;
        let backoffs = Backoffs::of(snapshot);
        let placement = placement::decide(snapshot, &context.view, &backoffs);
        let mut step = rollout::step(snapshot, &context);
        let budget = Budget::of(&context.view, &step, &context.strategy);
        let changes = if snapshot.options.scope == Scope::Rollouts {
            let rollout = std::mem::take(&mut step.changes);
            companion::changes(&context.resolution, &placement.changes, rollout)
        } else if placement.changes.is_empty() {
            std::mem::take(&mut step.changes)
        } else {
            placement.changes
        };
        let ranks = changes.deletes.iter().enumerate().rev();
        let expected = snapshot.state.expectations.as_ref();
        let unseen = expected.and_then(|expected| slow_start::unseen(expected, &snapshot.options));
        let ahead =
            unseen.map(|unseen| slow_start::creates_on_other_nodes(changes.clone(), &context.view, &unseen));
        Some(Self {
            inactive: sync::inactive(snapshot),
            pending: expectations::pending(expected, snapshot.now),
            creates: by_entry(&changes),
            ahead: ahead.as_ref().map(by_entry).unwrap_or_default(),
            deletes: ranks.map(|(rank, delete)| (delete.node, rank)).collect(),
            waiting: placement
                .waiting
                .into_iter()
                .map(|waiting| (waiting.node, waiting))
                .collect(),
            budget,
            snapshot,
            context,
            changes,
            step,
        })
    }

    /// Explains all nodes, by name.
    pub(super) fn every_node(
        &self,
        cancellation: Cancellation<'_>,
        each: &mut dyn FnMut(NodeExplanation),
    ) -> Option<()> {
        let mut room = SizeLimit::new();
        for (index, entry) in self.context.view.entries.iter().enumerate() {
            cancellation.tick(index)?;
            let mut explanation = self.explain(index, entry);
            room.fit(entry.node, &mut explanation);
            each(explanation);
        }
        Some(())
    }

    /// Explains one node, which may be unknown.
    pub(super) fn node(&self, name: &str) -> NodeExplanation {
        let entries = &self.context.view.entries;
        match entries.binary_search_by(|entry| entry.name.cmp(name)) {
            Ok(index) => self.explain(index, &entries[index]),
            Err(_) => NodeExplanation {
                node_name: name.to_owned(),
                state: NodeState::MustNotRun,
                rule: Rule::NodeMissing,
                message: format!("{name} does not exist, and no pod is on it or meant for it"),
                pods: Vec::new(),
                should_run: false,
                should_keep: false,
                details: Vec::new(),
                queue_position: None,
                rollout_stage: String::new(),
                rollout_exempt: false,
            },
        }
    }

    fn explain(&self, index: usize, entry: &NodeEntry<'a>) -> NodeExplanation {
        let mut pods = self.context.view.all_pods(entry);
        let decision = entry.node.map(|node| self.context.eligibility.decide(node));
        let (state, rule, message) = match (&decision, self.inactive) {
            (_, Some(inactive)) => {
                // With an empty selector the workload owns no pods.
                if inactive != Inactive::Deleting {
                    pods = &[];
                }
                inactive_workload(inactive)
            }
            (None, None) => self.missing_node(entry),
            (Some(decision), None) if decision.fit.run => self.eligible_node(index, entry),
            (Some(decision), None) => self.ineligible_node(entry, decision),
        };
        NodeExplanation {
            node_name: entry.name.to_owned(),
            state,
            rule,
            message,
            pods: pods.iter().map(explain_pod).collect(),
            should_run: entry.fit.run,
            should_keep: entry.fit.keep,
            details: decision.map(|decision| decision.details).unwrap_or_default(),
            queue_position: match (state, rule) {
                (NodeState::Waiting, Rule::MaxUnavailable | Rule::MaxSurge) => {
                    self.budget.position(entry.name)
                }
                _ => None,
            },
            rollout_stage: self
                .context
                .governed
                .as_ref()
                .and_then(|policy| policy.stage_of(index))
                .unwrap_or_default()
                .to_owned(),
            rollout_exempt: self
                .context
                .governed
                .as_ref()
                .is_some_and(|policy| policy.node(index).is_exempt),
        }
    }

    fn missing_node(&self, entry: &NodeEntry<'a>) -> Verdict {
        let message = match self.deletes.get(entry.name) {
            Some(rank) => pod_changes::delete_message(&self.changes.deletes[*rank], self.changes.budget),
            None => format!(
                "{} does not exist; its pods are left to the pod garbage collector",
                entry.name
            ),
        };
        (NodeState::MustNotRun, Rule::NodeMissing, message)
    }

    fn ineligible_node(&self, entry: &NodeEntry<'a>, decision: &Decision) -> Verdict {
        let pods = self.context.view.pods(entry);
        let why = &decision.message;
        let message = match (self.deletes.get(entry.name), pods) {
            (_, []) => why.clone(),
            (Some(rank), _) => {
                let delete = &self.changes.deletes[*rank];
                format!(
                    "{why}; {}",
                    pod_changes::delete_message(delete, self.changes.budget)
                )
            }
            (None, [first, ..]) if pods.iter().all(|pod| pod.pod.deleting()) => {
                format!("{why}; pod {} is being deleted", first.pod.name())
            }
            (None, [first, ..]) if entry.fit.keep => {
                format!("no new pods ({why}); the present pod {} stays", first.pod.name())
            }
            (None, [first, ..]) => format!("{why}; pod {} is deleted later", first.pod.name()),
        };
        (NodeState::MustNotRun, decision.constraint.into(), message)
    }

    fn eligible_node(&self, index: usize, entry: &NodeEntry<'a>) -> Verdict {
        let Some((rule, message, mut beyond)) = self.change(index, entry) else {
            return self.settled_node(index, entry);
        };
        let missing = self.context.view.pods(entry).is_empty();
        let waits = if missing {
            NodeState::Missing
        } else {
            NodeState::Waiting
        };
        match (self.pending, self.ahead.get(&index)) {
            (Some(left), None) => {
                return (
                    waits,
                    Rule::Expectations,
                    sentences::expectations(entry, self.snapshot, left, &message),
                );
            }
            (Some(_), Some(rank)) => beyond = *rank >= self.snapshot.options.burst,
            (None, _) => {}
        }
        if beyond {
            let burst = self.snapshot.options.burst;
            return (
                waits,
                Rule::Burst,
                format!("{message}; more than {burst} at once are not allowed"),
            );
        }
        (
            if missing {
                NodeState::Missing
            } else {
                NodeState::BeingReplaced
            },
            rule,
            message,
        )
    }

    /// The create or delete on a node: rule, message, and whether it exceeds the burst. If there are both, one within the burst
    /// comes first, and the create before the delete.
    fn change(&self, index: usize, entry: &NodeEntry<'a>) -> Option<(Rule, String, bool)> {
        let burst = self.snapshot.options.burst;
        let create = self
            .creates
            .get(&index)
            .map(|rank| (*rank >= burst, self.creation(*rank, entry)));
        let delete = self
            .deletes
            .get(entry.name)
            .map(|rank| (*rank >= burst, self.deletion(*rank)));
        let first = create.into_iter().chain(delete).min_by_key(|(beyond, _)| *beyond);
        first.map(|(beyond, (rule, message))| (rule, message, beyond))
    }

    fn creation(&self, rank: usize, entry: &NodeEntry<'a>) -> (Rule, String) {
        let pods = self.context.view.pods(entry);
        let create = &self.changes.creates[rank];
        let rule = match create.reason {
            Reason::NodeWithoutPod => Rule::Eligible,
            Reason::NodeWithoutLivePod if pods.iter().any(|pod| pod.pod.deleting()) => Rule::PodDeleting,
            Reason::NodeWithoutLivePod => Rule::PodFinished,
            _ => Rule::Outdated,
        };
        (
            rule,
            pod_changes::create_message(create, entry, pods, self.changes.budget),
        )
    }

    fn deletion(&self, rank: usize) -> (Rule, String) {
        let delete = &self.changes.deletes[rank];
        let rule = match delete.reason {
            Reason::PodFailed | Reason::PodSucceeded => Rule::PodFinished,
            Reason::ExcessPod => Rule::ExcessPod,
            _ => Rule::Outdated,
        };
        (rule, pod_changes::delete_message(delete, self.changes.budget))
    }

    /// Explains a node that should run a pod and on which nothing is created or deleted now.
    fn settled_node(&self, index: usize, entry: &NodeEntry<'a>) -> Verdict {
        let pods = self.context.view.pods(entry);
        if let Some(waiting) = self.waiting.get(entry.name) {
            return (
                NodeState::Waiting,
                Rule::FailedPodBackoff,
                sentences::backoff(waiting),
            );
        }
        match Content::of(pods) {
            Content::Nothing => match pods.first() {
                Some(first) => {
                    let message = format!(
                        "pod {} is being deleted; its replacement comes after it",
                        first.pod.name()
                    );
                    (NodeState::BeingReplaced, Rule::PodDeleting, message)
                }
                None => (
                    NodeState::Missing,
                    Rule::Eligible,
                    format!("{} has no pod of this workload", entry.name),
                ),
            },
            Content::Both { new, old } => {
                let message = format!("pod {} goes when {} is available", old.pod.name(), new.pod.name());
                let state = if self.budget.is_used_up() {
                    NodeState::Blocking
                } else {
                    NodeState::BeingReplaced
                };
                (state, Rule::NewPodNotAvailable, message)
            }
            Content::Old(old) => self.outdated_node(index, entry, old),
            Content::New(new) => self.updated_node(new),
            Content::Several => (
                NodeState::Waiting,
                Rule::ExcessPod,
                format!("{} has several pods of a kind", entry.name),
            ),
        }
    }

    /// Explains a pod of the current template.
    fn updated_node(&self, new: &OwnPod<'a>) -> Verdict {
        let message = sentences::runs(new);
        if new.available {
            return (NodeState::Runs, Rule::Eligible, message);
        }
        // With surge only nodes with two pods use the budget.
        let state = if self.budget.is_used_up() && self.step.limits.max_surge == 0 {
            NodeState::Blocking
        } else {
            NodeState::NotAvailable
        };
        (state, Rule::NewPodNotAvailable, message)
    }

    /// Explains an old pod that is not replaced now.
    fn outdated_node(&self, index: usize, entry: &NodeEntry<'a>, old: &OwnPod<'a>) -> Verdict {
        let pod = &old.pod.name();
        let waiting = |rule, why: &str| (NodeState::Waiting, rule, format!("pod {pod} is outdated; {why}"));
        if *self.context.strategy == UpdateStrategy::OnDelete {
            return waiting(
                Rule::OnDelete,
                "with OnDelete it is replaced when someone deletes it",
            );
        }
        if self.pending.is_some() {
            return waiting(
                Rule::Expectations,
                "creates or deletes of an earlier plan have not been seen yet",
            );
        }
        if let Some(error) = &self.step.error {
            return waiting(Rule::Outdated, error);
        }
        let held = self.context.governed.as_ref();
        if let Some(why) =
            held.and_then(|policy| policy.why_held(index, entry, old, &self.context.resolution))
        {
            return waiting(Rule::RolloutPolicy, &why);
        }
        let planned =
            self.step
                .changes
                .deletes
                .iter()
                .any(|delete| delete.pod.uid() == old.pod.uid())
                || self.step.changes.creates.iter().any(|create| {
                    Some(self.context.view.entries[create.entry].name) == old.pod.target_node()
                });
        if planned {
            return waiting(
                Rule::PlacementFirst,
                "missing, excess and finished pods come first",
            );
        }
        let rule = if self.step.limits.max_surge == 0 {
            Rule::MaxUnavailable
        } else {
            Rule::MaxSurge
        };
        waiting(rule, &self.budget.sentence)
    }
}

/// The position of each create, by index of the entry.
fn by_entry(changes: &PodChanges<'_>) -> BTreeMap<usize, usize> {
    let creates = changes.creates.iter().enumerate();
    creates.map(|(rank, create)| (create.entry, rank)).collect()
}

fn inactive_workload(inactive: Inactive) -> Verdict {
    match inactive {
        Inactive::Deleting => {
            let message = "the workload is being deleted; its pods are left to the garbage collector";
            (NodeState::MustNotRun, Rule::WorkloadInactive, message.to_owned())
        }
        Inactive::SelectingAll { .. } => {
            let message = "the workload's selector is empty, so nothing is decided until that is mended";
            (NodeState::Waiting, Rule::WorkloadInactive, message.to_owned())
        }
    }
}

fn explain_pod(own: &OwnPod<'_>) -> PodExplanation {
    PodExplanation {
        pod_name: own.pod.name().to_owned(),
        updated: own.current(),
        ready: own.pod.ready(),
        available: own.available,
        deleting: own.pod.deleting(),
        phase: own.pod.phase(),
    }
}
