//! The decision about a rollout: which nodes are admitted, whether running pods may be replaced, and the next status.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    core::plan::EventType,
    rollout::{
        decision::{Admitted, Decision, NodeDecision, Observed, RolloutEvent, count},
        hold::{self, MOST_NAMED, nodes_in_words},
        nodes::{Health, NodeFacts},
        policy::{Disruption, InMaintenance, OnFailure, Policy, Spec, Unadmitted},
        requests::digest,
        stage::{self, Gate},
        stages::{MOST_WAVES, MOST_WAVES_IN_ALL, Waves, scaled},
        status::{Rejection, Resumed, RevisionRef, State, TargetStatus},
    },
};

/// What a rollout works towards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Admitted nodes get the update revision.
    Forward,
    /// Nodes with the update revision go back to this one (L-28).
    Back(RevisionRef),
}

/// The workload whose rollout is decided.
#[derive(Debug, Clone)]
pub(crate) struct Target<'a> {
    /// metadata.name.
    pub(crate) name: &'a str,
    /// metadata.uid.
    pub(crate) uid: &'a str,
    /// The revision of the present template.
    pub(crate) update: RevisionRef,
    /// The other revisions that can be created from.
    pub(crate) others: Vec<RevisionRef>,
    /// Whether another controller creates the pods: then only the update revision can be created (L-38).
    pub(crate) beside: bool,
}

impl Target<'_> {
    /// The revision with this hash, if it can be created from.
    fn revision(&self, hash: &str) -> Option<&RevisionRef> {
        let mut all = std::iter::once(&self.update).chain(&self.others);
        all.find(|revision| revision.hash == hash)
    }

    /// Whether nodes that are not admitted can get this stable revision.
    fn can_keep(&self, stable: &RevisionRef) -> bool {
        !self.beside && self.revision(&stable.hash).is_some()
    }
}

/// The last status of a workload, as far as it is about its present template.
#[derive(Debug, Clone)]
pub(crate) struct Recorded<'a> {
    pub(crate) target: &'a Target<'a>,
    pub(crate) spec: &'a Spec,
    /// `None` if there is no status yet.
    status: Option<&'a TargetStatus>,
    /// Whether the status is about the present template.
    is_same: bool,
}

impl<'a> Recorded<'a> {
    /// Reads the last status.
    pub(crate) fn of(policy: &'a Policy, spec: &'a Spec, target: &'a Target<'a>) -> Self {
        let status = policy.status.target(target.name, target.uid);
        let update = status.and_then(|status| status.update_revision.as_ref());
        Self {
            target,
            spec,
            status,
            is_same: update.is_some_and(|update| update.hash == target.update.hash),
        }
    }

    /// The stable revision, if it is known and can be created from (L-4).
    pub(crate) fn stable(&self) -> Option<&RevisionRef> {
        let hash = &self.status?.stable_revision.as_ref()?.hash;
        self.target.revision(hash)
    }

    /// The stable revision, which may be unknown or gone (L-4). If somebody deletes it, the rollout keeps to its stages.
    fn stable_or_gone(&self, observed: &Observed<'_>) -> RevisionRef {
        let recorded = self.status.filter(|_| self.is_same);
        let gone = || recorded.and_then(|status| status.stable_revision.as_ref());
        let stable = self.stable().or_else(gone).cloned();
        stable.unwrap_or_else(|| first_stable(self.target, observed))
    }

    /// Whether no rollout is going on: the update revision is the stable one.
    pub(crate) fn is_settled(&self) -> bool {
        self.stable()
            .is_some_and(|stable| stable.hash == self.target.update.hash)
    }

