//! One sync of Nodewise: the executor's reconcile and the server's engine in this process, with a fake API. For other kinds than
//! DaemonSet the planner and an executor in small; see [`workloads`].

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use nodewise_client::{Answer, BuildRequest, PlanService, ServiceError};
use nodewise_executor::daemon_set::{DAEMON_SETS, DaemonSets};
use nodewise_executor::metrics::Metrics;
use nodewise_executor::reconcile::{Ending, NextPlans, Pace, Reconciler};
use nodewise_executor::state::{Shared, State};
use nodewise_projection::{Node, Pod, Revision, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::{Duration, v1};
use nodewise_runtime::apply;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::{Delta, expectations::CachedPods, gate::CacheBehind};
use nodewise_server::{ByteSize, Engine, Limits, never};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::FakeApi;
use crate::case::{self, Case, Kind};
use crate::outcome::{Outcome, Outstanding, sequence};
use crate::profile::{Deviations, Synced};
use crate::workloads;

/// A case with its placeholders replaced and its caches decoded.
#[derive(Debug)]
pub struct PreparedCase {
    case: Case,
    hash: String,
    /// The caches of a DaemonSet's controller.
    events: Option<[ClusterEvent; 5]>,
}

/// Runs syncs.
#[derive(Debug)]
pub struct Nodewise {
    engine: Arc<Engine>,
    runtime: tokio::runtime::Runtime,
}

impl Nodewise {
    /// With a new engine.
    ///
    /// # Errors
    /// The event loop cannot be started.
    pub fn new() -> Result<Self> {
        Ok(Self {
            engine: Arc::new(Engine::new(Limits::default(), ByteSize::mib(0))),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .context("starting the event loop")?,
        })
    }

    /// Prepares a case for any number of syncs.
    ///
    /// # Errors
    /// The case has objects that no apiserver would serve.
    pub fn prepare(&self, case: &Case) -> Result<PreparedCase> {
        let hash = match case.kind {
            Kind::DaemonSet => self.hash(case)?,
            // A ReplicaSet needs no hash.
            Kind::ReplicaSet => case::HASH.to_owned(),
            Kind::Deployment => workloads::hash(case)?,
        };
        let text = serde_json::to_string(case)?.replace(case::HASH, &hash);
        let case: Case = serde_json::from_str(&text)?;
        let events = (case.kind == Kind::DaemonSet)
            .then(|| events(&case))
            .transpose()?;
        Ok(PreparedCase { case, hash, events })
    }

    /// Syncs the first workload of a case once.
    ///
    /// # Errors
    /// The case has invalid times.
    pub fn sync(&self, ready: &PreparedCase, deviations: &Deviations) -> Result<Synced> {
        let synced = self.sync_resolved(ready, deviations)?;
        let text = serde_json::to_string(&synced.outcome)?.replace(&ready.hash, case::HASH);
        Ok(Synced {
            outcome: serde_json::from_str(&text)?,
            ..synced
        })
    }

    fn sync_resolved(&self, ready: &PreparedCase, deviations: &Deviations) -> Result<Synced> {
        let case = &ready.case;
        let Some(events) = &ready.events else {
            return workloads::sync(case, deviations);
        };
        let options = options(deviations, case)?;
        let daemon_set = Workload::daemon_set_from_json(case.subject()?).context("daemonSets[0]")?;
        let (key, uid) = (daemon_set.key.clone(), daemon_set.uid);
        let now: Timestamp = case.now.parse().context("now")?;
        let mut state = State::of::<DaemonSets>(1, &options);
        for event in events {
            state.store.apply(event.clone());
        }
        let held = held(case, now)?;
        let pods = Everything(&held);
        state
            .reconcile_states
            .replace(&key, &uid, held.clone(), &v1::ReconcileState::default(), &pods);
        let api = Arc::new(FakeApi::new(case)?);
        let service = Arc::new(InProcess::new(Arc::clone(&self.engine)));
        let reconciler = Reconciler {
            kind: PhantomData::<DaemonSets>,
            state: Shared::new(state),
            actuator: Arc::clone(&api),
            service: Arc::clone(&service),
            options,
            apply: apply::Options::default(),
            origins: Arc::default(),
            clock: Arc::new(move || now),
            metrics: Metrics::new(),
            next: NextPlans::default(),
            pace: Pace::default(),
            stop: CancellationToken::new(),
        };
        let mut ending = self.runtime.block_on(reconciler.reconcile(&key));
        // An orphan no longer existed. The executor plans again once the watch has the objects that it adopted.
        while let Ending::CacheBehind(CacheBehind {
            resource, written, ..
        }) = ending
        {
            let bookmark = ClusterEvent::Bookmark(resource, written);
            reconciler.state.lock().store.apply(bookmark);
            ending = self.runtime.block_on(reconciler.reconcile(&key));
        }
        let mut calls = api.calls();
        let sequence = sequence(&calls);
        calls.sort_unstable();
        let mut state = reconciler.state.lock();
        let (adds, dels) = state.reconcile_states.outstanding(&key);
        let left = state.reconcile_states.get(&key, &uid);
        drop(state);
        let (error, after) = match ending {
            Ending::Settled { after } => (None, after),
            Ending::Failed { after, reason } | Ending::Conflict { after, reason } => (Some(reason), after),
            Ending::CacheBehind(behind) => (Some(behind.to_string()), None),
            Ending::Relisting(resource) => (Some(format!("waiting for a list of {resource}")), None),
            Ending::Refused { reason } | Ending::Unreachable { reason } => (Some(reason), None),
        };
        Ok(Synced {
            outcome: Outcome {
                panic: None,
                error,
                calls,
                sequence,
                events: api.events(),
                requeue: after.into_iter().map(|after| after.as_secs_f64()).collect(),
                expectations: Some(Outstanding {
                    adds: i64::try_from(adds)?,
                    dels: i64::try_from(dels)?,
                }),
                backoff: backoff(&left)?,
                ..Outcome::default()
            },
            deviations: service.deviations(),
        })
    }

    /// The hash that a new revision of the first DaemonSet would get, taken from a plan for the DaemonSet alone.
    fn hash(&self, case: &Case) -> Result<String> {
        let cached = case.subject()?;
        let object = json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"namespace": "probe", "name": "probe", "uid": "probe", "generation": 1},
            "spec": {
                "selector": {"matchLabels": {"probe": "probe"}},
                "template": cached["spec"]["template"],
                "updateStrategy": {"type": "OnDelete"},
                "revisionHistoryLimit": 10,
            },
            "status": {"collisionCount": cached["status"]["collisionCount"]},
        });
        let request = v1::PlanRequest {
            snapshot: Some(v1::Snapshot {
                now: Some(nodewise_projection::timestamp(Timestamp::UNIX_EPOCH)),
                workload: Some(v1::Workload {
                    kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                        object: object.to_string().into(),
                        ..v1::DaemonSet::default()
                    })),
                }),
                caches_synced: true,
                bucket_count: 1,
                node_buckets: vec![inline()],
                pod_buckets: vec![inline()],
                ..v1::Snapshot::default()
            }),
            ..v1::PlanRequest::default()
        };
        let answer = self
            .engine
            .plan(request, &never)
            .map_err(|refusal| anyhow::anyhow!("asking for the hash of the template: {refusal}"))?;
        let plan = answer.plan.context("an answer without a plan")?;
        let name = plan.actions().find_map(|action| match &action.kind {
            Some(v1::action::Kind::CreateRevision(create)) => create.name.strip_prefix("probe-"),
            _ => None,
        });
        name.map(str::to_owned)
            .context("a DaemonSet without revisions was not given one")
    }
}

