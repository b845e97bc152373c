//! Plays Deployments and ReplicaSets: how they end, and that no step exceeds the budget.

use std::{ops::ControlFlow, time::Duration};

use jiff::Timestamp;
use nodewise_forecast::{Assumptions, Bounds, End, Forecast, Step, Verb, deployment, replica_set};
use nodewise_planner::{
    deployment::{Deployment, RollingUpdate, Strategy},
    plan::{DeploymentStatus, ReplicaSetStatus},
    replicaset::ReplicaSet,
    snapshot::{IntOrString, Labels, Options, Selector, Snapshot, State},
};
use serde_json::json;

fn selector() -> Selector {
    Selector {
        match_labels: Some(vec![("app".into(), "web".into())]),
        match_expressions: None,
    }
}

fn snapshot<W>(workload: W) -> Snapshot<W> {
    Snapshot {
        now: Timestamp::from_second(1_000_000).expect("a time"),
        workload,
        revisions: vec![],
        buckets: vec![],
        state: State::default(),
        own_writes: vec![],
        options: Options::default(),
    }
}

/// A new Deployment.
fn new(replicas: i32, strategy: Strategy) -> Snapshot<Deployment> {
    snapshot(Deployment {
        name: "web".into(),
        namespace: "shop".into(),
        uid: "5b6f2a34".into(),
        resource_version: "1".into(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(selector()),
        selector_json: json!({"matchLabels": {"app": "web"}}).into(),
        replicas,
        paused: false,
        strategy,
        min_ready_seconds: 0,
        progress_deadline_seconds: Some(600),
        revision_history_limit: Some(10),
        template: json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        })
        .into(),
        status: DeploymentStatus::default(),
        sets: vec![],
    })
}

fn rolling(max_unavailable: i32, max_surge: i32) -> Strategy {
    Strategy::RollingUpdate(Some(RollingUpdate {
        max_unavailable: Some(IntOrString::Int(max_unavailable)),
        max_surge: Some(IntOrString::Int(max_surge)),
    }))
}

