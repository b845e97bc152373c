//! The streams that are open, and which of them makes room for a new one.
//!
//! A stream may be open for as long as its client wants, also when it asks nothing, as long as there is room for others. When there is
//! none, the one that has asked nothing for the longest time ends, if that is longer than the idle timeout.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Client, Key},
    fair_share::{Alone, FairShare, Share},
};

/// The streams of a server.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    room: FairShare,
    idle_timeout: Duration,
    /// How long a stream may take to end that makes room.
    transfer_timeout: Duration,
    open: Arc<Mutex<Vec<Weak<Stream>>>>,
}

#[derive(Debug)]
struct Stream {
    state: Mutex<State>,
    displaced: Displaced,
    /// Its connection, if that is known.
    connection: Option<Client>,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// Questions in work.
    in_work: usize,
    /// When the last question was answered, or the stream began.
    since: Instant,
    /// Given back when the stream ends, or makes room.
    place: Option<Share>,
}

/// Tells a stream that it makes room for another one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Displaced {
    token: CancellationToken,
    idle: Arc<OnceLock<Duration>>,
}

impl Displaced {
    /// Waits for that, and says how long the stream has asked nothing.
    pub(crate) async fn wait(&self) -> Duration {
        self.token.cancelled().await;
        self.idle.get().copied().unwrap_or_default()
    }

    fn tell(&self, idle: Duration) {
        // Only one new stream takes the place.
        let _ = self.idle.set(idle);
        self.token.cancel();
    }
}

/// A stream that is open, until this is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<Stream>);

/// A question of a stream that is in work, until this is dropped.
#[derive(Debug)]
pub(crate) struct InWork(Arc<Stream>);

impl Streams {
    pub(crate) fn new(most: usize, idle_timeout: Duration, transfer_timeout: Duration) -> Self {
        Self {
            room: FairShare::new(most, Alone::FOUR_FIFTHS),
            idle_timeout,
            transfer_timeout,
            open: Arc::default(),
        }
    }

    /// A place for one more stream, if there is one for this client, or an idle stream that makes room.
    pub(crate) fn open(&self, client: &Key, connection: Option<Client>, now: Instant) -> Option<Open> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| stream.strong_count() > 0);
        let place = self.room.take(client, 1);
        let place = place.or_else(|| self.make_room(&open, client, now))?;
        let stream = Arc::new(Stream {
            state: Mutex::new(State {
                in_work: 0,
                since: now,
                place: Some(place),
            }),
            displaced: Displaced::default(),
            connection,
            ended: CancellationToken::new(),
        });
        open.push(Arc::downgrade(&stream));
        Some(Open(stream))
    }

    /// Ends the stream that has been idle for the longest time, of those whose place this client may have, and gives that.
    fn make_room(&self, open: &[Weak<Stream>], client: &Key, now: Instant) -> Option<Share> {
        let (idle, stream) = open
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|stream| Some((stream.idle(&self.room, client, now)?, stream)))
            .filter(|(idle, _)| *idle >= self.idle_timeout)
            .max_by_key(|(idle, _)| *idle)?;
        // A question may have come just now; it is answered still, and the stream ends after it.
        let place = stream.state().place.take()?;
        stream.displaced.tell(idle);
        self.see_to_the_end(&stream);
        if place.client() == client {
            return Some(place);
        }
        drop(place);
        self.room.take(client, 1)
    }

    /// A client that does not take the end of its stream loses the connection: what the stream takes is not counted any more.
    fn see_to_the_end(&self, stream: &Stream) {
        let Some(client) = stream.connection.clone() else {
            return;
        };
        let (ended, within) = (stream.ended.clone(), self.transfer_timeout);
        tokio::spawn(async move {
            if tokio::time::timeout(within, ended.cancelled()).await.is_err() {
                tracing::warn!(%client, "cut off: it did not take the end of an idle stream for {within:?}");
                client.cut.cancel();
            }
        });
    }
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long it has asked nothing, if its place is of use to this client.
    fn idle(&self, room: &FairShare, client: &Key, now: Instant) -> Option<Duration> {
        let state = self.state();
        let place = state.place.as_ref().filter(|_| state.in_work == 0)?;
        // A client may have one stream in place of another, however many it has.
        let is_of_use = place.client() == client || room.could_take(client, 1, place);
        is_of_use.then(|| now.duration_since(state.since))
    }
}