fn inline() -> v1::Bucket {
    v1::Bucket {
        data: Some(Bytes::new()),
        ..v1::Bucket::default()
    }
}

/// The options of a request.
fn options(deviations: &Deviations, case: &Case) -> Result<v1::PlanOptions> {
    let gates = case.feature_gates.iter().map(|gate| match gate.as_str() {
        "TaintTolerationComparisonOperators" => {
            Ok(v1::FeatureGate::TaintTolerationComparisonOperators.into())
        }
        other => anyhow::bail!("featureGates: {other:?} changes no plan"),
    });
    Ok(v1::PlanOptions {
        profile: deviations.profile.into(),
        enabled_deviations: deviations
            .with
            .iter()
            .map(|&deviation| deviation.into())
            .collect(),
        disabled_deviations: deviations
            .without
            .iter()
            .map(|&deviation| deviation.into())
            .collect(),
        feature_gates: gates.collect::<Result<_>>()?,
        burst: Some(case.burst),
        scope: v1::Scope::Workload.into(),
        ..v1::PlanOptions::default()
    })
}

/// The caches, as initial lists.
fn events(case: &Case) -> Result<[ClusterEvent; 5]> {
    fn listed<T, E: std::error::Error + Send + Sync + 'static>(
        what: &'static str,
        objects: impl Iterator<Item = Result<T, E>>,
    ) -> Result<Delta<T>> {
        Ok(Delta::Listed {
            objects: objects.collect::<Result<_, _>>().context(what)?,
            resource_version: "1000000".to_owned(),
        })
    }
    let revisions: Vec<Value> = case
        .revisions
        .iter()
        .map(case::Revision::served)
        .collect::<Result<_>>()?;
    Ok([
        ClusterEvent::Workloads(
            DAEMON_SETS,
            listed(
                "daemonSets",
                case.daemon_sets.iter().map(Workload::daemon_set_from_json),
            )?,
        ),
        ClusterEvent::Nodes(listed("nodes", case.nodes.iter().map(Node::from_json))?),
        ClusterEvent::Pods(listed("pods", case.pods.iter().map(Pod::from_json))?),
        ClusterEvent::Revisions(listed("revisions", revisions.iter().map(Revision::from_json))?),
        ClusterEvent::Policies(Delta::Listed {
            objects: Vec::new(),
            resource_version: String::new(),
        }),
    ])
}