    /// The rejection of the update revision.
    pub(crate) fn rejection(&self) -> Option<&'a Rejection> {
        let rejection = self.status.filter(|_| self.is_same)?.rejected_revision.as_ref()?;
        (rejection.hash == self.target.update.hash).then_some(rejection)
    }

    /// What the rollout works towards, as far as it was recorded. A rejection that is found now is recorded first.
    pub(crate) fn goal(&self) -> Goal {
        let back = self.rejection().filter(|rejection| {
            !self.target.beside && (rejection.roll_back || self.spec.on_failure == OnFailure::Rollback)
        });
        let stable = self
            .stable()
            .filter(|stable| stable.hash != self.target.update.hash);
        match (back, stable) {
            (Some(_), Some(stable)) => Goal::Back(stable.clone()),
            // Without a stable revision there is no way back (L-29).
            _ => Goal::Forward,
        }
    }
}

/// Decides about a rollout.
pub(crate) fn decide(policy: &Policy, recorded: &Recorded<'_>, observed: &Observed<'_>) -> Decision {
    let target = recorded.target;
    let stable = recorded.stable_or_gone(observed);
    let mut status = begin(policy, recorded, &stable, observed);
    let spec = recorded.spec;
    let mut decision = Decision {
        evicts: spec.disruption == Disruption::Evict,
        keeps_stable: spec.unadmitted == Unadmitted::Stable && target.can_keep(&stable),
        order: Some(spec.order),
        pace_left: hold::pace_left(spec, &mut status, observed.now),
        ..Decision::default()
    };
    decision
        .again
        .extend(hold::pace_timer(spec, &status, decision.pace_left, observed.now));
    if stable.hash == target.update.hash {
        settled(spec, &mut status, &mut decision, observed);
    } else if let Some(rejection) = recorded.rejection() {
        if resumes(policy, &mut status, rejection, observed.now) {
            // This plan only records that; the next one acts by it.
            status.state = State::Progressing;
            status.message = format!("a person lets revision {} go on", rejection.number);
            decision.again.push((Duration::ZERO, status.message.clone()));
        } else {
            request_way_back(policy, &mut status, &mut decision);
            rejected(recorded, rejection, &mut status, &mut decision, observed);
        }
    } else {
        Progress {
            policy,
            spec,
            target,
            observed,
            status: &mut status,
            decision: &mut decision,
        }
        .run();
    }
    let is_over = matches!(status.state, State::Complete | State::RolledBack);
    if is_over && observed.nodes.iter().all(NodeFacts::has_pod) {
        status.disrupted_since = None;
    }
    decision.events.extend(state_event(recorded, &status));
    let can_go_back = target.beside || target.revision(&stable.hash).is_some();
    if !is_over && !can_go_back && status.rejected_revision.is_none() {
        decision.events.extend(say_gone(recorded, &stable, &mut status));
    }
    decision.status = status;
    decision
}

/// The decision of a policy that cannot be used: nothing that runs is replaced, and nothing is forgotten (L-2).
pub(crate) fn unusable(recorded: &Recorded<'_>, observed: &Observed<'_>, why: &str) -> Decision {
    let stable = recorded.stable_or_gone(observed);
    let last = recorded.status.cloned().unwrap_or_default();
    let mut status = TargetStatus {
        name: recorded.target.name.to_owned(),
        uid: recorded.target.uid.to_owned(),
        stable_revision: Some(stable.clone()),
        state: State::Invalid,
        message: why.to_owned(),
        ..last
    };
    status
        .update_revision
        .get_or_insert_with(|| recorded.target.update.clone());
    Decision {
        events: state_event(recorded, &status).into_iter().collect(),
        status,
        keeps_stable: recorded.target.can_keep(&stable),
        ..Decision::default()
    }
}

/// The revision of the most pods; without pods, the update revision (L-4). Of equals the newest. Nothing is known of it but the hash if
/// the workload has no such revision: its pods must not all be replaced at once for that.
fn first_stable(target: &Target<'_>, observed: &Observed<'_>) -> RevisionRef {
    let revision = |hash: &str| {
        let known = target.revision(hash).cloned();
        known.unwrap_or_else(|| RevisionRef {
            hash: hash.to_owned(),
            number: 0,
        })
    };
    let counted = observed.pods.iter().map(|(hash, count)| (count, revision(hash)));
    let most = counted.max_by_key(|(count, revision)| (**count, revision.number));
    most.map_or_else(|| target.update.clone(), |(_, revision)| revision)
}

