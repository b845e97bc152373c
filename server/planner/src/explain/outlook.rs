//! What the next plan would do, looked up by node, and the rule that decides about each.

use std::{collections::BTreeMap, time::Duration};

use super::{NodeExplanation, NodeState, PodExplanation, Rule, room::Room, sentences};
use crate::{
    backoff::Backoffs,
    companion,
    eligibility::Decision,
    expectations,
    memory::Memory,
    moves::{self, Moves},
    patience::Patience,
    picture::Place,
    placement::{self, Waiting},
    plan::Reason,
    pods::OwnPod,
    ramp,
    rollout::{self, Content, Step},
    sketch::Detail,
    snapshot::{Scope, Snapshot, UpdateStrategy},
    sync::{self, Inactive, Survey},
};

/// The answer for one node, before its constraints and pods are listed.
type Verdict = (NodeState, Rule, String);

/// Everything that an explanation is read from.
pub(super) struct Outlook<'a> {
    snapshot: &'a Snapshot,
    survey: Survey<'a>,
    inactive: Option<Inactive>,
    /// How long expectations may hold everything up.
    pending: Option<Duration>,
    /// What is to be done, not cut at the burst.
    moves: Moves<'a>,
    /// Rank in `moves.creates`, by place.
    creates: BTreeMap<usize, usize>,
    /// While creates are not seen: rank among those that are made meanwhile, by place.
    ahead: BTreeMap<usize, usize>,
    /// Rank in `moves.deletes` of the first delete on a node.
    deletes: BTreeMap<&'a str, usize>,
    waiting: BTreeMap<&'a str, Waiting<'a>>,
    /// The rollout's step; its moves are those that wait for placement.
    step: Step<'a>,
    budget: String,
}

impl<'a> Outlook<'a> {
    /// Decides as a plan would, whatever stands in the way of acting on it.
    pub(super) fn of(snapshot: &'a Snapshot, patience: Patience<'_>) -> Option<Self> {
        let ds = &snapshot.daemon_set;
        let survey = Survey::of(snapshot, &mut Memory::default(), Detail::Everything, patience)?;
        let backoffs = Backoffs::of(snapshot);
        let placement = placement::place(snapshot, &survey.picture, &backoffs);
        let mut step = rollout::step(ds, &survey.picture, &snapshot.options);
        let moves = if snapshot.options.scope == Scope::Rollouts {
            let rollout = std::mem::take(&mut step.moves);
            companion::moves(&survey.resolution, &placement.moves, rollout)
        } else if placement.moves.is_empty() {
            std::mem::take(&mut step.moves)
        } else {
            placement.moves
        };
        let ranks = moves.deletes.iter().enumerate().rev();
        let expected = snapshot.state.expectations.as_ref();
        let unseen = expected.and_then(|expected| ramp::unseen(expected, &snapshot.options));
        let ahead = unseen.map(|unseen| ramp::ahead(moves.clone(), &survey.picture, &unseen));
        Some(Self {
            inactive: sync::inactive(snapshot),
            pending: expectations::pending(expected, snapshot.now),
            creates: by_place(&moves),
            ahead: ahead.as_ref().map(by_place).unwrap_or_default(),
            deletes: ranks.map(|(rank, delete)| (delete.node, rank)).collect(),
            waiting: placement
                .waiting
                .into_iter()
                .map(|waiting| (waiting.node, waiting))
                .collect(),
            budget: sentences::budget(&survey.picture, &step.limits),
            snapshot,
            survey,
            moves,
            step,
        })
    }

    /// Every node, by name.
    pub(super) fn every_node(
        &self,
        patience: Patience<'_>,
        each: &mut dyn FnMut(NodeExplanation),
    ) -> Option<()> {
        let mut room = Room::new();
        for (index, place) in self.survey.picture.places.iter().enumerate() {
            patience.tick(index)?;
            let mut explanation = self.explain(index, place);
            room.fit(place.node, &mut explanation);
            each(explanation);
        }
        Some(())
    }

    /// One node, known or not.
    pub(super) fn node(&self, name: &str) -> NodeExplanation {
        let places = &self.survey.picture.places;
        match places.binary_search_by(|place| place.name.cmp(name)) {
            Ok(index) => self.explain(index, &places[index]),
            Err(_) => NodeExplanation {
                node_name: name.to_owned(),
                state: NodeState::MustNotRun,
                rule: Rule::NodeMissing,
                message: format!("{name} does not exist, and no pod is on it or meant for it"),
                pods: Vec::new(),
                should_run: false,
                should_keep: false,
                details: Vec::new(),
            },
        }
    }

    fn explain(&self, index: usize, place: &Place<'a>) -> NodeExplanation {
        let mut pods = self.survey.picture.all_pods(place);
        let decision = place.node.map(|node| self.survey.eligibility.decide(node));
        let (state, rule, message) = match (&decision, self.inactive) {
            (_, Some(inactive)) => {
                // What an empty selector selects is not the workload's.
                if inactive != Inactive::Deleting {
                    pods = &[];
                }
                inactive_workload(inactive)
            }
            (None, None) => self.missing_node(place),
            (Some(decision), None) if decision.fit.run => self.eligible_node(index, place),
            (Some(decision), None) => self.ineligible_node(place, decision),
        };
        NodeExplanation {
            node_name: place.name.to_owned(),
            state,
            rule,
            message,
            pods: pods.iter().map(explain_pod).collect(),
            should_run: place.fit.run,
            should_keep: place.fit.keep,
            details: decision.map(|decision| decision.details).unwrap_or_default(),
        }
    }

