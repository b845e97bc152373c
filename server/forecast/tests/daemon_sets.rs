//! Plays DaemonSets: how they end, in how many steps, and that no step exceeds the budget.

use std::{ops::ControlFlow, time::Duration};

use jiff::Timestamp;
use nodewise_forecast::{Assumptions, Bounds, End, Forecast, Limit, Step, Verb, daemon_set};
use nodewise_planner::{
    daemonset::{DaemonSet, RollingUpdate, RolloutInputs, Scheduling, UpdateStrategy},
    plan::DaemonSetStatus,
    snapshot::{Bucket, IntOrString, Labels, Node, NodeView, Options, Selector, Snapshot, State},
};
use serde_json::json;

/// A new DaemonSet on this many nodes, with this strategy.
fn new(nodes: usize, strategy: UpdateStrategy) -> Snapshot<DaemonSet> {
    let workload = DaemonSet {
        name: "agent".into(),
        namespace: "default".into(),
        uid: "5b6f2a34".into(),
        resource_version: "1".into(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(Selector {
            match_labels: Some(vec![("app".into(), "agent".into())]),
            match_expressions: None,
        }),
        template: json!({
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        })
        .into(),
        scheduling: Scheduling::default(),
        strategy,
        min_ready_seconds: 0,
        revision_history_limit: Some(10),
        status: DaemonSetStatus::default(),
        collision_count: None,
        rollout: RolloutInputs::default(),
    };
    let node = |number: usize| Node {
        name: format!("node-{number:03}"),
        labels: Labels::default(),
        taints: vec![],
        unschedulable: false,
        ready: Some(true),
        ready_since: None,
        in_maintenance: false,
    };
    Snapshot {
        now: Timestamp::UNIX_EPOCH,
        workload,
        revisions: vec![],
        buckets: Bucket::divide((0..nodes).map(node).collect(), vec![], 4, |name| name.len() % 4),
        state: State::default(),
        own_writes: vec![],
        options: Options::default(),
    }
}

fn rolling(max_unavailable: i32, max_surge: i32) -> UpdateStrategy {
    UpdateStrategy::RollingUpdate(Some(RollingUpdate {
        max_unavailable: Some(IntOrString::Int(max_unavailable)),
        max_surge: Some(IntOrString::Int(max_surge)),
    }))
}

/// Old pods of another template on every node, all available for long.
fn outdated(nodes: usize, strategy: UpdateStrategy) -> Snapshot<DaemonSet> {
    use nodewise_planner::snapshot::{ControllerRef, Pod, PodPhase, Target};
    let mut snapshot = new(nodes, strategy);
    snapshot.now = Timestamp::from_second(1_000_000).expect("a time");
    let controller = std::sync::Arc::new(ControllerRef {
        kind: "DaemonSet".into(),
        name: "agent".into(),
        uid: "5b6f2a34".into(),
    });
    let pods = (0..nodes).map(|number| Pod {
        name: format!("agent-old-{number:03}"),
        uid: format!("old-{number:03}"),
        labels: Labels::new(vec![
            ("app".into(), "agent".into()),
            ("controller-revision-hash".into(), "old".into()),
        ]),
        controller: Some(controller.clone()),
        target: Target::Bound(format!("node-{number:03}")),
        phase: PodPhase::Running,
        ready: true,
        ready_since: Some(Timestamp::UNIX_EPOCH),
        created: Some(Timestamp::UNIX_EPOCH),
        deleting: false,
        has_finalizers: false,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
    });
    let nodes = snapshot.nodes().map(NodeView::to_node).collect();
    snapshot.buckets = Bucket::divide(nodes, pods.collect(), 4, |name| name.len() % 4);
    snapshot
}

fn assumptions(ready: u64, failing: f64, seed: u64) -> Assumptions {
    Assumptions {
        ready_after: Duration::from_secs(ready),
        gone_after: Duration::from_secs(1),
        failing,
        seed,
    }
}

fn play(snapshot: Snapshot<DaemonSet>, assumptions: &Assumptions, bounds: &Bounds) -> (Vec<Step>, Forecast) {
    let mut steps = Vec::new();
    let forecast = daemon_set(snapshot, assumptions, bounds, &|| false, &mut |step| {
        steps.push(step);
        ControlFlow::Continue(())
    });
    (steps, forecast.expect("it can be played"))
}

fn pods(steps: &[Step], verb: Verb) -> usize {
    let changes = steps.iter().flat_map(|step| &step.changes);
    changes
        .filter(|change| change.verb == verb && change.resource == "pods")
        .count()
}

#[test]
fn a_new_daemon_set_is_ready_after_one_start() {
    let (steps, forecast) = play(
        new(30, rolling(1, 0)),
        &assumptions(30, 0.0, 0),
        &Bounds::default(),
    );
    assert_eq!(forecast.end, End::Done);
    assert_eq!(forecast.took, Duration::from_secs(30));
    assert_eq!(pods(&steps, Verb::Create), 30);
    assert_eq!(forecast.counts.available, 30);
}

#[test]
fn rollouts_end_and_keep_to_their_budget() {
    // (nodes, maxUnavailable, maxSurge, the seconds until ready, the waves)
    for (nodes, unavailable, surge, ready, waves) in [
        (5, 1, 0, 10, 5),
        (30, 3, 0, 30, 10),
        (30, 7, 0, 1, 5),
        (30, 30, 0, 10, 1),
        (12, 0, 4, 10, 3),
        (12, 0, 1, 2, 12),
    ] {
        let case = format!("{nodes} nodes, {unavailable}/{surge}");
        let snapshot = outdated(nodes, rolling(unavailable, surge));
        let (steps, forecast) = play(snapshot, &assumptions(ready, 0.0, 0), &Bounds::default());
        assert_eq!(forecast.end, End::Done, "{case}");
        assert_eq!(
            (pods(&steps, Verb::Create), pods(&steps, Verb::Delete)),
            (nodes, nodes),
            "{case}"
        );
        let allowed = u32::try_from(unavailable).expect("a count");
        for step in &steps {
            assert!(step.worst_unavailable <= allowed, "{case}: {step:?}");
            assert!(
                step.counts.unavailable <= step.worst_unavailable,
                "{case}: {step:?}"
            );
        }
        assert_eq!(forecast.worst_unavailable, allowed, "{case}");
        // In each wave pods start; without surge, the old ones are gone first.
        let wave = if surge > 0 { ready } else { ready + 1 };
        let took = forecast.took.as_secs();
        assert!(
            (waves * wave..=waves * (wave + 1)).contains(&took),
            "{case}: {took} s"
        );
        assert!(steps.is_sorted_by_key(|step| step.at), "{case}");
    }
}

#[test]
fn failing_pods_use_up_the_budget() {
    let failing = assumptions(10, 0.1, 7);
    let (steps, forecast) = play(outdated(30, rolling(2, 0)), &failing, &Bounds::default());
    let End::Stuck { cause, blocking } = &forecast.end else {
        panic!("{:?}", forecast.end);
    };
    assert_eq!(
        cause,
        "2 nodes stay without an available pod, and maxUnavailable allows 2"
    );
    assert_eq!(blocking.len(), 2);
    assert_eq!(forecast.failed_pods, 2);
    assert!(steps.iter().all(|step| step.worst_unavailable <= 2));

    // With more budget than failing pods, all nodes are updated, and the rollout still never ends.
    let (_, forecast) = play(outdated(30, rolling(5, 0)), &failing, &Bounds::default());
    let End::Stuck { cause, .. } = &forecast.end else {
        panic!("{:?}", forecast.end);
    };
    assert_eq!(cause, "3 nodes stay without an available pod");
    assert_eq!((forecast.counts.updated, forecast.counts.available), (30, 27));
}

#[test]
fn the_seed_decides_which_pods_fail() {
    let played = |seed| {
        play(
            outdated(40, rolling(2, 0)),
            &assumptions(5, 0.05, seed),
            &Bounds::default(),
        )
    };
    assert_eq!(played(1), played(1));
    assert_ne!(played(1).1.end, played(2).1.end);
}

#[test]
fn on_delete_gets_stuck_at_once() {
    let (_, forecast) = play(
        outdated(3, UpdateStrategy::OnDelete),
        &assumptions(1, 0.0, 0),
        &Bounds::default(),
    );
    let End::Stuck { cause, .. } = &forecast.end else {
        panic!("{:?}", forecast.end);
    };
    assert_eq!(
        cause,
        "the strategy is OnDelete: old pods stay until somebody deletes them"
    );
}

#[test]
fn bounds_end_a_play() {
    let assumed = assumptions(10, 0.0, 0);
    let bounds = Bounds {
        time: Duration::from_secs(25),
        ..Bounds::default()
    };
    let (_, forecast) = play(outdated(9, rolling(1, 0)), &assumed, &bounds);
    assert_eq!(forecast.end, End::Bound(Limit::Time));
    assert!(forecast.took <= bounds.time);

    let bounds = Bounds {
        steps: 3,
        ..Bounds::default()
    };
    let (steps, forecast) = play(outdated(9, rolling(1, 0)), &assumed, &bounds);
    assert_eq!((steps.len(), forecast.end), (3, End::Bound(Limit::Steps)));

    let bounds = Bounds {
        nodes: 8,
        ..Bounds::default()
    };
    let refused = daemon_set(
        outdated(9, rolling(1, 0)),
        &assumed,
        &bounds,
        &|| false,
        &mut |_| ControlFlow::Continue(()),
    );
    assert_eq!(
        refused.expect_err("too many").to_string(),
        "the snapshot has 9 nodes, more than the 8 that are played"
    );
}

#[test]
fn the_caller_can_stop() {
    let assumed = assumptions(10, 0.0, 0);
    let stopped = daemon_set(
        outdated(9, rolling(1, 0)),
        &assumed,
        &Bounds::default(),
        &|| true,
        &mut |_| ControlFlow::Continue(()),
    );
    assert_eq!(stopped.expect("valid").end, End::Cancelled);
    let mut seen = 0;
    let broken = daemon_set(
        outdated(9, rolling(1, 0)),
        &assumed,
        &Bounds::default(),
        &|| false,
        &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        },
    );
    assert_eq!((broken.expect("valid").end, seen), (End::Cancelled, 1));
}

