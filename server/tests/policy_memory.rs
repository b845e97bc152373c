//! Compares the memory that a request with RolloutPolicies is estimated to take with the memory that the allocator counts. In its own
//! test binary, since the allocator counts the whole process.

mod support;

use nodewise_proto::v1;
use nodewise_server::{decode, estimate, never};
use peak_alloc::PeakAlloc;
use prost::Message as _;
use serde_json::{Value, json};
use support::{Cluster, Form, engine};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes for everything else, as for a request without policies.
const ALLOWANCE: usize = 6 << 20;

/// The bytes of a request with these policies and values, the estimate of its memory, and the memory that it takes.
fn cost(policies: &[Value], values: &[String]) -> (usize, usize, usize) {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    let workload = request
        .snapshot
        .as_mut()
        .and_then(|snapshot| snapshot.workload.as_mut());
    let Some(v1::workload::Kind::DaemonSet(daemon_set)) =
        workload.and_then(|workload| workload.kind.as_mut())
    else {
        panic!("no DaemonSet");
    };
    let objects = policies.iter().map(|policy| v1::RolloutPolicy {
        object: policy.to_string().into(),
        ..v1::RolloutPolicy::default()
    });
    daemon_set.rollout_policies = objects.collect();
    daemon_set.analysis_hosts = vec!["a".to_owned()];
    let measured = values.iter().zip(0..).map(|(value, number)| v1::Measurement {
        id: Some(v1::MeasurementId {
            policy_uid: "p0".into(),
            number,
            ..v1::MeasurementId::default()
        }),
        time: Some(v1_time()),
        result: Some(v1::measurement::Result::Value(value.clone())),
    });
    daemon_set.measurements = measured.collect();
    let bytes = request.encode_to_vec();
    drop(request);
    let estimated = estimate::<v1::PlanRequest>(&bytes).expect("it is accepted");
    let (length, engine) = (bytes.len(), engine());
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let request = decode::<v1::PlanRequest>(bytes.into()).expect("a request");
    engine.plan(request, &never).expect("a plan");
    (length, estimated, ALLOCATED.peak_usage().saturating_sub(before))
}

fn v1_time() -> nodewise_proto::Timestamp {
    nodewise_proto::Timestamp {
        seconds: 1_700_000_000,
        nanos: 0,
    }
}

fn policy(number: usize, stages: &Value, targets: &Value) -> Value {
    json!({
        "metadata": {"name": format!("p{number}"), "uid": format!("p{number}"), "resourceVersion": "1"},
        "spec": {"targets": {"names": ["node-agent"]}, "stages": stages},
        "status": {"targets": targets},
    })
}

#[test]
fn no_policy_takes_more_than_is_estimated() {
    let check = |number: usize| json!({"name": format!("c{number}"), "webhook": {"url": "http://a/"}, "successCondition": "result.errors < 1 || result.total > 0"});
    let stage = |number: usize| json!({"name": format!("s{number}"), "nodeSelector": {"matchLabels": {"a": "b"}}, "analysis": (0..10).map(check).collect::<Vec<_>>()});
    let full = json!((0..32).map(stage).collect::<Vec<_>>());
    let statuses = |count: usize| {
        let stage = |number: usize| json!({"name": format!("s{number}"), "analysis": [{"name": "c"}]});
        let target = |number: usize| {
            json!({"name": if number == 0 { "node-agent".to_owned() } else { format!("t{number}") },
                "stages": (0..10).map(stage).collect::<Vec<_>>()})
        };
        json!((0..count).map(target).collect::<Vec<_>>())
    };
    let zeros = format!("[{}0]", "0,".repeat(32_000));
    let objects = format!("[{}0]", r#"{"a":0},"#.repeat(8_000));
    let table: [(&str, Vec<Value>, Vec<String>); 6] = [
        (
            "many policies",
            (0..100)
                .map(|number| policy(number, &json!([]), &json!([])))
                .collect(),
            vec![],
        ),
        (
            "many stages",
            (0..20).map(|number| policy(number, &full, &json!([]))).collect(),
            vec![],
        ),
        (
            "more stages than there may be",
            vec![policy(0, &json!(vec![json!({"name": "a"}); 50_000]), &json!([]))],
            vec![],
        ),
        (
            "many statuses",
            (0..20)
                .map(|number| policy(number, &json!([]), &statuses(100)))
                .collect(),
            vec![],
        ),
        (
            "empty statuses",
            vec![policy(0, &json!([]), &json!(vec![json!({}); 100_000]))],
            vec![],
        ),
        (
            "large values",
            vec![policy(0, &full, &json!([]))],
            [vec![zeros; 20], vec![objects; 20]].concat(),
        ),
    ];
    for (case, policies, values) in table {
        let (bytes, estimated, taken) = cost(&policies, &values);
        println!("{case}: {bytes} bytes, {estimated} estimated, {taken} taken");
        assert!(
            taken < bytes + estimated + ALLOWANCE,
            "{case}: {bytes} bytes, {estimated} estimated, {taken} taken"
        );
    }
}
