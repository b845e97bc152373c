//! An executor that is wrong in one chosen way: the Rust executor with something between it and the service.

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
use nodewise_client::{
    Answer, BuildRequest, ClientConfig, ClientTls, Digest, PlanClient, PlanService, ServiceError,
};
use nodewise_executor::{
    actuator::KubeActuator, controller, events::EventRecorder, metrics::Metrics, watch::Watches,
};
use nodewise_proto::v1::{self, action::Kind, workload};
use nodewise_telemetry::http::Checks;
use nodewise_tls::client::{Connector, Files, Identity};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Nothing.
    None,
    /// It applies the batches of a phase all at once.
    AllAtOnce,
    /// It tells the service of another budget than the DaemonSet has.
    IgnoresBudgets,
    /// It gives revisions other names than the plan.
    NamesRevisionsItself,
    /// It goes on with the last plan that had creates when the service does not answer.
    GoesOnAlone,
    /// It reads DaemonSets with the API types of its time.
    LosesUnknownFields,
    /// It asks again every few seconds.
    AsksAllTheTime,
    /// It does not hold what the service tells it to, and asks again soon.
    HoldsNothing,
    /// It sends all buckets each time.
    SendsEverything,
    /// It believes also servers whose certificates are of an authority that it was not told.
    BelievesAnybody,
    /// It deletes what a plan names before it looks whose pods these are.
    DeletesUnchecked,
    /// It creates what a plan names before it looks where and how many these are.
    CreatesUnchecked,
    /// It sends a state again that the service has refused.
    KeepsRefusedState,
    /// It does not end on SIGTERM.
    Deaf,
}

/// The service, as a wrong executor takes it.
struct Wrong {
    defect: Defect,
    client: PlanClient,
    cluster: Client,
    /// The last plans with creates, by the uid of the workload.
    last: Mutex<HashMap<String, v1::Plan>>,
}

impl PlanService for Wrong {
    async fn plan(&self, uid: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let defect = self.defect;
        let mut spoilt = |known: &dyn Fn(&Digest) -> bool| {
            let request = match defect {
                Defect::SendsEverything => build(&|_| false),
                _ => build(known),
            };
            spoil(defect, request)
        };
        let answer = self.client.plan(uid, &mut spoilt).await;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match (answer, last.get(uid)) {
            (Err(_), Some(plan)) if defect == Defect::GoesOnAlone => {
                spoilt(&|_| false);
                Ok(Answer {
                    plan: plan.clone(),
                    request: 0,
                })
            }
            // As if nobody had answered: then it asks again with the same state.
            (Err(ServiceError::Refused(refusal)), _) if defect == Defect::KeepsRefusedState => {
                Err(ServiceError::Unreachable(refusal.to_string()))
            }
            (answer, _) => {
                let mut answer = answer?;
                apply_wrongly(defect, &mut answer.plan);
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

/// Deletes all pods that a plan names, without waiting for that.
fn delete_unchecked(cluster: &Client, plan: &v1::Plan) {
    let namespace = plan.workload.as_ref().map_or("", |workload| &*workload.namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.clone(), namespace);
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

/// Creates all pods that a plan names, without waiting for that.
fn create_unchecked(cluster: &Client, plan: &v1::Plan) {
    let namespace = plan.workload.as_ref().map_or("", |workload| &*workload.namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.clone(), namespace);
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

fn spoil(defect: Defect, mut request: v1::PlanRequest) -> v1::PlanRequest {
    let snapshot = request.snapshot.get_or_insert_default();
    let kind = snapshot
        .workload
        .as_mut()
        .and_then(|workload| workload.kind.as_mut());
    if let Some(workload::Kind::DaemonSet(daemon_set)) = kind {
        let mut object: Value = serde_json::from_slice(&daemon_set.object).unwrap_or_default();
        match defect {
            Defect::IgnoresBudgets => {
                object["spec"]["updateStrategy"]["rollingUpdate"] = json!({ "maxUnavailable": "100%" });
            }
            Defect::LosesUnknownFields => {
                let typed: Option<DaemonSet> = serde_json::from_value(object.clone()).ok();
                object = serde_json::to_value(typed).unwrap_or(object);
            }
            _ => return request,
        }
        daemon_set.object = object.to_string().into();
    }
    request
}

fn apply_wrongly(defect: Defect, plan: &mut v1::Plan) {
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
                    // Of the planner's form, which the check of plans wants.
                    if let Some((workload, letters)) = create.name.rsplit_once('-') {
                        create.name = format!("{workload}-{}", letters.chars().rev().collect::<String>());
                    }
                    let mut object: Value = serde_json::from_slice(&create.manifest).unwrap_or_default();
                    object["metadata"]["name"] = json!(create.name);
                    create.manifest = object.to_string().into();
                }
            }
        }
        Defect::HoldsNothing => plan.state = None,
        _ => {}
    }
}

/// TLS where the environment has something to say about it.
fn config_of_client(defect: Defect) -> Result<ClientConfig> {
    let file = |name| std::env::var_os(name).map(PathBuf::from);
    let mut files = Files {
        authorities: file("NODEWISE_TLS_CA"),
        identity: file("NODEWISE_TLS_CERT")
            .zip(file("NODEWISE_TLS_KEY"))
            .map(|(certificate, key)| Identity { certificate, key }),
    };
    if defect == Defect::BelievesAnybody {
        // The kit has it there for this.
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

/// Runs with the environment of the contract until SIGTERM.
#[tokio::main]
pub(crate) async fn run(defect: Defect) -> Result<()> {
    let client = Client::try_default().await.context("connecting to the cluster")?;
    let servers = std::env::var("NODEWISE_SERVER")?;
    let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let heard = stop.clone();
    tokio::spawn(async move {
        while terminate.recv().await.is_some() {
            if defect != Defect::Deaf {
                heard.cancel();
            }
        }
    });
    let metrics = Metrics::new();
    let (recorder, sender) = EventRecorder::new(client.clone(), metrics.clone());
    tokio::spawn(sender);
    let timeout = Duration::from_secs(30);
    let actuator = KubeActuator::new(client.clone(), timeout, metrics.clone(), recorder);
    let service = Wrong {
        defect,
        cluster: client.clone(),
        client: PlanClient::new(&servers, config_of_client(defect)?, Arc::new(metrics.clone()))?,
        last: Mutex::default(),
    };
    let mut config = controller::Config::default();
    match defect {
        Defect::AsksAllTheTime => config.resync = Duration::from_millis(2_500),
        Defect::HoldsNothing => config.resync = Duration::from_millis(100),
        _ => {}
    }
    let mut watches = Watches::start(&client, None, &Checks::default(), &metrics);
    let (actuator, service) = (Arc::new(actuator), Arc::new(service));
    controller::run(&mut watches, actuator, service, config, metrics, stop).await?;
    Ok(())
}