impl Open {
    /// Tells when another stream has the place.
    pub(crate) fn displaced(&self) -> &Displaced {
        &self.0.displaced
    }

    /// A question has come.
    pub(crate) fn begin(&self) -> InWork {
        self.0.state().in_work += 1;
        InWork(Arc::clone(&self.0))
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_work -= 1;
        state.since = Instant::now();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.state().place = None;
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

    fn is_displaced(open: &Open) -> bool {
        open.displaced().token.is_cancelled()
    }

    #[test]
    fn the_stream_that_is_idle_for_the_longest_time_makes_room() {
        let (streams, start) = (streams(3), Instant::now());
        let names = ["first", "second", "third"];
        let open: Vec<_> = (0..)
            .zip(names)
            .map(|(second, name)| {
                let now = start + Duration::from_secs(second);
                streams.open(&client(name), None, now).expect("there is room")
            })
            .collect();
        // As if the first one had asked last, and had its answer.
        open[0].0.state().since = start + Duration::from_secs(30);
        let new = client("new");
        assert!(
            streams.open(&new, None, start + MINUTE).is_none(),
            "none is idle for a minute yet"
        );
        let newcomer = streams.open(&new, None, start + MINUTE + Duration::from_secs(5));
        assert_eq!(
            open.iter().map(is_displaced).collect::<Vec<_>>(),
            [false, true, false]
        );
        let idle = open[1].displaced().idle.get();
        assert_eq!(idle, Some(&(MINUTE + Duration::from_secs(4))));
        assert_eq!(streams.room.taken(), 3);
        drop((open, newcomer));
        assert_eq!(streams.room.taken(), 0);
    }

    #[test]
    fn streams_live_on_while_there_is_room_and_while_they_are_asked() {
        let (streams, start) = (streams(2), Instant::now());
        let idle = streams.open(&client("idle"), None, start).expect("there is room");
        let later = start + 100 * MINUTE;
        let asked = streams
            .open(&client("asked"), None, later)
            .expect("there is room");
        assert!(!is_displaced(&idle), "there was room");
        let question = asked.begin();
        drop(idle);
        let much_later = later + 100 * MINUTE;
        let _second = streams
            .open(&client("second"), None, much_later)
            .expect("there is room");
        let refused = streams.open(&client("new"), None, much_later + MINUTE / 2);
        assert!(
            refused.is_none(),
            "one has a question in work, the other is not idle for long"
        );
        let before = Instant::now();
        drop(question);
        assert!(asked.0.state().since >= before, "it is idle from now on");
    }

    #[test]
    fn no_stream_ends_in_vain() {
        let (streams, start) = (streams(5), Instant::now());
        let open = |name: &str, now| streams.open(&client(name), None, now);
        let noisy: Vec<_> = (0..4)
            .map(|_| open("noisy", start).expect("there is room"))
            .collect();
        let questions: Vec<_> = noisy.iter().map(Open::begin).collect();
        let quiet = open("quiet", start).expect("there is room");
        let later = start + 2 * MINUTE;
        assert!(open("noisy", later).is_none(), "it has as many as it may have");
        assert!(
            !is_displaced(&quiet),
            "its place would be of no use to the noisy one"
        );
        drop(questions);
        let fifth = open("noisy", later + 2 * MINUTE).expect("one of its own makes room");
        assert!(!is_displaced(&quiet));
        assert_eq!(noisy.iter().filter(|open| is_displaced(open)).count(), 1);
        drop(fifth);
    }
}
