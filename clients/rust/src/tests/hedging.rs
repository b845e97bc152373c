//! Tests hedging: one request at two replicas.

use super::*;

fn hedging(after: u64) -> ClientConfig {
    ClientConfig {
        hedge_after: Some(Duration::from_millis(after)),
        ..quick()
    }
}

#[tokio::test]
async fn the_call_to_a_slow_replica_is_cancelled_when_the_hedge_answers() {
    let (slow, other) = (serve().await, serve().await);
    slow.script().hang = true;
    let client = client_of(&[&slow, &other], hedging(50));
    let uid = workload_of(&client, &slow);
    let answer = plan_for(&client, &uid).await.expect("a plan");
    assert_eq!(answer.request, 1, "the plan belongs to the second request");
    assert_eq!((slow.asked(), other.asked()), (1, 1));
    until("the slow call is given up", || slow.script().abandoned == 1).await;
    assert_eq!(count(&client, "hedge won"), 1);
    assert_eq!(count(&client, "plan cancelled"), 1);
    assert!(
        matches!(state_of(&client, &slow), ReplicaState::Unknown),
        "slow is not broken"
    );
}

// Otherwise a replica that hangs would delay each plan of its workloads by `hedge_after`, for ever.
#[tokio::test]
async fn a_replica_that_loses_several_times_in_a_row_is_evicted() {
    let (hung, other) = (serve().await, serve().await);
    let client = client_of(&[&hung, &other], hedging(50));
    let uid = workload_of(&client, &hung);
    for (hangs, asked) in [
        (true, 1),
        (true, 2),
        // The answered call resets the count.
        (false, 3),
        (true, 4),
        (true, 5),
    ] {
        hung.script().hang = hangs;
        plan_for(&client, &uid).await.expect("a plan");
        assert_eq!(hung.asked(), asked);
        assert!(!matches!(state_of(&client, &hung), ReplicaState::Evicted(_)));
    }
    plan_for(&client, &uid).await.expect("a plan");
    assert!(matches!(state_of(&client, &hung), ReplicaState::Evicted(_)));
    assert_eq!(count(&client, "evicted timed_out"), 1);
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!(hung.asked(), 6, "the other is asked first");
}

// If one of two replicas fails and the other answers, the failed one is evicted.
#[tokio::test]
async fn a_replica_is_evicted_if_the_hedge_answers_the_same_request() {
    let (failing, other) = (serve().await, serve().await);
    failing.script().slow = Duration::from_millis(100);
    failing.then(|| Err(Status::internal("a defect")));
    other.script().slow = Duration::from_millis(300);
    let client = client_of(&[&failing, &other], hedging(20));
    let uid = workload_of(&client, &failing);
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((failing.asked(), other.asked()), (1, 1));
    assert!(matches!(state_of(&client, &failing), ReplicaState::Evicted(_)));
    assert_eq!(state_of(&client, &other), ReplicaState::Ready);
}

#[tokio::test]
async fn the_first_replica_may_still_answer_first() {
    let (first, other) = (serve().await, serve().await);
    first.script().slow = Duration::from_millis(300);
    other.script().hang = true;
    let client = client_of(&[&first, &other], hedging(50));
    let uid = workload_of(&client, &first);
    let answer = plan_for(&client, &uid).await.expect("a plan");
    assert_eq!(answer.request, 0, "the plan belongs to the first request");
    until("the other call is given up", || other.script().abandoned == 1).await;
    assert_eq!(count(&client, "hedge lost"), 1);
}

#[tokio::test]
async fn a_quick_replica_needs_no_hedge() {
    let (first, other) = (serve().await, serve().await);
    let client = client_of(&[&first, &other], hedging(10_000));
    let uid = workload_of(&client, &first);
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((first.asked(), other.asked()), (1, 0));
    assert_eq!(counts(&client, "hedge "), 0);
}

// If one of two replicas fails, the other one is awaited. If both fail, the third one is next.
#[tokio::test]
async fn the_remaining_replica_answers() {
    let replicas = [serve().await, serve().await, serve().await];
    let all: Vec<_> = replicas.iter().collect();
    let client = client_of(&all, hedging(20));
    let soon = Instant::now() + Duration::from_secs(1);
    let order = client.replicas.order("uid", soon).await;
    let at = |rank: usize| {
        let is = |serving: &&Serving| serving.address() == *order[rank].address();
        replicas.iter().find(is).expect("it serves")
    };
    for rank in 0..2 {
        at(rank).script().slow = Duration::from_millis(200);
        at(rank).then(|| Err(Status::unavailable("restarting")));
    }
    plan(&client).await.expect("a plan");
    assert_eq!([at(0).asked(), at(1).asked(), at(2).asked()], [1, 1, 1]);
    assert_eq!(count(&client, "hedge failed"), 1);
}

// A report is sent to one replica at a time.
#[tokio::test]
async fn reports_are_not_hedged() {
    let (slow, other) = (serve().await, serve().await);
    slow.script().slow = Duration::from_millis(300);
    let client = client_of(&[&slow, &other], hedging(10));
    let uid = workload_of(&client, &slow);
    let workload = v1::WorkloadReference {
        uid,
        ..Default::default()
    };
    let report = v1::ReportRequest {
        workload: Some(workload),
        ..Default::default()
    };
    client.report(report).await.expect("delivered");
    assert_eq!((slow.script().reports, other.script().reports), (1, 0));
}