/// A Deployment whose pods all have another template. The ReplicaSet and its pods are those that the planner would make.
fn outdated(replicas: i32, strategy: Strategy) -> Snapshot<Deployment> {
    use std::sync::Arc;

    use nodewise_planner::{
        deployment::Set,
        snapshot::{Bucket, ControllerRef, Pod, PodPhase, Target},
    };
    let mut snapshot = new(replicas, strategy);
    let labels = || {
        vec![
            ("app".to_owned(), "web".to_owned()),
            ("pod-template-hash".to_owned(), "old".to_owned()),
        ]
    };
    let owner = |kind: &str, name: &str, uid: &str| ControllerRef {
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
    };
    let counts = ReplicaSetStatus {
        replicas,
        fully_labeled_replicas: replicas,
        ready_replicas: replicas,
        available_replicas: replicas,
        observed_generation: 1,
        ..ReplicaSetStatus::default()
    };
    snapshot.workload.sets = vec![Set {
        name: "web-old".into(),
        uid: "set-old".into(),
        resource_version: "1".into(),
        generation: 1,
        deleting: false,
        labels: Labels::new(labels()),
        annotations: vec![
            (
                "deployment.kubernetes.io/desired-replicas".into(),
                replicas.to_string(),
            ),
            ("deployment.kubernetes.io/revision".into(), "1".into()),
        ],
        controller: Some(owner("Deployment", "web", "5b6f2a34")),
        created: Some(Timestamp::UNIX_EPOCH),
        replicas,
        min_ready_seconds: 0,
        template: json!({
            "metadata": {"labels": {"app": "web", "pod-template-hash": "old"}},
            "spec": {"containers": [{"name": "web", "image": "web:0"}]},
        })
        .into(),
        status: counts,
        unfinished_pods: u32::try_from(replicas).expect("a count"),
        read_after_name_collision: false,
    }];
    let controller = Arc::new(owner("ReplicaSet", "web-old", "set-old"));
    let pods = (0..replicas).map(|number| Pod {
        name: format!("web-old-{number:03}"),
        uid: format!("old-{number:03}"),
        labels: Labels::new(labels()),
        controller: Some(controller.clone()),
        target: Target::Bound(format!("node-{}", number % 3)),
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
    snapshot.buckets = Bucket::divide(vec![], pods.collect(), 4, |name| name.len() % 4);
    snapshot
}

fn assumptions(ready: u64, failing: f64) -> Assumptions {
    Assumptions {
        ready_after: Duration::from_secs(ready),
        gone_after: Duration::from_secs(2),
        failing,
        seed: 0,
    }
}

fn play(snapshot: Snapshot<Deployment>, assumptions: &Assumptions) -> (Vec<Step>, Forecast) {
    let mut steps = Vec::new();
    let forecast = deployment(
        snapshot,
        assumptions,
        &Bounds::default(),
        &|| false,
        &mut |step| {
            steps.push(step);
            ControlFlow::Continue(())
        },
    );
    (steps, forecast.expect("it can be played"))
}

fn count(steps: &[Step], verb: Verb, resource: &str) -> usize {
    let changes = steps.iter().flat_map(|step| &step.changes);
    changes
        .filter(|change| change.verb == verb && change.resource == resource)
        .count()
}

#[test]
fn a_new_deployment_creates_a_replica_set_and_its_pods() {
    let (steps, forecast) = play(new(7, rolling(1, 1)), &assumptions(30, 0.0));
    assert_eq!(forecast.end, End::Done, "{steps:#?}");
    assert_eq!(forecast.took, Duration::from_secs(30));
    assert_eq!(count(&steps, Verb::Create, "replicasets"), 1);
    assert_eq!(count(&steps, Verb::Create, "pods"), 7);
    assert_eq!((forecast.counts.updated, forecast.counts.available), (7, 7));
}

#[test]
fn rollouts_end_and_keep_to_both_budgets() {
    // (replicas, maxUnavailable, maxSurge)
    for (replicas, unavailable, surge) in [
        (3, 0, 1),
        (10, 2, 0),
        (10, 3, 3),
        (30, 7, 8),
        (1, 0, 1),
        (100, 25, 25),
    ] {
        let case = format!("{replicas} replicas, {unavailable}/{surge}");
        let (steps, forecast) = play(
            outdated(replicas, rolling(unavailable, surge)),
            &assumptions(10, 0.0),
        );
        assert_eq!(forecast.end, End::Done, "{case}: {steps:#?}");
        let pods = usize::try_from(replicas).expect("a count");
        assert_eq!(
            (
                count(&steps, Verb::Create, "pods"),
                count(&steps, Verb::Delete, "pods")
            ),
            (pods, pods),
            "{case}"
        );
        let allowed = |limit: i32| u32::try_from(limit).expect("a count");
        for step in &steps {
            assert!(step.worst_unavailable <= allowed(unavailable), "{case}: {step:?}");
            assert!(step.worst_surging <= allowed(surge), "{case}: {step:?}");
            assert_eq!(
                (step.budget.max_unavailable, step.budget.max_surge),
                (allowed(unavailable), allowed(surge)),
                "{case}"
            );
        }
        assert_eq!(forecast.worst_unavailable, allowed(unavailable), "{case}");
        assert_eq!(forecast.worst_surging, allowed(surge), "{case}");
    }
}

#[test]
fn recreate_has_no_pod_in_between() {
    let (steps, forecast) = play(outdated(5, Strategy::Recreate), &assumptions(10, 0.0));
    assert_eq!(forecast.end, End::Done, "{steps:#?}");
    assert_eq!(forecast.worst_unavailable, 5);
    assert_eq!(forecast.worst_surging, 0);
    // The old pods go first, which takes 2 s; then the new ones start, which takes 10 s.
    assert_eq!(forecast.took, Duration::from_secs(12));
}

#[test]
fn failing_pods_stop_a_rollout() {
    let (steps, forecast) = play(outdated(10, rolling(1, 1)), &assumptions(10, 1.0));
    let End::Stuck { cause, blocking } = &forecast.end else {
        panic!("{:?}: {steps:#?}", forecast.end);
    };
    assert_eq!(
        cause,
        "new pods that are not ready: 2; maxUnavailable allows 1, maxSurge 1"
    );
    assert_eq!(blocking.len(), 2);
    assert_eq!(forecast.failed_pods, 2);
}

#[test]
fn a_paused_deployment_waits() {
    let mut paused = outdated(4, rolling(1, 1));
    paused.workload.paused = true;
    let (_, forecast) = play(paused, &assumptions(10, 0.0));
    let End::Stuck { cause, .. } = &forecast.end else {
        panic!("{:?}", forecast.end);
    };
    assert_eq!(
        cause,
        "spec.paused is true: the rollout waits until somebody resumes it"
    );
}

#[test]
fn equal_snapshots_give_equal_plays() {
    let played = || play(outdated(12, rolling(3, 2)), &assumptions(7, 0.1));
    assert_eq!(played(), played());
}

#[test]
fn a_replica_set_gets_its_pods() {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
    let set = ReplicaSet {
        name: "web".into(),
        namespace: "shop".into(),
        uid: "5b6f2a34".into(),
        resource_version: "1".into(),
        generation: 1,
        deleting: false,
        selector: Some(selector()),
        replicas: 40,
        min_ready_seconds: 5,
        template: template.into(),
        template_labels: Labels::new(vec![("app".into(), "web".into())]),
        status: ReplicaSetStatus::default(),
        related_pods: vec![],
    };
    let mut steps = Vec::new();
    let played = replica_set(
        snapshot(set.clone()),
        &assumptions(10, 0.0),
        &Bounds::default(),
        &|| false,
        &mut |step| {
            steps.push(step);
            ControlFlow::Continue(())
        },
    );
    let forecast = played.expect("it can be played");
    assert_eq!(forecast.end, End::Done, "{steps:#?}");
    assert_eq!(count(&steps, Verb::Create, "pods"), 40);
    assert_eq!(
        forecast.took,
        Duration::from_secs(15),
        "10 s until ready, then 5 s more"
    );

    let bounds = Bounds {
        nodes: 39,
        ..Bounds::default()
    };
    let refused = replica_set(
        snapshot(set),
        &assumptions(10, 0.0),
        &bounds,
        &|| false,
        &mut |_| ControlFlow::Continue(()),
    );
    assert_eq!(
        refused.expect_err("too many").to_string(),
        "the snapshot has 40 replicas, more than the 39 that are played"
    );
}
