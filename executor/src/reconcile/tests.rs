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

mod collisions;
mod early_plans;
mod expectations;
mod live_reads;
mod plan_checks;
mod policies;
mod refusals;
mod reports;
mod selection;
mod snapshots;

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

fn own_revision(version: &str) -> nodewise_projection::Revision {
    let owner = json!([{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}]);
    let object = json!({"metadata": {"namespace": "ns", "name": "a", "resourceVersion": version, "ownerReferences": owner}});
    nodewise_projection::Revision::from_json(&object).expect("a revision")
}

/// Revisions that the workload selects.
fn orphans(count: usize) -> Vec<Value> {
    let orphan = |index: usize| {
        json!({"metadata": {"namespace": "ns", "name": format!("r{index:02}"), "uid": index.to_string(), "resourceVersion": "9",
            "labels": {"app": "foo"}}, "data": {}})
    };
    (0..count).map(orphan).collect()
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

fn violations(fixture: &Fixture) -> String {
    let metrics = fixture.metrics.encode();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nodewise_plan_violations_total{kind=\"DaemonSet\"} "));
    line.expect("the metric").to_owned()
}

/// Runs this event while a plan is being made.
fn meanwhile(fixture: &Fixture, event: ClusterEvent) {
    let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
    fixture.service.meanwhile(move || {
        state.lock().handle_event(event.clone(), &metrics);
    });
}
