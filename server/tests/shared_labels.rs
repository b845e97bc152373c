//! Nodes that share labels on the wire: `Bucket.data_with_shared_labels`.

mod support;

use nodewise_proto::{nodes, v1};
use nodewise_server::{Config, Refusal, decode, estimate, never};
use prost::Message as _;
use serde_json::json;
use support::{Cluster, Form, bucket_message, engine, node};
use tonic::Code;

/// A settled cluster. Its template selects nodes by two labels, so that one of its nodes is in the plan if a label is misread.
fn cluster(count: usize) -> Cluster {
    let mut cluster = Cluster::settled(count);
    cluster.daemon_set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                              {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node(0).name]}]},
    ]}}});
    cluster
}

/// The same request with the nodes of each bucket as `change` leaves them.
fn sharing(
    mut request: v1::PlanRequest,
    form: Form,
    change: impl Fn(&mut v1::NodeBucket),
) -> v1::PlanRequest {
    for bucket in &mut request.snapshot.as_mut().unwrap().node_buckets {
        let plain = v1::NodeBucket::decode(bucket.data.take().expect("inline")).unwrap();
        let mut shared = nodes::sharing(plain.nodes);
        change(&mut shared);
        let message = bucket_message(shared.encode_to_vec(), form);
        *bucket = v1::Bucket {
            data_with_shared_labels: message.data,
            digest: message.digest,
            data: None,
        };
    }
    request
}

fn plan(request: v1::PlanRequest) -> v1::Plan {
    engine().plan(request, &never).expect("a plan").plan.expect("one")
}

#[test]
fn the_plan_is_that_of_the_plain_form() {
    for buckets in [1, 7] {
        let mut cluster = cluster(60);
        // A hostname that is the name of the node before, and one that is no node's.
        for (at, value) in [
            (21, node(20).name),
            (30, node(0).name),
            (40, "elsewhere".to_owned()),
        ] {
            let label = cluster.nodes[at].labels.iter_mut();
            let mut hostname = label.filter(|label| label.key == "kubernetes.io/hostname");
            hostname.next().expect("a hostname").value = value;
        }
        cluster.nodes[50].labels.clear();
        let plain = cluster.request(buckets, Form::InlineWithDigest);
        let expected = plan(plain.clone());
        assert!(
            support::actions(&expected).next().is_some(),
            "the plan says something"
        );
        let shared = sharing(plain.clone(), Form::InlineWithDigest, |_| ());
        assert!(
            shared.encoded_len() * 3 < plain.encoded_len() * 2,
            "it is smaller"
        );
        assert_eq!(plan(shared), expected);
        // The numbers may be in any order, and entries may be there that no node refers to.
        let reversed = |bucket: &mut v1::NodeBucket| {
            bucket
                .nodes
                .iter_mut()
                .for_each(|node| node.shared_labels.reverse());
            bucket.shared_labels.push(v1::SharedLabel {
                key: "unused".to_owned(),
                ..Default::default()
            });
        };
        assert_eq!(plan(sharing(plain, Form::Inline, reversed)), expected);
    }
}

#[test]
fn explanations_and_simulations_take_both_forms() {
    let plain = cluster(20).request(1, Form::Inline);
    let shared = sharing(plain.clone(), Form::Inline, |_| ());
    let explain = |request: v1::PlanRequest| {
        let request = v1::ExplainRequest {
            snapshot: request.snapshot,
            ..Default::default()
        };
        engine().explain(request, &never).expect("an answer")
    };
    assert_eq!(explain(shared), explain(plain));
}

#[test]
fn a_bucket_is_cached_by_the_digest_of_these_bytes() {
    let engine = engine();
    let inline = sharing(
        cluster(40).request(4, Form::InlineWithDigest),
        Form::InlineWithDigest,
        |_| (),
    );
    let mut by_digest = inline.clone();
    for bucket in &mut by_digest.snapshot.as_mut().unwrap().node_buckets {
        bucket.data_with_shared_labels = None;
    }
    // The pods are inline in both.
    assert!(matches!(
        engine.plan(by_digest.clone(), &never),
        Err(Refusal::MissingBuckets { .. })
    ));
    let first = engine.plan(inline, &never).expect("a plan");
    assert_eq!(engine.plan(by_digest, &never).expect("a plan"), first);
}

