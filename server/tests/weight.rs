//! A request that would take many times its bytes in memory is refused before it is decoded, with the name of a field.

mod support;

use nodewise_proto::v1;
use nodewise_server::{Config, Request, decode};
use prost::Message as _;
use serde_json::json;
use support::{Cluster, Form, Server};
use tonic::Code;
use tonic_types::StatusExt as _;

/// Entries of the list in question.
const MANY: usize = 150_000;

fn refused<M: Request + std::fmt::Debug>(bytes: Vec<u8>) -> String {
    let status = decode::<M>(bytes.into()).expect_err("too much memory");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.get_details_retry_info().is_none(), "it is no better later");
    let violations = status
        .get_details_bad_request()
        .expect("a violation")
        .field_violations;
    // Without the indices, which tell how far the request was read.
    violations[0].field.split(['[', ']']).step_by(2).collect()
}

fn settled_with(change: impl FnOnce(&mut v1::Snapshot)) -> Vec<u8> {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    change(request.snapshot.as_mut().expect("a snapshot"));
    request.encode_to_vec()
}

#[test]
fn many_small_parts_are_refused() {
    let state = |state: v1::ReconcileState| settled_with(|snapshot| snapshot.state = Some(state));
    let expecting = |expectations| {
        state(v1::ReconcileState {
            expectations: Some(expectations),
            ..Default::default()
        })
    };
    let buckets = |data: Vec<u8>| {
        vec![v1::Bucket {
            data: Some(data.into()),
            ..Default::default()
        }]
    };
    let template = |text: &str| {
        let object = Cluster::empty(0)
            .daemon_set
            .to_string()
            .replace("\"dnsPolicy\"", &format!("\"x\":{text},\"dnsPolicy\""));
        settled_with(|snapshot| {
            let kind = v1::workload::Kind::DaemonSet(v1::DaemonSet {
                object: object.into(),
            });
            snapshot.workload = Some(v1::Workload { kind: Some(kind) });
        })
    };
    let objects = json!(vec![json!({"a": 0}); 50_000]).to_string();
    let table = [
        ("undelivered_reports", [0x1a, 0].repeat(MANY)),
        (
            "snapshot.revisions",
            settled_with(|snapshot| snapshot.revisions = vec![v1::ControllerRevision::default(); MANY]),
        ),
        (
            "snapshot.node_buckets",
            settled_with(|snapshot| snapshot.node_buckets = vec![v1::Bucket::default(); MANY]),
        ),
        (
            "snapshot.pod_buckets.data.pods",
            settled_with(|snapshot| snapshot.pod_buckets = buckets([0x0a, 0].repeat(MANY))),
        ),
        (
            "snapshot.node_buckets.data.nodes",
            settled_with(|snapshot| snapshot.node_buckets = buckets([0x0a, 0].repeat(MANY))),
        ),
        (
            "snapshot.own_writes",
            settled_with(|snapshot| snapshot.own_writes = vec![v1::OwnWrite::default(); MANY]),
        ),
        (
            "snapshot.state.failed_pod_backoffs",
            state(v1::ReconcileState {
                failed_pod_backoffs: vec![v1::FailedPodBackoff::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.pod_name_collisions",
            state(v1::ReconcileState {
                pod_name_collisions: vec![v1::PodNameCollision::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.expectations.creates",
            expecting(v1::Expectations {
                creates: vec![v1::ExpectedCreate::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.expectations.delete_uids",
            expecting(v1::Expectations {
                delete_uids: vec![String::new(); MANY],
                ..Default::default()
            }),
        ),
        ("snapshot.workload.daemon_set.object", template(&objects)),
    ];
    for (field, bytes) in table {
        assert_eq!(refused::<v1::PlanRequest>(bytes), field, "{field}");
    }
    let outcomes = v1::ReportRequest {
        outcomes: vec![v1::Outcome::default(); MANY],
        ..Default::default()
    };
    assert_eq!(refused::<v1::ReportRequest>(outcomes.encode_to_vec()), "outcomes");
}

#[test]
fn real_clusters_are_taken_however_large() {
    for nodes in [0, 1, 100, 3_000] {
        for cluster in [Cluster::empty(nodes), Cluster::settled(nodes)] {
            let request = cluster.request(16, Form::InlineWithDigest);
            let decoded = decode::<v1::PlanRequest>(request.encode_to_vec().into());
            assert_eq!(decoded.expect("a request"), request);
        }
    }
}

#[test]
fn what_is_no_message_is_still_the_decoders_to_refuse() {
    for bytes in [&[0x0a, 0xff][..], &[0x0a, 2, 0x4a], &[0xff; 12], &[0x1a, 0x80]] {
        let status = decode::<v1::PlanRequest>(bytes.to_vec().into()).expect_err("broken");
        assert_eq!(status.code(), Code::Internal, "{status}");
    }
}

#[tokio::test]
async fn the_service_weighs_what_it_is_sent() {
    let server = Server::start(Config::default()).await;
    let mut client = server.client().await;
    let heavy = v1::PlanRequest {
        undelivered_reports: vec![v1::ReportRequest::default(); MANY],
        ..Default::default()
    };
    let refused = client.plan(heavy.clone()).await.expect_err("too much memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().starts_with("undelivered_reports["), "{refused}");
    let question = v1::PlanStreamRequest {
        id: "a".into(),
        request: Some(heavy),
    };
    let mut answers = client
        .plan_stream(tokio_stream::iter([question]))
        .await
        .expect("a stream")
        .into_inner();
    let refused = answers.message().await.expect_err("too much memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(
        refused.message().starts_with("request.undelivered_reports["),
        "{refused}"
    );
    let small = Cluster::empty(1).request(1, Form::Inline);
    client.plan(small).await.expect("the server goes on");
}
