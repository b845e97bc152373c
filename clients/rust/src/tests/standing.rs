//! Who is asked, and who not for a while.

use super::*;

// A replica that is not there costs nothing but a moment; it is asked last until it has answered again.
#[tokio::test]
async fn the_next_replica_answers_for_one_that_is_gone() {
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

// Fail static: an absent service is told apart from one that was not asked, is unhealthy, and recovers by itself.
#[tokio::test]
async fn an_absent_service_is_noticed_and_so_is_its_return() {
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
async fn one_that_hangs_costs_one_attempt_and_is_asked_no_more() {
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

// Whoever has too much to do has not failed: the next one is asked at once, and it keeps its workloads.
#[tokio::test]
async fn one_that_is_saturated_is_passed_over_once() {
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
    assert_eq!(standing_of(&client, &busy), Standing::Ready);
}

// No reconcile is spent on finding out whether a replica that failed is well again.
#[tokio::test]
async fn one_that_failed_comes_back_by_a_probe() {
    let (failing, other) = (serve().await, serve().await);
    failing.then(|| Err(Status::unavailable("restarting")));
    let client = client_of(&[&failing, &other], quick());
    let _tended = tended(&client);
    until("both are known", || count(&client, "replicas ready") == 2).await;
    let uid = workload_of(&client, &failing);
    failing.serves(false).await;
    until("it is asked no more", || {
        standing_of(&client, &failing) == Standing::Draining
    })
    .await;
    failing.serves(true).await;
    until("it is asked again", || {
        standing_of(&client, &failing) == Standing::Ready
    })
    .await;
    plan_for(&client, &uid).await.expect("a plan");
    assert!(matches!(standing_of(&client, &failing), Standing::Evicted(_)));
    until("it is well again", || {
        standing_of(&client, &failing) == Standing::Ready
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

// A process that was stopped: its connections are accepted by the kernel, and nobody ever answers.
#[tokio::test]
async fn one_that_accepts_and_says_nothing_is_found_out_without_a_plan() {
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
async fn one_that_drains_is_not_asked() {
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

// A replica tells its health, so whoever does not is another server: it is not ready. Asked last, it may prove otherwise.
#[tokio::test]
async fn one_that_tells_nothing_of_its_health_is_taken_for_another_server() {
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
