//! Tables for the rules of policies, on the decision alone. The tests of whole plans are in tests/plans/policies.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    analysis::{Check, Condition, When},
    decide::{Recorded, Target, decide},
    decision::{Admitted, Decision, Observed},
    measurement::{Measurement, MeasurementResult, Provider},
    nodes::{Health, NodeFacts, Readiness, UpdatePod},
    policy::{
        Disruption, InMaintenance, NotReady, OnFailure, Order, Pace, Policy, Requests, Spec, Stage, Targets,
        Unadmitted,
    },
    selection::{StageSet, Stages},
    status::{PolicyStatus, RevisionRef, StageState, State},
    window::Window,
};
use crate::{
    core::snapshot::{IntOrString, Labels, Selector},
    fixtures::{labels, pairs},
};

mod approvals;
mod checks;
mod failures;

/// A node of the tests.
#[derive(Debug, Clone)]
struct FakeNode {
    name: String,
    labels: Labels,
    not_ready_since: Option<Timestamp>,
    in_maintenance: bool,
    /// The revision of its pod.
    pod: Option<&'static str>,
    pod_created: Timestamp,
    available_since: Option<Timestamp>,
    restarts: u32,
    /// Whether it says that its pod has become ready in a time to come.
    clock_is_ahead: bool,
}

/// A small cluster with one policy: `old` is the stable revision, `new` the update revision.
struct World {
    policy: Policy,
    now: Timestamp,
    update: &'static str,
    nodes: Vec<FakeNode>,
    /// The revisions that can be created from.
    others: Vec<&'static str>,
    /// Nodes on which `new` never becomes available.
    bad: Vec<&'static str>,
    measurements: Vec<Measurement>,
    events: Vec<&'static str>,
    last: Decision,
}

fn at(seconds: i64) -> Timestamp {
    // A Monday, 10:00 in UTC.
    Timestamp::from_second(1_793_613_600 + seconds).expect("a time")
}

fn revision(hash: &str) -> RevisionRef {
    RevisionRef {
        hash: hash.to_owned(),
        number: match hash {
            "old" => 1,
            "new" => 2,
            _ => 3,
        },
    }
}

fn stage(name: &str) -> Stage {
    Stage {
        name: name.to_owned(),
        ..Stage::default()
    }
}

fn percent(text: &str) -> IntOrString {
    IntOrString::String(text.to_owned())
}

fn selects(key: &str, value: &str) -> Selector {
    Selector {
        match_labels: Some(pairs(&[(key, value)])),
        match_expressions: None,
    }
}

impl World {
    /// Ten nodes in two zones, all with a pod of the old revision.
    fn new(spec: Spec) -> Self {
        let node = |index: usize| FakeNode {
            name: format!("n{index}"),
            labels: labels(&[("zone", if index < 5 { "a" } else { "b" })]),
            not_ready_since: None,
            in_maintenance: false,
            pod: Some("old"),
            pod_created: at(-9_000),
            available_since: Some(at(-8_990)),
            restarts: 0,
            clock_is_ahead: false,
        };
        let mut world = Self {
            policy: Policy {
                name: "agents".to_owned(),
                uid: "policy-uid".to_owned(),
                resource_version: "1".to_owned(),
                generation: 1,
                created: Some(at(-1)),
                deleting: false,
                requests: Requests::default(),
                targets: Some(Targets::Names(vec!["agent".to_owned()])),
                spec: Ok(spec),
                status: PolicyStatus::default(),
            },
            now: at(0),
            update: "old",
            nodes: (0..10).map(node).collect(),
            others: vec!["old", "new", "next"],
            bad: Vec::new(),
            measurements: Vec::new(),
            events: Vec::new(),
            last: Decision::default(),
        };
        // The stable revision is found before the template changes.
        world.decide();
        assert_eq!(world.state(), State::Complete);
        world.update = "new";
        world
    }

    fn spec(&mut self) -> &mut Spec {
        self.policy.spec.as_mut().expect("a spec")
    }

    fn node(&mut self, name: &str) -> &mut FakeNode {
        self.nodes
            .iter_mut()
            .find(|node| node.name == name)
            .expect("a node")
    }

    fn state(&self) -> State {
        self.last.status.state
    }

    fn on(&self, hash: &str) -> Vec<&str> {
        let nodes = self.nodes.iter().filter(|node| node.pod == Some(hash));
        nodes.map(|node| node.name.as_str()).collect()
    }

