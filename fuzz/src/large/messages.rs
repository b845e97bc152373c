//! Requests with many tiny parts, which take two bytes on the wire and hundreds in memory.

use nodewise_fixtures::{Cluster, Form, rolling_update, rollout};
use nodewise_proto::{bucket, v1};
use prost::Message;

use super::{
    Make,
    fields::{field, items, many, words},
    states::{backoff, collision, create, delete, states},
};

fn bucket_of(data: Vec<u8>) -> Vec<v1::Bucket> {
    vec![v1::Bucket {
        data: Some(data.into()),
        ..Default::default()
    }]
}

/// A valid request with these nodes and pods, and without a limit on the creates in a plan.
fn holding(nodes: Option<Vec<u8>>, pods: Option<Vec<u8>>) -> Vec<u8> {
    holding_in(&Cluster::empty(0), nodes, pods)
}

pub(super) fn holding_in(cluster: &Cluster, nodes: Option<Vec<u8>>, pods: Option<Vec<u8>>) -> Vec<u8> {
    let mut request = cluster.request(1, Form::Inline);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    if let Some(data) = nodes {
        snapshot.node_buckets = bucket_of(data);
    }
    if let Some(data) = pods {
        snapshot.pod_buckets = bucket_of(data);
    }
    request.options = Some(v1::PlanOptions {
        burst: Some(u32::MAX),
        ..Default::default()
    });
    request.encode_to_vec()
}

/// A valid request with these bytes of nodes that share labels.
pub(super) fn holding_shared(nodes: Vec<u8>) -> Vec<u8> {
    let mut request = Cluster::empty(0).request(1, Form::Inline);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot.node_buckets = vec![v1::Bucket {
        data_with_shared_labels: Some(nodes.into()),
        ..Default::default()
    }];
    request.encode_to_vec()
}

pub(super) fn tiny_node(name: String) -> v1::Node {
    v1::Node {
        name,
        ..Default::default()
    }
}

pub(super) fn tiny_pod(name: String) -> v1::Pod {
    v1::Pod {
        uid: name.clone(),
        node_name: name.clone(),
        name,
        ..Default::default()
    }
}

/// A valid request with a repeated field in its snapshot.
fn snapshot_of(tag: u8, content: &[u8], bytes: usize) -> Vec<u8> {
    let mut request = Cluster::empty(1).request(1, Form::Inline).encode_to_vec();
    // Protobuf merges concatenated messages.
    request.extend(field(1, &many(tag, content, bytes - request.len())));
    request
}

fn nodes_of_every_bucket(bytes: usize) -> Vec<u8> {
    const COUNT: u32 = 1_024;
    let mut request = Cluster::empty(0).request(COUNT, Form::Inline);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    let mut buckets = vec![Vec::new(); COUNT as usize];
    let mut left = bytes;
    for name in words() {
        let at = bucket::of(&name, COUNT) as usize;
        let node = field(1, &tiny_node(name).encode_to_vec());
        let Some(rest) = left.checked_sub(node.len()) else {
            break;
        };
        left = rest;
        buckets[at].extend(node);
    }
    snapshot.node_buckets = buckets.into_iter().flat_map(bucket_of).collect();
    request.encode_to_vec()
}

/// A request for a cluster of as many nodes as fit. `make` makes a cluster of the given number of nodes.
fn fitting(bytes: usize, make: impl Fn(usize) -> Cluster) -> Vec<u8> {
    let ten = holding_in(&make(10), None, None).len();
    let more = (holding_in(&make(110), None, None).len() - ten) / 100;
    holding_in(&make(bytes.saturating_sub(ten) / more), None, None)
}

fn labelled(count: usize) -> v1::Node {
    let label = |key| v1::Label {
        key,
        value: String::new(),
    };
    v1::Node {
        name: "a".into(),
        labels: words().take(count).map(label).collect(),
        ..Default::default()
    }
}

