//! Reconciles of a workload with RolloutPolicies.

use nodewise_runtime::measurements::{Measurements, Measurer, Measuring, Subject};

use super::*;

/// A policy of the workload.
fn policy(name: &str, version: &str) -> nodewise_projection::RolloutPolicy {
    nodewise_runtime::testing::policy(name, version, &json!({"names": ["foo"]}))
}

fn show(fixture: &Fixture, version: &str) {
    fixture.watch(ClusterEvent::Policies(Delta::Applied(policy("p", version))));
}

fn with_policy(service: ScriptedService) -> Fixture {
    let fixture = with(service);
    show(&fixture, "10");
    fixture
}

/// The plan, which heeds the policy.
fn heeding(plan: v1::Plan) -> v1::Plan {
    v1::Plan {
        rollout_policy_uids: vec!["uid-p".into()],
        ..plan
    }
}

fn status_of_policy(version: &str) -> v1::action::Kind {
    let patch = json!({"metadata": {"uid": "uid-p", "resourceVersion": version}, "status": {}});
    v1::action::Kind::PatchObject(Box::new(v1::PatchObject {
        resource: Some(v1::GroupVersionResource {
            group: "nodewise.dev".into(),
            version: "v1alpha1".into(),
            resource: "rolloutpolicies".into(),
        }),
        object: Some(v1::ObjectReference {
            name: "p".into(),
            uid: "uid-p".into(),
        }),
        subresource: "status".into(),
        patch_type: v1::PatchType::Merge.into(),
        patch: patch.to_string().into(),
        ..v1::PatchObject::default()
    }))
}

/// A plan that evicts this pod of the workload, and expects that it is deleted.
fn evicting(name: &str) -> v1::Plan {
    let pod = v1::ObjectReference {
        name: name.into(),
        uid: format!("uid-{name}"),
    };
    let evict = v1::action::Kind::EvictPod(v1::EvictPod {
        pod: Some(pod.clone()),
        node_name: "n1".into(),
    });
    let state = v1::ReconcileState {
        expectations: Some(v1::Expectations {
            set_at: Some(Timestamp { seconds: 1, nanos: 0 }),
            delete_uids: vec![pod.uid],
            ..v1::Expectations::default()
        }),
        ..v1::ReconcileState::default()
    };
    heeding(v1::Plan {
        state: Some(state),
        ..with_actions(v1::PhaseKind::Deletes, vec![evict])
    })
}

