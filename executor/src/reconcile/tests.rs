//! Reconciles against a scripted service and a scripted apiserver.

use std::sync::Mutex;

use nodewise_client::BuildRequest;
use nodewise_proto::Timestamp;
use nodewise_runtime::{Delta, Resource, actuator::Refusal};
use serde_json::{Value, json};

use super::*;
use crate::daemon_set::{DAEMON_SETS, DaemonSets};
use crate::divergence::MIN_AGE;
use crate::state::State;
use crate::testing::*;
use nodewise_proto::workload::DAEMON_SET;
use nodewise_runtime::effects::Wake;
use nodewise_runtime::event::ClusterEvent;

mod policies;

struct Fixture {
    state: Shared,
    service: Arc<ScriptedService>,
    actuator: Arc<ScriptedActuator>,
    metrics: Metrics,
    reconciler: Reconciler<DaemonSets, ScriptedActuator, ScriptedService>,
}

fn fixture(service: ScriptedService, actuator: ScriptedActuator) -> Fixture {
    let state = Shared::new(State::of::<DaemonSets>(1, &v1::PlanOptions::default()));
    let (service, actuator, metrics) = (Arc::new(service), Arc::new(actuator), Metrics::new());
    for event in first_lists() {
        state.lock().handle_event(event, &metrics);
    }
    let reconciler = Reconciler {
        kind: PhantomData::<DaemonSets>,
        state: state.clone(),
        actuator: Arc::clone(&actuator),
        service: Arc::clone(&service),
        options: v1::PlanOptions::default(),
        apply: apply::Options {
            concurrency: 4,
            ..apply::Options::default()
        },
        origins: Arc::default(),
        clock: Arc::new(|| jiff::Timestamp::from_second(1_000).expect("a time")),
        metrics: metrics.clone(),
        next: NextPlans::default(),
        pace: Pace::default(),
        stop: CancellationToken::new(),
    };
    Fixture {
        state,
        service,
        actuator,
        metrics,
        reconciler,
    }
}

fn with(service: ScriptedService) -> Fixture {
    fixture(service, ScriptedActuator::default())
}

/// A fixture whose caches show no revision.
fn without_revisions(service: ScriptedService) -> Fixture {
    let fixture = with(service);
    let gone = Delta::Deleted(current_revision());
    fixture.watch(ClusterEvent::Revisions(gone));
    fixture
}

/// The fixture with the profile of upstream.
fn strict(mut fixture: Fixture) -> Fixture {
    fixture
        .reconciler
        .options
        .set_profile(v1::Profile::UpstreamStrict);
    fixture
}

impl Fixture {
    async fn reconcile(&self) -> Ending {
        self.reconciler.reconcile(&key()).await
    }

    fn watch(&self, event: ClusterEvent) {
        self.state.lock().handle_event(event, &self.metrics);
    }

    fn held(&self) -> v1::ReconcileState {
        self.state.lock().reconcile_states.get(&key(), "u1")
    }

    fn outstanding(&self) -> (usize, usize) {
        self.state.lock().reconcile_states.outstanding(&key())
    }
}

const SETTLED: Ending = Ending::Settled { after: None };

/// An observer reconciles again after a while, to see whether the other controller has acted.
const OBSERVED: Ending = Ending::Settled { after: Some(MIN_AGE) };

/// Adopts the pod of this name and uid.
fn adopt(name: &str) -> v1::action::Kind {
    v1::action::Kind::AdoptPod(v1::AdoptPod {
        pod: Some(v1::ObjectReference {
            name: name.into(),
            uid: name.into(),
        }),
        patch: json!({"metadata": {"ownerReferences": [owner()], "uid": name}})
            .to_string()
            .into(),
    })
}

/// An orphan that the workload selects, of this name and uid.
fn orphan(name: &str) -> ClusterEvent {
    let labels = json!({"app": "foo"});
    let metadata =
        json!({"namespace": "ns", "name": name, "uid": name, "resourceVersion": "11", "labels": labels});
    let orphan = nodewise_projection::Pod::from_json(&json!({ "metadata": metadata })).expect("a pod");
    ClusterEvent::Pods(Delta::Applied(orphan))
}

fn is_failed(ending: &Ending, part: &str) -> bool {
    ending.failure().is_some_and(|reason| reason.contains(part))
}

// D-71.2: a workload that is not in the caches is forgotten, without a plan request.
#[tokio::test]
async fn a_workload_that_is_gone_is_forgotten() {
    let fixture = with(ScriptedService::default());
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(daemon_set("u1", "11")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 0);
}

/// A fixture that owns only selected DaemonSets, with this first version of the workload.
fn selective(service: ScriptedService, first: Workload) -> Fixture {
    let fixture = with(service);
    {
        let mut state = fixture.state.lock();
        *state = crate::testing::selective_state();
        for event in first_lists() {
            state.handle_event(event, &fixture.metrics);
        }
    }
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(first)));
    fixture
}

// W17
#[tokio::test]
async fn a_daemon_set_is_planned_while_it_is_selected() {
    let expecting = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let fixture = selective(expecting, daemon_set("u1", "11"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 0);
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(labelled("12")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.outstanding(), (1, 0));
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u1", "13")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 1);
    assert_eq!(
        fixture.held(),
        v1::ReconcileState::default(),
        "nothing is kept of it"
    );
    assert!(!fixture.metrics.encode().contains("name=\"foo\""));
}

// W17: a plan that arrives after the workload has lost its label is not applied.
#[tokio::test]
async fn a_plan_for_what_is_not_selected_any_more_is_dropped() {
    let service = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let fixture = selective(service, labelled("11"));
    let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
    fixture.service.meanwhile(move || {
        let without = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", "12")));
        let woken = state.lock().handle_event(without, &metrics);
        assert_eq!(woken, [Wake::now(key())]);
    });
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), [""; 0]);
    assert_eq!(fixture.held(), v1::ReconcileState::default());
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

/// A plan that asks to be followed at once, and the response to its report.
fn full_burst(creates: &[(&str, &str)]) -> (v1::Plan, v1::ReportResponse) {
    let requeue_after = Some(nodewise_proto::Duration::default());
    let plan = v1::Plan {
        requeue_after,
        ..creating(creates)
    };
    let response = v1::ReportResponse {
        state: plan.state.clone(),
        requeue: v1::Requeue::After.into(),
        requeue_after,
        ..Default::default()
    };
    (plan, response)
}

/// Two plans, of which the second follows the first at once.
fn two_in_a_row(change: impl FnOnce(&mut v1::Plan)) -> Fixture {
    let (mut plan, response) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    change(&mut plan);
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_plan(creating(&[("foo-cccccccccc", "n2")]))
        .then_answer_report(Ok(response));
    with(service)
}

impl Fixture {
    /// The total number of plan requests after each of two reconciles.
    async fn asked_in_two(&self, between: impl FnOnce(&Self)) -> (usize, usize) {
        self.reconcile().await;
        let first = self.service.plans_asked();
        between(self);
        self.reconcile().await;
        (first, self.service.plans_asked())
    }
}

