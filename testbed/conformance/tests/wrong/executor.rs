//! An executor with one chosen defect: the Rust executor with a layer between it and the service.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use nodewise_client::{Answer, BuildRequest, ClientConfig, ClientTls, PlanClient, PlanService, ServiceError};
use nodewise_executor::{
    DaemonSets, Deployments, Kind as _, Manager, ReplicaSets, controller, manager, metrics::Metrics,
};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1::{self, action::Kind, workload};
use nodewise_runtime::{actuator::KubeActuator, connect, events::EventRecorder};
use nodewise_telemetry::http::Checks;
use nodewise_tls::client::{Connector, Files, Identity};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// No defect.
    None,
    /// It applies all batches of a phase at once.
    AllAtOnce,
    /// It sends the service another budget than that of the workload.
    IgnoresBudgets,
    /// It gives revisions other names than the plan.
    NamesRevisionsItself,
    /// When the service does not answer, it applies the last plan that had creates again.
    ReappliesOldPlan,
    /// It decodes DaemonSets into today's API types.
    LosesUnknownFields,
    /// It reconciles every few seconds.
    Polls,
    /// It drops the state of plans, and reconciles again soon.
    DropsState,
    /// It sends all buckets in each request.
    SendsEverything,
    /// It trusts servers of an authority that is not configured.
    TrustsAnyAuthority,
    /// It deletes the pods that a plan names without checking their owner.
    DeletesUnchecked,
    /// It creates the pods that a plan names without checking node and count.
    CreatesUnchecked,
    /// It sends a state again that the service has rejected.
    KeepsRefusedState,
    /// It ignores SIGTERM.
    IgnoresSigterm,
    /// It sends the service no RolloutPolicies.
    ForgetsPolicies,
    /// It deletes the pods that a plan evicts.
    DeletesInsteadOfEvicting,
    /// It does not plan again at the time that a plan names.
    ForgetsTimers,
}

/// The client of the service with the defect.
struct WrongClient {
    defect: Defect,
    client: PlanClient,
    cluster: Client,
    /// The last plans with creates, by the uid of the workload.
    last: Mutex<HashMap<String, v1::Plan>>,
}

impl PlanService for WrongClient {
    async fn plan(&self, uid: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let defect = self.defect;
        let mut wrong_request = |receiver: &Receiver<'_>| {
            let request = match defect {
                Defect::SendsEverything => build(&Receiver::EMPTY),
                _ => build(receiver),
            };
            change_request(defect, request)
        };
        let answer = self.client.plan(uid, &mut wrong_request).await;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match (answer, last.get(uid)) {
            (Err(_), Some(plan)) if defect == Defect::ReappliesOldPlan => {
                wrong_request(&Receiver::EMPTY);
                Ok(Answer {
                    plan: plan.clone(),
                    request: 0,
                })
            }
            // The executor treats the service as unreachable, and retries with the same state.
            (Err(ServiceError::Refused(refusal)), _) if defect == Defect::KeepsRefusedState => {
                Err(ServiceError::Unreachable(refusal.to_string()))
            }
            (answer, _) => {
                let mut answer = answer?;
                change_plan(defect, &mut answer.plan);
                match defect {
                    Defect::DeletesUnchecked => delete_unchecked(&self.cluster, &answer.plan),
                    Defect::CreatesUnchecked => create_unchecked(&self.cluster, &answer.plan),
                    _ => {}
                }
                if creates(&answer.plan) {
                    last.insert(uid.to_owned(), answer.plan.clone());
                }
                Ok(answer)
            }
        }
    }

    async fn report(&self, report: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        self.client.report(report).await
    }
}

/// The pods in the namespace of a plan.
fn pods_of(cluster: &Client, plan: &v1::Plan) -> Api<Pod> {
    let namespace = plan.workload.as_ref().map_or("", |workload| &*workload.namespace);
    Api::namespaced(cluster.clone(), namespace)
}

/// Starts to delete all pods that a plan deletes, without waiting.
fn delete_unchecked(cluster: &Client, plan: &v1::Plan) {
    let pods = pods_of(cluster, plan);
    for action in plan.actions() {
        if let Some(Kind::DeletePod(delete)) = &action.kind {
            let name = delete
                .pod
                .as_ref()
                .map_or_else(String::new, |pod| pod.name.clone());
            let pods = pods.clone();
            tokio::spawn(async move { pods.delete(&name, &DeleteParams::default()).await });
        }
    }
}

/// Starts to create all pods that a plan creates, without waiting.
fn create_unchecked(cluster: &Client, plan: &v1::Plan) {
    let pods = pods_of(cluster, plan);
    for action in plan.actions() {
        let Some(Kind::CreatePod(create)) = &action.kind else {
            continue;
        };
        let mut pod: Value = serde_json::from_slice(&plan.pod_manifest).unwrap_or_default();
        pod["metadata"]["name"] = json!(create.pod_name);
        for pointer in &plan.node_name_pointers {
            if let Some(name) = pod.pointer_mut(pointer) {
                *name = json!(create.node_name);
            }
        }
        let pods = pods.clone();
        tokio::spawn(async move {
            pods.create(&PostParams::default(), &serde_json::from_value(pod)?)
                .await?;
            anyhow::Ok(())
        });
    }
}

fn creates(plan: &v1::Plan) -> bool {
    plan.actions()
        .any(|action| matches!(action.kind, Some(Kind::CreatePod(_))))
}

