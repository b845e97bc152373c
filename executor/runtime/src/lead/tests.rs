use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::{sync::watch, task::JoinHandle};

use super::*;

/// A lease in memory that can be made to fail.
#[derive(Clone, Default)]
struct Shared {
    lease: Arc<Mutex<Option<(Record, u64)>>>,
    broken: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

impl Shared {
    fn holder(&self) -> String {
        self.lease
            .lock()
            .expect("lock")
            .as_ref()
            .map_or_else(String::new, |(record, _)| record.holder.clone())
    }
}

/// One candidate's connection to the lease, which can be cut.
#[derive(Clone)]
struct LeaseConnection {
    shared: Shared,
    cut: Arc<AtomicBool>,
    /// Delay of every response, in milliseconds.
    slow: Arc<AtomicUsize>,
}

impl LeaseConnection {
    fn to(shared: &Shared) -> Self {
        Self {
            shared: shared.clone(),
            cut: Arc::default(),
            slow: Arc::default(),
        }
    }

    async fn delay_response(&self) {
        sleep(Duration::from_millis(self.slow.load(Ordering::Relaxed) as u64)).await;
    }

    async fn pass(&self) {
        if self.cut.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

fn version(number: u64) -> Version {
    Version {
        resource_version: Some(number.to_string()),
        ..Version::default()
    }
}

impl LeaseStore for LeaseConnection {
    async fn read(&self) -> Result<Option<(Record, Version)>, LeaseError> {
        self.pass().await;
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        let lease = self.shared.lease.lock().expect("lock").clone();
        Ok(lease.map(|(record, number)| (record, version(number))))
    }

    async fn write(&self, record: &Record, found: Option<Version>) -> Result<Version, LeaseError> {
        self.pass().await;
        if self.shared.broken.load(Ordering::Relaxed) {
            return Err(LeaseError::Changed);
        }
        let number = {
            let mut lease = self.shared.lease.lock().expect("lock");
            let present = lease.as_ref().map(|(_, number)| version(*number));
            if present != found {
                return Err(LeaseError::Changed);
            }
            let number = lease.as_ref().map_or(1, |(_, number)| number + 1);
            *lease = Some((record.clone(), number));
            number
        };
        self.delay_response().await;
        Ok(version(number))
    }
}

/// A candidate that runs until it is stopped or killed.
struct Candidate {
    leads: watch::Receiver<bool>,
    terms: Arc<AtomicUsize>,
    connection: LeaseConnection,
    leader_status: LeaderStatus,
    metrics: Metrics,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// Starts a candidate whose work takes `drain` to stop, or never stops.
fn start(name: &str, shared: &Shared, drain: Option<Duration>) -> Candidate {
    start_with(name, shared, drain, true)
}

/// As [`start`]; `ends` is whether all writes of the work have ended when it stops.
fn start_with(name: &str, shared: &Shared, drain: Option<Duration>, ends: bool) -> Candidate {
    let (connection, metrics, shutdown) = (
        LeaseConnection::to(shared),
        Metrics::new("nodewise-executor"),
        CancellationToken::new(),
    );
    let leader_status = LeaderStatus::default();
    let elector = Elector::new(
        connection.clone(),
        name.to_owned(),
        "kube-system".to_owned(),
        Timing::default(),
        metrics.clone(),
    )
    .with_leader_status(leader_status.clone());
    let (leads_now, leads) = watch::channel(false);
    let terms = Arc::<AtomicUsize>::default();
    let counted = terms.clone();
    let task = tokio::spawn(elector.run(shutdown.clone(), move |term| {
        counted.fetch_add(1, Ordering::Relaxed);
        leads_now.send_replace(true);
        let ended = EndOfWork(leads_now.clone());
        async move {
            let _ended = ended;
            term.cancelled().await;
            match drain {
                Some(drain) => sleep(drain).await,
                None => std::future::pending().await,
            }
            ends
        }
    }));
    Candidate {
        leads,
        terms,
        connection,
        leader_status,
        metrics,
        shutdown,
        task,
    }
}

struct EndOfWork(watch::Sender<bool>);

impl Drop for EndOfWork {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

impl Candidate {
    /// Waits until this candidate leads, or stops leading. Returns how long that took.
    async fn until(&mut self, leads: bool) -> Duration {
        let start = Instant::now();
        let waited = timeout(Duration::from_mins(2), self.leads.wait_for(|now| *now == leads)).await;
        waited.expect("within two minutes").expect("still running");
        start.elapsed()
    }
}

// The first candidate takes the lease at once and renews it without reading. The second stands by.
#[tokio::test(start_paused = true)]
async fn one_of_two_leads() {
    let shared = Shared::default();
    let mut first = start("a", &shared, Some(Duration::ZERO));
    assert_eq!(first.until(true).await, Duration::ZERO);
    let reads = shared.reads.load(Ordering::Relaxed);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(
        shared.reads.load(Ordering::Relaxed),
        reads,
        "the leader renews without reading"
    );
    let second = start("b", &shared, Some(Duration::ZERO));
    sleep(Duration::from_mins(2)).await;
    assert!(*first.leads.borrow() && !*second.leads.borrow());
    assert_eq!(
        (first.terms.load(Ordering::Relaxed), shared.holder()),
        (1, "a".to_owned())
    );
    assert!(
        first
            .metrics
            .encode()
            .contains("leader_election_master_status{name=\"nodewise-executor\"} 1")
    );
    assert!(
        second
            .metrics
            .encode()
            .contains("leader_election_master_status{name=\"nodewise-executor\"} 0")
    );
}

// After a leader was killed, the other candidate takes over when it has seen no change for 15 s.
#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_succeeded_within_the_lease() {
    let shared = Shared::default();
    let mut first = start("a", &shared, Some(Duration::ZERO));
    first.until(true).await;
    let mut second = start("b", &shared, Some(Duration::ZERO));
    sleep(Duration::from_secs(30)).await;
    first.task.abort();
    let waited = second.until(true).await;
    // The other candidate sees the last renewal up to one try late, and the end of the 15 s up to one try late.
    let (least, most) = (Duration::from_secs(13), Duration::from_millis(15_000 + 2 * 4_400));
    assert!((least..=most).contains(&waited), "{waited:?}");
}

// On shutdown the leader drains while it keeps renewing, then releases the lease. The other candidate takes over at its next
// try.
#[tokio::test(start_paused = true)]
async fn shutdown_drains_and_then_hands_over() {
    let shared = Shared::default();
    let mut first = start("a", &shared, Some(Duration::from_secs(40)));
    first.until(true).await;
    let mut second = start("b", &shared, Some(Duration::ZERO));
    first.shutdown.cancel();
    sleep(Duration::from_secs(39)).await;
    assert_eq!(shared.holder(), "a", "still draining");
    first.task.await.expect("no panic");
    assert_eq!(shared.holder(), "");
    assert!(second.until(true).await <= Duration::from_millis(4_400));
}

// A write that was cut off may still reach the apiserver, so the lease is left to expire.
#[tokio::test(start_paused = true)]
async fn a_lease_is_not_released_before_all_writes_have_ended() {
    let shared = Shared::default();
    let mut first = start_with("a", &shared, Some(Duration::ZERO), false);
    first.until(true).await;
    let mut second = start("b", &shared, Some(Duration::ZERO));
    sleep(Duration::from_secs(5)).await;
    first.shutdown.cancel();
    first.task.await.expect("no panic");
    assert_eq!(shared.holder(), "a");
    let waited = second.until(true).await;
    assert!(waited > Duration::from_secs(10), "{waited:?}");
}

// A leader that cannot reach the lease stops before another can start, even if its work does not return. Its next term is a
// new one.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_reach_the_lease_stops_first() {
    let shared = Shared::default();
    for drain in [Some(Duration::from_secs(1)), None] {
        let mut first = start("a", &shared, drain);
        first.until(true).await;
        let mut second = start("b", &shared, Some(Duration::ZERO));
        sleep(Duration::from_secs(20)).await;
        first.connection.cut.store(true, Ordering::Relaxed);
        first.until(false).await;
        assert!(
            !*second.leads.borrow(),
            "the lease is still respected when the first has stopped"
        );
        second.until(true).await;
        first.connection.cut.store(false, Ordering::Relaxed);
        second.shutdown.cancel();
        second.task.await.expect("no panic");
        first.until(true).await;
        assert_eq!(first.terms.load(Ordering::Relaxed), 2);
        first.task.abort();
        let _ = first.task.await;
        shared.lease.lock().expect("lock").take();
    }
}

// The work ends before the lease does, however slow the last response was. Both count from when the renewal was sent.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_does_not_prolong_the_lease() {
    let shared = Shared::default();
    let mut first = start("a", &shared, None);
    first.until(true).await;
    first.connection.slow.store(4_900, Ordering::Relaxed);
    let renewed = |shared: &Shared| {
        shared
            .lease
            .lock()
            .expect("lock")
            .clone()
            .map(|(_, number)| number)
    };
    let before = renewed(&shared);
    while renewed(&shared) == before {
        sleep(Duration::from_millis(1)).await;
    }
    let written = Instant::now();
    sleep(Duration::from_secs(4)).await;
    first.connection.cut.store(true, Ordering::Relaxed);
    first.until(false).await;
    let gone_on = written.elapsed();
    assert!(gone_on < Duration::from_secs(15), "{gone_on:?}");
}

// A leader that was paused finds another holder in the lease. It stops at once, not only after the renew deadline.
#[tokio::test(start_paused = true)]
async fn a_leader_that_finds_another_holder_stops_at_once() {
    let shared = Shared::default();
    let mut first = start("a", &shared, Some(Duration::ZERO));
    first.until(true).await;
    {
        let mut lease = shared.lease.lock().expect("lock");
        let (record, number) = lease.as_mut().expect("a lease");
        record.holder = "b".to_owned();
        *number += 1;
    }
    let waited = first.until(false).await;
    assert!(waited <= Duration::from_secs(3), "{waited:?}");
}

// A rejected renewal costs one read, not the lease.
#[tokio::test(start_paused = true)]
async fn a_rejected_renewal_is_tried_again() {
    let shared = Shared::default();
    let mut only = start("a", &shared, Some(Duration::ZERO));
    only.until(true).await;
    shared.broken.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(7)).await;
    shared.broken.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(30)).await;
    assert!(*only.leads.borrow());
    assert_eq!(only.terms.load(Ordering::Relaxed), 1);
    assert!(
        !only
            .metrics
            .encode()
            .contains("leader_election_slowpath_total{name=\"nodewise-executor\"} 0")
    );
}