// The next plan is requested while the current one is being applied, and it contains the pods that are being created.
#[tokio::test]
async fn the_plan_after_a_full_burst_is_requested_early() {
    let fixture = two_in_a_row(|_| ());
    assert_eq!(fixture.reconcile().await, AT_ONCE);
    assert_eq!(fixture.service.plans_asked(), 2);
    let expected = fixture.service.snapshot(1).state.expect("a state").expectations;
    assert_eq!(
        expected.expect("expectations").creates[0].pod_name,
        "foo-bbbbbbbbbb"
    );
    assert_eq!(fixture.actuator.calls(), ["create pods foo-bbbbbbbbbb"]);
    assert_eq!(fixture.outstanding(), (1, 0), "what is not applied is not held");
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(
        fixture.actuator.calls(),
        ["create pods foo-bbbbbbbbbb", "create pods foo-cccccccccc"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_early_plan_is_dropped_after_a_change() {
    let changed = |fixture: &Fixture| {
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u1", "2")),
        ));
    };
    assert_eq!(
        two_in_a_row(|_| ()).asked_in_two(changed).await,
        (2, 3),
        "another spec"
    );
    let replaced = |fixture: &Fixture| {
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u2", "1")),
        ));
    };
    assert_eq!(
        two_in_a_row(|_| ()).asked_in_two(replaced).await,
        (2, 3),
        "another workload"
    );
    let fixture = two_in_a_row(|_| ());
    fixture
        .actuator
        .refuse("create pods foo-bbbbbbbbbb", Refusal::Other);
    assert_eq!(fixture.asked_in_two(|_| ()).await, (2, 3), "a create failed");
    let fixture = two_in_a_row(|_| ());
    fixture.reconcile().await;
    tokio::time::advance(MAX_AGE_OF_NEXT + Duration::from_millis(1)).await;
    fixture.reconcile().await;
    assert_eq!(fixture.service.plans_asked(), 3, "long ago");
}

#[tokio::test]
async fn a_plan_with_other_actions_is_applied_before_the_next_request() {
    let with_status = |plan: &mut v1::Plan| {
        let mut status = plan.phases[0].clone();
        status.set_kind(v1::PhaseKind::Status);
        plan.phases.push(status);
    };
    assert_eq!(two_in_a_row(with_status).asked_in_two(|_| ()).await, (1, 2));
    let in_batches = |plan: &mut v1::Plan| {
        let batch = plan.phases[0].batches[0].clone();
        plan.phases[0].batches.push(batch);
    };
    assert_eq!(two_in_a_row(in_batches).asked_in_two(|_| ()).await, (1, 2));
    let later = |plan: &mut v1::Plan| plan.requeue_after = None;
    assert_eq!(two_in_a_row(later).asked_in_two(|_| ()).await, (1, 2));
}

// Other actions depend on pods that may have changed by then.
#[tokio::test]
async fn an_early_plan_with_other_actions_is_dropped() {
    let (plan, response) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    let deleting = with_actions(v1::PhaseKind::Deletes, Vec::new());
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_plan(deleting)
        .then_answer_report(Ok(response));
    assert_eq!(with(service).asked_in_two(|_| ()).await, (2, 3));
}

// An observer carries nothing out, so it would request plans forever.
#[tokio::test]
async fn an_observer_is_not_requeued_at_once() {
    let (plan, _) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    let actuator = ScriptedActuator {
        observes_only: true,
        ..ScriptedActuator::default()
    };
    let fixture = fixture(ScriptedService::default().then_plan(plan), actuator);
    assert_eq!(fixture.reconcile().await, OBSERVED);
    assert_eq!(fixture.service.plans_asked(), 1);
}

// D-72: expectations are held before the first call, and the next snapshot contains them.
#[tokio::test]
async fn expectations_are_held_before_the_first_write() {
    let fixture = with(
        ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")])),
    );
    let at_write = Arc::new(Mutex::new(Vec::new()));
    fixture.actuator.before_write({
        let (state, at_write) = (fixture.state.clone(), Arc::clone(&at_write));
        move || {
            at_write
                .lock()
                .expect("no panic")
                .push(state.lock().reconcile_states.outstanding(&key()));
        }
    });
    fixture.reconcile().await;
    assert_eq!(*at_write.lock().expect("no panic"), [(2, 0), (2, 0)]);
}

// D-73: an event that settles an expectation during a plan is not undone by that plan's state.
#[tokio::test]
async fn what_is_observed_during_a_plan_stays_observed() {
    let first = creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]);
    let second = v1::Plan {
        verdict: v1::Verdict::StatusOnly.into(),
        state: first.state.clone(),
        ..noop()
    };
    let held = v1::ReportResponse {
        state: first.state.clone(),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(first)
            .then_answer_report(Ok(held))
            .then_plan(second),
    );
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    assert_eq!(fixture.outstanding(), (2, 0));
    fixture.service.meanwhile({
        let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
        move || {
            state.lock().handle_event(
                ClusterEvent::Pods(Delta::Applied(pod("foo-bbbbbbbbbb", "101"))),
                &metrics,
            );
        }
    });
    fixture.reconcile().await;
    assert_eq!(
        fixture
            .service
            .snapshot(1)
            .state
            .and_then(|state| state.expectations)
            .map(|e| e.creates.len()),
        Some(2)
    );
    assert_eq!(fixture.outstanding(), (1, 0));
}

// D-71.6, D-95: a plan that ends before its deletes of failed pods starts no back-off for them: the retry deletes them.
#[tokio::test]
async fn an_aborted_plan_leaves_the_back_off_as_it_was() {
    let backoff = |node: &str| v1::ReconcileState {
        failed_pod_backoffs: vec![v1::FailedPodBackoff {
            node_name: node.to_owned(),
            ..v1::FailedPodBackoff::default()
        }],
        ..v1::ReconcileState::default()
    };
    for (aborts, held) in [(true, backoff("n1")), (false, backoff("n2"))] {
        let first = v1::Plan {
            state: Some(backoff("n1")),
            ..noop()
        };
        let delete = v1::action::Kind::DeleteRevision(v1::DeleteRevision {
            revision: Some(v1::ObjectReference {
                name: "r".into(),
                uid: "r-uid".into(),
            }),
            revision_number: 1,
        });
        let mut second = v1::Plan {
            state: Some(backoff("n2")),
            ..with_actions(v1::PhaseKind::Revisions, vec![delete])
        };
        second.phases[0].aborts_on_failure = aborts;
        let fixture = with(ScriptedService::default().then_plan(first).then_plan(second));
        fixture.actuator.refuse("delete", Refusal::Other);
        fixture.reconcile().await;
        fixture.reconcile().await;
        assert_eq!(fixture.held(), held, "aborts: {aborts}");
    }
}

