//! Tests `PlanClient::evaluate_nodes`, and methods that a replica of an older version lacks.

use super::*;

fn request(nodes: usize) -> v1::EvaluateNodesRequest {
    v1::EvaluateNodesRequest {
        nodes: vec![v1::NodeShape::default(); nodes],
        ..Default::default()
    }
}

#[tokio::test]
async fn another_replica_is_asked_if_one_is_down() {
    let (url, _reserved) = dead();
    let server = serve().await;
    let client = client(&[url, server.url.clone()], quick());
    let answer = client.evaluate_nodes(request(3)).await.expect("an answer");
    assert_eq!(answer.node_evaluations.len(), 3);
    assert_eq!(client.recorder.told()["evaluate_nodes answered"], 1);
}

#[tokio::test]
async fn a_service_without_the_method_is_said_to_be_too_old() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    let error = client.evaluate_nodes(request(0)).await.expect_err("no answer");
    assert!(matches!(error, ServiceError::Refused(_)), "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("does not have the method EvaluateNodes"),
        "{error}"
    );
}

// A program that simulates shares its client with plans.
#[tokio::test]
async fn a_replica_without_simulations_stays_in_use() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    let build = &mut |_: &Receiver<'_>| v1::SimulateRequest::default();
    let error = client.simulate("u1", build).await.expect_err("no answer");
    assert!(matches!(error, ServiceError::Refused(_)), "{error:?}");
    let error = error.to_string();
    assert!(error.contains("does not have the method Simulate"), "{error}");
    assert_eq!(client.health(), Ok(()), "it is healthy");
}
