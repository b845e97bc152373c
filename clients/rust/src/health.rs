//! Who serves: each replica's health is followed over `grpc.health.v1`.
//!
//! A replica that ends says so beforehand, and is asked no more. One that failed comes back by a probe, so that no reconcile
//! is spent on finding out. A probe is a new watch: its first answer tells, and later ones are followed as they come.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use tokio::time::{Instant, sleep, timeout};
use tonic::Streaming;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::replica::Replica;
use super::replicas::{Members, Replicas};
use super::{CONNECT_TIMEOUT, failure};

/// The pause after the first failed probe; doubles with each further one, with jitter.
const PROBE_PAUSE: Duration = Duration::from_millis(250);
/// The longest of these.
const MAX_PROBE_PAUSE: Duration = Duration::from_secs(5);

/// Looks after every replica. Never ends.
pub(super) async fn look_after(replicas: &Replicas) {
    let mut set = replicas.subscribe();
    let mut known: Members = Arc::new([]);
    let mut all = FuturesUnordered::new();
    loop {
        let members = Arc::clone(&set.borrow_and_update());
        for replica in members.iter() {
            if !known.iter().any(|known| Arc::ptr_eq(known, replica)) {
                all.push(look_after_one(replicas, Arc::clone(replica)));
            }
        }
        known = members;
        tokio::select! {
            changed = set.changed() => if changed.is_err() { return },
            Some(()) = all.next() => {}
        }
    }
}

/// Until it is a replica no more.
async fn look_after_one(replicas: &Replicas, replica: Arc<Replica>) {
    let care = async {
        let mut pause = PROBE_PAUSE;
        loop {
            let failures = replica.failures();
            match probe(&replica).await {
                Ok((serves, watch)) => {
                    let began = Instant::now();
                    if tell(replicas, &replica, failures, serves) {
                        follow(replicas, &replica, failures, watch).await;
                    }
                    if began.elapsed() > MAX_PROBE_PAUSE {
                        pause = PROBE_PAUSE;
                    }
                }
                Err(reason) => replicas.unwell(&replica, &reason),
            }
            sleep(pause.mul_f64(rand::random_range(0.5..1.0)).max(replica.rest())).await;
            pause = (pause * 2).min(MAX_PROBE_PAUSE);
        }
    };
    replica.gone().run_until_cancelled(care).await;
}

/// Asks a replica whether it serves.
async fn probe(replica: &Replica) -> Result<(bool, Streaming<HealthCheckResponse>), String> {
    let ask = async {
        let mut client = HealthClient::new(replica.channel());
        let request = HealthCheckRequest {
            service: SERVICE_NAME.to_owned(),
        };
        let mut watch = client.watch(request).await?.into_inner();
        let first = watch.message().await?;
        Ok((first, watch))
    };
    match timeout(CONNECT_TIMEOUT, ask).await {
        Ok(Ok((Some(first), watch))) => Ok((serves(first), watch)),
        Ok(Ok((None, _))) => Err(no_more(replica)),
        // UNIMPLEMENTED is no exception, though gRPC's own clients take it for a server that tells nothing of its health: a
        // replica tells, so this is none.
        Ok(Err(status)) => Err(failure(replica, &status)),
        Err(_) => Err(format!("{}: no answer within {CONNECT_TIMEOUT:?}", replica.url())),
    }
}

/// Follows a replica's health, since so many calls had failed, until one more has or the watch ends.
async fn follow(
    replicas: &Replicas,
    replica: &Replica,
    failures: u64,
    mut watch: Streaming<HealthCheckResponse>,
) {
    loop {
        let told = tokio::select! {
            () = replica.call_failed() => return,
            told = watch.message() => told,
        };
        match told {
            Ok(Some(health)) => {
                if !tell(replicas, replica, failures, serves(health)) {
                    return;
                }
            }
            // So ends one that drains.
            Ok(None) => return replicas.unwell(replica, &no_more(replica)),
            Err(status) => return replicas.unwell(replica, &failure(replica, &status)),
        }
    }
}

fn no_more(replica: &Replica) -> String {
    format!("{}: its health is told no more", replica.url())
}

/// Whether what it tells counts: else a probe is to be sent anew.
fn tell(replicas: &Replicas, replica: &Replica, failures: u64, serves: bool) -> bool {
    if serves {
        replicas.serves(replica, failures)
    } else {
        replicas.drains(replica);
        true
    }
}

fn serves(health: HealthCheckResponse) -> bool {
    health.status() == ServingStatus::Serving
}
