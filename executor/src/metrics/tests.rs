use nodewise_proto::workload::DAEMON_SET;

use super::*;

fn agent() -> Key {
    Key::new(DAEMON_SET, "a", "agent")
}

fn plan() -> v1::Plan {
    let action = v1::Action {
        id: 1,
        reason: v1::Reason::NodeWithoutPod.into(),
        kind: Some(v1::action::Kind::CreatePod(v1::CreatePod::default())),
        ..v1::Action::default()
    };
    let batch = v1::Batch {
        actions: vec![action],
        confirm_workload: false,
    };
    v1::Plan {
        verdict: v1::Verdict::Apply.into(),
        workload: Some(v1::WorkloadReference {
            kind: DAEMON_SET.into(),
            name: "agent".into(),
            namespace: "a".into(),
            ..Default::default()
        }),
        phases: vec![v1::Phase {
            batches: vec![batch],
            ..v1::Phase::default()
        }],
        rollout: Some(v1::Rollout {
            desired: 10,
            without_pod: 1,
            outdated: 2,
            updated_unavailable: 3,
            updated_available: 4,
            max_unavailable: 5,
            unavailable: 6,
            ..v1::Rollout::default()
        }),
        ..v1::Plan::default()
    }
}

/// The plan's only action has succeeded.
fn applied() -> Applied {
    let outcome = v1::Outcome {
        action_id: 1,
        result: v1::Result::Succeeded.into(),
        ..v1::Outcome::default()
    };
    Applied {
        outcomes: vec![outcome],
        batches: 1,
        ..Applied::default()
    }
}

// D-110: names and labels that dashboards rely on.
#[test]
fn well_known_names_are_exposed() {
    let metrics = Metrics::new();
    let queue = metrics.runtime().queue("daemonset");
    queue.added(3);
    queue.retried();
    drop(queue.work_started(Duration::from_millis(5)));
    metrics.runtime().set_leader(true);
    metrics.runtime().lease_slow_path();
    metrics.stale_sync(DAEMON_SET, Resource::PODS);
    let text = metrics.encode();
    for line in [
        "workqueue_depth{name=\"daemonset\"} 3",
        "workqueue_adds_total{name=\"daemonset\"} 1",
        "workqueue_retries_total{name=\"daemonset\"} 1",
        "workqueue_queue_duration_seconds_count{name=\"daemonset\"} 1",
        "workqueue_work_duration_seconds_count{name=\"daemonset\"} 1",
        "workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0",
        "workqueue_longest_running_processor_seconds{name=\"daemonset\"} 0.0",
        "leader_election_master_status{name=\"nodewise-executor\"} 1",
        "leader_election_slowpath_total{name=\"nodewise-executor\"} 1",
        "daemonset_controller_stale_sync_skips_total{group=\"\",resource=\"pods\"} 1",
    ] {
        assert_line(&text, line);
    }
}

#[test]
fn work_under_way_ages_until_it_ends() {
    let metrics = Metrics::new();
    let queue = metrics.runtime().queue("daemonset");
    let (first, second) = (
        queue.work_started(Duration::ZERO),
        queue.work_started(Duration::ZERO),
    );
    assert!(
        !metrics
            .encode()
            .contains("workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0\n")
    );
    drop((first, second));
    assert!(
        metrics
            .encode()
            .contains("workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0\n")
    );
}

#[test]
fn plans_and_actions_are_counted_and_forgotten_with_their_workload() {
    let metrics = Metrics::new();
    let plan = plan();
    metrics.plan_answered(DAEMON_SET, Duration::from_millis(3), 2_000, &plan);
    assert!(!metrics.encode().contains("\"agent\""), "it was not checked yet");
    metrics.planned(&agent(), &plan);
    metrics.plan_failed(DAEMON_SET, Duration::from_millis(3), tonic::Code::Unavailable);
    metrics.applied(DAEMON_SET, &plan, &applied());
    metrics.expectations(&agent(), 1, 0);
    let text = metrics.encode();
    for line in [
        "nodewise_plans_total{kind=\"DaemonSet\",verdict=\"apply\"} 1",
        "nodewise_plan_errors_total{kind=\"DaemonSet\",code=\"UNAVAILABLE\"} 1",
        "nodewise_actions_total{kind=\"DaemonSet\",action=\"CreatePod\",reason=\"NODE_WITHOUT_POD\",result=\"SUCCEEDED\"} 1",
        "nodewise_rollout_nodes{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",state=\"without_pod\"} 1",
        "nodewise_rollout_nodes{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",state=\"outdated\"} 2",
        "nodewise_rollout_nodes{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",state=\"updated_unavailable\"} 3",
        "nodewise_rollout_nodes{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",state=\"updated_available\"} 4",
        "nodewise_rollout_budget{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",budget=\"max_unavailable\"} 5",
        "nodewise_rollout_budget_used{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",budget=\"max_unavailable\"} 6",
        "nodewise_rollout_budget_used{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",budget=\"max_surge\"} 0",
        "nodewise_expectations{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",state=\"create\"} 1",
    ] {
        assert_line(&text, line);
    }
    assert_eq!((metrics.plans(), metrics.batches()), (1, 1));
    metrics.forget_workload(&agent());
    assert!(!metrics.encode().contains("agent"));
}