// A service that does not know policies rolls out nothing for a workload that has one.
#[tokio::test]
async fn a_plan_that_does_not_heed_the_policies_is_refused() {
    let fixture = with_policy(ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")])));
    let ending = fixture.reconcile().await;
    assert!(
        is_failed(&ending, "does not confirm each RolloutPolicy that was sent (p)"),
        "{ending:?}"
    );
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    assert_eq!(
        (fixture.outstanding(), violations(&fixture)),
        ((0, 0), "1".into())
    );
    let workload = fixture
        .service
        .snapshot(0)
        .workload
        .and_then(|workload| workload.kind);
    let Some(v1::workload::Kind::DaemonSet(daemon_set)) = workload else {
        panic!("no DaemonSet");
    };
    assert_eq!(daemon_set.rollout_policies.len(), 1);
}

// L-44: nothing is rolled out by a service that does not know policies, and people are told. The state is not the cause.
#[tokio::test]
async fn a_service_that_does_not_know_policies_is_not_asked_for_a_plan() {
    let remembered = vec![v1::FailedPodBackoff {
        node_name: "n1".into(),
        ..Default::default()
    }];
    let plan = heeding(v1::Plan {
        state: Some(v1::ReconcileState {
            failed_pod_backoffs: remembered.clone(),
            ..Default::default()
        }),
        ..noop()
    });
    let refusal = nodewise_client::Refusal {
        lacks: Some(nodewise_proto::workload::ROLLOUT_POLICIES_FEATURE),
        ..nodewise_client::Refusal::from("it does not know RolloutPolicies; upgrade it")
    };
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_fail(ServiceError::Refused(refusal));
    let fixture = with_policy(service);
    assert_eq!(fixture.reconcile().await, SETTLED);
    let ending = fixture.reconcile().await;
    assert!(matches!(ending, Ending::Refused { .. }), "{ending:?}");
    assert!(is_failed(&ending, "it does not know RolloutPolicies; upgrade it"));
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    let events = fixture.actuator.events();
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((&*event.kind, &*event.reason), ("Warning", "ServiceTooOld"));
    assert!(event.message.contains("upgrade it"), "{}", event.message);
    assert_eq!(fixture.held().failed_pod_backoffs, remembered);
}

// L-37: the metrics are those of the policies in the cache.
#[tokio::test]
async fn a_cached_policy_has_metrics_until_it_is_gone() {
    let fixture = with(ScriptedService::default());
    let shown = |version: &str, state: &str| {
        let object = json!({
            "metadata": {"namespace": "ns", "name": "p", "uid": "uid-p", "resourceVersion": version},
            "spec": {"targets": {"names": ["foo"]}},
            "status": {"targets": [{"name": "foo", "uid": "u1", "state": state}]},
        });
        let policy = nodewise_projection::RolloutPolicy::from_json(&object).expect("a policy");
        fixture.watch(ClusterEvent::Policies(Delta::Applied(policy)));
        let text = fixture.metrics.encode();
        let start = "nodewise_rollout_policy_state{kind=\"DaemonSet\",namespace=\"ns\",name=\"foo\",policy=\"p\",state=\"";
        let found = text.lines().filter_map(|line| line.strip_prefix(start));
        found.collect::<Vec<_>>().join(" and ")
    };
    assert_eq!(shown("11", "Soaking"), "Soaking\"} 1");
    assert_eq!(shown("12", "Rejected"), "Rejected\"} 1");
    fixture.watch(ClusterEvent::Policies(Delta::Listed {
        objects: Vec::new(),
        resource_version: String::new(),
    }));
    assert!(!fixture.metrics.encode().contains("policy=\"p\""));
}

// L-24: the expectation of a blocked eviction is lowered, and the eviction is asked for again after the back-off.
#[tokio::test]
async fn a_blocked_eviction_is_held_and_tried_again() {
    let again = evicting("p1");
    let mut over = heeding(noop());
    over.state = Some(v1::ReconcileState::default());
    let service = ScriptedService::default()
        .then_plan(evicting("p1"))
        .then_plan(again)
        .then_plan(over);
    let fixture = with_policy(service);
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("p1", "10"))));
    fixture.actuator.refuse("evict pods ns/p1", Refusal::Other);
    for (attempts, wait) in [(1, 10), (2, 20)] {
        let after = Some(Duration::from_secs(wait));
        assert_eq!(fixture.reconcile().await, Ending::Settled { after });
        assert_eq!(fixture.outstanding(), (0, 0));
        let blocked = v1::BlockedEviction {
            pod_uid: "uid-p1".into(),
            message: "refused: evict pods ns/p1".into(),
            retry_time: Some(Timestamp {
                seconds: 1_000 + i64::try_from(wait).expect("small"),
                nanos: 0,
            }),
            attempts,
        };
        assert_eq!(fixture.held().blocked_evictions, [blocked]);
        let reported = fixture
            .service
            .reported
            .lock()
            .expect("no panic")
            .pop()
            .expect("a report");
        assert_eq!(reported.outcomes[0].result(), v1::Result::Blocked);
        assert_eq!(reported.state.expect("a state").blocked_evictions.len(), 1);
    }
    let sent = fixture.service.snapshot(1).state.expect("a state");
    assert_eq!(sent.blocked_evictions.len(), 1);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.held().blocked_evictions, [], "the plan left it out");
}

// D-73, L-42: the plan decides about an eviction; the executor carries it out, and expects it like a delete.
#[tokio::test]
async fn an_eviction_is_expected() {
    let fixture = with_policy(ScriptedService::default().then_plan(evicting("p1")));
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("p1", "10"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.outstanding(), (0, 1));
    fixture.watch(ClusterEvent::Pods(Delta::Deleted(pod("p1", "11"))));
    assert_eq!(fixture.outstanding(), (0, 0));
}