/// A policy that updates two nodes first, and waits for an approval, a check and a window before the others.
fn gated() -> nodewise_planner::rollout::Policy {
    use nodewise_planner::rollout::{
        Policy, Requests, Spec, Stage, Targets, Window,
        analysis::{Check, When},
        measurement::Provider,
    };
    let check = Check {
        name: "errors".into(),
        when: When::WhileSoaking,
        provider: Provider::Webhook {
            url: "http://hooks".into(),
        },
        condition: None,
        credential: String::new(),
        interval: Duration::from_mins(1),
        count: 3,
        failure_limit: 0,
        inconclusive_limit: 0,
        consecutive_error_limit: 0,
    };
    Policy {
        name: "agents".into(),
        uid: "policy-uid".into(),
        resource_version: "1".into(),
        generation: 1,
        created: None,
        deleting: false,
        requests: Requests::default(),
        targets: Some(Targets::Names(vec!["agent".into()])),
        spec: Ok(Spec {
            stages: vec![
                Stage {
                    name: "canary".into(),
                    replicas: Some(IntOrString::Int(2)),
                    soak: Duration::from_mins(10),
                    checks: vec![check],
                    ..Stage::default()
                },
                Stage {
                    name: "rest".into(),
                    needs_approval: true,
                    ..Stage::default()
                },
            ],
            windows: vec![Window::parse(&[], Some("14:00"), Some("15:00"), "UTC").expect("a window")],
            ..Spec::default()
        }),
        status: nodewise_planner::rollout::status::PolicyStatus::default(),
    }
}