/// The executor's state before the sync.
fn held(case: &Case, now: Timestamp) -> Result<v1::ReconcileState> {
    let expectations = case.expectations.map(|expected| -> Result<_> {
        let set_at = now - SignedDuration::from_secs(i64::try_from(expected.age_seconds)?);
        let create = |n| v1::ExpectedCreate {
            pod_name: String::new(),
            node_name: format!("awaited-{n}"),
        };
        Ok(v1::Expectations {
            set_at: Some(nodewise_projection::timestamp(set_at)),
            creates: (0..expected.adds).map(create).collect(),
            delete_uids: (0..expected.dels).map(|n| format!("awaited-{n}")).collect(),
        })
    });
    let backoffs = case.backoff.iter().map(|entry| -> Result<_> {
        Ok(v1::FailedPodBackoff {
            observed_generation: entry.observed_generation,
            node_name: entry.node.clone(),
            delay: Some(Duration {
                seconds: i64::try_from(entry.delay_seconds)?,
                nanos: 0,
            }),
            last: Some(nodewise_projection::timestamp(
                entry.last.parse().context("backoff: last")?,
            )),
        })
    });
    Ok(v1::ReconcileState {
        expectations: expectations.transpose()?,
        failed_pod_backoffs: backoffs.collect::<Result<_>>()?,
        pod_name_collisions: Vec::new(),
        slow_start: None,
        used_pod_names: Vec::new(),
        blocked_evictions: Vec::new(),
    })
}

/// Every expectation in the state is still outstanding, whatever the caches contain.
struct Everything<'a>(&'a v1::ReconcileState);

impl CachedPods for Everything<'_> {
    fn exists(&self, _pod_name: &str) -> bool {
        false
    }

    fn deleting(&self) -> HashMap<String, bool> {
        let uids = self
            .0
            .expectations
            .iter()
            .flat_map(|expected| &expected.delete_uids);
        uids.map(|uid| (uid.clone(), false)).collect()
    }
}