/// The status to go on from: the last one, or a new one if the template has changed (L-10).
fn begin(
    policy: &Policy,
    recorded: &Recorded<'_>,
    stable: &RevisionRef,
    observed: &Observed<'_>,
) -> TargetStatus {
    let target = recorded.target;
    let last = recorded.status.cloned().unwrap_or_default();
    let mut status = if recorded.is_same {
        last
    } else {
        let start = observed.now.to_string();
        TargetStatus {
            pace: last.pace,
            start_time: Some(observed.now),
            // Of a rollout that was not over, nodes may still lack a pod. Without a status it may be anything since the policy exists.
            disrupted_since: recorded
                .status
                .map_or(policy.created, |last| last.disrupted_since)
                .or(Some(observed.now)),
            digest: digest([policy.uid.as_str(), target.uid, &target.update.hash, &start]),
            ..TargetStatus::default()
        }
    };
    target.name.clone_into(&mut status.name);
    target.uid.clone_into(&mut status.uid);
    status.update_revision = Some(target.update.clone());
    status.stable_revision = Some(stable.clone());
    status.desired = count(observed.desired);
    status.updated = count(observed.updated);
    status.blocking.clear();
    status
}

/// No rollout is going on. Pods of other revisions go back to the stable one, if the template did (L-10).
fn settled(spec: &Spec, status: &mut TargetStatus, decision: &mut Decision, observed: &Observed<'_>) {
    status.rejected_revision = None;
    status.pending_approval = None;
    decision.admitted = Admitted::All;
    let is_waited_for = |node: &&NodeFacts<'_>| node.has_other_pod && !node.is_exempt(spec);
    let others = observed.nodes.iter().filter(is_waited_for).count();
    if others > 0 {
        status.disrupted_since.get_or_insert(observed.now);
    }
    exempt_nodes(spec, decision, observed, status.disrupted_since);
    status.state = if others > 0 {
        State::Progressing
    } else {
        State::Complete
    };
    status.message = match others {
        0 => format!("revision {} is on every node that should have it", number(status)),
        1 => format!("1 node lacks revision {}, and gets it", number(status)),
        others => format!("{others} nodes lack revision {}, and get it", number(status)),
    };
    hold::hold(spec, status, decision, observed);
}

fn number(status: &TargetStatus) -> i64 {
    status
        .update_revision
        .as_ref()
        .map_or(0, |revision| revision.number)
}

/// The update revision is rejected: no further node gets it, and those that have it go back or stay (L-26 to L-29).
fn rejected(
    recorded: &Recorded<'_>,
    rejection: &Rejection,
    status: &mut TargetStatus,
    decision: &mut Decision,
    observed: &Observed<'_>,
) {
    decision.admitted = Admitted::None;
    status.pending_approval = None;
    let waited_for = || {
        let nodes = observed.nodes.iter();
        nodes.filter(|node| !node.is_exempt(recorded.spec))
    };
    let left = waited_for().filter(|node| node.is_updated()).count();
    // A node that is without a pod has to get one before it is back; after the rollback any node may lose its pod.
    let was_back = recorded
        .status
        .is_some_and(|status| status.state == State::RolledBack);
    let all_back = was_back || waited_for().all(|node| node.has_other_pod);
    let why = &rejection.message;
    let revision = rejection.number;
    match recorded.goal() {
        Goal::Forward => {
            status.state = State::Rejected;
            let stays = if recorded.target.beside {
                "no node goes back, because another controller creates the pods"
            } else if recorded
                .stable()
                .is_none_or(|stable| stable.hash == recorded.target.update.hash)
            {
                "no node goes back, because there is no stable revision"
            } else {
                "no node goes back, because onFailure is Pause"
            };
            let have = nodes_in_words(left);
            status.message = format!("revision {revision} is rejected; {stays} ({have} with it): {why}");
        }
        Goal::Back(stable) => {
            exempt_nodes(recorded.spec, decision, observed, status.disrupted_since);
            // Outside of windows too, and at any pace; only a pause stops it.
            decision.replaces = !recorded.spec.paused;
            decision.pace_left = None;
            decision.again.clear();
            (status.state, status.message) = match left {
                0 if all_back => (
                    State::RolledBack,
                    format!("revision {revision} was rejected, and no node has it any more: {why}"),
                ),
                left if recorded.spec.paused => (
                    State::Paused,
                    format!(
                        "{left} nodes have the rejected revision {revision}, and the policy is paused: {why}"
                    ),
                ),
                left => (
                    State::RollingBack,
                    format!(
                        "{left} nodes go back from revision {revision} to {}: {why}",
                        stable.number
                    ),
                ),
            };
        }
    }
    for node in &observed.nodes {
        if let Health::Failed(reason) = node.health(recorded.spec, status.resumed.as_ref(), observed.now) {
            status.block(node.name, reason);
        }
    }
}

