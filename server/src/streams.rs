//! The open streams, their limit, and the eviction of idle ones.
//!
//! An idle stream may stay open while the server is below its limit of streams. At the limit, a new stream evicts the stream that
//! has been idle for the longest time, if that is longer than the idle timeout.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Client, Key},
    fair_share::{FairShare, MaxShare, Share},
};

/// The open streams of a server.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    shares: FairShare,
    idle_timeout: Duration,
    /// How long the client of an evicted stream may take to read its end.
    transfer_timeout: Duration,
    open: Arc<Mutex<Vec<Weak<Stream>>>>,
}

#[derive(Debug)]
struct Stream {
    state: Mutex<State>,
    eviction: Eviction,
    /// The client of its connection, if it is known.
    connection: Option<Client>,
    /// Cancelled when the stream has ended.
    ended: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// Requests in progress.
    in_progress: usize,
    /// When the last request was answered, or the stream began.
    since: Instant,
    /// Released when the stream ends or is evicted.
    share: Option<Share>,
}

/// Tells a stream that it is evicted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Eviction {
    token: CancellationToken,
    idle: Arc<OnceLock<Duration>>,
}

impl Eviction {
    /// Waits for the eviction. Returns for how long the stream was idle.
    pub(crate) async fn wait(&self) -> Duration {
        self.token.cancelled().await;
        self.idle.get().copied().unwrap_or_default()
    }

    fn start(&self, idle: Duration) {
        // A stream is evicted only once.
        let _ = self.idle.set(idle);
        self.token.cancel();
    }
}

/// An open stream. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Stream>);

/// A request of a stream in progress. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct InProgress(Arc<Stream>);

impl Streams {
    pub(crate) fn new(most: usize, idle_timeout: Duration, transfer_timeout: Duration) -> Self {
        Self {
            shares: FairShare::new(most, MaxShare::FOUR_FIFTHS),
            idle_timeout,
            transfer_timeout,
            open: Arc::default(),
        }
    }

    /// Opens a stream, or returns `None` if this client may open no more and no idle stream can be evicted for it.
    pub(crate) fn open(&self, client: &Key, connection: Option<Client>, now: Instant) -> Option<OpenStream> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| stream.strong_count() > 0);
        let share = self.shares.take(client, 1);
        let share = share.or_else(|| self.evict(&open, client, now))?;
        let stream = Arc::new(Stream {
            state: Mutex::new(State {
                in_progress: 0,
                since: now,
                share: Some(share),
            }),
            eviction: Eviction::default(),
            connection,
            ended: CancellationToken::new(),
        });
        open.push(Arc::downgrade(&stream));
        Some(OpenStream(stream))
    }

    /// Evicts the stream that has been idle for the longest time, of those whose share this client may have. Returns that share.
    fn evict(&self, open: &[Weak<Stream>], client: &Key, now: Instant) -> Option<Share> {
        let (idle, stream) = open
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|stream| Some((stream.idle(&self.shares, client, now)?, stream)))
            .filter(|(idle, _)| *idle >= self.idle_timeout)
            .max_by_key(|(idle, _)| *idle)?;
        // A request may have arrived just now. It is still answered before the stream ends.
        let share = stream.state().share.take()?;
        stream.eviction.start(idle);
        self.bound_end(&stream);
        if share.client() == client {
            return Some(share);
        }
        drop(share);
        self.shares.take(client, 1)
    }

    /// Closes the connection of an evicted stream if its client does not read the end of the stream in time. The stream does not
    /// count any more, so it must not stay.
    fn bound_end(&self, stream: &Stream) {
        let Some(client) = stream.connection.clone() else {
            return;
        };
        let (ended, within) = (stream.ended.clone(), self.transfer_timeout);
        tokio::spawn(async move {
            if tokio::time::timeout(within, ended.cancelled()).await.is_err() {
                tracing::warn!(%client, "closed: the client did not read the end of an idle stream within {within:?}");
                client.cut.cancel();
            }
        });
    }
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long the stream has been idle, if evicting it would let this client open a stream.
    fn idle(&self, shares: &FairShare, client: &Key, now: Instant) -> Option<Duration> {
        let state = self.state();
        let share = state.share.as_ref().filter(|_| state.in_progress == 0)?;
        // A client may always replace a stream of its own.
        let is_of_use = share.client() == client || shares.could_take(client, 1, share);
        is_of_use.then(|| now.duration_since(state.since))
    }
}