// D-71.12: how the response to a report becomes a requeue.
#[tokio::test]
async fn the_report_response_says_when_to_requeue() {
    let after = |seconds| Some(nodewise_proto::Duration { seconds, nanos: 0 });
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (requeue, requeue_after, expected) in [
        (v1::Requeue::None, None, SETTLED),
        (
            v1::Requeue::After,
            after(7),
            Ending::Settled { after: seconds(7) },
        ),
        (
            v1::Requeue::Backoff,
            None,
            Ending::Failed {
                after: None,
                reason: "why".into(),
            },
        ),
        (
            v1::Requeue::Backoff,
            after(7),
            Ending::Failed {
                after: seconds(7),
                reason: "why".into(),
            },
        ),
    ] {
        let answer = v1::ReportResponse {
            requeue: requeue.into(),
            requeue_after,
            message: "why".into(),
            ..Default::default()
        };
        let service = ScriptedService::default()
            .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
            .then_answer_report(Ok(answer));
        assert_eq!(with(service).reconcile().await, expected);
    }
}

// Without actions, the plan itself says when to requeue.
#[tokio::test]
async fn a_plan_without_actions_needs_no_report() {
    let after = Some(nodewise_proto::Duration { seconds: 9, nanos: 0 });
    for (plan, expected) in [
        (
            v1::Plan {
                requeue_after: after,
                ..noop()
            },
            Ending::Settled {
                after: Some(Duration::from_secs(9)),
            },
        ),
        (
            v1::Plan {
                error: "cannot scale".into(),
                ..noop()
            },
            Ending::Failed {
                after: None,
                reason: "cannot scale".into(),
            },
        ),
    ] {
        let fixture = with(ScriptedService::default().then_plan(plan));
        assert_eq!(fixture.reconcile().await, expected);
        assert_eq!(fixture.service.reported.lock().expect("no panic").len(), 0);
    }
}

// D-73, D-79: the report contains every outcome, and failed actions are not waited for.
#[tokio::test]
async fn the_report_settles_what_failed() {
    let plan = creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]);
    let mut settled = plan.state.clone().expect("a state");
    settled
        .expectations
        .as_mut()
        .expect("expectations")
        .creates
        .remove(1);
    let answer = v1::ReportResponse {
        state: Some(settled),
        requeue: v1::Requeue::Backoff.into(),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(answer)),
    );
    fixture
        .actuator
        .refuse("create pods foo-cccccccccc", Refusal::Other);
    let ending = fixture.reconcile().await;
    assert!(
        is_failed(
            &ending,
            "1 of 2 actions were done, 1 failed, 0 were not tried; the first failure: refused: create pods foo-cccccccccc"
        ),
        "{ending:?}"
    );
    assert_eq!(fixture.outstanding(), (1, 0));
    let reported = fixture.service.reported.lock().expect("no panic");
    let results: Vec<_> = reported[0].outcomes.iter().map(v1::Outcome::result).collect();
    assert_eq!(results, [v1::Result::Succeeded, v1::Result::Failed]);
    let sent = reported[0]
        .state
        .as_ref()
        .and_then(|state| state.expectations.as_ref());
    assert_eq!(sent.map(|expectations| expectations.creates.len()), Some(1));
}

// Every pod of a large cluster may be adopted at once, and such outcomes have no consequence.
#[tokio::test]
async fn successful_adoptions_are_not_reported() {
    let plan = with_actions(
        v1::PhaseKind::Claims,
        ["a", "b", "c"].map(adopt).into_iter().collect(),
    );
    let fixture = with(ScriptedService::default().then_plan(plan));
    for name in ["a", "b", "c"] {
        fixture.watch(orphan(name));
    }
    fixture.actuator.refuse("patch pods ns/b", Refusal::Other);
    fixture.reconcile().await;
    let reported = fixture.service.reported.lock().expect("no panic");
    let told: Vec<_> = reported[0]
        .outcomes
        .iter()
        .map(|outcome| (outcome.action_id, outcome.result()))
        .collect();
    assert_eq!(told, [(2, v1::Result::Failed)]);
}

// A report that got lost is sent once, with the next plan request, which follows soon.
#[tokio::test]
async fn a_lost_report_is_sent_with_the_next_plan_request() {
    let lost = Err(ServiceError::Unreachable("gone".into()));
    let service = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(lost)
        .then_fail(ServiceError::Unreachable("still gone".into()));
    let fixture = with(service);
    assert!(is_failed(
        &fixture.reconcile().await,
        "will be sent with the next plan request"
    ));
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    for expected in [1, 1, 0] {
        fixture.reconcile().await;
        let requests = fixture.service.requests.lock().expect("no panic");
        let undelivered = &requests.last().expect("a request").undelivered_reports;
        assert_eq!(undelivered.len(), expected);
        assert!(
            undelivered
                .iter()
                .all(|report| report.plan_id == "p" && report.outcomes.len() == 1)
        );
    }
}

// Without a plan nothing is written or held. While the service is unreachable, nothing is forgotten.
#[tokio::test]
async fn without_a_plan_nothing_is_written() {
    let stale = v1::Plan {
        verdict: v1::Verdict::Stale.into(),
        phases: Vec::new(),
        ..creating(&[("foo-zzzzzzzzzz", "n3")])
    };
    let service = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Ok(v1::ReportResponse {
            state: creating(&[("foo-bbbbbbbbbb", "n1")]).state,
            ..Default::default()
        }))
        .then_fail(ServiceError::Unreachable("down".into()))
        .then_plan(stale)
        .then_fail(ServiceError::Refused("snapshot.now: is missing".into()));
    let fixture = with(service);
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    let before = (fixture.actuator.calls(), fixture.held());
    let unreachable = fixture.reconcile().await;
    assert!(
        matches!(&unreachable, Ending::Unreachable { reason } if reason.contains("down")),
        "{unreachable:?}"
    );
    assert!(is_failed(&fixture.reconcile().await, "stale"));
    assert_eq!((fixture.actuator.calls(), fixture.held()), before);
    assert!(is_failed(&fixture.reconcile().await, "snapshot.now: is missing"));
    assert_eq!(fixture.actuator.calls(), before.0);
}