/// Whether a person lets a rejected revision go on. Its failures so far do not count any more.
fn resumes(policy: &Policy, status: &mut TargetStatus, rejection: &Rejection, now: Timestamp) -> bool {
    let asked = policy.requests.resume.as_ref() == Some(&rejection.digest);
    if asked {
        status.rejected_revision = None;
        // A request to go back that was heeded before must not reject the revision again.
        status.digest = digest([status.digest.as_str(), &rejection.digest]);
        resume(status, now);
    }
    asked
}

/// Whether a person asks that the nodes with a rejected revision go back, whatever onFailure says (L-27). This plan only records that;
/// the next one acts by it.
fn request_way_back(policy: &Policy, status: &mut TargetStatus, decision: &mut Decision) {
    let asked = policy.requests.rollback.as_ref() == Some(&status.digest);
    if let Some(rejection) = status.rejected_revision.as_mut()
        && asked
        && !rejection.roll_back
    {
        rejection.roll_back = true;
        decision
            .again
            .push((Duration::ZERO, "the request to go back is recorded".to_owned()));
    }
}

fn resume(status: &mut TargetStatus, now: Timestamp) {
    status.resumed = status.update_revision.as_ref().map(|update| Resumed {
        hash: update.hash.clone(),
        time: Some(now),
    });
    for stage in &mut status.stages {
        if !stage.is_complete() {
            stage.analysis.clear();
        }
    }
}

/// A rollout that goes forward.
struct Progress<'p, 'a> {
    policy: &'p Policy,
    spec: &'p Spec,
    target: &'p Target<'a>,
    observed: &'p Observed<'a>,
    status: &'p mut TargetStatus,
    decision: &'p mut Decision,
}