/// A request whose only node bucket is this, in the new field.
fn with(bucket: &v1::NodeBucket) -> v1::PlanRequest {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    request.snapshot.as_mut().unwrap().node_buckets[0] = v1::Bucket {
        data_with_shared_labels: Some(bucket.encode_to_vec().into()),
        ..Default::default()
    };
    request
}

fn entry(key: &str, value: &str) -> v1::SharedLabel {
    v1::SharedLabel {
        key: key.to_owned(),
        value: value.to_owned(),
        ..Default::default()
    }
}

#[test]
fn errors_name_the_field() {
    let change = |change: fn(&mut v1::NodeBucket)| {
        let mut bucket = nodes::sharing(vec![node(0), node(1)]);
        change(&mut bucket);
        with(&bucket)
    };
    let bucket = |change: fn(&mut v1::Snapshot)| {
        let mut request = Cluster::settled(2).request(1, Form::Inline);
        change(request.snapshot.as_mut().unwrap());
        request
    };
    assert!(engine().plan(change(|_| ()), &never).is_ok());
    let table = [
        (
            change(|bucket| bucket.nodes[1].shared_labels = vec![1, 99]),
            "data_with_shared_labels.nodes[1].shared_labels: has 99; the bucket's shared_labels has ",
        ),
        (
            change(|bucket| bucket.nodes[1].shared_labels = vec![0]),
            "data_with_shared_labels.nodes[1].shared_labels: has 0; the bucket's shared_labels has ",
        ),
        (
            change(|bucket| bucket.nodes[1].shared_labels = vec![1, 2, 1]),
            "data_with_shared_labels.nodes[1].shared_labels: has the key `beta.kubernetes.io/arch` twice",
        ),
        (
            change(|bucket| {
                let key = bucket.shared_labels[1].key.clone();
                bucket.nodes[0].labels.push(v1::Label {
                    key,
                    value: "x".to_owned(),
                });
            }),
            "data_with_shared_labels.nodes[0].shared_labels: has the key `beta.kubernetes.io/os` twice",
        ),
        (
            change(|bucket| bucket.shared_labels.push(entry("", "x"))),
            "data_with_shared_labels.shared_labels[",
        ),
        (
            change(|bucket| {
                bucket.shared_labels[0].value_is_node_name = true;
            }),
            "data_with_shared_labels.shared_labels[0].value: is set, and so is value_is_node_name",
        ),
        (
            change(|bucket| bucket.nodes[1].name = "n".repeat(300)),
            "data_with_shared_labels.nodes[1].name: has 300 bytes",
        ),
        (
            bucket(|snapshot| {
                let nodes = nodes::sharing(vec![node(0), node(1)]);
                snapshot.node_buckets[0].data = Some(nodes.encode_to_vec().into());
            }),
            "data.shared_labels: is allowed in data_with_shared_labels only",
        ),
        (
            bucket(|snapshot| snapshot.node_buckets[0].data_with_shared_labels = Some(vec![].into())),
            "data_with_shared_labels: is set, and so is data",
        ),
        (
            bucket(|snapshot| {
                let bucket = &mut snapshot.node_buckets[0];
                bucket.data_with_shared_labels = bucket.data.take();
                bucket.digest = vec![0; 32].into();
                snapshot.digest_function = v1::DigestFunction::Sha256.into();
            }),
            "digest: is not the SHA-256 of data_with_shared_labels",
        ),
        (
            bucket(|snapshot| {
                let bucket = &mut snapshot.node_buckets[0];
                bucket.data = None;
                bucket.data_with_shared_labels = Some(vec![0x12, 0x02, 0x0a, 0x07].into());
            }),
            "data_with_shared_labels.shared_labels[0]: ends within an element of 7 bytes",
        ),
    ];
    for (request, expected) in table {
        let Err(Refusal::Invalid { violations, .. }) = engine().plan(request, &never) else {
            panic!("no violation: {expected}");
        };
        let found: Vec<_> = violations.iter().map(ToString::to_string).collect();
        let expected = format!("snapshot.node_buckets[0].{expected}");
        assert!(
            found[0].starts_with(&expected),
            "expected {expected}, found {found:#?}"
        );
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

#[test]
fn pods_share_no_labels_in_this_way() {
    for with_data in [false, true] {
        let mut request = Cluster::settled(2).request(1, Form::Inline);
        let bucket = &mut request.snapshot.as_mut().unwrap().pod_buckets[0];
        bucket.data_with_shared_labels = if with_data {
            bucket.data.clone()
        } else {
            bucket.data.take()
        };
        let Err(Refusal::Invalid { violations, .. }) = engine().plan(request, &never) else {
            panic!("no violation");
        };
        assert_eq!(
            violations[0].to_string(),
            "snapshot.pod_buckets[0].data_with_shared_labels: is set; only buckets of nodes may have it"
        );
    }
}

/// A small request cannot make the service write long labels millions of times.
#[test]
fn each_reference_to_a_label_counts() {
    let labels = |count: usize| (0..count).map(|number| entry(&format!("{number:0>200}"), &"v".repeat(63)));
    let bucket = |nodes: usize, labels: Vec<v1::SharedLabel>| {
        let numbers: Vec<u32> = (1..).take(labels.len()).collect();
        let node = |number: usize| v1::Node {
            name: number.to_string(),
            shared_labels: numbers.clone(),
            ..Default::default()
        };
        v1::NodeBucket {
            nodes: (0..nodes).map(node).collect(),
            shared_labels: labels,
        }
    };
    let many = with(&bucket(10_000, labels(1_000).collect())).encode_to_vec();
    assert!(many.len() < 20 << 20);
    let status = decode::<v1::PlanRequest>(many.into()).expect_err("gigabytes");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    // As many labels of the nodes' own take as much.
    let shared = bucket(1_000, labels(20).collect());
    let own = nodes::whole(shared.clone()).unwrap();
    let plain = v1::NodeBucket {
        nodes: own,
        ..Default::default()
    };
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    request.snapshot.as_mut().unwrap().node_buckets[0].data = Some(plain.encode_to_vec().into());
    let of_plain = estimate::<v1::PlanRequest>(&request.encode_to_vec()).unwrap();
    let of_shared = estimate::<v1::PlanRequest>(&with(&shared).encode_to_vec()).unwrap();
    let ratio = of_shared as f64 / of_plain as f64;
    assert!((0.95..1.05).contains(&ratio), "{of_shared} and {of_plain}");
}

/// Protobuf allows numbers that are not packed. They count like packed ones.
#[test]
fn numbers_that_are_not_packed_count() {
    let label = entry("k", &"v".repeat(4_000));
    let mut bucket = vec![0x12];
    prost::encoding::encode_varint(label.encoded_len() as u64, &mut bucket);
    bucket.extend(label.encode_to_vec());
    let numbers = [0x48, 0x01].repeat(1_000_000);
    let node = [vec![0x0a, 0x01, b'n'], numbers].concat();
    bucket.push(0x0a);
    prost::encoding::encode_varint(node.len() as u64, &mut bucket);
    bucket.extend(node);
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    request.snapshot.as_mut().unwrap().node_buckets[0] = v1::Bucket {
        data_with_shared_labels: Some(bucket.into()),
        ..Default::default()
    };
    let status = decode::<v1::PlanRequest>(request.encode_to_vec().into()).expect_err("gigabytes");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}

#[test]
fn the_service_announces_that_it_reads_shared_labels() {
    let answer = nodewise_server::Service::new(&Config::default()).capabilities();
    assert!(answer.features.iter().any(|feature| feature == "SharedLabels"));
}
