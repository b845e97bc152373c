//! How much memory an answer takes, and from when on it is held.
//!
//! A request that names its buckets by digest has a few hundred bytes, and its answer may have a hundred megabytes. So memory is held for
//! what follows from a request too: before the answer is made for the most that it may be, and then, until it is read, for what it
//! is.

use nodewise_planner::snapshot::{Deviation, Snapshot};
use nodewise_proto::v1;
use prost::Message as _;

use crate::refusal::Refusal;

/// What planning or explaining takes for each node and pod, beside what the cache holds: names and uids that are looked up, which ones
/// are of note, in what order, what is decided of them. Measured for pods on nodes that are missing, of a workload that nothing is
/// remembered of, and rounded up. At rest it takes next to nothing.
const WORK: usize = 320;
/// What an action takes: as the planner has it, as a message, and as bytes. Real names are shorter than what this allows for.
const ACTION: usize = 2 << 10;
/// What a list of explanations grows by before memory for it is held.
const STEP: usize = 1 << 20;

/// Who waits for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// Whether nobody waits any more. Asked now and then.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Holds memory in place of what was held before. An error when the caller may not have so much.
    pub(crate) hold: &'a dyn Fn(Needs) -> Result<(), Refusal>,
}

/// Bytes of memory that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// So many bytes in all. They include the memory that the request holds already.
    Within(usize),
    /// So many bytes on top of those that the request holds: its buckets are given by digest.
    Besides(usize),
    /// So many, and the request is gone.
    Alone(usize),
}

impl Needs {
    /// Those of a request that may give buckets by digest.
    pub(crate) fn of(by_digest: bool) -> fn(usize) -> Self {
        if by_digest { Self::Besides } else { Self::Within }
    }
}

impl<'a> Caller<'a> {
    /// One who looks after the memory by itself.
    pub(crate) fn unbounded(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            stop,
            hold: &|_| Ok(()),
        }
    }
}

/// What explaining a snapshot takes beside it and the answer: what planning takes, and where to find what is decided of each node.
pub(crate) fn work_of_explanation(snapshot: &Snapshot) -> usize {
    let (nodes, pods) = counts(snapshot);
    WORK.saturating_mul(nodes + pods)
}

/// What planning for a snapshot takes beside it, and the answer.
pub(crate) fn most_of_plan(snapshot: &Snapshot) -> usize {
    let (nodes, pods) = counts(snapshot);
    let options = &snapshot.options;
    let within = |count: usize| count.min(options.burst);
    let events = if options.deviates(Deviation::DecideAfterCut) {
        within(pods)
    } else {
        pods
    };
    let claims = (pods + snapshot.revisions.len()).min(options.claims_per_plan());
    let actions = within(nodes) + within(pods) + events + claims;
    WORK.saturating_mul(nodes + pods)
        .saturating_add(ACTION.saturating_mul(actions))
}

fn counts(snapshot: &Snapshot) -> (usize, usize) {
    let buckets = snapshot.buckets.iter();
    buckets.fold((0, 0), |(nodes, pods), bucket| {
        (nodes + bucket.nodes.len(), pods + bucket.pods.len())
    })
}

/// What a plan takes until it is sent: the message, and its bytes.
pub(crate) fn plan(plan: &v1::Plan) -> usize {
    let parts = plan.actions().count() * (size_of::<v1::Action>() + size_of::<v1::ExpectedCreate>());
    2 * plan.encoded_len() + parts
}

/// What an explanation takes besides itself and its bytes: its texts and lists, with the room that they have left.
fn besides(node: &v1::NodeExplanation) -> usize {
    let pods = node.pods.iter().map(|pod| &pod.pod_name);
    let texts = [&node.node_name, &node.message].into_iter().chain(&node.details);
    let texts = texts.chain(pods).map(String::capacity).sum::<usize>();
    let lists = node.details.capacity() * size_of::<String>()
        + node.pods.capacity() * size_of::<v1::PodExplanation>();
    texts + lists
}

/// The explanations of nodes, for which memory is held as they become more.
pub(crate) struct Explanations<'a> {
    caller: Caller<'a>,
    needs: fn(usize) -> Needs,
    /// What explaining takes besides.
    work: usize,
    response: v1::ExplainResponse,
    taken: usize,
    held: usize,
    refused: Option<Refusal>,
}

impl<'a> Explanations<'a> {
    /// None yet.
    pub(crate) fn new(caller: Caller<'a>, needs: fn(usize) -> Needs, work: usize) -> Self {
        let mut explanations = Self {
            caller,
            needs,
            work,
            response: v1::ExplainResponse::default(),
            taken: 0,
            held: 0,
            refused: None,
        };
        explanations.hold();
        explanations
    }

    fn hold(&mut self) {
        self.held = self.taken + STEP;
        self.refused = (self.caller.hold)((self.needs)(self.work + self.held)).err();
    }

    /// One more, unless there is no memory.
    pub(crate) fn add(&mut self, node: v1::NodeExplanation) {
        if self.is_refused() {
            return;
        }
        // The list grows as it is filled: for a moment there are the new one, twice too large, and the old one.
        self.taken += node.encoded_len() + besides(&node) + 3 * size_of::<v1::NodeExplanation>();
        self.response.nodes.push(node);
        if self.taken > self.held {
            self.hold();
        }
    }

    /// Whether there is no memory for more.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// All of them, once what they were made from is gone. `None`: they are not complete.
    pub(crate) fn finish(self, complete: Option<()>) -> Result<v1::ExplainResponse, Refusal> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        complete.ok_or(Refusal::Stopped)?;
        (self.caller.hold)(Needs::Alone(self.taken))?;
        Ok(self.response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_takes_the_room_that_its_texts_and_lists_have_left() {
        let text = |room| {
            let mut text = String::with_capacity(room);
            text.push('x');
            text
        };
        let mut details = Vec::with_capacity(10);
        details.push(text(1_000));
        let mut pods = Vec::with_capacity(5);
        pods.push(v1::PodExplanation {
            pod_name: text(100_000),
            ..Default::default()
        });
        let node = v1::NodeExplanation {
            node_name: text(100),
            message: text(10_000),
            details,
            pods,
            ..Default::default()
        };
        let lists = 10 * size_of::<String>() + 5 * size_of::<v1::PodExplanation>();
        assert_eq!(besides(&node), 111_100 + lists);
    }
}
