//! One stage: when it begins (L-13), when it is complete (L-14), and what it waits for.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{
    core::{
        measurement::{MeasurementId, MeasurementRequest},
        plan::EventType,
    },
    rollout::{
        analysis::{Check, Outcome, When},
        decision::{Decision, Observed, RolloutEvent, StageLimits, count, outside},
        nodes::{Health, NodeFacts, in_seconds},
        policy::{Policy, Spec},
        requests::digest,
        stages::{Wave, Waves},
        status::{
            Approval, CheckStatus, PendingApproval, RevisionRef, StageState, StageStatus, State, TargetStatus,
        },
        window,
    },
};

/// Whether the next stage may be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    /// All stages so far are complete.
    Passed,
    /// A stage waits, in this state of the rollout and for this reason.
    Waits(State, String),
    /// The update revision must not be rolled out, for this reason.
    Rejected(&'static str, String),
}

/// What all stages have in common.
pub(super) struct Context<'p, 'a> {
    pub(super) policy: &'p Policy,
    pub(super) spec: &'p Spec,
    pub(super) update: &'p RevisionRef,
    pub(super) nodes: &'p [NodeFacts<'a>],
    pub(super) health: &'p [Health],
    pub(super) waves: &'p Waves<'p>,
    pub(super) observed: &'p Observed<'a>,
    /// Whether a stage may begin.
    pub(super) may_begin: bool,
}

impl Context<'_, '_> {
    /// The next status of a wave. `gate` is what the waves before it wait for, and gets what this one waits for.
    pub(super) fn advance(
        &self,
        wave: &Wave<'_>,
        before: Option<&StageStatus>,
        gate: &mut Gate,
        status: &mut TargetStatus,
        decision: &mut Decision,
    ) -> StageStatus {
        let mut stage = self.counted(wave, before);
        self.measure(wave, &mut stage);
        if stage.is_complete() || *gate != Gate::Passed {
            return stage;
        }
        let is_empty = wave.nodes.is_empty();
        if !is_empty && !stage.has_begun() {
            if let Err(waits) = self.begin(wave, &mut stage, status, decision) {
                *gate = waits;
                return stage;
            }
            stage.start_time = Some(self.observed.now);
            decision.events.push(RolloutEvent {
                event_type: EventType::Normal,
                reason: "RolloutStageStarted",
                message: format!(
                    "stage {} of revision {} begins on {} {}",
                    stage.name,
                    self.update.number,
                    stage.nodes,
                    if stage.nodes == 1 { "node" } else { "nodes" }
                ),
            });
        }
        decision.limits = StageLimits::of(wave.stage);
        if let Err(waits) = self.evaluate(wave, &mut stage, decision) {
            *gate = waits;
            return stage;
        }
        stage.state = StageState::Complete;
        stage.completion_time = Some(self.observed.now);
        if !is_empty {
            decision.events.push(RolloutEvent {
                event_type: EventType::Normal,
                reason: "RolloutStageComplete",
                message: format!(
                    "stage {} of revision {} is complete",
                    stage.name, self.update.number
                ),
            });
        }
        stage
    }

    /// The wave's entry with its present counts.
    fn counted(&self, wave: &Wave<'_>, before: Option<&StageStatus>) -> StageStatus {
        let mut stage = before.cloned().unwrap_or_default();
        stage.name.clone_from(&wave.name);
        if !stage.is_complete() {
            stage.state = if stage.has_begun() {
                StageState::Progressing
            } else {
                StageState::Pending
            };
        }
        stage.nodes = count(wave.nodes.len());
        (stage.updated, stage.available, stage.exempt, stage.failed) = (0, 0, 0, 0);
        for index in &wave.nodes {
            let node = &self.nodes[*index];
            stage.updated += u32::from(node.is_updated());
            stage.available += u32::from(node.is_available());
            stage.exempt += u32::from(node.is_exempt(self.spec));
            stage.failed += u32::from(matches!(self.health[*index], Health::Failed(_)));
        }
        stage
    }

    /// Adds what executors measured to the counts of the stage's checks.
    fn measure(&self, wave: &Wave<'_>, stage: &mut StageStatus) {
        let checks = || wave.stage.iter().flat_map(|stage| &stage.checks);
        // A check that the policy does not have any more is forgotten, and one without a measurement is not worth an entry.
        stage
            .analysis
            .retain(|known| known.measurements > 0 && checks().any(|check| check.name == known.name));
        for check in checks() {
            let number = stage.analysis.iter().find(|known| known.name == check.name);
            let number = number.map_or(0, |known| known.measurements);
            let is_next = |id: &MeasurementId| {
                id.number == number
                    && id.check == check.name
                    && id.stage == wave.name
                    && id.revision_hash == self.update.hash
                    && id.policy_uid == self.policy.uid
            };
            // One of each check is asked for at a time.
            let measured = self.observed.measurements.iter().find(|made| is_next(&made.id));
            if let Some(measurement) = measured {
                check.count(known(stage, &check.name), measurement);
            }
        }
    }

