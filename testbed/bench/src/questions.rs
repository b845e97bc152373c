//! The plan requests of an executor about one settled workload.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use nodewise_client::Digest;
use nodewise_client::Receiver;
use nodewise_proto::v1;

use crate::objects::{Caches, Cluster, ReplicaSetCaches, Settled, digests};

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All buckets inline, with their digests, for a server without cache.
    Inline,
    /// A pod becomes unready or ready before each request. Only its bucket is sent inline, the others by digest.
    Changed,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Inline, Self::Changed];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "all inline",
            Self::Changed => "one pod changed",
        }
    }

    /// The flags of the server: `Inline` needs a server that caches nothing.
    #[must_use]
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Inline => &["--bucket-cache-size", "0"],
            Self::Changed => &[],
        }
    }
}

/// A request with the expected verdict.
#[derive(Clone, Debug)]
pub struct Question {
    /// The request.
    pub request: v1::PlanRequest,
    /// The expected verdict.
    pub verdict: v1::Verdict,
}

/// The caches of an executor, and the buckets that the server has.
pub struct Questions {
    kind: Kind,
    caches: Box<dyn Settled + Send>,
    known: HashSet<Digest>,
    changes: usize,
}

impl Questions {
    /// Requests about a DaemonSet on `nodes` nodes.
    ///
    /// # Errors
    /// See [`Cluster::settled`].
    pub fn new(kind: Kind, nodes: usize) -> Result<Self> {
        Ok(Self::of(
            kind,
            Caches::of(&Arc::new(Cluster::settled(nodes, 1)?))?,
        ))
    }

    /// Requests about a ReplicaSet of `pods` pods.
    ///
    /// # Errors
    /// See [`ReplicaSetCaches::settled`].
    pub fn about_replica_set(kind: Kind, pods: usize) -> Result<Self> {
        Ok(Self::of(kind, ReplicaSetCaches::settled(pods)?))
    }

    /// Requests about the workload of these caches.
    #[must_use]
    pub fn of(kind: Kind, caches: impl Settled + Send + 'static) -> Self {
        Self {
            kind,
            caches: Box::new(caches),
            known: HashSet::new(),
            changes: 0,
        }
    }

    /// The kind of the requests.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Requests of another kind from the same caches, for a new server.
    #[must_use]
    pub fn into_kind(self, kind: Kind) -> Self {
        Self {
            kind,
            known: HashSet::new(),
            changes: 0,
            ..self
        }
    }

    /// Forgets which buckets the server has, for use with a new server.
    pub fn forget_known_buckets(&mut self) {
        self.known.clear();
    }

    /// The next request. The first one to a server has all buckets inline, in both kinds.
    ///
    /// # Errors
    /// See [`Settled::set_ready`].
    pub fn next_question(&mut self) -> Result<Question> {
        let mut ready = self.changes.is_multiple_of(2);
        if self.kind == Kind::Changed && !self.known.is_empty() {
            ready = !ready;
            let pod = (self.changes / 2 * 7_919) % self.caches.pods();
            self.changes += 1;
            self.caches.set_ready(pod, ready)?;
        }
        let request = self
            .caches
            .request(&Receiver::new(&|digest| self.known.contains(digest)));
        if self.kind == Kind::Changed {
            self.known.extend(digests(&request));
        }
        let verdict = if ready && self.caches.is_at_rest() {
            v1::Verdict::Noop
        } else {
            v1::Verdict::Apply
        };
        Ok(Question { request, verdict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of inline buckets in the next request, and the expected verdict.
    fn next(questions: &mut Questions) -> (usize, v1::Verdict) {
        let Question { request, verdict } = questions.next_question().expect("a question");
        let snapshot = request.snapshot.expect("a snapshot");
        let buckets = snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
        (
            buckets.filter(|bucket| bucket.inline().is_some()).count(),
            verdict,
        )
    }

    #[test]
    fn first_request_has_all_buckets_inline() -> Result<()> {
        let mut questions = Questions::new(Kind::Changed, 30)?;
        let (all, verdict) = next(&mut questions);
        assert!(all > 1 && verdict == v1::Verdict::Noop);
        assert_eq!(next(&mut questions), (1, v1::Verdict::Apply));
        questions.forget_known_buckets();
        assert_eq!(
            next(&mut questions),
            (all, v1::Verdict::Apply),
            "the pod is still not ready"
        );
        assert_eq!(next(&mut questions), (1, v1::Verdict::Noop));
        let mut inline = Questions::new(Kind::Inline, 30)?;
        for _ in 0..2 {
            assert_eq!(next(&mut inline), (all, v1::Verdict::Noop));
        }
        Ok(())
    }
}
