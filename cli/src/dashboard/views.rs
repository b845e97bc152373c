//! Which views of callers there are, and which tokens were refused. Knows no cluster.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use nodewise_dashboard::{Problem, Reason, Source};
use tokio_util::sync::CancellationToken;

/// A view ends after so long without a stream or a request.
const IDLE: Duration = Duration::from_mins(5);
/// The most views at a time. Each has watches on the apiserver, and objects in memory.
pub(super) const MAX_VIEWS: usize = 64;
/// The most views of one token, each of other namespaces.
const MAX_VIEWS_OF_TOKEN: usize = 4;
/// A view that has ended by itself, as without a right, is kept for so long. Until then a request for it sees why, and begins no new one.
const ENDED: Duration = Duration::from_secs(10);
/// A refused token is not checked again for so long.
const REFUSED: Duration = Duration::from_mins(1);
/// The most refused tokens that are remembered.
const MAX_REFUSED: usize = 1_024;

/// The digest of a token. The token itself is only in the client.
pub(super) type Digest = [u8; 32];

/// What a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) token: Digest,
    /// Sorted. Empty: all.
    pub(super) namespaces: Vec<String>,
}

/// A view of a cluster, and what belongs to the token of its caller.
pub(super) struct View<T> {
    pub(super) source: Arc<dyn Source>,
    pub(super) caller: T,
    /// Ends the watches.
    pub(super) end: CancellationToken,
    /// When the watches have ended.
    pub(super) ended: Arc<OnceLock<Instant>>,
    pub(super) used: Instant,
}

/// The views of all callers.
pub(super) struct Views<T> {
    views: HashMap<Asked, View<T>>,
    /// When a token was refused.
    refused: HashMap<Digest, Instant>,
}

impl<T> Default for Views<T> {
    fn default() -> Self {
        Self {
            views: HashMap::new(),
            refused: HashMap::new(),
        }
    }
}

impl<T: Clone> Views<T> {
    /// The view of a caller, if there is one. One that has ended a while ago goes, so that a new one can begin.
    pub(super) fn find(&mut self, asked: &Asked, now: Instant) -> Option<Arc<dyn Source>> {
        let view = self.views.get_mut(asked)?;
        let ended = view.ended.get();
        if ended.is_some_and(|ended| now.saturating_duration_since(*ended) >= ENDED) {
            self.remove(asked);
            return None;
        }
        view.used = now;
        Some(Arc::clone(&view.source))
    }

    /// What belongs to a token that has a view.
    pub(super) fn caller(&self, token: &Digest) -> Option<T> {
        let mut views = self.views.iter();
        let found = views.find(|(asked, _)| asked.token == *token);
        found.map(|(_, view)| view.caller.clone())
    }

    /// Makes room for one more view of a token. If the token has as many as it may, the oldest goes that nobody reads.
    ///
    /// # Errors
    /// There are too many views.
    pub(super) fn make_room(&mut self, token: &Digest) -> Result<(), Problem> {
        let own = self.views.iter().filter(|(asked, _)| asked.token == *token);
        if own.clone().count() >= MAX_VIEWS_OF_TOKEN {
            let unread = own.filter(|(_, view)| !view.is_read());
            let oldest = unread.min_by_key(|(_, view)| view.used);
            let Some(oldest) = oldest.map(|(asked, _)| asked.clone()) else {
                let message = format!(
                    "this token is used for {MAX_VIEWS_OF_TOKEN} lists of namespaces already; close a tab"
                );
                return Err(Problem::new(Reason::Unavailable, message));
            };
            self.remove(&oldest);
        }
        if self.views.len() >= MAX_VIEWS {
            let message = format!("there are {MAX_VIEWS} callers already; try again later");
            return Err(Problem::new(Reason::Unavailable, message));
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, asked: Asked, view: View<T>) {
        self.views.insert(asked, view);
    }

    /// Ends the views that nobody has used for a while.
    pub(super) fn remove_idle(&mut self, now: Instant) {
        let is_idle = |view: &View<T>| !view.is_read() && now.saturating_duration_since(view.used) >= IDLE;
        for (_, view) in self.views.extract_if(|_, view| is_idle(view)) {
            view.close();
        }
    }

    /// The tokens that have views, each once, and what belongs to them.
    pub(super) fn callers(&self) -> HashMap<Digest, T> {
        let views = self.views.iter();
        views
            .map(|(asked, view)| (asked.token, view.caller.clone()))
            .collect()
    }

    /// Remembers that the cluster does not accept a token, and ends its views.
    pub(super) fn refuse(&mut self, token: Digest, now: Instant) {
        for (_, view) in self.views.extract_if(|asked, _| asked.token == token) {
            view.close();
        }
        if self.refused.len() >= MAX_REFUSED {
            self.refused
                .retain(|_, at| now.saturating_duration_since(*at) < REFUSED);
        }
        if self.refused.len() >= MAX_REFUSED {
            let oldest = self.refused.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(token, _)| *token) {
                self.refused.remove(&oldest);
            }
        }
        self.refused.insert(token, now);
    }