// D-109: no plan is made from a policy whose own status is not seen yet.
#[tokio::test]
async fn the_status_of_a_policy_is_waited_for() {
    let plan = || {
        heeding(with_actions(
            v1::PhaseKind::RolloutPolicies,
            vec![status_of_policy("10")],
        ))
    };
    let fixture = with_policy(
        ScriptedService::default()
            .then_plan(plan())
            .then_plan(heeding(noop())),
    );
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), ["patch status of rolloutpolicies ns/p"]);
    let Ending::CacheBehind(behind) = fixture.reconcile().await else {
        panic!("a plan from an old cache")
    };
    assert_eq!(behind.resource, Resource::ROLLOUT_POLICIES);
    show(&fixture, "100");
    assert_eq!(fixture.reconcile().await, SETTLED);
    // A resource that is removed has no versions to wait for.
    let fixture = with_policy(ScriptedService::default().then_plan(plan()));
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Policies(Delta::Listed {
        objects: Vec::new(),
        resource_version: String::new(),
    }));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
}

// Somebody else may write to a policy at any time. The next plan has the newer policy.
#[tokio::test]
async fn a_policy_that_has_changed_is_no_failure_of_the_workload() {
    let mut plan = heeding(with_actions(
        v1::PhaseKind::RolloutPolicies,
        vec![status_of_policy("10")],
    ));
    plan.phases[0].aborts_on_failure = true;
    let answer = v1::ReportResponse {
        requeue: v1::Requeue::Backoff.into(),
        ..Default::default()
    };
    let fixture = with_policy(
        ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(answer)),
    );
    fixture.actuator.refuse("patch status of", Refusal::Conflict);
    let ending = fixture.reconcile().await;
    assert!(matches!(ending, Ending::Conflict { .. }), "{ending:?}");
    assert_eq!((ending.name(), ending.failure()), ("behind", None));
}

/// Ends each measurement at once with this value.
#[derive(Debug)]
struct Immediate(&'static str);

impl Measurer for Immediate {
    fn measure(&self, _: &Subject, _: &v1::Measure) -> Measuring {
        let value = v1::measurement::Result::Value(self.0.to_owned());
        Box::pin(std::future::ready(value))
    }

    fn hosts(&self) -> Vec<String> {
        vec!["prometheus:9090".to_owned()]
    }
}

fn measurements(snapshot: v1::Snapshot) -> (usize, Vec<String>) {
    let Some(v1::workload::Kind::DaemonSet(daemon_set)) =
        snapshot.workload.and_then(|workload| workload.kind)
    else {
        panic!("no DaemonSet");
    };
    (daemon_set.measurements.len(), daemon_set.analysis_hosts)
}

/// A policy with a check, and the measurement for it.
fn analysis() -> (ClusterEvent, v1::action::Kind) {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "uid-p", "resourceVersion": "10"},
        "spec": {"targets": {"names": ["foo"]}, "stages": [{"name": "s", "analysis": [
            {"name": "c", "webhook": {"url": "https://checks"}},
        ]}]},
    });
    let policy = nodewise_projection::RolloutPolicy::from_json(&object).expect("a policy");
    let measure = v1::Measure {
        id: Some(v1::MeasurementId {
            policy_uid: "uid-p".into(),
            revision_hash: "h".into(),
            stage: "s".into(),
            check: "c".into(),
            number: 0,
        }),
        policy_name: "p".into(),
        provider: Some(v1::measure::Provider::Webhook(v1::WebhookCall {
            url: "https://checks".into(),
        })),
        ..v1::Measure::default()
    };
    let measure = v1::action::Kind::Measure(Box::new(measure));
    (ClusterEvent::Policies(Delta::Applied(policy)), measure)
}