    fn id(&self, wave: &Wave<'_>, check: &Check, number: u32) -> MeasurementId {
        MeasurementId {
            policy_uid: self.policy.uid.clone(),
            revision_hash: self.update.hash.clone(),
            stage: wave.name.clone(),
            check: check.name.clone(),
            number,
        }
    }

    /// Whether a stage may begin: it is approved, a window is open, and the checks before it passed (L-13).
    fn begin(
        &self,
        wave: &Wave<'_>,
        stage: &mut StageStatus,
        status: &mut TargetStatus,
        decision: &mut Decision,
    ) -> Result<(), Gate> {
        if wave.nodes.iter().all(|index| self.waves.withheld[*index]) {
            return Err(self.partitioned());
        }
        if wave.stage.is_some_and(|stage| stage.needs_approval) {
            self.approve(wave.stage_name, status, decision).inspect_err(|_| {
                stage.state = StageState::AwaitingApproval;
            })?;
        }
        let opens_in = window::opens_in(&self.spec.windows, self.observed.now);
        if opens_in != Some(Duration::ZERO) {
            stage.state = StageState::OutsideWindow;
            let message = format!(
                "stage {} waits: {}",
                stage.name,
                outside(opens_in, self.observed.now)
            );
            decision
                .again
                .extend(opens_in.map(|left| (left, "a window opens".to_owned())));
            return Err(Gate::Waits(State::OutsideWindow, message));
        }
        if !self.may_begin {
            return Err(Gate::Waits(
                State::Progressing,
                format!("stage {} is next", stage.name),
            ));
        }
        let checks = self.check(wave, stage, When::BeforeStage, decision);
        checks.inspect_err(|_| stage.state = StageState::Analyzing)
    }

    fn partitioned(&self) -> Gate {
        Gate::Waits(
            State::Partitioned,
            format!(
                "only nodes that the partition withholds wait for revision {}",
                self.update.number
            ),
        )
    }

    /// Whether this stage is approved, with all its waves (L-30). Nodes that join it later are approved with it.
    fn approve(&self, name: &str, status: &mut TargetStatus, decision: &mut Decision) -> Result<(), Gate> {
        if status.approvals.iter().any(|approval| approval.stage == name) {
            return Ok(());
        }
        let of_stage = self.waves.list.iter().filter(|wave| wave.stage_name == name);
        let nodes = of_stage.flat_map(|wave| &wave.nodes);
        let mut nodes: Vec<&str> = nodes.map(|index| self.nodes[*index].name).collect();
        nodes.sort_unstable();
        let count = count(nodes.len());
        // A person who lets a denied revision go on is asked anew: what was answered before does not count.
        let resumed = status
            .resumed
            .as_ref()
            .filter(|resumed| resumed.hash == self.update.hash);
        let resumed = resumed
            .and_then(|resumed| resumed.time)
            .map(|time| time.to_string());
        let digest = digest(
            [self.policy.uid.as_str(), &self.update.hash, name]
                .into_iter()
                .chain(resumed.as_deref())
                .chain(nodes),
        );
        let requests = &self.policy.requests;
        if requests.reject.as_ref() == Some(&digest) {
            return Err(Gate::Rejected(
                "ApprovalDenied",
                format!("a person did not approve stage {name}"),
            ));
        }
        if requests.approve.as_ref() == Some(&digest) {
            status.pending_approval = None;
            status.approvals.push(Approval {
                stage: name.to_owned(),
                digest,
                time: Some(self.observed.now),
            });
            return Ok(());
        }
        let known = status
            .pending_approval
            .take()
            .filter(|pending| pending.stage == name);
        let asked = requests.approve.clone().or_else(|| requests.reject.clone());
        if known.is_none() {
            decision.events.push(RolloutEvent {
                event_type: EventType::Normal,
                reason: "RolloutAwaitingApproval",
                message: format!(
                    "stage {name} with {count} nodes waits for an approval: nodewise rollout approve shows what it would do"
                ),
            });
        } else if let Some(asked) = &asked
            && known
                .as_ref()
                .is_some_and(|known| known.refused_digest.as_ref() != Some(asked))
        {
            decision.events.push(RolloutEvent {
                event_type: EventType::Warning,
                reason: "RolloutApprovalOutdated",
                message: format!(
                    "the approval {asked} is not for what stage {name} would do now, which has the digest {digest}"
                ),
            });
        }
        status.pending_approval = Some(PendingApproval {
            stage: name.to_owned(),
            nodes: count,
            digest,
            time: known.map_or(Some(self.observed.now), |known| known.time),
            // A request that was there before nobody could know the digest is of an earlier stage or rollout.
            refused_digest: asked,
        });
        Err(Gate::Waits(
            State::AwaitingApproval,
            format!("stage {name} with {count} nodes waits for an approval"),
        ))
    }

