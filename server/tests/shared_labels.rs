//! Nodes that share labels on the wire: `Bucket.data_with_shared_labels`.

mod support;

use nodewise_proto::{nodes, v1};
use nodewise_server::{Config, Refusal, estimate, never};
use prost::Message as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use support::{Cluster, Form, bucket_message, engine, node};

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

/// A small request cannot make the service write long labels millions of times: a reference takes a few bytes.
#[test]
fn a_reference_to_a_long_label_takes_a_few_bytes() {
    let labels: Vec<_> = (0..1_000)
        .map(|number| entry(&format!("{number:0>200}"), &"v".repeat(63)))
        .collect();
    let numbers: Vec<u32> = (1..).take(labels.len()).collect();
    // Each node leaves out another label, so that each is a class of its own.
    let node = |number: usize| v1::Node {
        name: number.to_string(),
        shared_labels: [&numbers[..number], &numbers[number + 1..]].concat(),
        ..Default::default()
    };
    let bucket = v1::NodeBucket {
        nodes: (0..1_000).map(node).collect(),
        shared_labels: labels,
    };
    let mut request = with(&bucket);
    let snapshot = request.snapshot.as_mut().unwrap();
    snapshot.set_digest_function(v1::DigestFunction::Sha256);
    snapshot.node_buckets[0].digest = Sha256::digest(bucket.encode_to_vec()).to_vec().into();
    let bytes = request.encoded_len();
    let estimate = estimate::<v1::PlanRequest>(&request.encode_to_vec()).expect("it is accepted");
    assert!(estimate < 15 * bytes, "{estimate} for {bytes}");
    let engine = engine();
    engine.plan(request, &never).expect("a plan");
    // Written out, the labels would take 263 MB.
    let kept = engine.cache().bytes();
    assert!(kept < 10 * bytes as u64, "{kept} for {bytes}");
}

/// Protobuf allows numbers that are not packed. They count like packed ones.
#[test]
fn numbers_that_are_not_packed_count() {
    let estimate_of = |numbers: Vec<u8>| {
        let node = [vec![0x0a, 0x01, b'n'], numbers].concat();
        let mut bucket = vec![0x0a];
        prost::encoding::encode_varint(node.len() as u64, &mut bucket);
        bucket.extend(node);
        let mut request = Cluster::settled(2).request(1, Form::Inline);
        request.snapshot.as_mut().unwrap().node_buckets[0] = v1::Bucket {
            data_with_shared_labels: Some(bucket.into()),
            ..Default::default()
        };
        estimate::<v1::PlanRequest>(&request.encode_to_vec()).expect("it is accepted")
    };
    let count = 100_000;
    let mut packed = vec![0x4a];
    prost::encoding::encode_varint(count as u64, &mut packed);
    packed.extend([1].repeat(count));
    let (packed, not_packed, none) = (
        estimate_of(packed),
        estimate_of([0x48, 0x01].repeat(count)),
        estimate_of(Vec::new()),
    );
    assert!(packed - none >= 90 * count, "{packed} {none}");
    assert!(not_packed - none >= 90 * count, "{not_packed} {none}");
}

#[test]
fn the_service_announces_that_it_reads_shared_labels() {
    let answer = nodewise_server::Service::new(&Config::default()).capabilities();
    assert!(answer.features.iter().any(|feature| feature == "SharedLabels"));
}
