//! Tests whether a failure is attributed to the replica or to the request.

use super::*;

fn evictions(client: &Watched) -> usize {
    counts(client, "evicted ")
}

// Another server or a proxy may listen at the address of a replica that is gone.
#[tokio::test]
async fn errors_of_other_servers_do_not_reject_the_request() {
    for code in [Code::Unimplemented, Code::PermissionDenied, Code::Unauthenticated] {
        let (foreign, other) = (serve().await, serve().await);
        foreign.then(move || Err(Status::new(code, "grpc-status header missing")));
        let client = client_of(&[&foreign, &other], quick());
        let uid = workload_of(&client, &foreign);
        plan_for(&client, &uid).await.expect("a plan");
        assert_eq!((foreign.asked(), other.asked()), (1, 1), "{code:?}");
        assert!(
            matches!(state_of(&client, &foreign), ReplicaState::Evicted(_)),
            "{code:?}"
        );
    }
}

// A replica may have lower limits than the others.
#[tokio::test]
async fn a_request_is_too_large_if_two_replicas_say_so() {
    let too_large = [
        Status::resource_exhausted("too large"),
        Status::out_of_range("too large"),
    ];
    for status in too_large {
        let replicas = [serve().await, serve().await, serve().await];
        let client = client_of(&replicas.each_ref(), quick());
        let uid = workload_of(&client, &replicas[0]);
        let refuse = |replica: &Serving| {
            let status = status.clone();
            replica.then(move || Err(status.clone()));
        };
        refuse(&replicas[0]);
        plan_for(&client, &uid).await.expect("the plan of another");
        replicas.iter().for_each(refuse);
        let error = plan_for(&client, &uid).await.expect_err("all refuse it");
        assert!(matches!(error, ServiceError::Refused(_)), "{error}");
        assert_eq!(replicas.iter().map(|replica| replica.asked()).sum::<usize>(), 4);
        assert_eq!(evictions(&client), 0);
    }
}

// A request that fails at two replicas is given up, and evicts neither.
#[tokio::test]
async fn a_request_that_fails_everywhere_evicts_no_replica() {
    for code in [Code::Internal, Code::Unknown, Code::DeadlineExceeded] {
        let replicas = [serve().await, serve().await, serve().await];
        let client = client_of(&replicas.each_ref(), quick());
        for attempt in 1..=3 {
            for replica in &replicas {
                replica.script().answers.clear();
                replica.then(move || Err(Status::new(code, "a defect")));
            }
            let error = plan_for(&client, "poison")
                .await
                .expect_err("it fails everywhere");
            assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
            let asked: usize = replicas.iter().map(|replica| replica.asked()).sum();
            assert_eq!(asked, 2 * attempt, "{code:?}");
        }
        assert_eq!(evictions(&client), 0, "{code:?}");
    }
}

#[tokio::test]
async fn a_replica_is_evicted_if_another_answers_the_same_request() {
    let (failing, other) = (serve().await, serve().await);
    let client = client_of(&[&failing, &other], quick());
    let uid = workload_of(&client, &failing);
    failing.then(|| Err(Status::internal("a defect")));
    plan_for(&client, &uid).await.expect("a plan");
    assert!(matches!(state_of(&client, &failing), ReplicaState::Evicted(_)));
    assert_eq!(evictions(&client), 1);
}

#[tokio::test]
async fn a_replica_that_answers_the_retry_is_not_evicted() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    for uid in ["one", "two"] {
        server.then(|| Err(Status::internal("once")));
        plan_for(&client, uid)
            .await
            .expect("a plan, at the second attempt");
    }
    assert_eq!(evictions(&client), 0);
    assert_eq!(client.health(), Ok(()));
}

#[tokio::test]
async fn two_workloads_that_fail_in_a_row_evict_the_replica() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    for uid in ["one", "one", "two"] {
        assert_eq!(evictions(&client), 0);
        for _ in 0..3 {
            server.then(|| Err(Status::internal("a defect")));
        }
        plan_for(&client, uid).await.expect_err("it fails");
    }
    assert_eq!(evictions(&client), 1);
    let reason = client.health().expect_err("it fails");
    assert!(reason.contains("a defect"), "{reason}");
}

#[tokio::test]
async fn reports_evict_by_the_same_rules() {
    let replicas = [serve().await, serve().await, serve().await];
    let client = client_of(&replicas.each_ref(), quick());
    for replica in &replicas {
        replica.script().fail_reports = true;
    }
    let error = client
        .report(v1::ReportRequest::default())
        .await
        .expect_err("a defect");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    assert_eq!(
        replicas
            .iter()
            .map(|replica| replica.script().reports)
            .sum::<usize>(),
        2
    );
    assert_eq!(evictions(&client), 0);
}
