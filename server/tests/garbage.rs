//! Random and corrupted requests: the engine answers or refuses them, and never panics.

mod support;

use std::sync::LazyLock;

use bytes::Bytes;
use nodewise_proto::v1;
use nodewise_server::never;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::Value;
use support::{Cluster, Form, engine};

/// A valid request with many features, as bytes.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut cluster = Cluster::settled(6);
    cluster.pods.truncate(4);
    cluster.pods[1].phase = v1::PodPhase::Failed.into();
    cluster.nodes[2].taints = vec![v1::Taint {
        key: "a".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    }];
    let mut request = cluster.request(2, Form::Inline);
    let plan = engine().plan(request.clone(), &never).unwrap().plan.unwrap();
    request.snapshot.as_mut().unwrap().state = plan.state;
    request.encode_to_vec()
});

/// A settled cluster.
static SETTLED: LazyLock<Cluster> = LazyLock::new(|| Cluster::settled(2));

/// Replaces, inserts or removes bytes here and there.
fn corrupt(mut bytes: Vec<u8>, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    for (at, kind, value) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match kind % 3 {
            0 => bytes[at] = *value,
            1 => bytes.insert(at, *value),
            _ => {
                bytes.remove(at);
            }
        }
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..12)
}

/// Random JSON, with field names of the API among its keys and strings.
fn json() -> impl Strategy<Value = Value> {
    let words = [
        "metadata",
        "spec",
        "template",
        "selector",
        "matchLabels",
        "matchExpressions",
        "operator",
        "values",
        "key",
        "In",
        "updateStrategy",
        "type",
        "rollingUpdate",
        "maxUnavailable",
        "maxSurge",
        "RollingUpdate",
        "100%",
        "name",
        "uid",
        "namespace",
        "labels",
        "annotations",
        "status",
        "containers",
        "affinity",
        "tolerations",
        "nodeName",
        "",
        "é\u{2028}",
    ];
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Replaces the value with number `index`, counted depth first, by `value`.
fn put(target: &mut Value, index: &mut usize, value: &Value) -> bool {
    if *index == 0 {
        *target = value.clone();
        return true;
    }
    *index -= 1;
    match target {
        Value::Array(list) => list.iter_mut().any(|inner| put(inner, index, value)),
        Value::Object(map) => map.iter_mut().any(|(_, inner)| put(inner, index, value)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupted_requests(edits in edits()) {
        let bytes = corrupt(VALID.clone(), &edits);
        if let Ok(request) = v1::PlanRequest::decode(&bytes[..]) {
            let _ = engine().plan(request, &never);
        }
        if let Ok(request) = v1::ExplainRequest::decode(&bytes[..]) {
            let _ = engine().explain(request, &never);
        }
    }

    #[test]
    fn corrupted_buckets(node_edits in edits(), pod_edits in edits(), random in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut request = v1::PlanRequest::decode(&VALID[..]).unwrap();
        let snapshot = request.snapshot.as_mut().unwrap();
        for (buckets, edits) in [(&mut snapshot.node_buckets, node_edits), (&mut snapshot.pod_buckets, pod_edits)] {
            let data = buckets[0].data.take().unwrap_or_default();
            buckets[0].data = Some(corrupt(data.to_vec(), &edits).into());
            buckets[1].data = Some(Bytes::from(random.clone()));
        }
        let _ = engine().plan(request, &never);
    }

    #[test]
    fn random_json_in_workloads_and_revisions(values in prop::collection::vec((0_usize..60, json()), 1..4)) {
        let mut cluster = SETTLED.clone();
        for (index, value) in &values {
            put(&mut cluster.daemon_set, &mut index.clone(), value);
            put(&mut cluster.revisions[0], &mut index.clone(), value);
        }
        let request = cluster.request(1, Form::Inline);
        if let Ok(answer) = engine().plan(request.clone(), &never) {
            prop_assert!(answer.plan.is_some());
        }
        let _ = engine().explain(
            v1::ExplainRequest { snapshot: request.snapshot, ..Default::default() },
            &never,
        );
    }

    #[test]
    fn corrupted_reports(edits in edits()) {
        let outcome = v1::Outcome {
            action_id: 1,
            result: v1::Result::Failed.into(),
            subject: Some(v1::outcome::Subject::DeletedPodUid("uid".into())),
            ..Default::default()
        };
        let state = v1::PlanRequest::decode(&VALID[..]).unwrap().snapshot.unwrap().state;
        let report = v1::ReportRequest {
            workload: Some(v1::WorkloadReference { uid: "uid".into(), ..Default::default() }),
            plan_id: "plan".into(),
            state,
            outcomes: vec![outcome; 3],
            ..Default::default()
        };
        if let Ok(request) = v1::ReportRequest::decode(&corrupt(report.encode_to_vec(), &edits)[..]) {
            let _ = engine().report(request, &never);
        }
    }
}