// As in upstream, back-off outlives a DaemonSet that cannot be planned for.
#[tokio::test]
async fn a_refusal_of_another_field_keeps_the_state() {
    let remembered = vec![v1::FailedPodBackoff {
        node_name: "n1".into(),
        ..Default::default()
    }];
    let plan = v1::Plan {
        state: Some(v1::ReconcileState {
            failed_pod_backoffs: remembered.clone(),
            ..Default::default()
        }),
        ..noop()
    };
    let field = "snapshot.workload.daemon_set.object";
    let refusal = nodewise_client::Refusal {
        reason: "a wrong selector".to_owned(),
        violations: vec![nodewise_client::FieldViolation::new(field, "a wrong selector")],
        lacks: None,
    };
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_fail(ServiceError::Refused(refusal));
    let fixture = with(service);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert!(is_failed(&fixture.reconcile().await, "a wrong selector"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let sent = |request| {
        fixture
            .service
            .snapshot(request)
            .state
            .expect("a state")
            .failed_pod_backoffs
    };
    assert_eq!([sent(1), sent(2)], [remembered.clone(), remembered]);
}

// W12: a faulty service may have made a state that correct replicas refuse. Expectations that watches have changed are
// kept.
#[tokio::test]
async fn a_state_that_may_be_refused_is_dropped() {
    let remembered = v1::ReconcileState {
        failed_pod_backoffs: vec![v1::FailedPodBackoff {
            node_name: "n1".into(),
            delay: Some(nodewise_proto::Duration {
                seconds: -1,
                nanos: 0,
            }),
            ..Default::default()
        }],
        ..Default::default()
    };
    let wrong = v1::Plan {
        state: Some(remembered.clone()),
        ..noop()
    };
    let service = ScriptedService::default()
        .then_plan(wrong)
        .then_fail(ServiceError::Unreachable("down".into()))
        .then_fail(ServiceError::Refused("state.failed_pod_backoffs[0].delay".into()));
    let fixture = with(service);
    assert_eq!(fixture.reconcile().await, SETTLED);
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("p", "11"))));
    fixture.watch(ClusterEvent::Pods(Delta::Deleted(pod("p", "12"))));
    assert!(matches!(fixture.reconcile().await, Ending::Unreachable { .. }));
    assert!(is_failed(&fixture.reconcile().await, "delay"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let sent = |request| fixture.service.snapshot(request).state.expect("a state");
    let used_pod_names = vec![v1::UsedPodName {
        node_name: "n1".into(),
        pod_name: "p".into(),
    }];
    for request in [1, 2] {
        assert_eq!(sent(request).failed_pod_backoffs, remembered.failed_pod_backoffs);
    }
    let without_plans = v1::ReconcileState {
        used_pod_names,
        ..Default::default()
    };
    assert_eq!(sent(3), without_plans);
}

fn creating_revision() -> v1::Plan {
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {"name": "foo-hhhhhhhhhh", "ownerReferences": [owner()]},
        "data": {"spec": {"template": {"$patch": "replace"}}},
    });
    let create = v1::CreateRevision {
        name: "foo-hhhhhhhhhh".into(),
        manifest: manifest.to_string().into(),
    };
    with_actions(
        v1::PhaseKind::Revisions,
        vec![v1::action::Kind::CreateRevision(create)],
    )
}

// D-62: the object with the taken name is read and sent with a second plan request at once.
#[tokio::test]
async fn a_revision_name_collision_is_planned_again_at_once() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating_revision()));
    fixture.actuator.refuse(
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(fixture.service.snapshot(0).revisions, []);
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// Names that other pods have are no failure: the next plan follows at once and contains the taken names.
#[tokio::test]
async fn a_taken_pod_name_is_planned_again_at_once() {
    let at_once = || {
        Ok(v1::ReportResponse {
            requeue: v1::Requeue::After.into(),
            requeue_after: Some(nodewise_proto::Duration::default()),
            ..Default::default()
        })
    };
    let names = |count: usize| {
        (0..count)
            .map(|number| format!("foo-bbbbbbbb{}", 24 + number))
            .collect::<Vec<_>>()
    };
    let soon = Ending::Settled {
        after: Some(pace::MIN_DELAY),
    };
    // (taken names, plans, outcome)
    for (taken, plans, ending) in [(1, 2, SETTLED), (3, 4, SETTLED), (4, 4, soon)] {
        let mut service = ScriptedService::default();
        for name in names(taken) {
            service = service
                .then_plan(creating(&[(&name, "n1")]))
                .then_answer_report(at_once());
        }
        let fixture = with(service);
        for name in names(taken) {
            fixture
                .actuator
                .refuse(&format!("create pods {name}"), Refusal::AlreadyExists);
        }
        let live = json!({"metadata": {"namespace": "ns", "name": "foo-0", "uid": "p1"}});
        *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
        assert_eq!(fixture.reconcile().await, ending, "{taken}");
        assert_eq!(fixture.service.plans_asked(), plans, "{taken}");
    }
}

// D-23: an orphan that is gone is left out at once, without a wait or a failure.
#[tokio::test]
async fn an_orphan_that_is_gone_is_left_out_by_another_plan_at_once() {
    let orphans = |fixture: &Fixture| {
        for name in ["gone", "there"] {
            fixture.watch(orphan(name));
        }
    };
    let first = || with_actions(v1::PhaseKind::Claims, vec![adopt("gone")]);
    let fixture = with(ScriptedService::default().then_plan(first()));
    orphans(&fixture);
    fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(
        fixture.state.lock().store.count(Resource::PODS),
        1,
        "the other one"
    );
    // If another adoption fails, there is no plan at once: the workload backs off.
    let both = with_actions(v1::PhaseKind::Claims, vec![adopt("gone"), adopt("there")]);
    let fixture = with(ScriptedService::default().then_plan(both));
    orphans(&fixture);
    fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
    fixture.actuator.refuse("patch pods ns/there", Refusal::Other);
    fixture.reconcile().await;
    assert_eq!(fixture.service.plans_asked(), 1);
}

// The next plan gets a revision that the plan created before it ended, whatever the watch shows.
#[tokio::test]
async fn a_revision_that_was_created_before_an_orphan_was_gone_is_not_created_again() {
    let mut plan = creating_revision();
    plan.phases
        .extend(with_actions(v1::PhaseKind::Claims, vec![adopt("gone")]).phases);
    let fixture = without_revisions(ScriptedService::default().then_plan(plan));
    fixture.actuator.refuse("patch pods", Refusal::NotFound);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    assert_eq!(fixture.reconcile().await, SETTLED);
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// D-110: the same if the next plan has to wait for pods first, whatever the watch shows under that name meanwhile. The
// watch may show another object, or one without the mark that the name was taken.
#[tokio::test]
async fn a_revision_that_was_created_before_the_gate_closed_is_not_created_again() {
    let mut plan = creating_revision();
    plan.phases
        .extend(with_actions(v1::PhaseKind::Claims, vec![adopt("gone"), adopt("there")]).phases);
    for shown in [false, true] {
        let fixture = without_revisions(ScriptedService::default().then_plan(plan.clone()));
        fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
        let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1", "resourceVersion": "90"}});
        *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
        for _ in 0..2 {
            assert!(matches!(fixture.reconcile().await, Ending::CacheBehind(_)));
        }
        if shown {
            let mut cached = own_revision("91");
            cached.name = "foo-hhhhhhhhhh".into();
            fixture.watch(ClusterEvent::Revisions(Delta::Applied(cached)));
        }
        fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "1000".into()));
        assert_eq!(fixture.reconcile().await, SETTLED);
        let revisions = fixture.service.snapshot(1).revisions;
        let read_live: Vec<_> = revisions
            .iter()
            .map(|revision| revision.read_after_name_collision)
            .collect();
        assert_eq!(read_live, [true], "shown: {shown}");
        // The revision was kept for that plan only.
        assert_eq!(fixture.reconcile().await, SETTLED);
        assert_eq!(fixture.service.snapshot(2).revisions.len(), usize::from(shown));
    }
}