    /// Whether a stage that has begun is complete (L-14).
    fn evaluate(
        &self,
        wave: &Wave<'_>,
        stage: &mut StageStatus,
        decision: &mut Decision,
    ) -> Result<(), Gate> {
        let waited_for = || {
            let nodes = wave.nodes.iter().filter(|index| !self.waves.withheld[**index]);
            nodes
                .map(|index| &self.nodes[*index])
                .filter(|node| !node.is_exempt(self.spec))
        };
        if !waited_for().all(NodeFacts::is_available) {
            stage.state = StageState::Progressing;
            stage.soak_start_time = None;
            let StageStatus {
                name,
                nodes,
                updated,
                available,
                ..
            } = &*stage;
            let message =
                format!("stage {name}: {updated} of {nodes} nodes are updated, {available} available");
            return Err(Gate::Waits(State::Progressing, message));
        }
        let now = self.observed.now;
        let since = waited_for()
            .filter_map(|node| node.available_since(self.observed.min_ready, now))
            .max();
        // A clock that is ahead must not make the soak longer than it is from now.
        let since = since.max(stage.start_time).map_or(now, |since| since.min(now));
        let soak = wave.stage.map_or(Duration::ZERO, |stage| stage.soak);
        if wave.nodes.is_empty() {
            return Ok(());
        }
        stage.soak_start_time = Some(since);
        let checked = self.check(wave, stage, When::WhileSoaking, decision);
        let soaked = now.duration_since(since).max(SignedDuration::ZERO).unsigned_abs();
        let left = soak.saturating_sub(soaked);
        if !left.is_zero() {
            let what = format!("the soak of stage {} ends", stage.name);
            decision.again.push((left, what));
        }
        match checked {
            Err(Gate::Rejected(reason, why)) => return Err(Gate::Rejected(reason, why)),
            // Said at once, and not only when the soak has ended.
            Err(Gate::Waits(State::AnalysisHeld, why)) => {
                stage.state = StageState::Analyzing;
                return Err(Gate::Waits(State::AnalysisHeld, why));
            }
            _ if !left.is_zero() => {
                stage.state = StageState::Soaking;
                let until = now.saturating_add(left).unwrap_or(now);
                let message = format!("stage {} soaks until {}", stage.name, in_seconds(until));
                return Err(Gate::Waits(State::Soaking, message));
            }
            Err(waits) => {
                stage.state = StageState::Analyzing;
                return Err(waits);
            }
            Ok(()) => {}
        }
        if wave.nodes.iter().any(|index| self.waves.withheld[*index]) {
            return Err(self.partitioned());
        }
        Ok(())
    }

    /// Whether all checks of the stage of this kind passed. Asks for measurements that are due.
    fn check(
        &self,
        wave: &Wave<'_>,
        stage: &mut StageStatus,
        when: When,
        decision: &mut Decision,
    ) -> Result<(), Gate> {
        let mut gate = Ok(());
        let checks = wave.stage.iter().flat_map(|stage| &stage.checks);
        for check in checks.filter(|check| check.when == when) {
            let none = CheckStatus::default();
            let known = stage
                .analysis
                .iter()
                .find(|known| known.name == check.name)
                .unwrap_or(&none);
            let number = known.measurements;
            let waits = |message| Err(Gate::Waits(State::Analyzing, message));
            let held = |why| {
                Err(Gate::Waits(
                    State::AnalysisHeld,
                    format!("stage {}: {why}", stage.name),
                ))
            };
            let mut is_due = |wait: Duration| {
                if wait.is_zero() {
                    decision.due.push(MeasurementRequest {
                        id: self.id(wave, check, number),
                        policy_name: self.policy.name.clone(),
                        provider: check.provider.clone(),
                        credential: check.credential.clone(),
                    });
                } else {
                    let what = format!("check {} is due", check.name);
                    decision.again.push((wait, what));
                }
            };
            match check.outcome(known, self.observed.now) {
                Outcome::Passed => {}
                Outcome::Failed(why) => return Err(Gate::Rejected("AnalysisFailed", why)),
                Outcome::Held(why) => gate = held(why),
                Outcome::Errs(why, wait) => {
                    is_due(wait);
                    gate = held(why);
                }
                Outcome::Later(wait) => {
                    is_due(wait);
                    gate = gate.and_then(|()| waits(waiting(stage, check, number)));
                }
                Outcome::Due => {
                    is_due(Duration::ZERO);
                    gate = gate.and_then(|()| waits(waiting(stage, check, number)));
                }
            }
        }
        gate
    }
}

fn waiting(stage: &StageStatus, check: &Check, made: u32) -> String {
    format!(
        "stage {}: {made} of {} measurements of check {} are made",
        stage.name, check.count, check.name
    )
}

fn known<'s>(stage: &'s mut StageStatus, check: &str) -> &'s mut CheckStatus {
    let index = stage.analysis.iter().position(|known| known.name == check);
    let index = index.unwrap_or_else(|| {
        stage.analysis.push(CheckStatus {
            name: check.to_owned(),
            ..CheckStatus::default()
        });
        stage.analysis.len() - 1
    });
    &mut stage.analysis[index]
}