impl OpenStream {
    /// Signals the eviction of the stream.
    pub(crate) fn eviction(&self) -> &Eviction {
        &self.0.eviction
    }

    /// Counts a request that has arrived.
    pub(crate) fn begin(&self) -> InProgress {
        self.0.state().in_progress += 1;
        InProgress(Arc::clone(&self.0))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_progress -= 1;
        state.since = Instant::now();
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.state().share = None;
        self.0.ended.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn client(name: &str) -> Key {
        Key::Principal(Arc::from(name))
    }

    fn streams(most: usize) -> Streams {
        Streams::new(most, MINUTE, Duration::from_secs(10))
    }

    fn is_evicted(open: &OpenStream) -> bool {
        open.eviction().token.is_cancelled()
    }

    #[test]
    fn the_stream_that_is_idle_for_the_longest_time_is_evicted() {
        let (streams, start) = (streams(3), Instant::now());
        let names = ["first", "second", "third"];
        let open: Vec<_> = (0..)
            .zip(names)
            .map(|(second, name)| {
                let now = start + Duration::from_secs(second);
                streams.open(&client(name), None, now).expect("there is room")
            })
            .collect();
        // As if the first stream had the latest request.
        open[0].0.state().since = start + Duration::from_secs(30);
        let new = client("new");
        assert!(
            streams.open(&new, None, start + MINUTE).is_none(),
            "no stream has been idle for longer than a minute"
        );
        let newest = streams.open(&new, None, start + MINUTE + Duration::from_secs(5));
        assert_eq!(
            open.iter().map(is_evicted).collect::<Vec<_>>(),
            [false, true, false]
        );
        let idle = open[1].eviction().idle.get();
        assert_eq!(idle, Some(&(MINUTE + Duration::from_secs(4))));
        assert_eq!(streams.shares.taken(), 3);
        drop((open, newest));
        assert_eq!(streams.shares.taken(), 0);
    }

    #[test]
    fn a_stream_is_not_evicted_below_the_limit_or_while_it_has_requests() {
        let (streams, start) = (streams(2), Instant::now());
        let idle = streams.open(&client("idle"), None, start).expect("there is room");
        let later = start + 100 * MINUTE;
        let asked = streams
            .open(&client("asked"), None, later)
            .expect("there is room");
        assert!(!is_evicted(&idle), "there was room");
        let request = asked.begin();
        drop(idle);
        let much_later = later + 100 * MINUTE;
        let _second = streams
            .open(&client("second"), None, much_later)
            .expect("there is room");
        let refused = streams.open(&client("new"), None, much_later + MINUTE / 2);
        assert!(
            refused.is_none(),
            "one stream has a request in progress, the other is not idle for long"
        );
        let before = Instant::now();
        drop(request);
        assert!(asked.0.state().since >= before, "the stream is idle from now on");
    }

    #[test]
    fn no_stream_is_evicted_for_a_client_that_may_have_no_more() {
        let (streams, start) = (streams(5), Instant::now());
        let open = |name: &str, now| streams.open(&client(name), None, now);
        let noisy: Vec<_> = (0..4)
            .map(|_| open("noisy", start).expect("there is room"))
            .collect();
        let requests: Vec<_> = noisy.iter().map(OpenStream::begin).collect();
        let quiet = open("quiet", start).expect("there is room");
        let later = start + 2 * MINUTE;
        assert!(
            open("noisy", later).is_none(),
            "the client has as many as it may have"
        );
        assert!(
            !is_evicted(&quiet),
            "evicting it would not let the noisy client open a stream"
        );
        drop(requests);
        let fifth = open("noisy", later + 2 * MINUTE).expect("one of its own streams is evicted");
        assert!(!is_evicted(&quiet));
        assert_eq!(noisy.iter().filter(|open| is_evicted(open)).count(), 1);
        drop(fifth);
    }
}
