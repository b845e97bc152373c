//! What an executor asks about one DaemonSet at rest.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use nodewise_client::Digest;
use nodewise_proto::v1;

use crate::objects::{Caches, Cluster, digests};

/// Kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each with every bucket and its digest, for a server that knows nothing.
    Inline,
    /// Before each one a pod stops being ready, or is ready again; only its bucket is sent, everything else by digest.
    Changed,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Inline, Self::Changed];

    /// As tables have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "all inline",
            Self::Changed => "one pod changed",
        }
    }

    /// The flags of the server that is asked: one that is to know nothing keeps nothing.
    #[must_use]
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Inline => &["--bucket-cache-size", "0"],
            Self::Changed => &[],
        }
    }
}

/// A question, and the verdict that answers it.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is sent.
    pub request: v1::PlanRequest,
    /// What must come back.
    pub verdict: v1::Verdict,
}

/// An executor's caches, and what the server that it asks was sent.
#[derive(Debug)]
pub struct Questions {
    kind: Kind,
    caches: Caches,
    known: HashSet<Digest>,
    changes: usize,
}

impl Questions {
    /// Those about a DaemonSet on so many nodes.
    ///
    /// # Errors
    /// See [`Cluster::at_rest`].
    pub fn new(kind: Kind, nodes: usize) -> Result<Self> {
        Ok(Self {
            kind,
            caches: Caches::of(&Arc::new(Cluster::at_rest(nodes, 1)?))?,
            known: HashSet::new(),
            changes: 0,
        })
    }

    /// A server that was sent nothing is asked from now on.
    pub fn ask_another(&mut self) {
        self.known.clear();
    }

    /// The next question. The first to a server has everything inline, whatever their kind.
    ///
    /// # Errors
    /// See [`Caches::turn`].
    pub fn next_question(&mut self) -> Result<Question> {
        let mut ready = self.changes.is_multiple_of(2);
        if self.kind == Kind::Changed && !self.known.is_empty() {
            ready = !ready;
            let node = (self.changes / 2 * 7_919) % self.caches.nodes();
            self.changes += 1;
            self.caches.turn(0, node, ready)?;
        }
        let request = self.caches.request(0, &|digest| self.known.contains(digest));
        if self.kind == Kind::Changed {
            self.known.extend(digests(&request));
        }
        let verdict = if ready {
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

    /// How many buckets have their content in the next questions, and what is to answer them.
    fn next(questions: &mut Questions) -> (usize, v1::Verdict) {
        let Question { request, verdict } = questions.next_question().expect("a question");
        let snapshot = request.snapshot.expect("a snapshot");
        let buckets = snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
        (buckets.filter(|bucket| bucket.data.is_some()).count(), verdict)
    }

    #[test]
    fn a_server_that_was_sent_nothing_gets_everything() -> Result<()> {
        let mut questions = Questions::new(Kind::Changed, 30)?;
        let (all, verdict) = next(&mut questions);
        assert!(all > 1 && verdict == v1::Verdict::Noop);
        assert_eq!(next(&mut questions), (1, v1::Verdict::Apply));
        questions.ask_another();
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
