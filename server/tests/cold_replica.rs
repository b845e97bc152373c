//! Sends the largest cluster to a replica with an empty cache, with all limits at their defaults: in one message if DaemonSets name
//! few labels, in several pieces if they name all labels.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use nodewise_client::{ClientConfig, Observer, PlanClient, PlanService as _, ServiceError};
use nodewise_executor::daemon_set::{DAEMON_SETS, DaemonSets};
use nodewise_projection::{Node, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::{Timestamp, v1};
use nodewise_runtime::Delta;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::{
    snapshot::{self, LiveObjects},
    store::Store,
};
use nodewise_server::Config;
use prost::Message as _;
use serde_json::json;
use support::Process;

const NODES: usize = 100_000;
const LABELS: usize = 25;
/// The executor's default.
const BUCKETS: u32 = 64;
/// The labels that DaemonSets name in the test with few labels.
const FEW: [&str; 4] = [
    "example.com/label-03",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
];

/// A node like those of cloud providers: labels that all nodes have, labels that many nodes have, and its own hostname.
fn node(index: usize) -> Node {
    let name = format!("node-{index:06}.eu-central-1.compute.internal");
    let mut labels: Vec<(String, String)> = (0..LABELS - 4)
        .map(|label| {
            (
                format!("example.com/label-{label:02}"),
                format!("value-{}", index % 50),
            )
        })
        .collect();
    for (key, value) in [
        ("kubernetes.io/hostname", name.clone()),
        ("kubernetes.io/os", "linux".to_owned()),
        (
            "node.kubernetes.io/instance-type",
            format!("m{}.4xlarge", index % 7),
        ),
        (
            "topology.kubernetes.io/zone",
            format!("eu-central-1{}", index % 3),
        ),
    ] {
        labels.push((key.to_owned(), value));
    }
    assert_eq!(labels.len(), LABELS);
    Node {
        resource_version: index.to_string(),
        projection: v1::Node {
            name,
            uid: format!("{index:08x}-5f0e-4d1c-9a3b-{index:012x}"),
            labels: labels
                .into_iter()
                .map(|(key, value)| v1::Label { key, value })
                .collect(),
            ready: v1::ConditionStatus::True.into(),
            ..Default::default()
        },
    }
}

fn daemon_set(name: &str, label: &str) -> Workload {
    let labels = json!({"app": name});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": name, "uid": format!("{name}-uid"), "generation": 1},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "revisionHistoryLimit": 10,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": label, "operator": "Exists"}]}]}}},
                },
            },
        },
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

fn listed<T>(objects: Vec<T>) -> Delta<T> {
    Delta::Listed {
        objects,
        resource_version: "1".into(),
    }
}

/// The store of a cluster with all nodes and one DaemonSet for each of these labels, and the first DaemonSet.
fn cluster(named: &[&str]) -> (Store, Workload) {
    let mut store = Store::new(&[DAEMON_SETS], BUCKETS);
    let workloads: Vec<_> = (0..)
        .zip(named)
        .map(|(number, label)| daemon_set(&format!("agent-{number}"), label))
        .collect();
    let first = workloads[0].clone();
    store.apply(ClusterEvent::Workloads(DAEMON_SETS, listed(workloads)));
    store.apply(ClusterEvent::Pods(listed(Vec::new())));
    store.apply(ClusterEvent::Revisions(listed(Vec::new())));
    store.apply(ClusterEvent::Policies(listed(Vec::new())));
    store.apply(ClusterEvent::Nodes(listed(Vec::new())));
    for index in 0..NODES {
        store.apply(ClusterEvent::Nodes(Delta::Applied(node(index))));
    }
    (store, first)
}

fn request(store: &mut Store, workload: &Workload, receiver: &Receiver<'_>) -> v1::PlanRequest {
    let now = Timestamp {
        seconds: 1_790_000_000,
        nanos: 0,
    };
    let state = v1::ReconcileState::default();
    v1::PlanRequest {
        snapshot: Some(snapshot::take::<DaemonSets>(
            store,
            workload,
            state,
            &LiveObjects::default(),
            now,
            receiver,
        )),
        ..Default::default()
    }
}