// Meanwhile another object may have got the name.
#[test]
fn only_orphans_are_forgotten() {
    let fixture = without_revisions(ScriptedService::default());
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("11"))));
    let mut state = fixture.state.lock();
    for (namespace, name) in [("ns", "a"), ("ns", "b"), ("elsewhere", "a")] {
        state.store.forget_orphan(Resource::PODS, namespace, name);
        state.store.forget_orphan(Resource::REVISIONS, namespace, name);
    }
    assert_eq!(state.store.count(Resource::PODS), 1);
    assert_eq!(state.store.count(Resource::REVISIONS), 1);
}

fn own_revision(version: &str) -> nodewise_projection::Revision {
    let owner = json!([{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}]);
    let object = json!({"metadata": {"namespace": "ns", "name": "a", "resourceVersion": version, "ownerReferences": owner}});
    nodewise_projection::Revision::from_json(&object).expect("a revision")
}

// The object with the taken name is parsed as the watch does. An unreadable one is skipped, logged and counted, and the
// workload backs off, because the name is taken.
#[tokio::test]
async fn an_unreadable_revision_with_the_taken_name_is_skipped() {
    let answer = v1::ReportResponse {
        requeue: v1::Requeue::Backoff.into(),
        ..Default::default()
    };
    let service = ScriptedService::default()
        .then_plan(creating_revision())
        .then_answer_report(Ok(answer));
    let fixture = with(service);
    let refused = (
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    fixture.actuator.refuse(refused.0, refused.1);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1", "labels": 7}});
    *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
    assert!(is_failed(&fixture.reconcile().await, ""));
    assert_eq!(fixture.service.plans_asked(), 1);
    let counted = "nodewise_unreadable_objects_total{group=\"apps\",resource=\"controllerrevisions\"} 1";
    let metrics = fixture.metrics.encode();
    assert!(metrics.contains(counted), "{metrics}");
}

/// An orphaned revision, as the apiserver sends it, that is older than the workload that selects it.
fn earlier_orphan(fixture: &Fixture) -> Value {
    let orphan = json!({
        "metadata": {"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "9", "labels": {"app": "foo"}},
        "data": {"a": "b"},
    });
    let workload = daemon_set("u1", "10");
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(workload.clone()),
    ));
    let revision = Revision::from_json(&orphan).expect("a revision");
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
    orphan
}

// The data of an orphan that no DaemonSet selects is not cached. It is read when a workload comes that selects the
// orphan.
#[tokio::test]
async fn an_orphaned_revision_is_read_for_the_workload_that_selects_it() {
    let fixture = without_revisions(ScriptedService::default());
    let orphan = earlier_orphan(&fixture);
    assert_eq!(fixture.state.lock().store.revision_bytes(), 0);
    *fixture.actuator.live.lock().expect("no panic") = orphan.to_string().into();
    for plan in 0..2 {
        assert_eq!(fixture.reconcile().await, SETTLED);
        let sent = fixture.service.snapshot(plan).revisions;
        assert_eq!(sent.len(), 1);
        let sent: Value = serde_json::from_slice(&sent[0].object).expect("JSON");
        assert_eq!(sent, orphan);
        // The second reconcile does not read it again.
        *fixture.actuator.live.lock().expect("no panic") = Bytes::new();
    }
}

// Without the revision, a plan could create it again.
#[tokio::test]
async fn no_plan_without_a_revision_that_cannot_be_read() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating(&[("foo-1", "n1")])));
    earlier_orphan(&fixture);
    fixture.actuator.refuse("read ", Refusal::Other);
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "refused: read"), "{ending:?}");
    assert_eq!(fixture.actuator.calls(), [""; 0]);
    assert_eq!(fixture.held(), v1::ReconcileState::default());
}

// Revisions that are created, changed and deleted all the time must not delay the workload.
#[tokio::test]
async fn a_changed_revision_is_planned_with() {
    let of = |app: &str| {
        json!({"metadata": {"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "12", "labels": {"app": app}},
            "data": {}})
    };
    let mut another = of("foo");
    another["metadata"]["uid"] = json!("another");
    for (live, sent, wakes_other) in [
        (None, 0, false),
        (Some(of("foo")), 1, false),
        (Some(of("bar")), 0, true),
        (Some(another), 0, false),
        (Some(json!({"metadata": {"labels": 7}})), 0, false),
    ] {
        let fixture = without_revisions(ScriptedService::default());
        let mut other = selecting(&json!({"matchLabels": {"app": "bar"}}));
        (other.key, other.uid) = (Key::new(DAEMON_SET, "ns", "other"), "u2".into());
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(other)));
        earlier_orphan(&fixture);
        let text = live
            .as_ref()
            .map_or_else(Bytes::new, |live| live.to_string().into());
        *fixture.actuator.live.lock().expect("no panic") = text;
        assert_eq!(fixture.reconcile().await, SETTLED, "{live:?}");
        assert_eq!(fixture.service.snapshot(0).revisions.len(), sent, "{live:?}");
        // A live read does not change the version that the watch has reached. Other workloads are enqueued at the next
        // event of the watch.
        assert_ne!(fixture.state.lock().store.reached(Resource::REVISIONS), "12");
        let event = ClusterEvent::Bookmark(Resource::REVISIONS, "13".into());
        let woken = fixture.state.lock().handle_event(event, &fixture.metrics);
        let other = Wake::now(Key::new(DAEMON_SET, "ns", "other"));
        assert_eq!(woken.contains(&other), wakes_other, "{live:?}");
    }
}

/// Revisions that the workload selects.
fn orphans(count: usize) -> Vec<Value> {
    let orphan = |index: usize| {
        json!({"metadata": {"namespace": "ns", "name": format!("r{index:02}"), "uid": index.to_string(), "resourceVersion": "9",
            "labels": {"app": "foo"}}, "data": {}})
    };
    (0..count).map(orphan).collect()
}

// Thousands of small revisions would otherwise need as many calls.
#[tokio::test]
async fn many_revisions_are_read_with_one_list() {
    let fixture = without_revisions(ScriptedService::default());
    let workload = daemon_set("u1", "10");
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(workload.clone()),
    ));
    let all = orphans(MAX_SINGLE_READS + 1);
    for orphan in &all {
        let revision = Revision::from_json(orphan).expect("a revision");
        fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
    }
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
    // One revision is gone by now.
    *fixture.actuator.listed.lock().expect("no panic") = all[1..].to_vec();
    for plan in 0..2 {
        assert_eq!(fixture.reconcile().await, SETTLED);
        assert_eq!(fixture.service.snapshot(plan).revisions.len(), MAX_SINGLE_READS);
        assert_eq!(fixture.actuator.calls(), ["list controllerrevisions"], "once");
    }
    assert_eq!(
        fixture.state.lock().store.count(Resource::REVISIONS),
        MAX_SINGLE_READS
    );
}

/// These labels, and more than are cached of one object.
fn many_labels(besides: &Value) -> Value {
    let mut labels = besides.clone();
    for index in 0..70 {
        labels[format!("x{index}")] = json!("x");
    }
    labels
}

