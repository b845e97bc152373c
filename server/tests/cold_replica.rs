//! A replica that knows nothing yet is told of the largest cluster, with the limits that everything has by default: in one message
//! when DaemonSets name a few labels, in several when they name all of them.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use nodewise_client::{ClientConfig, Digest, Observer, PlanClient, PlanService as _, ServiceError};
use nodewise_executor::event::{ClusterEvent, DaemonSet, Delta, Node};
use nodewise_executor::{snapshot, store::Store};
use nodewise_proto::{Timestamp, v1};
use nodewise_server::Config;
use prost::Message as _;
use serde_json::json;
use support::Process;

const NODES: usize = 100_000;
const LABELS: usize = 25;
/// As many as the executor has by default.
const BUCKETS: u32 = 64;
/// Of these labels all DaemonSets together name a few.
const FEW: [&str; 4] = [
    "example.com/label-03",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
];

/// A node as clouds make them: labels that all have, some that many have, and its own name.
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

fn daemon_set(name: &str, label: &str) -> DaemonSet {
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
    DaemonSet::from_json(&object).expect("a DaemonSet")
}

fn listed<T>(objects: Vec<T>) -> Delta<T> {
    Delta::Listed {
        objects,
        resource_version: "1".into(),
    }
}

/// All of the cluster's nodes, and a DaemonSet for each of these labels that names it.
fn cluster(named: &[&str]) -> (Store, DaemonSet) {
    let mut store = Store::new(BUCKETS);
    let workloads: Vec<_> = (0..)
        .zip(named)
        .map(|(number, label)| daemon_set(&format!("agent-{number}"), label))
        .collect();
    let first = workloads[0].clone();
    store.apply(ClusterEvent::DaemonSets(listed(workloads)));
    store.apply(ClusterEvent::Pods(listed(Vec::new())));
    store.apply(ClusterEvent::Revisions(listed(Vec::new())));
    store.apply(ClusterEvent::Nodes(listed(Vec::new())));
    for index in 0..NODES {
        store.apply(ClusterEvent::Nodes(Delta::Applied(node(index))));
    }
    (store, first)
}

fn request(store: &mut Store, workload: &DaemonSet, known: &dyn Fn(&Digest) -> bool) -> v1::PlanRequest {
    let now = Timestamp {
        seconds: 1_790_000_000,
        nanos: 0,
    };
    let state = v1::ReconcileState::default();
    v1::PlanRequest {
        snapshot: Some(snapshot::take(store, workload, state, &[], now, known)),
        ..Default::default()
    }
}

/// The bytes of each request that was answered, with a plan or otherwise.
#[derive(Debug, Default)]
struct Sent(Mutex<Vec<Option<usize>>>);

impl Observer for Sent {
    fn plan_answered(&self, _: Duration, request_bytes: usize, _: &v1::Plan) {
        self.0.lock().expect("no panic").push(Some(request_bytes));
    }

    fn plan_failed(&self, _: Duration, _: tonic::Code) {
        self.0.lock().expect("no panic").push(None);
    }
}

/// Asks a server that has just been started with these flags for a plan. Answers with the bytes of the whole request, how many
/// calls it took, and the answer.
async fn ask(named: &[&str], flags: &[&str]) -> (usize, usize, Result<v1::Plan, ServiceError>) {
    let (mut store, workload) = cluster(named);
    let whole = request(&mut store, &workload, &|_| false).encoded_len();
    let mut server = Process::start(
        // The machine may do other things while a message of 32 MiB is sent.
        &[&["--listen", "127.0.0.1:0", "--transfer-timeout", "5m"], flags].concat(),
        &[],
    );
    // In a build for tests, on a machine that does other things.
    let config = ClientConfig {
        timeout: Duration::from_mins(10),
        ..ClientConfig::default()
    };
    let sent = Arc::new(Sent::default());
    let client = PlanClient::new(&[server.url()], config, Arc::clone(&sent) as _).expect("a good URL");
    let answer = client
        .plan(&workload.uid, &mut |known| request(&mut store, &workload, known))
        .await;
    let calls = sent.0.lock().expect("no panic").clone();
    println!(
        "{whole} bytes in {calls:?}; the server took {} MiB",
        server.peak_memory() >> 20
    );
    (whole, calls.len(), answer.map(|answer| answer.plan))
}

/// The first pods of a DaemonSet whose label all nodes have.
fn burst(plan: &v1::Plan) -> usize {
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
async fn a_cold_replica_is_told_of_100_000_nodes_in_one_message_when_few_labels_are_named() {
    let (whole, calls, plan) = ask(&FEW, &[]).await;
    assert!(whole < Config::default().max_message_size.as_usize());
    assert_eq!(calls, 1);
    assert_eq!(burst(&plan.expect("a plan")), 250);
}

#[tokio::test]
async fn a_cold_replica_is_told_of_100_000_nodes_in_pieces_when_all_of_their_labels_are_named() {
    let labels = all_labels();
    let named: Vec<_> = labels.iter().map(String::as_str).collect();
    let (whole, calls, plan) = ask(&named, &[]).await;
    assert!(whole > Config::default().max_message_size.as_usize(), "{whole}");
    // Buckets are not divided, so that pieces are not quite full.
    let fewest = whole.div_ceil(ClientConfig::default().max_piece_bytes);
    assert!((fewest..=fewest + 1).contains(&calls), "{calls} calls");
    assert_eq!(burst(&plan.expect("a plan")), 250);

    // Where there is no room for all buckets that ends soon, and says what to do.
    let (_, calls, plan) = ask(&named, &["--bucket-cache-size", "64MiB"]).await;
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