// The health check fails only for a leader whose lease expired long ago.
#[tokio::test(start_paused = true)]
async fn health_of_the_leader() {
    let (leader_status, timing, now) = (LeaderStatus::default(), Timing::default(), Instant::now());
    assert_eq!(
        leader_status.check(timing, now + Duration::from_hours(1)),
        Ok(()),
        "a standby"
    );
    leader_status.set(Some(now));
    assert_eq!(leader_status.check(timing, now + Duration::from_secs(35)), Ok(()));
    assert!(
        leader_status
            .check(timing, now + Duration::from_secs(36))
            .is_err()
    );
    let shared = Shared::default();
    let mut only = start("a", &shared, Some(Duration::ZERO));
    only.until(true).await;
    assert!(
        only.leader_status
            .check(timing, Instant::now() + Duration::from_secs(36))
            .is_err(),
        "a leader that does not renew fails the check"
    );
    only.shutdown.cancel();
    only.task.await.expect("no panic");
    assert_eq!(
        only.leader_status
            .check(timing, Instant::now() + Duration::from_secs(36)),
        Ok(())
    );
}

// Two processes on one host have different identities.
#[test]
fn identities_differ() {
    assert_ne!(identity("host"), identity("host"));
    assert!(identity("host").starts_with("host_"));
}