// The annotation that makes a companion act may be removed.
#[test]
fn series_of_a_rollout_without_a_plan_are_removed() {
    let metrics = Metrics::new();
    let answered = |plan: &v1::Plan| {
        metrics.planned(&agent(), plan);
        metrics.encode().contains("nodewise_rollout_")
    };
    let without = |verdict: v1::Verdict| v1::Plan {
        verdict: verdict.into(),
        rollout: None,
        ..plan()
    };
    assert!(answered(&plan()));
    assert!(answered(&without(v1::Verdict::Stale)), "it is made again");
    assert!(!answered(&without(v1::Verdict::Noop)));
}

// No label names a replica, so the number of series does not grow with restarts.
#[test]
fn replicas_are_counted_without_their_names() {
    let metrics = Metrics::new();
    metrics.replicas(&ReplicaCounts {
        ready: 2,
        evicted: 1,
        ..ReplicaCounts::default()
    });
    metrics.call(Method::Plan, Fate::TimedOut);
    metrics.call(Method::Report, Fate::Answered);
    metrics.replica_evicted(Evicted::Health);
    metrics.hedged(Hedge::Won);
    metrics.planned_elsewhere();
    metrics.reconciled(&agent(), "settled", Duration::from_millis(3));
    let text = metrics.encode();
    for line in [
        "nodewise_replicas{state=\"ready\"} 2",
        "nodewise_replicas{state=\"evicted\"} 1",
        "nodewise_replicas{state=\"draining\"} 0",
        "nodewise_replica_calls_total{method=\"plan\",outcome=\"timed_out\"} 1",
        "nodewise_replica_calls_total{method=\"report\",outcome=\"answered\"} 1",
        "nodewise_replica_evictions_total{cause=\"health\"} 1",
        "nodewise_plan_hedges_total{outcome=\"won\"} 1",
        "nodewise_plans_elsewhere_total 1",
        "nodewise_reconcile_duration_seconds_count{kind=\"DaemonSet\",outcome=\"settled\"} 1",
    ] {
        assert_line(&text, line);
    }
}