/// The back-off after the sync.
fn backoff(left: &v1::ReconcileState) -> Result<Vec<case::Backoff>> {
    let entries = left.failed_pod_backoffs.iter().map(|entry| -> Result<_> {
        let (last, delay) = (entry.last.unwrap_or_default(), entry.delay.unwrap_or_default());
        Ok(case::Backoff {
            observed_generation: entry.observed_generation,
            node: entry.node_name.clone(),
            delay_seconds: u64::try_from(delay.seconds)?,
            last: Timestamp::new(last.seconds, last.nanos)?.to_string(),
        })
    });
    entries.collect()
}

/// The planning service without a network.
#[derive(Debug)]
struct InProcess {
    engine: Arc<Engine>,
    deviations: Mutex<Vec<v1::Deviation>>,
}

impl InProcess {
    fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            deviations: Mutex::default(),
        }
    }

    fn deviations(&self) -> Vec<v1::Deviation> {
        let mut all = self
            .deviations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn refused(refusal: nodewise_server::Refusal) -> ServiceError {
    let reason = refusal.to_string();
    ServiceError::Refused(nodewise_client::Refusal::new(reason, &refusal.into()))
}

impl PlanService for InProcess {
    async fn plan(&self, _uid: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let answer = self
            .engine
            .plan(build(&Receiver::EMPTY), &never)
            .map_err(refused)?;
        let plan = answer.plan.unwrap_or_default();
        self.deviations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(plan.deviations());
        Ok(Answer { plan, request: 0 })
    }

    async fn report(&self, report: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        self.engine.report(report, &never).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(faults: &Value) -> Case {
        serde_json::from_value(json!({
            "now": "2026-01-01T00:00:00Z",
            "daemonSets": [{
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"namespace": "ns", "name": "foo", "uid": "u", "generation": 1, "resourceVersion": "5"},
                "spec": {
                    "selector": {"matchLabels": {"app": "foo"}},
                    "template": {"metadata": {"labels": {"app": "foo"}}, "spec": {"containers": [{"name": "c"}]}},
                    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                    "revisionHistoryLimit": 10,
                },
                "status": {},
            }],
            "nodes": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}],
            "burst": 250,
            "echo": true,
            "faults": faults,
        }))
        .expect("a case")
    }

    fn ops(outcome: &Outcome) -> Vec<(&str, &str, u16)> {
        let calls = outcome.calls.iter();
        calls
            .map(|call| (call.op.as_str(), call.name.as_str(), call.code))
            .collect()
    }

    // A small cluster without pods.
    #[test]
    fn outcome_has_calls_and_events() {
        let synced = Nodewise::new()
            .and_then(|nodewise| nodewise.sync(&nodewise.prepare(&case(&json!([])))?, &Deviations::strict()))
            .expect("a sync");
        let outcome = synced.outcome;
        assert_eq!(
            ops(&outcome),
            [
                ("create-pod", "n1", 201),
                ("create-pod", "n2", 201),
                ("create-revision", "foo-@hash", 201),
                ("update-status", "foo", 200),
            ]
        );
        assert_eq!(outcome.sequence, ["create-revision", "pods", "update-status"]);
        assert_eq!(outcome.error, None);
        assert_eq!(outcome.expectations, Some(Outstanding { adds: 2, dels: 0 }));
        assert_eq!(outcome.events[0].message, "Created pod: foo-@n1");
        assert!(
            outcome.calls[0]
                .body
                .contains("\"controller-revision-hash\":\"@hash\"")
        );
    }

    // D-79: rejected creates are not expected, and the sync fails.
    #[test]
    fn faults_reject_calls() {
        let fault = json!([{"op": "create-pod", "name": "n1", "code": 500, "reason": "InternalError"}]);
        let outcome = Nodewise::new()
            .and_then(|nodewise| nodewise.sync(&nodewise.prepare(&case(&fault))?, &Deviations::strict()))
            .expect("a sync")
            .outcome;
        assert_eq!(outcome.calls[0].code, 500);
        assert!(outcome.error.is_some());
        assert_eq!(
            outcome.expectations,
            Some(Outstanding { adds: 0, dels: 0 }),
            "the second batch is skipped"
        );
    }
}
