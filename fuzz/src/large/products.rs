//! Requests in which a long part of the workload meets many nodes or pods. Each is cheap alone, but the response could repeat the
//! long part for each node or pod.

use nodewise_fixtures::Cluster;
use nodewise_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    Make,
    fields::{field, items, words},
    messages::{holding_in, holding_shared, tiny_node, tiny_pod},
};

/// The bytes of an input divided by these are for nodes, and for pods, of a few bytes each. More of them would be refused.
const NODES: usize = 25;
const PODS: usize = 16;

/// A request with many small nodes and a pod template with this field.
fn nodes_with(field: &str, value: Value, bytes: usize) -> Vec<u8> {
    let mut cluster = Cluster::empty(0);
    cluster.daemon_set["spec"]["template"]["spec"][field] = value;
    holding_in(&cluster, Some(items(bytes / NODES, tiny_node)), None)
}

/// A workload whose name, namespace and uid have `length` bytes, and which selects pods without labels.
fn named(length: usize) -> Cluster {
    let mut cluster = Cluster::empty(0);
    for field in ["name", "namespace", "uid"] {
        cluster.daemon_set["metadata"][field] = json!("n".repeat(length));
    }
    cluster.daemon_set["spec"]["selector"] =
        json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
    cluster
}

/// A request with many small orphans.
fn orphans_of(length: usize, phase: v1::PodPhase, node: Option<&str>, bytes: usize) -> Vec<u8> {
    let orphan = |name: String| {
        let mut pod = tiny_pod(name);
        if let Some(node) = node {
            node.clone_into(&mut pod.node_name);
        }
        pod.phase = phase.into();
        pod
    };
    let nodes = items(1_000, tiny_node);
    holding_in(&named(length), Some(nodes), Some(items(bytes / PODS, orphan)))
}

/// A request with many small pods that the workload owns but does not select. The plan releases each with a patch that contains the
/// uid of the workload.
fn released_by(length: usize, bytes: usize) -> Vec<u8> {
    let mut cluster = named(length);
    cluster.daemon_set["spec"]["selector"]["matchExpressions"][0]["operator"] = json!("Exists");
    let text = "n".repeat(length);
    let metadata = v1::SharedMetadata {
        labels: Vec::new(),
        controller: Some(v1::ControllerReference {
            kind: "DaemonSet".to_owned(),
            name: text.clone(),
            uid: text,
        }),
    };
    let pod = |name: String| v1::Pod {
        shared_metadata: 1,
        ..tiny_pod(name)
    };
    let pods = items(bytes / PODS, pod);
    holding_in(
        &cluster,
        None,
        Some([field(2, &metadata.encode_to_vec()), pods].concat()),
    )
}

/// A request with small pods that share one of two long lists of labels, and a selector that evaluates all of them.
fn pods_of(selector: Value, bytes: usize) -> Vec<u8> {
    let mut cluster = Cluster::empty(0);
    cluster.daemon_set["spec"]["selector"] = selector;
    let labels = |value: &str| {
        let label = |key: String| v1::Label {
            key,
            value: value.to_owned(),
        };
        let metadata = v1::SharedMetadata {
            labels: words().take(1_024).map(label).collect(),
            controller: None,
        };
        field(2, &metadata.encode_to_vec())
    };
    let pod = |name: String| v1::Pod {
        shared_metadata: if name.starts_with(|first| first < 'n') {
            1
        } else {
            2
        },
        ..tiny_pod(name)
    };
    let pods = items(bytes / PODS, pod);
    holding_in(&cluster, None, Some([labels("v"), labels("w"), pods].concat()))
}

/// A request with small pods that all have different labels, and a selector that evaluates them.
fn pods_of_many_kinds(selector: Value, bytes: usize) -> Vec<u8> {
    let mut cluster = Cluster::empty(0);
    cluster.daemon_set["spec"]["selector"] = selector;
    let count = bytes / 32;
    let metadata = words().take(count).map(|value| v1::SharedMetadata {
        labels: vec![v1::Label {
            key: "k".to_owned(),
            value,
        }],
        controller: None,
    });
    let mut data: Vec<u8> = metadata
        .flat_map(|metadata| field(2, &metadata.encode_to_vec()))
        .collect();
    for (number, name) in (1..).zip(words().take(count)) {
        let pod = v1::Pod {
            shared_metadata: number,
            ..tiny_pod(name)
        };
        data.extend(field(1, &pod.encode_to_vec()));
    }
    holding_in(&cluster, None, Some(data))
}