/// A workload with this selector.
fn selecting(selector: &Value) -> Workload {
    let metadata = json!({"namespace": "ns", "name": "foo", "uid": "u1", "resourceVersion": "10"});
    let object = json!({"metadata": metadata, "spec": {"selector": selector}});
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

// Anyone who may create pods and revisions may give them any number of labels. Only labels that selectors name are
// cached. A new DaemonSet may name others.
#[tokio::test]
async fn labels_that_are_not_kept_are_read_when_a_selector_names_them() {
    let without_tier = json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]});
    for (selector, labels, is_selected) in [
        (
            json!({"matchLabels": {"app": "foo"}}),
            json!({"app": "foo"}),
            true,
        ),
        (
            json!({"matchLabels": {"app": "foo"}}),
            json!({"app": "bar"}),
            false,
        ),
        (without_tier.clone(), json!({"app": "foo"}), true),
        (without_tier, json!({"tier": "a"}), false),
    ] {
        let case = format!("{selector} {labels}");
        let metadata = json!({"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "9",
            "labels": many_labels(&labels)});
        let object = json!({"metadata": metadata, "data": {}});
        let fixture = without_revisions(ScriptedService::default());
        let workload = daemon_set("u1", "10");
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(workload)));
        let revision = Revision::from_json(&object).expect("a revision");
        fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
        let pod = nodewise_projection::Pod::from_json(&object).expect("a pod");
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod)));
        {
            let state = fixture.state.lock();
            assert_eq!(state.store.revision("ns", "r").expect("it").labels, [], "{case}");
            assert_eq!(state.store.pod("ns", "r").expect("it").labels, [], "{case}");
        }
        let workload = selecting(&selector);
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));

        // No plan is requested as long as the labels cannot be read.
        fixture.actuator.refuse("list pods", Refusal::Other);
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, "refused: list pods"), "{case} {ending:?}");
        assert_eq!(fixture.service.plans_asked(), 0, "{case}");
        fixture.actuator.refusals.lock().expect("no panic").clear();
        *fixture.actuator.live.lock().expect("no panic") = object.to_string().into();
        *fixture.actuator.listed.lock().expect("no panic") = vec![object];
        for plan in 0..2 {
            assert_eq!(fixture.reconcile().await, SETTLED, "{case}");
            let sent = fixture.service.snapshot(plan);
            assert_eq!(sent.revisions.len(), usize::from(is_selected), "{case}");
            let bucket = sent.pod_buckets[0].data.clone().expect("inline");
            let pods = <v1::PodBucket as prost::Message>::decode(bucket)
                .expect("a bucket")
                .pods;
            assert_eq!(pods.iter().any(|pod| pod.name == "r"), is_selected, "{case}");
        }
        let lists = ["list pods", "list pods"];
        assert_eq!(fixture.actuator.calls(), lists, "{case}: once each time");
    }
}

// A listed pod may be newer than the cached one, may be another pod, or may be missing.
#[tokio::test]
async fn labels_are_taken_from_the_same_pod() {
    let of = |uid: &str, version: &str| {
        let metadata = json!({"namespace": "ns", "name": "r", "uid": uid, "resourceVersion": version,
            "labels": many_labels(&json!({"app": "foo"}))});
        json!({ "metadata": metadata })
    };
    for (listed, expected) in [
        (Some(of("r", "9")), Ok(1)),
        (Some(of("r", "12")), Ok(1)),
        (Some(of("r", "8")), Err(())),
        (Some(of("another", "12")), Err(())),
        (None, Ok(0)),
    ] {
        let fixture = without_revisions(ScriptedService::default());
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Deleted(daemon_set("u1", "10")),
        ));
        let pod = nodewise_projection::Pod::from_json(&of("r", "9")).expect("a pod");
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod)));
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u1", "10")),
        ));
        *fixture.actuator.listed.lock().expect("no panic") = listed.iter().cloned().collect();
        let ending = fixture.reconcile().await;
        let Ok(sent) = expected else {
            assert!(
                is_failed(&ending, "pods ns/r has changed"),
                "{listed:?} {ending:?}"
            );
            continue;
        };
        assert_eq!(ending, SETTLED, "{listed:?}");
        let bucket = fixture.service.snapshot(0).pod_buckets[0].data.clone();
        let bucket = bucket.expect("inline");
        let pods = <v1::PodBucket as prost::Message>::decode(bucket)
            .expect("a bucket")
            .pods;
        let found = pods.iter().filter(|pod| pod.name == "r").count();
        assert_eq!(found, sent, "{listed:?}");
        // When the watch shows the newer pod, the workloads that select it are enqueued.
        if let Some(listed) = listed {
            let pod = nodewise_projection::Pod::from_json(&listed).expect("a pod");
            let event = ClusterEvent::Pods(Delta::Applied(pod));
            let woken = fixture.state.lock().handle_event(event, &fixture.metrics);
            let is_newer = listed["metadata"]["resourceVersion"] == "12";
            assert_eq!(woken.contains(&Wake::now(key())), is_newer, "{listed}");
        }
    }
}

// The revision's data is sent as it is.
#[tokio::test]
async fn odd_data_of_a_revision_is_sent_unchanged() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating_revision()));
    let refused = (
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    fixture.actuator.refuse(refused.0, refused.1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let data = format!(r#"{{"half":"\ud800","large":1e999,"deep":{deep}}}"#);
    let live =
        format!(r#"{{"metadata":{{"namespace":"ns","name":"foo-hhhhhhhhhh","uid":"r1"}},"data":{data}}}"#);
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    fixture.reconcile().await;
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// A revision that the apiserver lets nobody change is sent with that mark until it changes.
#[tokio::test]
async fn a_sealed_revision_is_not_to_be_changed() {
    let update = v1::action::Kind::UpdateRevision(v1::UpdateRevision {
        revision: Some(v1::ObjectReference {
            name: "a".into(),
            uid: "a".into(),
        }),
        patch: json!({"metadata": {"uid": "a"}}).to_string().into(),
        ..Default::default()
    });
    let plan = with_actions(v1::PhaseKind::Revisions, vec![update]);
    let fixture = with(ScriptedService::default().then_plan(plan));
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("11"))));
    fixture.actuator.refuse(
        "patch controllerrevisions ns/a is invalid: data: ",
        Refusal::Invalid,
    );
    assert_eq!(fixture.reconcile().await, SETTLED);
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("12"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let marks = (0..3).map(|plan| fixture.service.snapshot(plan).revisions[0].read_after_name_collision);
    assert_eq!(marks.collect::<Vec<_>>(), [false, true, false]);
}

// The expectations of a refused report stay open, and another plan would only hide that.
#[tokio::test]
async fn a_refused_report_ends_the_reconcile() {
    let refused = Err(ServiceError::Refused("too much".into()));
    let service = ScriptedService::default()
        .then_plan(creating_revision())
        .then_answer_report(refused);
    let fixture = with(service);
    fixture.actuator.refuse(
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.into();
    assert!(is_failed(&fixture.reconcile().await, ""));
    assert_eq!(fixture.service.plans_asked(), 1);
}

#[tokio::test]
async fn endless_collisions_end_in_back_off() {
    let service = (0..10).fold(ScriptedService::default(), |service, _| {
        service.then_plan(creating_revision())
    });
    let fixture = with(service);
    fixture
        .actuator
        .refuse("create controllerrevisions", Refusal::AlreadyExists);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.into();
    assert!(is_failed(&fixture.reconcile().await, "still taken"));
    assert_eq!(fixture.service.plans_asked(), MAX_PLANS);
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

// Replaced under its name while it was planned: the new workload inherits nothing.
#[tokio::test]
async fn a_replaced_workload_does_not_inherit() {
    let fixture = with(ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")])));
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u2", "200")),
    ));
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "200".into()));
    fixture.reconcile().await;
    assert_eq!(
        fixture.service.snapshot(1).state,
        Some(v1::ReconcileState::default())
    );
}

// A refused report would make every later plan request fail: it is dropped, whichever call is refused.
#[tokio::test]
async fn a_refused_report_is_not_sent_again() {
    let refused = || ServiceError::Refused("outcomes[0].action_id: unknown".into());
    let at_once = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Err(refused()));
    let later = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Err(ServiceError::Unreachable("gone".into())))
        .then_fail(refused());
    for (service, riding) in [(at_once, vec![0, 0]), (later, vec![1, 0])] {
        let fixture = with(service);
        assert!(matches!(fixture.reconcile().await, Ending::Failed { .. }));
        fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
        for expected in riding {
            fixture.reconcile().await;
            let requests = fixture.service.requests.lock().expect("no panic");
            let last = requests.last().expect("a request");
            assert_eq!(last.undelivered_reports.len(), expected);
        }
    }
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

