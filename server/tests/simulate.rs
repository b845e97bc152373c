//! The method `Simulate`: steps and an end, refusals, cancellation, and the shares of other callers.

mod support;

use std::time::Duration;

use nodewise_proto::v1::{self, simulate_response::Content, simulation_end};
use nodewise_server::{ByteSize, Config};
use prost::Message as _;
use serde_json::json;
use support::{
    Cluster, Form, SOON, Server, eventually,
    kinds::{deployment, of_deployment},
};
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// A new DaemonSet on this many nodes.
fn new(nodes: usize) -> v1::SimulateRequest {
    of(&Cluster::empty(nodes))
}

fn of(cluster: &Cluster) -> v1::SimulateRequest {
    let request = cluster.request(1, Form::Inline);
    v1::SimulateRequest {
        snapshot: request.snapshot,
        options: request.options,
        ..v1::SimulateRequest::default()
    }
}

/// All responses of a play.
async fn play(server: &Server, request: v1::SimulateRequest) -> Result<Vec<v1::SimulateResponse>, Status> {
    let mut stream = server.client().await.simulate(request).await?.into_inner();
    let mut responses = Vec::new();
    while let Some(response) = timeout(SOON, stream.message()).await.expect("in time")? {
        responses.push(response);
    }
    Ok(responses)
}

fn end(responses: &[v1::SimulateResponse]) -> &v1::SimulationEnd {
    match &responses.last().expect("a response").content {
        Some(Content::End(end)) => end,
        other => panic!("no end: {other:?}"),
    }
}

#[tokio::test]
async fn a_play_has_steps_and_then_an_end() {
    let server = Server::start(Config::default()).await;
    let responses = play(&server, new(3)).await.expect("a play");
    let end = end(&responses);
    assert_eq!(end.result(), simulation_end::Result::Done, "{responses:?}");
    assert_eq!(end.steps as usize + 1, responses.len());
    assert_eq!(
        end.took.map(|took| took.seconds),
        Some(10),
        "the default time until ready"
    );
    let created = responses.iter().flat_map(|response| match &response.content {
        Some(Content::Step(step)) => step.changes.clone(),
        _ => Vec::new(),
    });
    let pods: Vec<_> = created.filter(|change| change.resource == "pods").collect();
    assert_eq!(pods.len(), 3);
    assert!(
        pods.iter().all(|pod| pod.reason() == v1::Reason::NodeWithoutPod),
        "{pods:?}"
    );
    // Equal requests get equal responses.
    assert_eq!(play(&server, new(3)).await.expect("a play"), responses);
}

#[tokio::test]
async fn a_step_with_very_many_changes_is_divided() {
    let server = Server::start(Config::default()).await;
    let responses = play(&server, new(2_500)).await.expect("a play");
    let parts = responses.iter().filter_map(|response| match &response.content {
        Some(Content::Step(step)) => Some((step.changes.len(), step.continues)),
        _ => None,
    });
    // The first step creates a revision and all pods.
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [(1_000, true), (1_000, true), (501, false), (0, false)]
    );
    assert_eq!(end(&responses).steps, 2);
}

#[tokio::test]
async fn a_deployment_is_played_with_its_replica_sets() {
    let server = Server::start(Config::default()).await;
    let request = of_deployment(&deployment(), &[]);
    let request = v1::SimulateRequest {
        snapshot: request.snapshot,
        ..v1::SimulateRequest::default()
    };
    let responses = play(&server, request).await.expect("a play");
    let end = end(&responses);
    assert_eq!(end.result(), simulation_end::Result::Done, "{responses:?}");
    assert_eq!(end.counts.map(|counts| counts.available), Some(3));
}

#[tokio::test]
async fn wrong_assumptions_and_bounds_are_named() {
    let server = Server::start(Config::default()).await;
    let request = v1::SimulateRequest {
        assumptions: Some(v1::SimulationAssumptions {
            ready_after: Some(nodewise_proto::Duration {
                seconds: -1,
                nanos: 0,
            }),
            failing_share: 1.5,
            ..v1::SimulationAssumptions::default()
        }),
        bounds: Some(v1::SimulationBounds {
            time: None,
            steps: 100_001,
        }),
        ..new(1)
    };
    let refused = play(&server, request).await.expect_err("it is wrong");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let details = refused.get_details_bad_request().expect("violations");
    let found: Vec<_> = details
        .field_violations
        .iter()
        .map(|one| format!("{}: {}", one.field, one.description))
        .collect();
    assert_eq!(
        found,
        [
            "assumptions.ready_after: is -1 s and 0 ns; must be from 0 s to ten years",
            "assumptions.failing_share: is 1.5; must be from 0 to 1",
            "bounds.steps: is 100001; must be at most 100000",
        ]
    );
    let absent = play(&server, v1::SimulateRequest::default())
        .await
        .expect_err("it is empty");
    assert_eq!(
        absent
            .get_details_bad_request()
            .expect("violations")
            .field_violations[0]
            .field,
        "snapshot"
    );
}