impl Progress<'_, '_> {
    fn run(mut self) {
        let nodes = &self.observed.nodes;
        let needs_approval = |name: &str| {
            self.spec
                .stages
                .iter()
                .any(|stage| stage.name == name && stage.needs_approval)
        };
        self.status
            .pending_approval
            .take_if(|pending| !needs_approval(&pending.stage));
        let waves = Waves::of(self.policy, self.spec, nodes);
        let last = std::mem::take(&mut self.status.stages);
        if let Some((stage, label, values)) = waves.excessive {
            self.status.stages = last;
            self.status.state = State::Invalid;
            self.status.message = format!(
                "stage {stage}: nodes have {values} values of the label {label} of groupBy; at most {MOST_WAVES} are allowed, and \
                 {MOST_WAVES_IN_ALL} of all stages, \
                 so nothing is updated; group by a label with fewer values"
            );
            return;
        }
        let health: Vec<Health> = nodes
            .iter()
            .map(|node| node.health(self.spec, self.status.resumed.as_ref(), self.observed.now))
            .collect();
        let exempt = nodes.iter().filter(|node| node.is_exempt(self.spec)).count();
        let held = hold::too_many(self.spec, exempt, self.observed).is_some();
        let stage = stage::Context {
            policy: self.policy,
            spec: self.spec,
            update: &self.target.update,
            nodes,
            health: &health,
            waves: &waves,
            observed: self.observed,
            may_begin: !held && !self.spec.paused,
        };
        // Entries ascend.
        let mut admitted = vec![false; nodes.last().map_or(0, |last| last.entry + 1)];
        let mut gate = Gate::Passed;
        for (index, wave) in waves.list.iter().enumerate() {
            let before = last.iter().find(|stage| stage.name == wave.name);
            let stage = stage.advance(wave, before, &mut gate, self.status, self.decision);
            let is_open = stage.has_begun() || stage.is_complete();
            for node in &wave.nodes {
                let facts = &nodes[*node];
                let is_withheld = waves.withheld[*node];
                let is_exempt = facts.is_exempt(self.spec);
                let decided = NodeDecision {
                    is_exempt,
                    is_free: is_exempt && !facts.may_be_ours(self.status.disrupted_since),
                    is_first: self.spec.in_maintenance == InMaintenance::First && facts.in_maintenance,
                    wave: Some(index),
                    is_withheld,
                };
                self.decision.nodes.set(facts.entry, decided);
                admitted[facts.entry] = is_open && !is_withheld;
            }
            self.status.stages.push(stage);
        }
        self.decision.admitted = Admitted::Some(admitted);
        self.conclude(gate, &health);
    }

    /// The state of the whole rollout, from that of its stages.
    fn conclude(&mut self, gate: Gate, health: &[Health]) {
        let nodes = &self.observed.nodes;
        let failed = health
            .iter()
            .filter(|health| matches!(health, Health::Failed(_)))
            .count();
        for (node, health) in nodes.iter().zip(health) {
            match health {
                Health::Failed(reason) => self.status.block(node.name, reason.clone()),
                Health::Waits(left) => self.decision.again.push((
                    *left,
                    format!("{} fails if its pod is not available by then", node.name),
                )),
                Health::Fine => {}
            }
        }
        for (node, health) in nodes.iter().zip(health) {
            if let (Health::Waits(_), Some(pod)) = (health, node.update_pod) {
                self.status
                    .block(node.name, format!("pod {} is not available yet", pod.name));
            }
        }
        let admitted = match &self.decision.admitted {
            Admitted::Some(entries) => entries.iter().filter(|is_admitted| **is_admitted).count(),
            Admitted::All | Admitted::None => nodes.len(),
        };
        let threshold = scaled(&self.spec.failure_threshold, admitted).max(1);
        let failure = (failed >= threshold).then(|| {
            let first = self.status.blocking.iter().take(MOST_NAMED);
            let named: Vec<_> = first
                .map(|node| format!("{}: {}", node.node, node.reason))
                .collect();
            let message = format!(
                "{} failed, and failureThreshold is {threshold}: {}",
                nodes_in_words(failed),
                named.join("; ")
            );
            ("FailureThreshold", message)
        });
        let rejection = match gate {
            Gate::Rejected(reason, ref message) => Some((reason, message.clone())),
            _ => failure,
        };
        let asked = self.policy.requests.rollback.as_ref() == Some(&self.status.digest);
        if asked {
            return self.reject("Requested", "a person asked for the way back", true);
        }
        if let Some((reason, message)) = rejection {
            return self.reject(reason, &message, false);
        }
        let all_complete = gate == Gate::Passed;
        let withheld = self.decision.nodes.iter().any(|node| node.is_withheld);
        let update = self.target.update.number;
        (self.status.state, self.status.message) = match gate {
            Gate::Waits(state, message) => (state, message),
            _ if all_complete && !withheld => {
                self.status
                    .stable_revision
                    .clone_from(&self.status.update_revision);
                self.status.pending_approval = None;
                self.decision.admitted = Admitted::All;
                (
                    State::Complete,
                    format!("revision {update} is on every node that should have it"),
                )
            }
            _ => (
                State::Partitioned,
                format!("only nodes that the partition withholds lack revision {update}"),
            ),
        };
        if failed > 0 && matches!(self.status.state, State::Progressing | State::Soaking) {
            let first = self.status.blocking.first();
            let named = first
                .map(|node| format!("{}: {}", node.node, node.reason))
                .unwrap_or_default();
            self.status.state = State::ProgressDeadlineExceeded;
            self.status.message = format!(
                "{} failed, and failureThreshold is {threshold}: {named}",
                nodes_in_words(failed)
            );
        }
        hold::hold(self.spec, self.status, self.decision, self.observed);
    }

