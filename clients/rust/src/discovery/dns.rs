//! Resolves a DNS name: every 10 seconds, and earlier when a replica is evicted.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Lookup, LookupResult};
use crate::target::Address;

/// The interval of look-ups. Resolvers cache the records; those of a headless Service live for some seconds.
const PERIOD: Duration = Duration::from_secs(10);
/// The shortest time between two look-ups.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest time of one look-up.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A stream of all A and AAAA records. An empty answer counts as an error, so that the known addresses stay in use: a name server
/// that has just started may know no records.
pub(super) fn addresses(
    host: &str,
    port: u16,
    lookup: &Lookup,
    lookup_triggers: watch::Receiver<u64>,
) -> impl Stream<Item = LookupResult> {
    stream::unfold(
        (lookup_triggers, true),
        move |(mut lookup_triggers, first)| async move {
            if !first {
                sleep(SHORTEST).await;
                // Look up when the period has passed or a look-up is triggered. End when the sender is gone.
                if let Ok(Err(_)) = timeout(PERIOD.saturating_sub(SHORTEST), lookup_triggers.changed()).await
                {
                    return None;
                }
            }
            lookup_triggers.borrow_and_update();
            let found = match timeout(TIMEOUT, lookup(host.to_owned(), port)).await {
                Ok(Ok(addresses)) if addresses.is_empty() => Err("the name has no address".to_owned()),
                Ok(Ok(mut addresses)) => {
                    addresses.sort_unstable();
                    Ok(addresses.into_iter().map(Address::from).collect())
                }
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("the look-up took longer than {TIMEOUT:?}")),
            };
            Some((found, (lookup_triggers, false)))
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use futures::{FutureExt as _, StreamExt as _};
    use tokio::time::Instant;

    use super::*;

    type Answers = Vec<io::Result<Vec<SocketAddr>>>;

    fn scripted(answers: Answers) -> Lookup {
        let answers = Mutex::new(VecDeque::from(answers));
        Arc::new(move |host, port| {
            assert_eq!((host.as_str(), port), ("planner.example", 7443));
            let answer = answers.lock().expect("lock").pop_front().expect("an answer");
            async move { answer }.boxed()
        })
    }

    fn at(last: u8) -> SocketAddr {
        ([10, 0, 0, last], 7443).into()
    }

    fn found(addresses: &[u8]) -> Vec<Address> {
        addresses.iter().map(|&last| at(last).into()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn every_record_is_an_address_and_no_record_is_an_error() {
        let lookup = scripted(vec![
            Ok(vec![at(2), at(1)]),
            Ok(Vec::new()),
            Err(io::Error::other("no such host")),
            Ok(vec![at(3)]),
        ]);
        let lookup_triggers = watch::Sender::new(0);
        let found_addresses = addresses("planner.example", 7443, &lookup, lookup_triggers.subscribe());
        let found_addresses: Vec<_> = found_addresses.take(4).collect().await;
        let expected = [
            Ok(found(&[1, 2])),
            Err("the name has no address".to_owned()),
            Err("no such host".to_owned()),
            Ok(found(&[3])),
        ];
        assert_eq!(found_addresses, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_periodically_and_when_triggered_but_not_more_than_once_a_second() {
        let lookup = scripted((1..=5).map(|last| Ok(vec![at(last)])).collect());
        let lookup_triggers = watch::Sender::new(0);
        let mut found_addresses = Box::pin(addresses(
            "planner.example",
            7443,
            &lookup,
            lookup_triggers.subscribe(),
        ));
        let began = Instant::now();
        let mut next = async |last: u8, seconds: u64| {
            assert_eq!(found_addresses.next().await, Some(Ok(found(&[last]))));
            assert_eq!(began.elapsed().as_secs(), seconds, "the look-up that gave {last}");
        };
        next(1, 0).await;
        next(2, 10).await;
        lookup_triggers.send_replace(1);
        next(3, 11).await;
        next(4, 21).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        lookup_triggers.send_replace(2);
        next(5, 26).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_has_a_timeout() {
        let lookup: Lookup = Arc::new(|_, _| std::future::pending().boxed());
        let lookup_triggers = watch::Sender::new(0);
        let mut found_addresses = Box::pin(addresses(
            "planner.example",
            7443,
            &lookup,
            lookup_triggers.subscribe(),
        ));
        let error = found_addresses
            .next()
            .await
            .expect("not the end")
            .expect_err("it hangs");
        assert!(error.contains("10s"), "{error}");
    }
}