#[tokio::test]
async fn bounds_end_a_play() {
    let server = Server::start(Config::default()).await;
    let request = v1::SimulateRequest {
        bounds: Some(v1::SimulationBounds {
            time: Some(nodewise_proto::Duration { seconds: 5, nanos: 0 }),
            steps: 0,
        }),
        ..new(2)
    };
    let responses = play(&server, request).await.expect("a play");
    assert_eq!(end(&responses).result(), simulation_end::Result::TimeBound);
    let request = v1::SimulateRequest {
        bounds: Some(v1::SimulationBounds { time: None, steps: 1 }),
        ..new(2)
    };
    let responses = play(&server, request).await.expect("a play");
    assert_eq!(end(&responses).result(), simulation_end::Result::StepBound);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_permit() {
    // One call runs at a time, and none waits.
    let config = Config {
        max_concurrent_plans: 1,
        max_queued_plans: 0,
        ..Config::default()
    };
    let server = Server::start(config).await;
    let mut client = server.client().await;
    // More messages than the server sends ahead and the connection takes: the play waits for its client.
    let mut stream = client.simulate(new(4_000)).await.expect("a play").into_inner();
    assert!(stream.message().await.expect("a step").is_some());
    drop(stream);
    eventually("another call gets the permit", || {
        let mut client = client.clone();
        async move { client.simulate(new(1)).await.ok() }
    })
    .await;
}

#[tokio::test]
async fn a_play_ends_at_the_deadline() {
    let config = Config {
        longest_call: Duration::from_millis(1),
        ..Config::default()
    };
    let server = Server::start(config).await;
    let late = play(&server, new(2_000)).await.expect_err("it takes longer");
    assert_eq!(late.code(), Code::DeadlineExceeded);
}

/// A server with 64 MiB for all requests.
async fn with_little_memory() -> Server {
    let config = Config {
        max_message_size: ByteSize::mib(1),
        max_request_memory: ByteSize::mib(64),
        ..Config::default()
    };
    Server::start(config).await
}

#[tokio::test]
async fn a_play_needs_memory() {
    let server = with_little_memory().await;
    assert!(play(&server, new(10)).await.is_ok());
    let refused = play(&server, new(3_000)).await.expect_err("it does not fit");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}

// In a request the pods of a workload share their labels. Each pod of a play has its own.
#[tokio::test]
async fn long_labels_of_played_pods_need_memory() {
    let server = with_little_memory().await;
    let long = "x".repeat(200_000);
    let mut present = Cluster::settled(200);
    assert!(
        play(&server, of(&present)).await.is_ok(),
        "labels of usual length"
    );
    for pod in &mut present.pods {
        pod.labels.push(v1::Label {
            key: "long".to_owned(),
            value: long.clone(),
        });
    }
    let mut wanted = Cluster::empty(200);
    wanted.daemon_set["spec"]["template"]["metadata"]["labels"]["long"] = long.into();
    for (what, cluster) in [("present", present), ("wanted", wanted)] {
        let request = of(&cluster);
        assert!(request.encoded_len() < 1 << 20, "{what}: the request is short");
        let refused = play(&server, request).await.expect_err("it does not fit");
        assert_eq!(refused.code(), Code::ResourceExhausted, "{what}: {refused:?}");
    }
}

// A play drops what has no effect on it, so a long template needs no more memory.
#[tokio::test]
async fn a_long_template_is_played() {
    let server = Server::start(Config::default()).await;
    let mut cluster = Cluster::empty(50);
    let template = &mut cluster.daemon_set["spec"]["template"];
    template["metadata"]["annotations"]["long"] = "x".repeat(200_000).into();
    template["spec"]["affinity"] = json!({"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["x".repeat(200_000)]},
        ]}}],
    }});
    let responses = play(&server, of(&cluster)).await.expect("a play");
    assert_eq!(end(&responses).result(), simulation_end::Result::Done);
}