// L-41: the play has the stages, the soak and the windows. Checks pass, and approvals are given at once.
#[test]
fn l_41_a_play_heeds_the_policy() {
    let mut snapshot = outdated(10, rolling(5, 0));
    // 1970-01-12, 13:46 in UTC.
    snapshot.workload.rollout.policies = vec![gated()];
    // The old pods are of a revision that can be created from.
    let old = nodewise_planner::snapshot::Revision {
        name: "agent-old".into(),
        uid: "old-uid".into(),
        labels: Labels::new(vec![
            ("app".into(), "agent".into()),
            ("controller-revision-hash".into(), "old".into()),
        ]),
        controller: Some(nodewise_planner::snapshot::ControllerRef {
            kind: "DaemonSet".into(),
            name: "agent".into(),
            uid: "5b6f2a34".into(),
        }),
        created: None,
        deleting: false,
        number: 1,
        data: json!({"spec": {"template": {"$patch": "replace", "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent:0"}]}}}})
        .into(),
        read_after_name_collision: false,
    };
    snapshot.revisions = vec![old];
    let (steps, forecast) = play(snapshot, &assumptions(10, 0.0, 0), &Bounds::default());
    assert_eq!(forecast.end, End::Done, "{forecast:?}");
    let begins = |step: &&Step| step.changes.iter().any(|change| change.verb == Verb::Delete);
    let first = steps.iter().find(begins).expect("the canaries are replaced");
    // The window opens after 13 minutes and 20 seconds.
    assert_eq!(first.at, Duration::from_secs(13 * 60 + 20), "{steps:#?}");
    let deleted = first
        .changes
        .iter()
        .filter(|change| change.verb == Verb::Delete)
        .count();
    assert_eq!(deleted, 2, "two canaries");
    let second = steps
        .iter()
        .filter(begins)
        .nth(1)
        .expect("the others are replaced");
    let soaked = second.at.saturating_sub(first.at);
    assert!(
        soaked >= Duration::from_mins(10) && soaked < Duration::from_mins(12),
        "{soaked:?}"
    );
}