fn change_request(defect: Defect, mut request: v1::PlanRequest) -> v1::PlanRequest {
    let snapshot = request.snapshot.get_or_insert_default();
    let kind = snapshot
        .workload
        .as_mut()
        .and_then(|workload| workload.kind.as_mut());
    if let Some(workload::Kind::Deployment(deployment)) = kind {
        let mut object: Value = serde_json::from_slice(&deployment.object).unwrap_or_default();
        if defect == Defect::IgnoresBudgets {
            object["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = json!("100%");
        }
        deployment.object = object.to_string().into();
    } else if let Some(workload::Kind::DaemonSet(daemon_set)) = kind {
        let mut object: Value = serde_json::from_slice(&daemon_set.object).unwrap_or_default();
        match defect {
            Defect::IgnoresBudgets => {
                object["spec"]["updateStrategy"]["rollingUpdate"] = json!({ "maxUnavailable": "100%" });
            }
            Defect::LosesUnknownFields => {
                let typed: Option<DaemonSet> = serde_json::from_value(object.clone()).ok();
                object = serde_json::to_value(typed).unwrap_or(object);
            }
            Defect::ForgetsPolicies => daemon_set.rollout_policies.clear(),
            _ => return request,
        }
        daemon_set.object = object.to_string().into();
    }
    request
}

fn change_plan(defect: Defect, plan: &mut v1::Plan) {
    match defect {
        Defect::AllAtOnce => {
            for phase in &mut plan.phases {
                let batches = std::mem::take(&mut phase.batches);
                phase.batches = vec![v1::Batch {
                    confirm_workload: batches.iter().any(|batch| batch.confirm_workload),
                    actions: batches.into_iter().flat_map(|batch| batch.actions).collect(),
                }];
            }
        }
        Defect::NamesRevisionsItself => {
            let batches = plan.phases.iter_mut().flat_map(|phase| &mut phase.batches);
            for action in batches.flat_map(|batch| &mut batch.actions) {
                if let Some(Kind::CreateRevision(create)) = &mut action.kind {
                    // The name keeps the planner's form, so that it passes the executor's check of plans.
                    if let Some((workload, letters)) = create.name.rsplit_once('-') {
                        create.name = format!("{workload}-{}", letters.chars().rev().collect::<String>());
                    }
                    let mut object: Value = serde_json::from_slice(&create.manifest).unwrap_or_default();
                    object["metadata"]["name"] = json!(create.name);
                    create.manifest = object.to_string().into();
                }
            }
        }
        Defect::DropsState => plan.state = None,
        Defect::DeletesInsteadOfEvicting => {
            let batches = plan.phases.iter_mut().flat_map(|phase| &mut phase.batches);
            for action in batches.flat_map(|batch| &mut batch.actions) {
                if let Some(Kind::EvictPod(evict)) = &mut action.kind {
                    action.kind = Some(Kind::DeletePod(v1::DeletePod {
                        pod: evict.pod.take(),
                        node_name: std::mem::take(&mut evict.node_name),
                        uid_precondition: true,
                    }));
                }
            }
        }
        Defect::ForgetsTimers => plan.requeue_after = None,
        _ => {}
    }
}

/// Uses TLS if the environment names an authority.
fn config_of_client(defect: Defect) -> Result<ClientConfig> {
    let file = |name| std::env::var_os(name).map(PathBuf::from);
    let mut files = Files {
        authorities: file("NODEWISE_TLS_CA"),
        identity: file("NODEWISE_TLS_CERT")
            .zip(file("NODEWISE_TLS_KEY"))
            .map(|(certificate, key)| Identity { certificate, key }),
    };
    if defect == Defect::TrustsAnyAuthority {
        // The kit writes this file for this defect.
        files.authorities = files.authorities.map(|path| path.with_file_name("stranger.crt"));
    }
    let tls = files.authorities.is_some().then(|| -> Result<_> {
        Ok(ClientTls {
            connector: Connector::new(files)?,
            server_name: None,
        })
    });
    Ok(ClientConfig {
        tls: tls.transpose()?,
        ..ClientConfig::default()
    })
}

/// Runs with the environment of the contract until SIGTERM: DaemonSets, or Deployments and ReplicaSets.
#[tokio::main]
pub(crate) async fn run(defect: Defect, of_replicas: bool) -> Result<()> {
    let config = kube::Config::infer().await.context("connecting to the cluster")?;
    let client = connect::client(config)?;
    let servers = std::env::var("NODEWISE_SERVER")?;
    let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let heard = stop.clone();
    tokio::spawn(async move {
        while terminate.recv().await.is_some() {
            if defect != Defect::IgnoresSigterm {
                heard.cancel();
            }
        }
    });
    let metrics = Metrics::new();
    let (recorder, sender) = EventRecorder::new(
        client.clone(),
        DaemonSets::EVENT_SOURCE,
        metrics.runtime().clone(),
    );
    tokio::spawn(sender);
    let timeout = Duration::from_secs(30);
    let actuator = KubeActuator::new(client.clone(), timeout, metrics.runtime().clone(), recorder);
    let service = WrongClient {
        defect,
        cluster: client.clone(),
        client: PlanClient::new(&servers, config_of_client(defect)?, Arc::new(metrics.clone()))?,
        last: Mutex::default(),
    };
    let mut config = manager::Config::default();
    match defect {
        Defect::Polls => config.resync = Duration::from_millis(2_500),
        Defect::DropsState => config.resync = Duration::from_millis(100),
        _ => {}
    }
    let (actuator, service) = (Arc::new(actuator), Arc::new(service));
    let manager = Manager::new(config, metrics, stop);
    let of = controller::Config::default;
    let manager = if of_replicas {
        manager
            .with::<ReplicaSets>(of(), Arc::clone(&actuator), Arc::clone(&service))
            .with::<Deployments>(of(), actuator, service)
    } else {
        manager.with::<DaemonSets>(of(), actuator, service)
    };
    let mut watches = manager.watch(&client, None, &Checks::default());
    manager.run(&mut watches).await?;
    Ok(())
}