/// A plan that deletes the pod of this name and uid.
fn delete(name: &str) -> v1::Plan {
    let kind = v1::action::Kind::DeletePod(v1::DeletePod {
        pod: Some(v1::ObjectReference {
            name: name.into(),
            uid: name.into(),
        }),
        uid_precondition: true,
        ..Default::default()
    });
    v1::Plan {
        state: creating(&[("foo-bbbbbbbbbb", "n1")]).state,
        ..with_actions(v1::PhaseKind::Deletes, vec![kind])
    }
}

/// Gives the apiserver a pod `unseen` of another workload, which the caches do not show.
fn unseen(fixture: &Fixture) {
    let owner = json!({"kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true});
    let live = json!({"metadata": {"namespace": "ns", "name": "unseen", "uid": "unseen", "ownerReferences": [owner]}});
    *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
}

fn violations(fixture: &Fixture) -> String {
    let metrics = fixture.metrics.encode();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nodewise_plan_violations_total{kind=\"DaemonSet\"} "));
    line.expect("the metric").to_owned()
}

// W15: nothing of a plan that goes beyond the workload is written or held, and the violation is counted.
#[tokio::test]
async fn a_plan_for_what_is_not_the_workloads_is_refused() {
    let mut elsewhere = creating(&[("foo-bbbbbbbbbb", "n1")]);
    elsewhere.workload.get_or_insert_default().namespace = "kube-system".into();
    let fixture = with(ScriptedService::default().then_plan(elsewhere));
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "kube-system/foo"), "{ending:?}");
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    assert_eq!(fixture.outstanding(), (0, 0));
    assert_eq!(violations(&fixture), "1");
}

// W15: a plan that is wrong about an object that has not changed since the snapshot was not made from the snapshot.
#[tokio::test]
async fn a_plan_for_an_object_that_is_not_the_workloads_is_refused_the_first_time() {
    for (name, part) in [
        ("orphan", "action 1 (DeletePod): pod orphan has no controller"),
        (
            "unseen",
            "action 1 (DeletePod): pod unseen is controlled by ReplicaSet web",
        ),
    ] {
        let fixture = with(ScriptedService::default().then_plan(delete(name)));
        fixture.watch(orphan("orphan"));
        unseen(&fixture);
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, part), "{ending:?}");
        assert_eq!(violations(&fixture), "1");
        assert_eq!(fixture.actuator.calls(), Vec::<String>::new(), "{part}");
        assert_eq!(fixture.outstanding(), (0, 0), "{part}");
    }
}

/// Runs this event while a plan is being made.
fn meanwhile(fixture: &Fixture, event: ClusterEvent) {
    let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
    fixture.service.meanwhile(move || {
        state.lock().handle_event(event.clone(), &metrics);
    });
}

// W15: an action about an object that has changed is left out alone. There is no Event and no expectation for it, and
// another plan follows at once.
#[tokio::test]
async fn an_action_about_what_has_changed_is_left_out() {
    let mut lost = pod("lost", "12");
    lost.projection.controller = None;
    let unowned = ClusterEvent::Pods(Delta::Applied(lost));
    let no_node = ClusterEvent::Nodes(Delta::Deleted(node("n3")));
    let lost = v1::action::Kind::DeletePod(v1::DeletePod {
        pod: Some(v1::ObjectReference {
            name: "lost".into(),
            uid: "uid-lost".into(),
        }),
        uid_precondition: true,
        ..Default::default()
    });
    let deletes = with_actions(v1::PhaseKind::Deletes, vec![lost]).phases;
    for (event, creates, deletes, calls, expected) in [
        (unowned, vec![("foo-bbbbbbbbbb", "n2")], deletes, 1, (1, 0)),
        (
            no_node,
            vec![("foo-cccccccccc", "n3"), ("foo-bbbbbbbbbb", "n2")],
            vec![],
            1,
            (1, 0),
        ),
    ] {
        let mut plan = creating(&creates);
        plan.phases.extend(deletes);
        for (id, phase) in (1..).zip(&mut plan.phases) {
            let first = &mut phase.batches[0].actions[0];
            first.id = if id == 1 { 1 } else { 7 };
        }
        if let Some(expectations) = plan.state.as_mut().and_then(|state| state.expectations.as_mut()) {
            expectations.delete_uids = vec!["uid-lost".into()];
        }
        let fixture = with(ScriptedService::default().then_plan(plan));
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("lost", "11"))));
        meanwhile(&fixture, event);
        assert_eq!(fixture.reconcile().await, AT_ONCE);
        assert_eq!(
            fixture.actuator.calls(),
            vec!["create pods foo-bbbbbbbbbb"; calls]
        );
        assert_eq!(violations(&fixture), "0");
        assert_eq!(fixture.outstanding(), expected);
        let reported = fixture.service.reported.lock().expect("no panic");
        let results: Vec<_> = reported[0].outcomes.iter().map(v1::Outcome::result).collect();
        assert_eq!(results, [v1::Result::Succeeded], "what was left out is not told");
    }
}

