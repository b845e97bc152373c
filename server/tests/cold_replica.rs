//! A replica that knows nothing yet is told of the largest cluster in one message, with the limits that everything has by default.
//! The CLI's crate is the one that has the executor's and the server's code without a cluster.

use nodewise_executor::event::{ClusterEvent, DaemonSet, Delta, Node};
use nodewise_executor::{snapshot, store::Store};
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_proto::{Timestamp, v1};
use nodewise_server::{Config, run};
use prost::Message as _;
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};

const NODES: usize = 100_000;
const LABELS: usize = 25;
/// As many as the executor has by default.
const BUCKETS: u32 = 128;
/// Of these all DaemonSets together name a few.
const NAMED: [&str; 4] = [
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

#[tokio::test]
async fn a_cold_replica_is_told_of_100_000_nodes_with_25_labels() {
    let mut store = Store::new(BUCKETS);
    let workloads = NAMED.map(|label| daemon_set(label.rsplit(['.', '/']).next().unwrap_or(label), label));
    store.apply(ClusterEvent::DaemonSets(listed(workloads.to_vec())));
    store.apply(ClusterEvent::Pods(listed(Vec::new())));
    store.apply(ClusterEvent::Revisions(listed(Vec::new())));
    let whole: usize = (0..NODES)
        .map(|index| {
            let node = node(index);
            let size = node.projection.encoded_len();
            store.apply(ClusterEvent::Nodes(Delta::Applied(node)));
            size
        })
        .sum();
    let now = Timestamp {
        seconds: 1_790_000_000,
        nanos: 0,
    };
    let state = v1::ReconcileState::default();
    let request = v1::PlanRequest {
        snapshot: Some(snapshot::take(
            &mut store,
            &workloads[0],
            state,
            &[],
            now,
            &|_| false,
        )),
        ..Default::default()
    };
    drop(store);
    let config = Config::default();
    let (sent, most) = (request.encoded_len(), config.max_message_size.as_usize());
    println!("{sent} bytes are sent, {whole} would be with all labels; {most} are taken");
    assert!(whole > most, "or the labels need not be reduced");
    assert!(sent < most, "{sent} bytes");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (_stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run(config, listener, async move {
        let _ = stopped.await;
    }));
    let mut client = ReconcileServiceClient::connect(format!("http://{address}"))
        .await
        .expect("a connection");
    let answer = client.plan(request).await.expect("a plan").into_inner();
    let plan = answer.plan.expect("a plan");
    let creates = plan
        .actions()
        .filter(|action| matches!(action.kind, Some(v1::action::Kind::CreatePod(_))));
    assert_eq!(creates.count(), 250, "a burst of pods");
    running.abort();
}