fn tainted(count: usize, name: String) -> v1::Node {
    let taint = |key| v1::Taint {
        key,
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    v1::Node {
        name,
        taints: words().take(count).map(taint).collect(),
        ..Default::default()
    }
}

/// A request for a settled cluster of as many nodes as fit, after `change`.
fn settled(bytes: usize, change: impl Fn(&mut Cluster)) -> Vec<u8> {
    fitting(bytes, |nodes| {
        let mut cluster = Cluster::settled(nodes);
        change(&mut cluster);
        cluster
    })
}

fn rolling_out(bytes: usize, unavailable: &str, surge: &str) -> Vec<u8> {
    fitting(bytes, |nodes| rollout(nodes, rolling_update(unavailable, surge)))
}

/// Moves all pods to the first node.
fn move_to_one_node(cluster: &mut Cluster) {
    let name = cluster
        .nodes
        .first()
        .map(|node| node.name.clone())
        .unwrap_or_default();
    cluster
        .pods
        .iter_mut()
        .for_each(|pod| pod.node_name.clone_from(&name));
}

fn fail(cluster: &mut Cluster) {
    cluster
        .pods
        .iter_mut()
        .for_each(|pod| pod.phase = v1::PodPhase::Failed.into());
}

/// A request with a node in which an empty field is repeated as often as it fits.
fn node_of(tag: u8, bytes: usize) -> Vec<u8> {
    holding(Some(field(1, &many(tag, &[], bytes - 10))), None)
}

/// Requests for real clusters, for tiny objects and with long lists.
pub(super) const REQUESTS: &[(&str, Make)] = &[
    ("empty-cluster", |bytes| fitting(bytes, Cluster::empty)),
    ("settled-cluster", |bytes| fitting(bytes, Cluster::settled)),
    ("rollout-at-once", |bytes| rolling_out(bytes, "100%", "0%")),
    ("surge-at-once", |bytes| rolling_out(bytes, "0%", "100%")),
    ("failed-cluster", |bytes| settled(bytes, fail)),
    ("released-cluster", |bytes| {
        settled(bytes, |cluster| {
            cluster.pods.iter_mut().for_each(|pod| pod.labels.clear());
        })
    }),
    ("pods-of-one-node", |bytes| settled(bytes, move_to_one_node)),
    ("tiny-nodes", |bytes| holding(Some(items(bytes, tiny_node)), None)),
    ("tiny-nodes-of-buckets", nodes_of_every_bucket),
    ("few-tiny-nodes", |bytes| {
        holding(Some(items(bytes / 8, tiny_node)), None)
    }),
    ("tiny-pods", |bytes| holding(None, Some(items(bytes, tiny_pod)))),
    ("few-tiny-pods", |bytes| {
        holding(None, Some(items(bytes / 5, tiny_pod)))
    }),
    ("tiny-pods-on-nodes", |bytes| {
        holding(
            Some(items(bytes / 2, tiny_node)),
            Some(items(bytes / 2, tiny_pod)),
        )
    }),
    ("nameless-nodes", |bytes| holding(Some(many(1, &[], bytes)), None)),
    ("labels", |bytes| {
        holding(Some(field(1, &labelled(bytes / 9).encode_to_vec())), None)
    }),
    ("nameless-labels", |bytes| node_of(3, bytes)),
    ("taints", |bytes| {
        holding(Some(items(bytes, |name| tainted(100, name))), None)
    }),
    ("nameless-taints", |bytes| node_of(4, bytes)),
    ("nameless-shared-labels", |bytes| {
        holding_shared(many(2, &[], bytes))
    }),
    ("numbers-of-labels", |bytes| {
        let node = field(1, &field(9, &vec![1; bytes]));
        holding_shared([node, field(2, &[10, 1, b'k'])].concat())
    }),
    ("reports", |bytes| many(3, &[], bytes)),
    ("reports-of-outcomes", |bytes| field(3, &many(4, &[], bytes))),
    ("reports-of-states", |bytes| {
        many(3, &[26, 4, 10, 2, 18, 0], bytes)
    }),
    ("revisions", |bytes| snapshot_of(3, &[], bytes)),
    ("buckets", |bytes| snapshot_of(6, &[], bytes)),
    ("own-writes", |bytes| snapshot_of(10, &[], bytes)),
    ("states", |bytes| snapshot_of(9, &[], bytes)),
    ("backoffs", |bytes| state_of(2, bytes)),
    ("collisions", |bytes| state_of(3, bytes)),
    ("named-backoffs", |bytes| with_state(bytes, backoff)),
    ("named-collisions", |bytes| with_state(bytes, collision)),
    ("named-creates", |bytes| with_state(bytes, create)),
    ("named-deletes", |bytes| with_state(bytes, delete)),
    ("few-deletes", |bytes| with_state(bytes / 4, delete)),
    ("deviations", |bytes| field(2, &field(2, &vec![1; bytes]))),
    ("gates", |bytes| field(2, &field(4, &vec![1; bytes]))),
    ("unknown-fields", |bytes| many(15, &[], bytes)),
    ("unknown-groups", |bytes| vec![0x7b; bytes]),
];

fn state_of(tag: u8, bytes: usize) -> Vec<u8> {
    let mut request = Cluster::empty(1).request(1, Form::Inline).encode_to_vec();
    request.extend(field(1, &field(9, &many(tag, &[], bytes - request.len()))));
    request
}

fn with_state(bytes: usize, state: impl Fn(String) -> v1::ReconcileState) -> Vec<u8> {
    let mut request = Cluster::empty(1).request(1, Form::Inline).encode_to_vec();
    request.extend(field(1, &field(9, &states(bytes, state))));
    request
}
