//! Tests which replicas are asked, and which are evicted.

use super::*;

// A replica that is down is asked last until it has answered again.
#[tokio::test]
async fn the_next_replica_answers_if_one_is_down() {
    let server = serve().await;
    let (dead, _socket) = dead();
    let client = client(&[dead, server.url.clone()], quick());
    let members = client.replicas.members();
    let mut of_the_dead = 0;
    for index in 0..16 {
        let uid = format!("uid-{index}");
        of_the_dead += usize::from(client.replicas.is_home(&uid, &members[0]));
        plan_for(&client, &uid).await.expect("a plan");
    }
    assert_eq!(server.asked(), 16);
    assert_eq!(client.health(), Ok(()));
    assert_eq!(count(&client, "evicted failed"), 1);
    assert_eq!(count(&client, "planned elsewhere"), of_the_dead);
    assert_eq!(count(&client, "plan failed"), 1);
    assert_eq!(count(&client, "replicas evicted"), 1);
}

// An unreachable service is unhealthy, with another reason than one that was not called yet, and recovers without calls.
#[tokio::test]
async fn health_follows_the_service() {
    let (url, socket) = dead();
    let client = Arc::new(client(std::slice::from_ref(&url), quick()));
    let reason = client
        .health()
        .expect_err("not ready before it is known that somebody answers");
    assert!(reason.contains("not asked yet"), "{reason}");
    let error = plan(&client).await.expect_err("nobody there");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    let reason = client.health().expect_err("unreachable");
    assert!(reason.contains("no replica") && reason.contains(&url), "{reason}");

    let _tended = tended(&client);
    let server = serve_on(socket.listen(16).expect("a listener")).await;
    until("the return of the service", || client.health().is_ok()).await;
    plan(&client).await.expect("a plan");
    server.serves(false).await;
    until("the end of the service", || client.health().is_err()).await;
    let reason = client.health().expect_err("draining");
    assert!(reason.contains("draining"), "{reason}");
}

#[tokio::test]
async fn a_replica_that_hangs_costs_one_attempt_and_is_evicted() {
    let (hung, other) = (serve().await, serve().await);
    hung.script().hang = true;
    let config = ClientConfig {
        timeout: Duration::from_secs(6),
        ..quick()
    };
    let client = client_of(&[&hung, &other], config);
    let uid = workload_of(&client, &hung);
    let started = std::time::Instant::now();
    plan_for(&client, &uid).await.expect("a plan");
    assert!(started.elapsed() >= Duration::from_secs(2));
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((hung.asked(), other.asked()), (1, 2));
    assert_eq!(count(&client, "evicted timed_out"), 1);
}

// A saturated replica has not failed: the next one is asked at once, and the replica keeps its workloads.
#[tokio::test]
async fn a_saturated_replica_is_skipped_but_not_evicted() {
    let (busy, other) = (serve().await, serve().await);
    busy.then(|| {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_mins(1)));
        Err(Status::with_error_details(
            Code::ResourceExhausted,
            "saturated",
            details,
        ))
    });
    let config = ClientConfig {
        max_pause: Duration::from_mins(1),
        ..quick()
    };
    let client = client_of(&[&busy, &other], config);
    let uid = workload_of(&client, &busy);
    plan_for(&client, &uid).await.expect("a plan, and at once");
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((busy.asked(), other.asked()), (2, 1));
    assert_eq!(state_of(&client, &busy), ReplicaState::Ready);
}

// A probe, not a reconcile, finds out that an evicted replica serves again.
#[tokio::test]
async fn a_probe_brings_an_evicted_replica_back() {
    let (failing, other) = (serve().await, serve().await);
    failing.then(|| Err(Status::unavailable("restarting")));
    let client = client_of(&[&failing, &other], quick());
    let _tended = tended(&client);
    until("both are known", || count(&client, "replicas ready") == 2).await;
    let uid = workload_of(&client, &failing);
    failing.serves(false).await;
    until("it is asked no more", || {
        state_of(&client, &failing) == ReplicaState::Draining
    })
    .await;
    failing.serves(true).await;
    until("it is asked again", || {
        state_of(&client, &failing) == ReplicaState::Ready
    })
    .await;
    plan_for(&client, &uid).await.expect("a plan");
    assert!(matches!(state_of(&client, &failing), ReplicaState::Evicted(_)));
    until("it is well again", || {
        state_of(&client, &failing) == ReplicaState::Ready
    })
    .await;
    assert_eq!(
        (failing.asked(), other.asked()),
        (1, 1),
        "no plan was asked for meanwhile"
    );
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((failing.asked(), other.asked()), (2, 1));
}

// A stopped process: the kernel accepts its connections, but nothing answers.
#[tokio::test]
async fn a_replica_that_never_answers_is_evicted_by_a_probe() {
    let (silent, other) = (
        TcpListener::bind("127.0.0.1:0").await.expect("a free port"),
        serve().await,
    );
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let client = Arc::new(client(&[url, other.url.clone()], quick()));
    let _tended = tended(&client);
    until("it is known", || count(&client, "replicas evicted") == 1).await;
    let started = std::time::Instant::now();
    for index in 0..8 {
        let uid = format!("uid-{index}");
        plan_for(&client, &uid).await.expect("a plan");
    }
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "no plan waited for the silent one"
    );
    assert_eq!(other.asked(), 8);
}

#[tokio::test]
async fn a_draining_replica_is_not_asked() {
    let (ending, other) = (serve().await, serve().await);
    let client = client_of(&[&ending, &other], quick());
    let _tended = tended(&client);
    until("both are known", || count(&client, "replicas ready") == 2).await;
    let uid = workload_of(&client, &ending);
    ending.serves(false).await;
    until("it is known to drain", || {
        count(&client, "replicas draining") == 1
    })
    .await;
    for _ in 0..3 {
        plan_for(&client, &uid).await.expect("a plan");
    }
    assert_eq!((ending.asked(), other.asked()), (0, 3));
    assert_eq!(client.health(), Ok(()));
    assert_eq!(count(&client, "evicted draining"), 1);
}

// Every nodewise-server has the health service. A server without it is asked last, and is ready after it has answered a call.
#[tokio::test]
async fn a_server_without_a_health_service_is_evicted() {
    let server = Server::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tonic::transport::Server::builder()
        .add_service(ReconcileServiceServer::new(server.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    let _serving = AbortOnDropHandle::new(tokio::spawn(serving));
    let client = Arc::new(client(&[url], quick()));
    let _tended = tended(&client);
    let reason = || client.health().err().unwrap_or_default();
    until("it is found out", || reason().contains("Unimplemented")).await;
    plan(&client).await.expect("a plan");
    assert_eq!(server.asked(), 1);
}
