//! Tests targets that are looked up: replicas are added and removed.

use std::collections::BTreeMap;
use std::io;

use futures::FutureExt as _;

use super::*;

/// The present answer of the scripted name server.
type Records = Arc<Mutex<BTreeMap<String, Vec<std::net::SocketAddr>>>>;

fn name_server() -> (Records, Lookup) {
    let records = Records::default();
    let answers = Arc::clone(&records);
    let lookup: Lookup = Arc::new(move |host, _| {
        let found = answers.lock().expect("lock").get(&host).cloned();
        async move { found.ok_or_else(|| io::Error::other("no such host")) }.boxed()
    });
    (records, lookup)
}

fn set(records: &Records, replicas: &[&Serving]) {
    let addresses = replicas
        .iter()
        .map(|replica| replica.address().as_str().parse().expect("an address"));
    records
        .lock()
        .expect("lock")
        .insert("planner.example".to_owned(), addresses.collect());
}

fn by_name(lookup: Lookup, config: ClientConfig) -> Watched {
    by_names(
        vec!["dns:///planner.example:7443".parse().expect("a target")],
        lookup,
        config,
    )
}

/// The names resolve to loopback, but are not loopback names, so plain text must be allowed.
fn by_names(targets: Vec<Target>, lookup: Lookup, config: ClientConfig) -> Watched {
    let config = ClientConfig {
        plaintext: true,
        ..config
    };
    Watched::new(|observer| PlanClient::with_lookup(targets, None, lookup, config, observer))
}

#[tokio::test]
async fn replicas_are_looked_up_again_after_a_failure() {
    let (first, second) = (serve().await, serve().await);
    let (records, lookup) = name_server();
    let client = by_name(lookup, quick());
    let error = plan(&client).await.expect_err("nobody looks the name up");
    assert!(matches!(&error, ServiceError::Unreachable(_)), "{error}");
    let _tended = tended(&client);
    let says = |reason: &str| client.health().expect_err("nobody is known").contains(reason);
    until("the failed look-up is told", || {
        says("dns:///planner.example:7443: no such host")
    })
    .await;

    // The call waits for the first address and triggers a look-up.
    set(&records, &[&first]);
    plan(&client).await.expect("a plan");
    assert_eq!(client.health(), Ok(()));

    // A failed replica triggers a look-up before the period has passed.
    set(&records, &[&second]);
    first.then(|| Err(Status::unavailable("ending")));
    let started = std::time::Instant::now();
    plan(&client).await.expect("a plan, at the second attempt");
    until("the move is noticed", || {
        let members = client.replicas.members();
        members.len() == 1 && *members[0].address() == second.address()
    })
    .await;
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    plan(&client).await.expect("a plan");
    assert_eq!(second.asked(), 1);

    // A failed look-up removes no replica.
    records.lock().expect("lock").clear();
    second.then(|| Err(Status::unavailable("once")));
    plan(&client).await.expect("a plan");
    until("the failed look-up is seen", || client.replicas.lookup_failed()).await;
    plan(&client).await.expect("a plan");
    assert_eq!(client.replicas.members().len(), 1);
}

#[tokio::test]
async fn replicas_that_stay_keep_their_state_and_removed_ones_finish_their_calls() {
    let (stays, goes, comes) = (serve().await, serve().await, serve().await);
    let client = client_of(&[&stays, &goes], quick());
    let of_stays = workload_of(&client, &stays);
    let of_goes = workload_of(&client, &goes);
    plan_for(&client, &of_stays).await.expect("a plan");
    let before = client.replicas.members();

    goes.script().slow = Duration::from_millis(200);
    let calling = Arc::clone(&client);
    let under_way = tokio::spawn(async move { plan_for(&calling, &of_goes).await });
    until("the call is under way", || goes.asked() == 1).await;
    let addresses = [comes.address(), stays.address(), stays.address()];
    client.replicas.replace(&addresses).expect("addresses");
    let after = client.replicas.members();
    assert_eq!(after.len(), 2, "the same address twice is one replica");
    assert!(
        after.iter().any(|replica| Arc::ptr_eq(replica, &before[0])),
        "the same connection"
    );
    assert!(before[1].removed().is_cancelled() && !before[0].removed().is_cancelled());
    under_way
        .await
        .expect("no panic")
        .expect("the plan comes all the same");
    assert_eq!((goes.asked(), comes.asked()), (1, 0));

    let of_stays = workload_of(&client, &stays);
    plan_for(&client, &of_stays).await.expect("a plan");
    assert_eq!(
        stays.inline(1),
        [vec![false, false], vec![false, false]],
        "it has the buckets"
    );
}

// The set is the union of all targets. Fixed targets are in it from the beginning.
#[tokio::test]
async fn the_set_is_the_union_of_all_targets() {
    let (one, two, found) = (serve().await, serve().await, serve().await);
    let (records, lookup) = name_server();
    set(&records, &[&found, &one]);
    let targets = vec![
        one.target(),
        "dns:///planner.example:7443".parse().expect("a target"),
        two.target(),
    ];
    let client = by_names(targets, lookup, quick());
    let before = client.replicas.members();
    assert_eq!(before.len(), 2);
    let _tended = tended(&client);
    until("all are ready", || count(&client, "replicas ready") == 3).await;
    let gone = |replica: &Arc<Replica>| replica.removed().is_cancelled();
    assert!(
        !before.iter().any(gone),
        "who is fixed stays while others are looked up"
    );
}