    fn missing_node(&self, place: &Place<'a>) -> Verdict {
        let message = match self.deletes.get(place.name) {
            Some(rank) => moves::delete_message(&self.moves.deletes[*rank], self.moves.budget),
            None => format!(
                "{} does not exist; its pods are left to the pod garbage collector",
                place.name
            ),
        };
        (NodeState::MustNotRun, Rule::NodeMissing, message)
    }

    fn ineligible_node(&self, place: &Place<'a>, decision: &Decision) -> Verdict {
        let pods = self.survey.picture.pods(place);
        let rest = match (self.deletes.get(place.name), pods) {
            (_, []) => String::new(),
            (Some(rank), _) => {
                format!(
                    "; {}",
                    moves::delete_message(&self.moves.deletes[*rank], self.moves.budget)
                )
            }
            (None, [first, ..]) if pods.iter().all(|pod| pod.pod.deleting) => {
                format!("; pod {} is being deleted", first.pod.name)
            }
            (None, [first, ..]) => format!("; pod {}, which is there already, may stay", first.pod.name),
        };
        (
            NodeState::MustNotRun,
            decision.constraint.into(),
            format!("{}{rest}", decision.message),
        )
    }

    fn eligible_node(&self, index: usize, place: &Place<'a>) -> Verdict {
        let Some((rule, message, mut beyond)) = self.change(index, place) else {
            return self.settled_node(place);
        };
        let missing = self.survey.picture.pods(place).is_empty();
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
                    sentences::expectations(place, self.snapshot, left, &message),
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

    /// What is to be created or deleted on a node: the rule, why, and whether it is beyond the burst. Where a node gets a pod
    /// and loses another, what the next plan does counts, and the create before the delete.
    fn change(&self, index: usize, place: &Place<'a>) -> Option<(Rule, String, bool)> {
        let burst = self.snapshot.options.burst;
        let create = self
            .creates
            .get(&index)
            .map(|rank| (*rank >= burst, self.creation(*rank, place)));
        let delete = self
            .deletes
            .get(place.name)
            .map(|rank| (*rank >= burst, self.deletion(*rank)));
        let first = create.into_iter().chain(delete).min_by_key(|(beyond, _)| *beyond);
        first.map(|(beyond, (rule, message))| (rule, message, beyond))
    }

    fn creation(&self, rank: usize, place: &Place<'a>) -> (Rule, String) {
        let pods = self.survey.picture.pods(place);
        let create = &self.moves.creates[rank];
        let rule = match create.reason {
            Reason::NodeWithoutPod => Rule::Eligible,
            Reason::NodeWithoutLivePod if pods.iter().any(|pod| pod.pod.deleting) => Rule::PodDeleting,
            Reason::NodeWithoutLivePod => Rule::PodFinished,
            _ => Rule::Outdated,
        };
        (
            rule,
            moves::create_message(create, place, pods, self.moves.budget),
        )
    }

    fn deletion(&self, rank: usize) -> (Rule, String) {
        let delete = &self.moves.deletes[rank];
        let rule = match delete.reason {
            Reason::PodFailed | Reason::PodSucceeded => Rule::PodFinished,
            Reason::ExcessPod => Rule::ExcessPod,
            _ => Rule::Outdated,
        };
        (rule, moves::delete_message(delete, self.moves.budget))
    }

    /// A node that should run a pod and where nothing is to be done now.
    fn settled_node(&self, place: &Place<'a>) -> Verdict {
        let pods = self.survey.picture.pods(place);
        if let Some(waiting) = self.waiting.get(place.name) {
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
                        first.pod.name
                    );
                    (NodeState::BeingReplaced, Rule::PodDeleting, message)
                }
                None => (
                    NodeState::Missing,
                    Rule::Eligible,
                    format!("{} has no pod of this workload", place.name),
                ),
            },
            Content::Both { new, old } => {
                let message = format!("pod {} goes when {} is available", old.pod.name, new.pod.name);
                (NodeState::BeingReplaced, Rule::NewPodNotAvailable, message)
            }
            Content::Old(old) => self.outdated_node(old),
            Content::New(new) => (NodeState::Runs, Rule::Eligible, sentences::runs(new)),
            Content::Crowd => (
                NodeState::Waiting,
                Rule::ExcessPod,
                format!("{} has several pods of a kind", place.name),
            ),
        }
    }

    /// An old pod that nothing replaces now.
    fn outdated_node(&self, old: &OwnPod<'a>) -> Verdict {
        let pod = &old.pod.name;
        let waiting = |rule, why: &str| (NodeState::Waiting, rule, format!("pod {pod} is outdated; {why}"));
        if *companion::strategy(&self.snapshot.daemon_set, &self.snapshot.options) == UpdateStrategy::OnDelete
        {
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
        let planned =
            self.step
                .moves
                .deletes
                .iter()
                .any(|delete| delete.pod.uid == old.pod.uid)
                || self.step.moves.creates.iter().any(|create| {
                    Some(self.survey.picture.places[create.place].name) == old.pod.target.node()
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
        waiting(rule, &self.budget)
    }
}

/// The rank of each create, by place.
fn by_place(moves: &Moves<'_>) -> BTreeMap<usize, usize> {
    let creates = moves.creates.iter().enumerate();
    creates.map(|(rank, create)| (create.place, rank)).collect()
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
        pod_name: own.pod.name.clone(),
        updated: own.updated(),
        ready: own.pod.ready,
        available: own.available,
        deleting: own.pod.deleting,
        phase: own.pod.phase,
    }
}
