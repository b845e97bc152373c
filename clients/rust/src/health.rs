//! Watches the health of each replica with `grpc.health.v1.Health/Watch`.
//!
//! A replica that is about to stop reports NOT_SERVING and gets no more calls. A replica that was evicted is probed until it serves
//! again, so that no reconcile has to find out. A probe is a new Watch call: its first message is the result, and further messages
//! are followed.

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

/// The pause after the first failed probe. It doubles with each further one, with jitter.
const PROBE_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between probes.
const MAX_PROBE_PAUSE: Duration = Duration::from_secs(5);

/// Watches the health of every replica. Never returns.
pub(super) async fn watch_replicas(replicas: &Replicas) {
    let mut set = replicas.subscribe();
    let mut known: Members = Arc::new([]);
    let mut all = FuturesUnordered::new();
    loop {
        let members = Arc::clone(&set.borrow_and_update());
        for replica in members.iter() {
            if !known.iter().any(|known| Arc::ptr_eq(known, replica)) {
                all.push(watch_replica(replicas, Arc::clone(replica)));
            }
        }
        known = members;
        tokio::select! {
            changed = set.changed() => if changed.is_err() { return },
            Some(()) = all.next() => {}
        }
    }
}

/// Watches the health of one replica until it is removed from the set.
async fn watch_replica(replicas: &Replicas, replica: Arc<Replica>) {
    let watching = async {
        let mut pause = PROBE_PAUSE;
        loop {
            let failures = replica.failures();
            match probe(&replica).await {
                Ok((serves, watch)) => {
                    let began = Instant::now();
                    if apply_health(replicas, &replica, failures, serves) {
                        follow(replicas, &replica, failures, watch).await;
                    }
                    if began.elapsed() > MAX_PROBE_PAUSE {
                        pause = PROBE_PAUSE;
                    }
                }
                Err(reason) => replicas.health_failed(&replica, &reason),
            }
            sleep(
                pause
                    .mul_f64(rand::random_range(0.5..1.0))
                    .max(replica.eviction_pause()),
            )
            .await;
            pause = (pause * 2).min(MAX_PROBE_PAUSE);
        }
    };
    replica.removed().run_until_cancelled(watching).await;
}

/// Opens a health watch. Returns whether the replica serves, and the watch.
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
        Ok(Ok((None, _))) => Err(watch_ended(replica)),
        // UNIMPLEMENTED is an error as well, although gRPC's own clients treat it as "no health information". A nodewise-server
        // always implements the health service, so this is another server.
        Ok(Err(status)) => Err(failure(replica, &status)),
        Err(_) => Err(format!("{}: no answer within {CONNECT_TIMEOUT:?}", replica.url())),
    }
}

/// Follows a health watch until it ends or a call to the replica fails. `failures` is the number of failed calls before the probe.
async fn follow(
    replicas: &Replicas,
    replica: &Replica,
    failures: u64,
    mut watch: Streaming<HealthCheckResponse>,
) {
    loop {
        let message = tokio::select! {
            () = replica.call_failed() => return,
            message = watch.message() => message,
        };
        match message {
            Ok(Some(health)) => {
                if !apply_health(replicas, replica, failures, serves(health)) {
                    return;
                }
            }
            // A draining replica ends the watch like this.
            Ok(None) => return replicas.health_failed(replica, &watch_ended(replica)),
            Err(status) => return replicas.health_failed(replica, &failure(replica, &status)),
        }
    }
}

fn watch_ended(replica: &Replica) -> String {
    format!("{}: its health watch ended", replica.url())
}

/// Applies a health status to the replica. Returns false if a call failed after the probe was sent: then a new probe is needed.
fn apply_health(replicas: &Replicas, replica: &Replica, failures: u64, serves: bool) -> bool {
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