    /// Whether the cluster has refused a token a moment ago.
    pub(super) fn is_refused(&self, token: &Digest, now: Instant) -> bool {
        let at = self.refused.get(token);
        at.is_some_and(|at| now.saturating_duration_since(*at) < REFUSED)
    }

    fn remove(&mut self, asked: &Asked) {
        if let Some(view) = self.views.remove(asked) {
            view.close();
        }
    }
}

impl<T> View<T> {
    /// Whether a request or a stream has the source.
    fn is_read(&self) -> bool {
        Arc::strong_count(&self.source) > 1
    }

    fn close(self) {
        self.end.cancel();
        self.source.board().close();
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use nodewise_dashboard::{Board, Change, Comparison, Key};
    use serde_json::Value;
    use tokio::sync::mpsc;

    use super::*;

    /// A source that only has a board.
    #[derive(Default)]
    struct OnlyBoard(Board);

    impl Source for OnlyBoard {
        fn board(&self) -> &Board {
            &self.0
        }

        fn compare(
            &self,
            _: Key,
            _: Option<i64>,
            _: Option<i64>,
        ) -> BoxFuture<'_, Result<Comparison, Problem>> {
            unreachable!("nobody compares")
        }

        fn what_if(&self, _: Change, _: mpsc::Sender<Value>) -> BoxFuture<'_, Result<(), Problem>> {
            unreachable!("nobody plays")
        }
    }

    fn digest(number: usize) -> Digest {
        let mut digest = Digest::default();
        digest[..8].copy_from_slice(&number.to_be_bytes());
        digest
    }

    fn asked(token: usize, namespaces: &[&str]) -> Asked {
        Asked {
            token: digest(token),
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Adds a view, and returns what tells whether it has ended.
    fn add(views: &mut Views<()>, asked: Asked, now: Instant) -> (CancellationToken, Arc<OnceLock<Instant>>) {
        let view = View {
            source: Arc::new(OnlyBoard::default()),
            caller: (),
            end: CancellationToken::new(),
            ended: Arc::default(),
            used: now,
        };
        let added = (view.end.clone(), Arc::clone(&view.ended));
        views.insert(asked, view);
        added
    }

    #[test]
    fn a_view_is_of_a_token_and_of_namespaces() {
        let (mut views, now) = (Views::default(), Instant::now());
        add(&mut views, asked(1, &["shop"]), now);
        assert!(views.find(&asked(1, &["shop"]), now).is_some());
        for other in [asked(1, &[]), asked(1, &["payments"]), asked(2, &["shop"])] {
            assert!(views.find(&other, now).is_none(), "{other:?}");
        }
        assert!(views.caller(&digest(1)).is_some());
        assert!(views.caller(&digest(2)).is_none());
    }

    #[test]
    fn views_are_few() {
        let (mut views, now) = (Views::default(), Instant::now());
        for token in 0..MAX_VIEWS {
            views.make_room(&digest(token)).expect("there is room");
            add(&mut views, asked(token, &[]), now);
        }
        let problem = views.make_room(&digest(MAX_VIEWS)).expect_err("there is no room");
        assert_eq!(problem.reason, Reason::Unavailable);
        assert!(problem.message.contains("64 callers already"), "{problem:?}");
    }

    #[test]
    fn a_token_has_few_views() {
        let (mut views, begin) = (Views::default(), Instant::now());
        let names = ["a", "b", "c", "d"];
        let mut ends = Vec::new();
        for (name, second) in names.iter().zip(0..) {
            views.make_room(&digest(1)).expect("there is room");
            ends.push(add(&mut views, asked(1, &[name]), begin + Duration::from_secs(second)).0);
        }
        let later = begin + Duration::from_secs(10);
        let read = views.find(&asked(1, &["a"]), later);
        views.make_room(&digest(1)).expect("one goes");
        let ended: Vec<bool> = ends.iter().map(CancellationToken::is_cancelled).collect();
        assert_eq!(ended, [false, true, false, false], "the oldest that nobody reads");
        add(&mut views, asked(1, &["e"]), later);
        let all_read: Vec<_> = ["c", "d", "e"]
            .map(|name| views.find(&asked(1, &[name]), later))
            .into();
        let problem = views.make_room(&digest(1)).expect_err("all are read");
        assert!(problem.message.contains("4 lists of namespaces"), "{problem:?}");
        assert!(read.is_some() && all_read.iter().all(Option::is_some));
    }

    #[test]
    fn views_that_nobody_uses_end() {
        let (mut views, begin) = (Views::default(), Instant::now());
        let (end, _) = add(&mut views, asked(1, &[]), begin);
        let (read_end, _) = add(&mut views, asked(2, &[]), begin);
        let stream = views.find(&asked(2, &[]), begin);
        let used = begin + Duration::from_mins(3);
        let almost = IDLE.saturating_sub(Duration::from_secs(1));
        assert!(views.find(&asked(1, &[]), used).is_some());
        views.remove_idle(used + almost);
        assert!(!end.is_cancelled());
        views.remove_idle(used + IDLE);
        assert!(end.is_cancelled());
        assert!(!read_end.is_cancelled(), "somebody reads it");
        drop(stream);
        views.remove_idle(used + IDLE);
        assert!(read_end.is_cancelled());
        assert!(views.callers().is_empty());
    }

    #[test]
    fn a_view_that_has_ended_makes_place_for_a_new_one_after_a_while() {
        let (mut views, begin) = (Views::default(), Instant::now());
        let (end, ended) = add(&mut views, asked(1, &[]), begin);
        ended.set(begin).expect("it ends once");
        let soon = begin + ENDED.saturating_sub(Duration::from_secs(1));
        assert!(views.find(&asked(1, &[]), soon).is_some(), "its board says why");
        assert!(views.find(&asked(1, &[]), begin + ENDED).is_none());
        assert!(end.is_cancelled());
    }

    #[test]
    fn refused_tokens_are_remembered_for_a_minute() {
        let (mut views, begin) = (Views::default(), Instant::now());
        let (end, _) = add(&mut views, asked(1, &["shop"]), begin);
        let (other, _) = add(&mut views, asked(2, &[]), begin);
        assert!(!views.is_refused(&digest(1), begin));
        views.refuse(digest(1), begin);
        assert!(end.is_cancelled() && !other.is_cancelled());
        assert!(views.is_refused(&digest(1), begin + Duration::from_secs(59)));
        assert!(!views.is_refused(&digest(1), begin + REFUSED));
        let later = begin + Duration::from_secs(1);
        for token in 100..100 + MAX_REFUSED {
            views.refuse(digest(token), later);
        }
        assert_eq!(views.refused.len(), MAX_REFUSED);
        assert!(!views.is_refused(&digest(1), later), "the oldest is forgotten");
    }
}