    fn admitted(&self) -> Vec<&str> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(|(index, _)| self.last.admitted.has(*index))
            .map(|(_, node)| node.name.as_str())
            .collect()
    }

    /// Decides, and writes the status.
    fn decide(&mut self) -> &Decision {
        let update = self.update;
        let spec = self.policy.spec.clone().expect("a spec");
        let facts = |(entry, node): (usize, &FakeNode)| {
            let pod = UpdatePod {
                name: "pod",
                created: Some(node.pod_created),
                available: node.available_since.is_some_and(|since| since <= self.now),
                ready_since: node
                    .available_since
                    .filter(|since| *since <= self.now)
                    .or(Some(node.pod_created))
                    .map(|since| if node.clock_is_ahead { at(999_999) } else { since }),
                restarts: node.restarts,
            };
            (node.clone(), pod, entry)
        };
        let facts: Vec<_> = self.nodes.iter().enumerate().map(facts).collect();
        let nodes: Vec<_> = facts
            .iter()
            .map(|(node, pod, entry)| NodeFacts {
                name: &node.name,
                labels: (&node.labels).into(),
                selected: Stages::of(&spec).select((&node.labels).into()),
                readiness: node
                    .not_ready_since
                    .map_or(Readiness::Ready, |since| Readiness::NotReady(Some(since))),
                in_maintenance: node.in_maintenance,
                update_pod: (node.pod == Some(update)).then_some(*pod),
                has_other_pod: node.pod.is_some_and(|hash| hash != update),
                entry: *entry,
            })
            .collect();
        let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
        for hash in self.nodes.iter().filter_map(|node| node.pod) {
            *pods.entry(hash).or_default() += 1;
        }
        let observed = Observed {
            now: self.now,
            min_ready: SignedDuration::ZERO,
            desired: nodes.len(),
            updated: self.on(update).len(),
            nodes,
            pods,
            measurements: &self.measurements,
        };
        let target = Target {
            name: "agent",
            uid: "uid",
            update: revision(update),
            others: self
                .others
                .iter()
                .filter(|hash| **hash != update)
                .map(|hash| revision(hash))
                .collect(),
            beside: false,
        };
        let recorded = Recorded::of(&self.policy, &spec, &target);
        let decision = decide(&self.policy, &recorded, &observed);
        self.policy.status.targets = vec![decision.status.clone()];
        self.events
            .extend(decision.events.iter().map(|event| event.reason));
        self.last = decision;
        &self.last
    }

    /// Decides, and replaces at most two old pods as a plan would. Time passes.
    fn step(&mut self, seconds: i64) {
        self.decide();
        let (admitted, replaces) = (self.last.admitted.clone(), self.last.replaces);
        let back = self.state() == State::RollingBack;
        let decided = std::mem::take(&mut self.last.nodes);
        let mut left = 2;
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let to = if back { "old" } else { self.update };
            let is_candidate = if back {
                node.pod == Some(self.update)
            } else {
                node.pod.is_some_and(|hash| hash != to) && admitted.has(index) && !decided.of(index).is_exempt
            };
            if replaces && left > 0 && is_candidate {
                left -= 1;
                node.pod = Some(to);
                node.pod_created = self.now;
                let is_bad = to == "new" && self.bad.contains(&node.name.as_str());
                node.available_since = (!is_bad).then_some(self.now);
            }
        }
        self.now += SignedDuration::from_secs(seconds);
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step(10);
        }
        self.decide();
    }

    fn stage_states(&self) -> Vec<(&str, StageState)> {
        let stages = self.last.status.stages.iter();
        stages.map(|stage| (stage.name.as_str(), stage.state)).collect()
    }
}