// W15: the burst of the options is the limit, and 250 without it.
#[tokio::test]
async fn a_plan_for_more_pods_than_were_asked_for_is_refused() {
    for (burst, count, part) in [
        (None, 251, "creates 251 pods, and 250 are the most"),
        (None, 250, "a second pod for node"),
        (Some(2), 3, "creates 3 pods, and 2 are the most"),
        (Some(251), 251, "a second pod for node"),
    ] {
        let plan = creating(&vec![("foo-bbbbbbbbbb", "n1"); count]);
        let mut fixture = with(ScriptedService::default().then_plan(plan));
        fixture.reconciler.options.burst = burst;
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, part), "{burst:?}: {ending:?}");
        assert_eq!(violations(&fixture), "1", "{burst:?}");
        assert_eq!(fixture.actuator.calls(), Vec::<String>::new(), "{burst:?}");
    }
}

// W15: a node that never existed is no node of the snapshot.
#[tokio::test]
async fn a_pod_for_a_node_that_does_not_exist_is_refused_the_first_time() {
    let plans = (0..2).fold(ScriptedService::default(), |service, _| {
        service.then_plan(creating(&[("foo-bbbbbbbbbb", "n9")]))
    });
    let fixture = with(plans);
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "n9"), "{ending:?}");
    assert_eq!(violations(&fixture), "1");
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    fixture.watch(ClusterEvent::Nodes(Delta::Applied(node("n9"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), ["create pods foo-bbbbbbbbbb"]);
}

// W15: the state is limited to existing nodes, also the state in the response to a report.
#[tokio::test]
async fn state_of_nodes_that_do_not_exist_is_dropped() {
    let of = |nodes: &[&str]| v1::ReconcileState {
        pod_name_collisions: nodes
            .iter()
            .map(|node| v1::PodNameCollision {
                node_name: (*node).into(),
                count: 1,
                refused_count: 0,
            })
            .collect(),
        ..Default::default()
    };
    let settled = v1::ReportResponse {
        state: Some(of(&["n1", "n2", "n2", "n8", "n9"])),
        ..Default::default()
    };
    let plan = |nodes: &[&str]| v1::Plan {
        state: Some(of(nodes)),
        ..creating(&[("foo-bbbbbbbbbb", "n1")])
    };
    let service = ScriptedService::default()
        .then_plan(plan(&["n1", "n9"]))
        .then_plan(plan(&["n1", "n3"]))
        .then_answer_report(Ok(settled));
    let fixture = with(service);
    let ending = fixture.reconcile().await;
    assert!(
        is_failed(&ending, "its state names node \"n9\", and that does not exist"),
        "{ending:?}"
    );
    assert_eq!(fixture.held(), v1::ReconcileState::default());
    // The plan is valid although one of its nodes was removed.
    meanwhile(&fixture, ClusterEvent::Nodes(Delta::Deleted(node("n3"))));
    fixture.reconcile().await;
    assert_eq!(fixture.held(), of(&["n1", "n2"]));
    let reported = fixture.service.reported.lock().expect("no panic");
    assert_eq!(reported[0].state, Some(of(&["n1"])));
}

/// A plan of an Event.
fn event_plan(requeue_after: nodewise_proto::Duration, error: &str) -> v1::Plan {
    let event = v1::action::Kind::EmitEvent(v1::EmitEvent {
        r#type: "Normal".into(),
        reason: "Reason".into(),
        message: String::new(),
    });
    v1::Plan {
        requeue_after: Some(requeue_after),
        error: error.into(),
        ..with_actions(v1::PhaseKind::Events, vec![event])
    }
}

// W9: the executor knows the response to a report of actions that succeeded and that nothing is expected of.
#[tokio::test]
async fn outcomes_that_tell_nothing_are_not_reported() {
    let after = nodewise_proto::Duration { seconds: 5, nanos: 0 };
    let at_once = nodewise_proto::Duration::default();
    let service = ScriptedService::default()
        .then_plan(event_plan(after, ""))
        .then_plan(event_plan(after, "odd"))
        .then_plan(event_plan(at_once, ""));
    let fixture = with(service);
    let settled = |after| Ending::Settled { after: Some(after) };
    assert_eq!(fixture.reconcile().await, settled(Duration::from_secs(5)));
    let failed = Ending::Failed {
        after: Some(Duration::from_secs(5)),
        reason: "odd".into(),
    };
    assert_eq!(fixture.reconcile().await, failed);
    assert_eq!(fixture.reconcile().await, settled(Duration::ZERO));
    assert_eq!(*fixture.service.reported.lock().expect("no panic"), []);
}

// Whatever the service asks for: after a hundred requeues at once, a workload is requeued at most ten times a second.
#[tokio::test(start_paused = true)]
async fn requeues_at_once_are_limited() {
    let short = nodewise_proto::Duration { seconds: 0, nanos: 1 };
    let mut service = ScriptedService::default();
    for error in (0..102).flat_map(|_| ["", "odd"]) {
        service = service.then_plan(event_plan(short, error));
    }
    let fixture = with(service);
    let soon = Some(Duration::from_nanos(1));
    let after = |ending: Ending| match ending {
        Ending::Settled { after } | Ending::Failed { after, .. } => after,
        _ => None,
    };
    for _ in 0..100 {
        assert_eq!(after(fixture.reconcile().await), soon);
    }
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
    tokio::time::advance(pace::MIN_DELAY).await;
    assert_eq!(after(fixture.reconcile().await), soon);
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
    tokio::time::advance(Duration::from_mins(1)).await;
    for _ in 0..100 {
        assert_eq!(
            after(fixture.reconcile().await),
            soon,
            "no more tokens than a hundred"
        );
    }
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
}

// D-113: a delete leaves no own-write record; its expectation delays the next plan.
#[tokio::test]
async fn deletes_are_guarded_by_expectations() {
    let delete = v1::DeletePod {
        pod: Some(v1::ObjectReference {
            name: "a".into(),
            uid: "uid-a".into(),
        }),
        node_name: "n1".into(),
        uid_precondition: true,
    };
    let expected = v1::ReconcileState {
        expectations: Some(v1::Expectations {
            set_at: Some(Timestamp { seconds: 1, nanos: 0 }),
            creates: Vec::new(),
            delete_uids: vec!["uid-a".into()],
        }),
        ..Default::default()
    };
    let plan = v1::Plan {
        state: Some(expected.clone()),
        ..with_actions(v1::PhaseKind::Deletes, vec![v1::action::Kind::DeletePod(delete)])
    };
    let answer = v1::ReportResponse {
        state: Some(expected.clone()),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(answer)),
    );
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), ["delete pods ns/a"]);
    assert_eq!(fixture.reconcile().await, SETTLED, "no own write to wait for");
    assert_eq!(fixture.service.snapshot(1).state, Some(expected));
    fixture.watch(ClusterEvent::Pods(Delta::Deleted(pod("a", "12"))));
    assert_eq!(fixture.outstanding(), (0, 0));
}

/// A service client that takes two requests, between which the workload changes, and answers the first one.
struct Hedger {
    state: Shared,
    metrics: Metrics,
}

impl PlanService for Hedger {
    async fn plan(&self, _: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        build(&|_| false);
        let changed = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", "11")));
        self.state.lock().handle_event(changed, &self.metrics);
        build(&|_| false);
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