/// The calls so far: the bytes of the request for a plan, `None` for an error.
#[derive(Debug, Default)]
struct Sent(Mutex<Vec<Option<usize>>>);

impl Observer for Sent {
    fn plan_answered(&self, _: &'static str, _: Duration, request_bytes: usize, _: &v1::Plan) {
        self.0.lock().expect("no panic").push(Some(request_bytes));
    }

    fn plan_failed(&self, _: &'static str, _: Duration, _: tonic::Code) {
        self.0.lock().expect("no panic").push(None);
    }
}

/// Starts a server with these flags and asks it for a plan. Returns the bytes of the whole request, the number of calls, and the
/// plan.
async fn ask(named: &[&str], flags: &[&str]) -> (usize, usize, Result<v1::Plan, ServiceError>) {
    let (mut store, workload) = cluster(named);
    let whole = request(&mut store, &workload, &Receiver::EMPTY).encoded_len();
    let mut server = Process::start(
        // A busy machine may take long to send a message of 32 MiB.
        &[&["--listen", "127.0.0.1:0", "--transfer-timeout", "5m"], flags].concat(),
        &[],
    );
    // A debug build on a busy machine is slow.
    let config = ClientConfig {
        timeout: Duration::from_mins(10),
        ..ClientConfig::default()
    };
    let sent = Arc::new(Sent::default());
    let client = PlanClient::new(&[server.url()], config, Arc::clone(&sent) as _).expect("a good URL");
    let answer = client
        .plan(&workload.uid, &mut |receiver| {
            request(&mut store, &workload, receiver)
        })
        .await;
    let calls = sent.0.lock().expect("no panic").clone();
    println!(
        "{whole} bytes in {calls:?}; the server took {} MiB",
        server.peak_memory() >> 20
    );
    (whole, calls.len(), answer.map(|answer| answer.plan))
}

/// The number of pods that a plan creates.
fn creates(plan: &v1::Plan) -> usize {
    let created = plan
        .actions()
        .filter(|action| matches!(action.kind, Some(v1::action::Kind::CreatePod(_))));
    created.count()
}

fn all_labels() -> Vec<String> {
    let labels = node(0).projection.labels;
    labels.into_iter().map(|label| label.key).collect()
}

#[tokio::test]
async fn one_message_holds_100_000_nodes_if_few_labels_are_named() {
    let (whole, calls, plan) = ask(&FEW, &[]).await;
    assert!(whole < Config::default().max_message_size.as_usize());
    assert_eq!(calls, 1);
    assert_eq!(creates(&plan.expect("a plan")), 250);
}

#[tokio::test]
async fn pieces_hold_100_000_nodes_if_all_labels_are_named() {
    let labels = all_labels();
    let named: Vec<_> = labels.iter().map(String::as_str).collect();
    let (whole, calls, plan) = ask(&named, &[]).await;
    assert!(whole > Config::default().max_message_size.as_usize(), "{whole}");
    // Buckets are not split, so pieces are not quite full.
    let fewest = whole.div_ceil(ClientConfig::default().max_piece_bytes);
    assert!((fewest..=fewest + 1).contains(&calls), "{calls} calls");
    assert_eq!(creates(&plan.expect("a plan")), 250);

    // If the cache is too small for all buckets, the client gives up soon, and the error says which flags to change.
    let (_, calls, plan) = ask(&named, &["--bucket-cache-size", "2MiB"]).await;
    let reason = plan
        .expect_err("neither the cache nor a message is large enough")
        .to_string();
    println!("{reason}");
    assert!(calls <= 6, "{calls} calls");
    for said in [
        whole.to_string().as_str(),
        "--bucket-cache-size",
        "--max-message-size",
    ] {
        assert!(reason.contains(said), "{said}: {reason}");
    }
}