    /// Rejects the update revision. This plan only records that; the next one acts by it.
    fn reject(&mut self, reason: &'static str, message: &str, roll_back: bool) {
        let update = &self.target.update;
        let time = self.observed.now.to_string();
        let digest = digest([
            self.policy.uid.as_str(),
            &self.status.uid,
            &update.hash,
            reason,
            &time,
        ]);
        self.status.rejected_revision = Some(Rejection {
            digest,
            hash: update.hash.clone(),
            number: update.number,
            reason: reason.to_owned(),
            message: message.to_owned(),
            roll_back,
            time: Some(self.observed.now),
        });
        self.status.state = State::Rejected;
        self.status.message = format!("revision {} is rejected: {message}", update.number);
        self.status.pending_approval = None;
        self.decision.admitted = Admitted::None;
        self.decision.replaces = false;
        self.decision.due.clear();
        self.decision.events.push(RolloutEvent {
            event_type: EventType::Warning,
            reason: "RolloutRejected",
            message: self.status.message.clone(),
        });
        self.decision
            .again
            .push((Duration::ZERO, "the rejection is recorded".to_owned()));
    }
}

/// Notes which of the observed nodes are exempt. `disrupted` is since when rollouts may have deleted pods.
fn exempt_nodes(spec: &Spec, decision: &mut Decision, observed: &Observed<'_>, disrupted: Option<Timestamp>) {
    for node in observed.nodes.iter().filter(|node| node.is_exempt(spec)) {
        let decided = NodeDecision {
            is_exempt: true,
            is_free: !node.may_be_ours(disrupted),
            ..NodeDecision::default()
        };
        decision.nodes.set(node.entry, decided);
    }
}

/// Says in the status that the stable revision does not exist any more (L-4). The Event is left out if the last status says it already.
fn say_gone(
    recorded: &Recorded<'_>,
    stable: &RevisionRef,
    status: &mut TargetStatus,
) -> Option<RolloutEvent> {
    let name = match stable.number {
        0 => stable.hash.clone(),
        number => format!("{number} ({})", stable.hash),
    };
    let gone = format!("the stable revision {name} does not exist any more: no node can go back to it");
    let before = recorded.status.filter(|_| recorded.is_same);
    let was_said = before.is_some_and(|before| before.message.starts_with(&gone));
    status.message = match status.message.as_str() {
        "" => gone.clone(),
        message => format!("{gone}; {message}"),
    };
    (!was_said).then_some(RolloutEvent {
        event_type: EventType::Warning,
        reason: "StableRevisionGone",
        message: gone,
    })
}

/// The Event about a change of the state of the whole rollout.
fn state_event(recorded: &Recorded<'_>, status: &TargetStatus) -> Option<RolloutEvent> {
    let before = recorded
        .status
        .filter(|_| recorded.is_same)
        .map(|status| status.state);
    if before == Some(status.state) {
        return None;
    }
    let (event_type, reason) = match status.state {
        State::RollingBack => (EventType::Warning, "RolloutRollingBack"),
        State::RolledBack => (EventType::Normal, "RolloutRolledBack"),
        State::AnalysisHeld
        | State::TooManyNodesNotReady
        | State::ProgressDeadlineExceeded
        | State::Invalid => (EventType::Warning, "RolloutHeld"),
        _ => return None,
    };
    Some(RolloutEvent {
        event_type,
        reason,
        message: status.message.clone(),
    })
}