fn workload(status: &serde_json::Value) -> Workload {
    let object = serde_json::json!({
        "metadata": {"namespace": "a", "name": "agent", "uid": "u1", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}},
        "status": status,
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

#[test]
fn how_old_a_rollout_is_goes_with_its_workload() {
    let metrics = Metrics::new();
    let status = serde_json::json!({
        "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberAvailable": 1, "updatedNumberScheduled": 2,
    });
    metrics.workload_status(&workload(&status));
    let text = metrics.encode();
    assert!(text.contains(
        "nodewise_rollout_since_progress_seconds{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\"} "
    ));
    metrics.forget_workload(&agent());
    assert!(!metrics.encode().contains("agent"));
}

#[test]
fn failures_in_a_row_are_those_of_one_workload() {
    let metrics = Metrics::new();
    let end = |outcome| metrics.reconciled(&agent(), outcome, Duration::ZERO);
    let failures = |count: u32| {
        format!("nodewise_reconcile_failures{{kind=\"DaemonSet\",namespace=\"a\",name=\"agent\"}} {count}")
    };
    for outcome in ["failed", "behind", "failed", "unreachable"] {
        end(outcome);
    }
    assert_line(&metrics.encode(), &failures(2));
    end("settled");
    assert!(!metrics.encode().contains("agent"));
    end("failed");
    assert_line(&metrics.encode(), &failures(1));
    metrics.forget_workload(&agent());
    assert!(!metrics.encode().contains("agent"));
}

// An executor that does not lead any more exports nothing about workloads.
#[test]
fn series_of_workloads_are_removed_at_the_end() {
    let metrics = Metrics::new();
    metrics.expectations(&agent(), 1, 0);
    metrics.plan_answered(DAEMON_SET, Duration::ZERO, 1, &plan());
    metrics.planned(&agent(), &plan());
    metrics.workload_status(&workload(&serde_json::Value::Null));
    metrics.reconciled(&agent(), "failed", Duration::ZERO);
    metrics.foreign_pod_deletes(&agent(), 1);
    metrics.blocked(&agent(), &[("Error".to_owned(), 1)], true);
    metrics.other_owner(&agent(), "pod");
    metrics.observed(&agent(), &plan());
    metrics
        .families()
        .divergence
        .get_or_create(&WorkloadLabels::of(&agent()))
        .set(1);
    assert!(!metrics.divergence_report().starts_with("0 of 0"));
    metrics.runtime().watched(Resource::PODS, "9");
    assert!(metrics.encode().contains("nodewise_watch_since_event_seconds{"));
    metrics.forget_everything();
    assert!(metrics.divergence_report().starts_with("0 of 0"));
    let text = metrics.encode();
    assert!(
        !text.contains("agent") && !text.contains("nodewise_watch_since_event_seconds{"),
        "{text}"
    );
}

#[test]
fn a_watch_lags_until_it_shows_what_was_written() {
    let metrics = Metrics::new();
    let seen = || {
        let text = metrics.encode();
        let series = "nodewise_watch_lag_seconds_count{group=\"\",resource=\"pods\"} ";
        let count = text.lines().find_map(|line| line.strip_prefix(series));
        count.map_or(0, |count| count.parse::<u64>().expect("a number"))
    };
    metrics.runtime().watched(Resource::PODS, "9");
    metrics.runtime().written(Resource::PODS, "11");
    metrics.runtime().written(Resource::PODS, "12");
    assert_eq!(seen(), 0);
    metrics.runtime().watched(Resource::PODS, "11");
    assert_eq!(seen(), 1);
    metrics.runtime().written(Resource::PODS, "10");
    assert_eq!(seen(), 2, "the watch was quicker than the answer");
    metrics.runtime().watched(Resource::PODS, "100");
    assert_eq!(seen(), 3);
}

// The table in the documentation has exactly the metrics that are served.
#[test]
fn every_metric_is_documented() {
    let metrics = Metrics::new();
    let plan = plan();
    let queue = metrics.runtime().queue("daemonset");
    queue.added(1);
    queue.retried();
    drop(queue.work_started(Duration::ZERO));
    metrics.runtime().set_leader(true);
    metrics.runtime().lease_slow_path();
    for kind in nodewise_proto::workload::KINDS {
        metrics.stale_sync(kind, Resource::PODS);
    }
    metrics.deletion_age_ratios(&[1.0]);
    metrics.runtime().unreadable(Resource::PODS);
    metrics.cut(Resource::NODES, 1);
    metrics.plan_answered(DAEMON_SET, Duration::ZERO, 1, &plan);
    metrics.planned(&agent(), &plan);
    metrics.plan_failed(DAEMON_SET, Duration::ZERO, tonic::Code::Internal);
    metrics.applied(DAEMON_SET, &plan, &applied());
    metrics.runtime().api_call("create", "pods", 201, Duration::ZERO);
    metrics.expectations(&agent(), 1, 0);
    metrics.reconciled(&agent(), "failed", Duration::ZERO);
    metrics.runtime().event("created");
    metrics.replicas(&ReplicaCounts::default());
    metrics.call(Method::Plan, Fate::Answered);
    metrics.replica_evicted(Evicted::Health);
    metrics.hedged(Hedge::Won);
    metrics.workload_status(&workload(&serde_json::Value::Null));
    metrics.runtime().watched(Resource::PODS, "9");
    metrics.runtime().written(Resource::PODS, "9");
    metrics.other_owner(&agent(), "pod");
    metrics.foreign_pod_deletes(&agent(), 1);
    metrics.blocked(&agent(), &[("Error".to_owned(), 1)], true);
    let policy = serde_json::json!({
        "metadata": {"namespace": "a", "name": "p", "uid": "p"},
        "status": {
            "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-11-27T10:00:00Z"}],
            "targets": [{"name": "agent", "state": "Progressing", "stages": [{"name": "canary"}]}],
        },
    });
    let policy = RolloutPolicy::from_json(&policy).expect("a policy");
    metrics.policy_changed(&Change {
        old: None,
        new: Some(Arc::new(policy)),
    });
    metrics
        .families()
        .divergence
        .get_or_create(&WorkloadLabels::of(&agent()))
        .set(1);
    nodewise_telemetry::testing::assert_documented("nodewise-executor", &metrics.encode());
}

fn assert_line(text: &str, line: &str) {
    assert!(
        text.lines().any(|found| found == line),
        "no line {line} in\n{text}"
    );
}