/// A request with nodes of which each refers to all labels of the bucket.
fn nodes_sharing(labels: impl Iterator<Item = v1::SharedLabel>, node_name: &str, bytes: usize) -> Vec<u8> {
    let labels: Vec<_> = labels.map(|label| field(2, &label.encode_to_vec())).collect();
    let node = |name: String| v1::Node {
        name: node_name.to_owned() + &name,
        shared_labels: (1..=u32::try_from(labels.len()).unwrap_or(u32::MAX)).collect(),
        ..Default::default()
    };
    let nodes = items(bytes.saturating_sub(labels.concat().len()), node);
    holding_shared([nodes, labels.concat()].concat())
}

fn affinity(expressions: &Value) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": expressions}]}}})
}

/// The large requests of this kind.
pub(super) const REQUESTS: &[(&str, Make)] = &[
    ("shared-labels-x-nodes", |bytes| {
        let label = |word: String| v1::SharedLabel {
            key: word.clone() + &"k".repeat(200),
            value: word.repeat(20),
            ..Default::default()
        };
        nodes_sharing(words().take(1_000).map(label), "", bytes)
    }),
    ("short-shared-labels-x-nodes", |bytes| {
        let label = |key: String| v1::SharedLabel {
            key,
            ..Default::default()
        };
        nodes_sharing(words().take(bytes / 10).map(label), "", bytes)
    }),
    ("names-as-labels-x-nodes", |bytes| {
        let label = |key: String| v1::SharedLabel {
            key,
            value_is_node_name: true,
            ..Default::default()
        };
        nodes_sharing(words().take(1_000).map(label), &"n".repeat(240), bytes)
    }),
    ("long-name-as-labels", |bytes| {
        let label = |key: String| v1::SharedLabel {
            key,
            value_is_node_name: true,
            ..Default::default()
        };
        nodes_sharing(words().take(10_000).map(label), &"n".repeat(bytes / 2), bytes)
    }),
    ("selector-x-nodes", |bytes| {
        let entries: serde_json::Map<_, _> = words()
            .take(1_024)
            .map(|word| (word.repeat(40), json!("v")))
            .collect();
        nodes_with("nodeSelector", entries.into(), bytes)
    }),
    ("long-selector-x-nodes", |bytes| {
        nodes_with("nodeSelector", json!({"k": "v".repeat(bytes / 4)}), bytes)
    }),
    ("terms-x-nodes", |bytes| {
        let expression = |word: String| json!({"key": word.repeat(20), "operator": "Exists"});
        nodes_with(
            "affinity",
            affinity(&words().take(500).map(expression).collect()),
            bytes,
        )
    }),
    ("values-x-nodes", |bytes| {
        let values: Vec<_> = words().take(16_000).collect();
        let expression = json!([{"key": "k", "operator": "In", "values": values}]);
        nodes_with("affinity", affinity(&expression), bytes)
    }),
    ("no-value-x-nodes", |bytes| {
        let expression = json!([{"key": "k", "operator": "In", "values": ["!".repeat(bytes / 4)]}]);
        nodes_with("affinity", affinity(&expression), bytes)
    }),
    ("node-name-x-nodes", |bytes| {
        nodes_with("nodeName", json!("n".repeat(253)), bytes)
    }),
    ("long-node-name-x-nodes", |bytes| {
        nodes_with("nodeName", json!("n".repeat(bytes / 4)), bytes)
    }),
    ("long-name-x-nodes", |bytes| {
        holding_in(&named(253), Some(items(bytes / NODES, tiny_node)), None)
    }),
    ("selector-x-pods", |bytes| {
        let labels: serde_json::Map<_, _> = words().take(1_000).map(|word| (word, json!("v"))).collect();
        pods_of(json!({"matchLabels": labels}), bytes)
    }),
    ("values-x-pods", |bytes| {
        let values: Vec<_> = words().take(16_000).collect();
        let expression = json!({"key": "a", "operator": "NotIn", "values": values});
        pods_of(json!({"matchExpressions": [expression]}), bytes)
    }),
    ("kinds-x-pods", |bytes| {
        pods_of_many_kinds(json!({"matchLabels": {"k": "a"}}), bytes)
    }),
    ("values-x-kinds-x-pods", |bytes| {
        let values: Vec<_> = words().take(16_000).collect();
        let expression = json!({"key": "k", "operator": "NotIn", "values": values});
        pods_of_many_kinds(json!({"matchExpressions": [expression]}), bytes)
    }),
    ("name-beyond-all-x-orphans", |bytes| {
        orphans_of(100_000, v1::PodPhase::Running, None, bytes)
    }),
    ("long-name-x-orphans", |bytes| {
        orphans_of(253, v1::PodPhase::Running, None, bytes)
    }),
    ("long-uid-x-released", |bytes| released_by(253, bytes)),
    ("name-x-released", |bytes| released_by(40, bytes)),
    ("name-x-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Running, None, bytes)
    }),
    ("name-x-failed-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Failed, None, bytes)
    }),
    ("name-x-excess-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Running, Some("a"), bytes)
    }),
];
