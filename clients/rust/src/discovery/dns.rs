//! The addresses of a name: looked up now and then, and at once when a replica fails.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Found, Lookup};
use crate::target::Address;

/// How often a name is looked up. Resolvers cache; a headless Service's records live for some seconds.
const PERIOD: Duration = Duration::from_secs(10);
/// The shortest time between two look-ups, however much fails.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Every A and AAAA record, again and again. No record at all is taken for a failure: a name server that has just started
/// knows nobody, and who was known is more likely still there.
pub(super) fn addresses(
    host: &str,
    port: u16,
    lookup: &Lookup,
    doubts: watch::Receiver<u64>,
) -> impl Stream<Item = Found> {
    stream::unfold((doubts, true), move |(mut doubts, first)| async move {
        if !first {
            sleep(SHORTEST).await;
            // That the time is up, or nobody is left to doubt, are reasons as good as any.
            if let Ok(Err(_)) = timeout(PERIOD.saturating_sub(SHORTEST), doubts.changed()).await {
                return None;
            }
        }
        doubts.borrow_and_update();
        let found = match timeout(TIMEOUT, lookup(host.to_owned(), port)).await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err("the name has no address".to_owned()),
            Ok(Ok(mut addresses)) => {
                addresses.sort_unstable();
                Ok(addresses.into_iter().map(Address::from).collect())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the look-up took longer than {TIMEOUT:?}")),
        };
        Some((found, (doubts, false)))
    })
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
    async fn every_record_is_an_address_and_none_is_a_failure() {
        let lookup = scripted(vec![
            Ok(vec![at(2), at(1)]),
            Ok(Vec::new()),
            Err(io::Error::other("no such host")),
            Ok(vec![at(3)]),
        ]);
        let doubts = watch::Sender::new(0);
        let told = addresses("planner.example", 7443, &lookup, doubts.subscribe());
        let told: Vec<_> = told.take(4).collect().await;
        let expected = [
            Ok(found(&[1, 2])),
            Err("the name has no address".to_owned()),
            Err("no such host".to_owned()),
            Ok(found(&[3])),
        ];
        assert_eq!(told, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_now_and_then_and_after_a_doubt_but_not_all_the_time() {
        let lookup = scripted((1..=5).map(|last| Ok(vec![at(last)])).collect());
        let doubts = watch::Sender::new(0);
        let mut told = Box::pin(addresses("planner.example", 7443, &lookup, doubts.subscribe()));
        let began = Instant::now();
        let mut next = async |last: u8, seconds: u64| {
            assert_eq!(told.next().await, Some(Ok(found(&[last]))));
            assert_eq!(began.elapsed().as_secs(), seconds, "the look-up that gave {last}");
        };
        next(1, 0).await;
        next(2, 10).await;
        doubts.send_replace(1);
        next(3, 11).await;
        next(4, 21).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        doubts.send_replace(2);
        next(5, 26).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_hangs_ends() {
        let lookup: Lookup = Arc::new(|_, _| std::future::pending().boxed());
        let doubts = watch::Sender::new(0);
        let mut told = Box::pin(addresses("planner.example", 7443, &lookup, doubts.subscribe()));
        let error = told.next().await.expect("not the end").expect_err("it hangs");
        assert!(error.contains("10s"), "{error}");
    }
}
