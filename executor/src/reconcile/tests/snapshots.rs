//! What a plan is requested with, and when.

use super::*;
use nodewise_proto::bucket::Receiver;

/// The fixture with the profile of upstream.
fn strict(mut fixture: Fixture) -> Fixture {
    fixture
        .reconciler
        .options
        .set_profile(v1::Profile::UpstreamStrict);
    fixture
}

// D-1 to D-5: the content of the snapshot.
#[tokio::test]
async fn the_request_is_the_snapshot() {
    let fixture = with(ScriptedService::default());
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let snapshot = fixture.service.snapshot(0);
    assert_eq!(
        snapshot.now,
        Some(Timestamp {
            seconds: 1_000,
            nanos: 0
        })
    );
    assert!(snapshot.caches_synced);
    assert_eq!((snapshot.node_buckets.len(), snapshot.pod_buckets.len()), (1, 1));
    let Some(v1::workload::Kind::DaemonSet(sent)) = snapshot.workload.and_then(|workload| workload.kind)
    else {
        panic!("a DaemonSet is sent");
    };
    let sent: Value = serde_json::from_slice(&sent.object).expect("JSON");
    assert_eq!(sent["metadata"]["uid"], "u1");
    assert!(
        fixture.service.reported.lock().expect("no panic").is_empty(),
        "nothing was done: nothing to report"
    );
}

// D-109, D-110: after an own write, no plan is requested until the watch shows the write.
#[tokio::test]
async fn waits_for_the_caches_to_show_our_writes() {
    let fixture = strict(with(
        ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")])),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let behind = CacheBehind {
        resource: Resource::PODS,
        written: "100".into(),
        reached: "10".into(),
    };
    assert_eq!(fixture.reconcile().await, Ending::CacheBehind(behind));
    assert_eq!(fixture.service.plans_asked(), 1);
    let skipped = "daemonset_controller_stale_sync_skips_total{group=\"\",resource=\"pods\"} 1";
    assert!(
        fixture.metrics.encode().contains(skipped),
        "{}",
        fixture.metrics.encode()
    );
    let bookmark = ClusterEvent::Bookmark(Resource::PODS, "100".into());
    let woken = fixture.state.lock().handle_event(bookmark, &fixture.metrics);
    assert_eq!(woken, [Wake::now(key())]);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
}

// With SLOW_START_ACROSS_PLANS, the next plan does not wait for a create whose pod has an expectation by name. It does
// wait for a pod without a name of its own.
#[tokio::test]
async fn planning_continues_after_named_creates() {
    for (name, goes_on) in [("foo-bbbbbbbbbb", true), ("", false)] {
        let fixture = with(ScriptedService::default().then_plan(creating(&[(name, "n1")])));
        assert_eq!(fixture.reconcile().await, SETTLED, "{name:?}");
        let second = fixture.reconcile().await;
        assert_eq!(second == SETTLED, goes_on, "{name:?}: {second:?}");
    }
}

// Mode observe: actions that are not carried out are neither expected nor reported, so the next plan is complete again.
#[tokio::test]
async fn observing_expects_and_reports_nothing() {
    let actuator = ScriptedActuator {
        observes_only: true,
        ..Default::default()
    };
    let fixture = fixture(
        ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")])),
        actuator,
    );
    assert_eq!(fixture.reconcile().await, OBSERVED);
    assert_eq!(fixture.outstanding(), (0, 0));
    assert_eq!(fixture.service.reported.lock().expect("no panic").len(), 0);
}

// A service of an older version does not support scopes and plans for the whole workload. Its plan is refused even if
// it only has a delete.
#[tokio::test]
async fn a_companion_applies_no_plan_for_the_whole_workload() {
    let delete = v1::action::Kind::DeletePod(v1::DeletePod::default());
    let of_rollouts = v1::Scope::Rollouts.into();
    let creates = v1::Plan {
        scope: of_rollouts,
        ..creating(&[("foo-bbbbbbbbbb", "a")])
    };
    for plan in [creates, with_actions(v1::PhaseKind::Deletes, vec![delete])] {
        let mut fixture = with(ScriptedService::default().then_plan(plan));
        fixture.reconciler.options.set_scope(v1::Scope::Rollouts);
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, "too old for --mode companion"), "{ending:?}");
        assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
        assert_eq!(fixture.outstanding(), (0, 0));
    }
}

/// A service client that takes two requests, between which the workload changes, and answers the first one.
struct Hedger {
    state: Shared,
    metrics: Metrics,
}

impl PlanService for Hedger {
    async fn plan(&self, _: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        build(&Receiver::EMPTY);
        let changed = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", "11")));
        self.state.lock().handle_event(changed, &self.metrics);
        build(&Receiver::EMPTY);
        let plan = noop();
        Ok(Answer { plan, request: 0 })
    }

    async fn report(&self, _: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        Ok(v1::ReportResponse::default())
    }
}

// A plan is checked and applied against the inputs of its own request, not those of a later request to another replica.
#[tokio::test]
async fn a_plan_goes_with_the_request_that_it_answers() {
    let Fixture {
        state,
        metrics,
        reconciler,
        ..
    } = with(ScriptedService::default());
    let reconciler = Reconciler {
        kind: PhantomData::<DaemonSets>,
        service: Arc::new(Hedger {
            state: state.clone(),
            metrics,
        }),
        state,
        actuator: reconciler.actuator,
        options: reconciler.options,
        apply: apply::Options {
            concurrency: 4,
            ..apply::Options::default()
        },
        origins: Arc::default(),
        clock: reconciler.clock,
        metrics: reconciler.metrics,
        next: reconciler.next,
        pace: reconciler.pace,
        stop: CancellationToken::new(),
    };
    let workload = reconciler
        .admit(&key(), &mut LiveObjects::default())
        .expect("nothing is behind")
        .expect("it exists");
    let planned = reconciler
        .plan(&workload, &LiveObjects::default())
        .await
        .expect("a plan");
    assert!(Arc::ptr_eq(&planned.workload, &workload));
}