// L-31: a result is in the snapshots until a plan that had it was carried out.
#[tokio::test]
async fn a_measurement_is_sent_until_it_is_counted() {
    let (policy, measure) = analysis();
    let counting = || {
        heeding(with_actions(
            v1::PhaseKind::RolloutPolicies,
            vec![status_of_policy("10")],
        ))
    };
    let service = ScriptedService::default()
        .then_plan(heeding(with_actions(v1::PhaseKind::Analysis, vec![measure])))
        .then_plan(counting())
        .then_plan(counting())
        .then_plan(heeding(noop()));
    let mut fixture = with(service);
    let measurements_of = Measurements::new(Arc::new(Immediate("1")));
    fixture.reconciler.apply.measurements = measurements_of.clone();
    fixture.watch(policy);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(measurements_of.ended().await, key());
    fixture.actuator.refuse("patch status of", Refusal::Conflict);
    fixture.reconcile().await;
    fixture.actuator.refusals.lock().expect("no panic").clear();
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Bookmark(Resource::ROLLOUT_POLICIES, "100".into()));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let hosts = vec!["prometheus:9090".to_owned()];
    for (request, expected) in [(0, 0), (1, 1), (2, 1), (3, 0)] {
        let sent = measurements(fixture.service.snapshot(request));
        assert_eq!(sent, (expected, hosts.clone()), "{request}");
    }
}

// L-2: what policies of another version ask for is not known.
#[tokio::test]
async fn a_workload_waits_while_its_policies_are_not_known() {
    let fixture = with(ScriptedService::default().then_plan(noop()));
    fixture.watch(ClusterEvent::Lost(Resource::ROLLOUT_POLICIES));
    assert_eq!(
        fixture.reconcile().await,
        Ending::Relisting(Resource::ROLLOUT_POLICIES)
    );
    assert_eq!(fixture.service.plans_asked(), 0);
    let listed = ClusterEvent::Policies(Delta::Listed {
        objects: Vec::new(),
        resource_version: String::new(),
    });
    let woken = fixture.state.lock().handle_event(listed, &fixture.metrics);
    assert!(woken.iter().any(|wake| wake.key == key()), "{woken:?}");
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert!(fixture.service.snapshot(0).caches_synced);
}

// A wrong service does not fill the memory with results that no plan reads.
#[tokio::test]
async fn what_was_measured_for_a_policy_that_is_gone_is_forgotten() {
    let (shown, measure) = analysis();
    let asking = heeding(with_actions(v1::PhaseKind::Analysis, vec![measure]));
    let next = v1::Plan {
        rollout_policy_uids: vec!["uid-q".into()],
        ..noop()
    };
    let mut fixture = with(ScriptedService::default().then_plan(asking).then_plan(next));
    let measurements_of = Measurements::new(Arc::new(Immediate("1")));
    fixture.reconciler.apply.measurements = measurements_of.clone();
    fixture.watch(shown);
    assert_eq!(fixture.reconcile().await, SETTLED);
    measurements_of.ended().await;
    assert_eq!(measurements_of.results(&key(), "u1").len(), 1);
    fixture.watch(ClusterEvent::Policies(Delta::Deleted(policy("p", "11"))));
    fixture.watch(ClusterEvent::Policies(Delta::Applied(policy("q", "12"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(measurements(fixture.service.snapshot(1)).0, 0);
    assert_eq!(measurements_of.results(&key(), "u1"), []);
}

#[tokio::test]
async fn of_a_plan_that_is_refused_nothing_is_measured() {
    let (shown, measure) = analysis();
    let asking = with_actions(v1::PhaseKind::Analysis, vec![measure]);
    let mut fixture = with(ScriptedService::default().then_plan(asking));
    let measurements_of = Measurements::new(Arc::new(Immediate("1")));
    fixture.reconciler.apply.measurements = measurements_of.clone();
    fixture.watch(shown);
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "does not confirm"), "{ending:?}");
    tokio::task::yield_now().await;
    assert_eq!(measurements_of.results(&key(), "u1"), []);
}

// L-45
#[tokio::test]
async fn without_policies_nothing_is_added_to_a_snapshot() {
    let mut fixture = with(ScriptedService::default());
    fixture.reconciler.apply.measurements = Measurements::new(Arc::new(Immediate("1")));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(measurements(fixture.service.snapshot(0)), (0, vec![]));
}