/// A rollout that fails on every node after half a minute.
fn failing(on_failure: OnFailure) -> World {
    let mut world = World::new(Spec {
        on_failure,
        progress_deadline: Duration::from_secs(30),
        ..staged()
    });
    world.bad = vec!["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    world
}

fn staged() -> Spec {
    Spec {
        stages: vec![
            Stage {
                replicas: Some(IntOrString::Int(2)),
                spread_by: Some("zone".to_owned()),
                soak: Duration::from_mins(1),
                ..stage("canary")
            },
            Stage {
                group_by: Some("zone".to_owned()),
                ..stage("zones")
            },
        ],
        ..Spec::default()
    }
}

#[test]
fn l_4_at_first_the_revision_of_most_pods_is_stable() {
    for (old, stable) in [(10, "old"), (6, "old"), (4, "new"), (0, "new")] {
        let mut world = World::new(Spec::default());
        world.policy.status = PolicyStatus::default();
        for node in world.nodes.iter_mut().skip(old) {
            node.pod = Some("new");
        }
        world.decide();
        let found = world
            .last
            .status
            .stable_revision
            .as_ref()
            .expect("a stable revision");
        assert_eq!(found.hash, stable, "{old} old pods");
    }
    let mut world = World::new(Spec::default());
    world.policy.status = PolicyStatus::default();
    world.nodes.iter_mut().for_each(|node| node.pod = None);
    world.decide();
    assert_eq!(
        world.last.status.stable_revision,
        Some(revision("new")),
        "no pods"
    );
}

#[test]
fn l_4_without_the_stable_revision_a_rollout_keeps_to_its_stages() {
    // Somebody deletes the revision: before the policy exists, before the rollout, and while the canary soaks.
    for (steps, has_status) in [(0, false), (0, true), (2, true)] {
        let mut world = World::new(staged());
        if !has_status {
            world.policy.status = PolicyStatus::default();
        }
        if steps > 0 {
            world.run(steps);
        }
        world.others.retain(|hash| *hash != "old");
        world.run(2);
        assert_eq!(
            world.on("new").len(),
            2,
            "{steps} {has_status}: only the canaries"
        );
        assert!(!world.last.keeps_stable, "there is nothing to create from");
        let message = &world.last.status.message;
        assert!(
            message.contains("does not exist any more: no node can go back to it; stage canary soaks"),
            "{message}"
        );
        assert_eq!(
            world
                .last
                .status
                .stable_revision
                .as_ref()
                .map(|stable| &*stable.hash),
            Some("old")
        );
        world.run(60);
        assert_eq!((world.on("new").len(), world.state()), (10, State::Complete));
        let told = world
            .events
            .iter()
            .filter(|event| **event == "StableRevisionGone");
        assert_eq!(told.count(), 1, "{:?}", world.events);
    }
}

#[test]
fn l_13_l_14_stages_run_one_after_another_and_soak() {
    let mut world = World::new(staged());
    world.step(0);
    let canaries: Vec<_> = world.admitted().iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(canaries.len(), 2);
    let zones: Vec<_> = canaries
        .iter()
        .map(|name| name[1..].parse::<usize>().expect("a number") < 5)
        .collect();
    assert_ne!(zones[0], zones[1], "one in each zone");
    world.run(3);
    assert_eq!(world.state(), State::Soaking);
    assert_eq!(world.on("new"), canaries, "nobody else before the soak is over");
    // L-14: a pod that is not available any more begins the soak again.
    world.now = at(59);
    world.node(&canaries[0]).available_since = None;
    world.decide();
    assert_eq!(world.state(), State::Progressing);
    let back = world.now + SignedDuration::from_secs(5);
    world.node(&canaries[0]).available_since = Some(back);
    world.now = back;
    world.decide();
    assert_eq!(world.state(), State::Soaking);
    world.now = back + SignedDuration::from_secs(59);
    world.decide();
    assert_eq!(world.state(), State::Soaking);
    world.now = back + SignedDuration::from_mins(1);
    world.decide();
    // L-16: the first zone, then the second one.
    assert_eq!(world.admitted().len(), 6, "{:?}", world.stage_states());
    assert_eq!(
        world.stage_states(),
        [
            ("canary", StageState::Complete),
            ("zones/a", StageState::Progressing),
            ("zones/b", StageState::Pending),
        ]
    );
    world.run(10);
    assert_eq!(world.state(), State::Complete);
    assert_eq!(world.on("new").len(), 10);
    assert_eq!(world.last.status.stable_revision, Some(revision("new")));
    assert_eq!(
        world.events,
        [
            "RolloutStageStarted",
            "RolloutStageComplete",
            "RolloutStageStarted",
            "RolloutStageComplete",
            "RolloutStageStarted",
            "RolloutStageComplete",
        ]
    );
}

#[test]
fn l_12_a_node_belongs_to_the_first_stage_that_selects_it_and_the_others_form_a_last_one() {
    let mut world = World::new(Spec {
        stages: vec![Stage {
            selector: Some(selects("zone", "b")),
            ..stage("b")
        }],
        ..Spec::default()
    });
    world.decide();
    assert_eq!(world.admitted(), ["n5", "n6", "n7", "n8", "n9"]);
    world.run(4);
    assert_eq!(world.stage_states()[1], ("(others)", StageState::Progressing));
    world.run(4);
    assert_eq!(world.state(), State::Complete);
}

#[test]
fn l_12_the_choice_of_replicas_is_stable() {
    let spec = Spec {
        stages: vec![Stage {
            replicas: Some(percent("30%")),
            ..stage("canary")
        }],
        ..Spec::default()
    };
    let mut world = World::new(spec);
    world.decide();
    let chosen: Vec<String> = world.admitted().iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(chosen.len(), 3);
    // Ready nodes come first.
    world.node(&chosen[0]).not_ready_since = Some(at(-100));
    world.decide();
    let others: Vec<String> = world.admitted().iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(others.len(), 3);
    assert!(!others.contains(&chosen[0]));
    assert_eq!(
        chosen.iter().filter(|name| others.contains(name)).count(),
        2,
        "one was replaced by one"
    );
    world.run(3);
    assert_eq!(world.on("new").len(), 3 + 2, "the next stage has begun");
    // A node that becomes ready takes nobody's place: those with the update revision stay.
    world.node(&chosen[0]).not_ready_since = None;
    world.decide();
    assert!(
        others
            .iter()
            .all(|name| world.admitted().contains(&name.as_str()))
    );
    // A node that goes is replaced by one.
    let mut world = World::new(world.policy.spec.clone().expect("a spec"));
    world.nodes.retain(|node| node.name != chosen[1]);
    world.decide();
    let kept = world.admitted();
    assert_eq!(kept.len(), 3);
    assert!(kept.contains(&chosen[0].as_str()) && kept.contains(&chosen[2].as_str()));
}

#[test]
fn l_8_a_paused_policy_replaces_nothing_also_at_the_first_sync() {
    let mut world = World::new(Spec {
        paused: true,
        ..staged()
    });
    world.run(5);
    assert_eq!((world.state(), world.on("old").len()), (State::Paused, 10));
    assert!(world.admitted().is_empty(), "no stage begins");
    world.spec().paused = false;
    world.run(2);
    assert_eq!(world.on("new").len(), 2);
}

#[test]
fn l_9_a_partition_keeps_nodes_on_the_stable_revision() {
    for (partition, withheld) in [
        (IntOrString::Int(0), 0),
        (IntOrString::Int(3), 3),
        (percent("25%"), 3),
        (percent("100%"), 10),
    ] {
        let mut world = World::new(Spec {
            partition: Some(partition.clone()),
            ..staged()
        });
        world.run(30);
        assert_eq!(world.on("old").len(), withheld, "{partition:?}");
        let state = if withheld == 0 {
            State::Complete
        } else {
            State::Partitioned
        };
        assert_eq!(world.state(), state, "{partition:?}");
        world.spec().partition = Some(IntOrString::Int(0));
        world.run(30);
        assert_eq!(world.state(), State::Complete);
    }
}

#[test]
fn l_10_another_template_begins_anew_and_the_stable_one_ends_the_rollout() {
    let mut world = World::new(staged());
    world.run(3);
    assert_eq!(world.on("new").len(), 2);
    world.update = "next";
    world.decide();
    assert_eq!(world.last.status.stable_revision, Some(revision("old")));
    assert_eq!(world.admitted().len(), 2, "the canaries again");
    world.update = "old";
    world.decide();
    assert_eq!(world.last.admitted, Admitted::All);
    world.run(3);
    assert_eq!((world.state(), world.on("old").len()), (State::Complete, 10));
}

#[test]
fn l_10_it_is_told_how_many_nodes_go_back_to_the_stable_revision() {
    for (count, expected) in [
        (1, "1 node lacks revision 1, and gets it"),
        (2, "2 nodes lack revision 1, and get it"),
    ] {
        let mut world = World::new(Spec::default());
        world.update = "old";
        world
            .nodes
            .iter_mut()
            .take(count)
            .for_each(|node| node.pod = Some("new"));
        world.decide();
        assert_eq!(world.last.status.message, expected);
    }
}

#[test]
fn l_15_nodes_that_join_a_complete_stage_are_admitted_at_once() {
    let mut world = World::new(Spec {
        stages: vec![
            Stage {
                selector: Some(selects("zone", "a")),
                ..stage("a")
            },
            Stage {
                soak: Duration::from_secs(10_000),
                ..stage("rest")
            },
        ],
        ..Spec::default()
    });
    world.run(10);
    assert_eq!(world.state(), State::Soaking);
    let mut joined = world.nodes[0].clone();
    joined.name = "joined".to_owned();
    joined.pod = None;
    world.nodes.push(joined);
    world.decide();
    assert!(world.admitted().contains(&"joined"));
}

#[test]
fn l_18_no_more_nodes_than_the_pace_are_begun_within_its_interval() {
    let mut world = World::new(Spec {
        pace: Some(Pace {
            nodes: 3,
            interval: Duration::from_mins(1),
        }),
        ..Spec::default()
    });
    assert_eq!(world.decide().pace_left, Some(3));
    world.policy.status.targets[0].note_begun(2, at(0));
    world.now = at(30);
    assert_eq!(world.decide().pace_left, Some(1));
    world.policy.status.targets[0].note_begun(1, at(30));
    assert_eq!(world.decide().pace_left, Some(0));
    let waits = world.last.again.iter().map(|(left, _)| left.as_secs()).min();
    assert_eq!(waits, Some(30));
    world.now = at(60);
    assert_eq!(world.decide().pace_left, Some(2));
}

// A canary stays one when the next stage updates nodes that its stage selects as well.
#[test]
fn l_12_later_stages_change_no_choice() {
    let mut spec = staged();
    spec.stages[1].soak = Duration::from_secs(20);
    let mut world = World::new(spec);
    let mut first: Option<Vec<usize>> = None;
    for _ in 0..60 {
        world.step(10);
        world.decide();
        let stages = world.last.status.stages.clone();
        if world.state() == State::Complete {
            break;
        }
        assert_eq!(
            stages
                .iter()
                .map(|stage| (&*stage.name, stage.nodes))
                .collect::<Vec<_>>(),
            [("canary", 2), ("zones/a", 4), ("zones/b", 4)]
        );
        let wave = |index: &usize| world.last.nodes.of(*index).wave == Some(0);
        let canaries: Vec<usize> = (0..10).filter(wave).collect();
        if stages[0].updated == 2 {
            assert_eq!(*first.get_or_insert_with(|| canaries.clone()), canaries);
        }
    }
    assert_eq!(world.state(), State::Complete);
    assert!(first.is_some());
}

// A node whose clock is ahead must not make a soak begin anew in each plan.
#[test]
fn l_14_a_clock_that_is_ahead_does_not_stop_a_soak() {
    let mut world = World::new(staged());
    world.run(2);
    for node in world.nodes.iter_mut().filter(|node| node.pod == Some("new")) {
        node.clock_is_ahead = true;
    }
    world.run(7);
    assert_eq!(world.stage_states()[0], ("canary", StageState::Complete));
}

// Each transition is told once, however often a plan is made.
#[test]
fn l_37_a_rollout_tells_its_course() {
    let mut spec = staged();
    spec.stages[0].needs_approval = true;
    spec.failure_threshold = IntOrString::Int(1);
    spec.progress_deadline = Duration::from_secs(40);
    let mut world = World::new(spec);
    world.events.clear();
    world.run(3);
    let pending = world.last.status.pending_approval.clone();
    world.policy.requests.approve = pending.map(|pending| pending.digest);
    world.run(2);
    // The canaries are good, and every later node is bad.
    world.bad = vec!["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    for _ in 0..20 {
        if world.events.last() == Some(&"RolloutStageStarted") && world.events.len() > 2 {
            break;
        }
        world.step(10);
    }
    let old: Vec<String> = world.on("old").into_iter().map(str::to_owned).collect();
    let not_ready = |world: &mut World, since| {
        for name in &old {
            world.node(name).not_ready_since = since;
        }
    };
    not_ready(&mut world, Some(at(-100)));
    world.run(1);
    not_ready(&mut world, None);
    world.run(20);
    assert_eq!(
        world.events,
        [
            "RolloutAwaitingApproval",
            "RolloutStageStarted",
            "RolloutStageComplete",
            "RolloutStageStarted",
            "RolloutHeld",
            "RolloutRejected",
            "RolloutRollingBack",
            "RolloutRolledBack",
        ]
    );
    assert_eq!(world.state(), State::RolledBack);
}

#[test]
fn l_35_a_lost_status_costs_time_and_no_node_more_than_the_stage() {
    let mut world = World::new(staged());
    world.run(3);
    assert_eq!(world.on("new").len(), 2);
    world.policy.status = PolicyStatus::default();
    world.decide();
    assert_eq!(world.last.status.stable_revision, Some(revision("old")));
    assert_eq!(world.admitted(), world.on("new"), "the same canaries");
    let again = world.last.clone();
    world.policy.status = PolicyStatus::default();
    world.decide();
    assert_eq!(
        world.last.status, again.status,
        "the same snapshot gives the same decision"
    );
}

#[test]
fn the_options_are_handed_on() {
    let mut world = World::new(Spec {
        disruption: Disruption::Evict,
        order: Order::OldestPod,
        unadmitted: Unadmitted::Update,
        ..staged()
    });
    world.decide();
    assert!(world.last.evicts && !world.last.keeps_stable);
    assert_eq!(world.last.order, Some(Order::OldestPod));
}

#[test]
fn l_5_pods_on_nodes_that_are_not_admitted_are_left_alone() {
    let mut world = World::new(staged());
    world.node("n3").pod = Some("older");
    world.run(3);
    assert_eq!((world.on("new").len(), world.on("older")), (2, vec!["n3"]));
}
