//! The memory that planning and responses take.
//!
//! A request that sends its buckets as digests has a few hundred bytes, but its response may have a hundred megabytes. So the
//! server also holds memory for the work and the response: the most that they may take while it plans, and the real size of the
//! response until the client has read it.

use nodewise_planner::snapshot::{Bucket, ControllerRef, Deviation, PodView};
use nodewise_proto::v1;
use prost::Message as _;
use serde_json::Value;

use crate::{refusal::Refusal, render, workload::AnySnapshot};

/// Bytes that planning or explaining takes for each node and pod, besides the cached buckets: lookup tables of names and uids, and
/// the decisions. Measured in the worst case and rounded up: pods on missing nodes, without results of earlier plans. A settled
/// workload takes next to nothing.
const WORK: usize = 320;
/// Bytes of an action: in the planner's form, as a message, and encoded. Real names are shorter than this allows for.
const ACTION: usize = 2 << 10;
/// Bytes of an object of the simulated cluster: as JSON in memory, in the planner's form, and in the history of changes. It includes
/// `SHORT` bytes of labels and of the controller.
const PLAYED: usize = 8 << 10;
/// How often each label of a played pod exists at a time, since the pods of the simulated cluster share no memory.
const COPIES: usize = 6;
/// Bytes that a label takes as JSON in memory, besides its text.
const LABEL: usize = 96;
/// Bytes of the labels and the controller of most pods.
const SHORT: usize = 1 << 10;
/// Bytes by which the list of explanations may grow before more memory is held for it.
const STEP: usize = 1 << 20;

/// How a request is processed: when to stop, and how to hold memory.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// Whether the caller has stopped waiting. Polled now and then.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Changes the memory that is held for the call. An error if the caller may not have that much.
    pub(crate) hold: &'a dyn Fn(Needs) -> Result<(), Refusal>,
}

/// Bytes of memory that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Bytes in total. They include the memory that is held for the request.
    Within(usize),
    /// Bytes on top of those that are held for the request: its buckets are given by digest.
    Besides(usize),
    /// Bytes of the response only: the request has been dropped.
    Alone(usize),
}

impl Needs {
    /// The variant for a request whose buckets are, or are not, given by digest.
    pub(crate) fn of(by_digest: bool) -> fn(usize) -> Self {
        if by_digest { Self::Besides } else { Self::Within }
    }
}

impl<'a> Caller<'a> {
    /// A caller whose memory is not bounded here.
    pub(crate) fn unbounded(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            stop,
            hold: &|_| Ok(()),
        }
    }
}

/// Bytes that explaining a snapshot takes, besides the snapshot and the response; for another kind than DaemonSet, with the response.
pub(crate) fn explanation_work(snapshot: &AnySnapshot) -> usize {
    let (nodes, pods) = counts(snapshot.buckets());
    let response = match snapshot {
        AnySnapshot::DaemonSet(_) => 0,
        AnySnapshot::ReplicaSet(_) => ACTION.saturating_mul(pods.min(render::MOST_PODS)),
        AnySnapshot::Deployment(_) => ACTION.saturating_mul(snapshot.revisions()),
    };
    WORK.saturating_mul(nodes + pods).saturating_add(response)
}

/// The most bytes that planning for a snapshot takes, the plan included, besides the snapshot.
pub(crate) fn plan_bound(snapshot: &AnySnapshot) -> usize {
    let (nodes, pods) = counts(snapshot.buckets());
    let (options, sets) = (snapshot.options(), snapshot.revisions());
    let within = |count: usize| count.min(options.burst);
    let creates = match snapshot {
        AnySnapshot::DaemonSet(_) => within(nodes),
        AnySnapshot::ReplicaSet(_) => options.burst,
        AnySnapshot::Deployment(_) => sets + 1,
    };
    let events = if options.deviates(Deviation::DecideAfterCut) {
        within(pods)
    } else {
        pods
    };
    let claims = (pods + sets).min(options.claims_per_plan());
    let actions = creates + within(pods) + events + claims;
    WORK.saturating_mul(nodes + pods)
        .saturating_add(ACTION.saturating_mul(actions))
}

/// Bytes that playing a snapshot takes, besides the snapshot: each node and each pod is an object of the simulated cluster, and each
/// of them may get another pod, of any template.
pub(crate) fn play_bound(snapshot: &AnySnapshot) -> usize {
    let (nodes, pods) = counts(snapshot.buckets());
    let created = snapshot.replicas().saturating_add(nodes).saturating_mul(2);
    let objects = nodes.saturating_add(pods).saturating_add(created);
    let new_pod = snapshot
        .templates()
        .map(|template| long(template_metadata(&template)))
        .max();
    let present = snapshot.buckets().iter().flat_map(|bucket| bucket.pods.iter());
    let copied = present
        .map(|pod| long(pod_metadata(pod)))
        .fold(0, usize::saturating_add)
        .saturating_add(created.saturating_mul(new_pod.unwrap_or_default()));
    PLAYED
        .saturating_mul(objects)
        .saturating_add(COPIES.saturating_mul(copied))
        .saturating_add(plan_bound(snapshot))
}

/// The part of the labels and the controller of a pod that `PLAYED` does not include.
fn long(bytes: usize) -> usize {
    bytes.saturating_sub(SHORT)
}

/// Bytes of the labels and the controller of a pod.
fn pod_metadata(pod: PodView<'_>) -> usize {
    let controller = pod.controller().map_or(0, ControllerRef::bytes);
    controller + pod.labels().bytes() + LABEL * pod.labels().len()
}

/// Bytes of the labels of the pods of a template.
fn template_metadata(template: &Value) -> usize {
    let labels = template["metadata"]["labels"].as_object().into_iter().flatten();
    labels
        .map(|(key, value)| LABEL + key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

fn counts(buckets: &[Bucket]) -> (usize, usize) {
    buckets.iter().fold((0, 0), |(nodes, pods), bucket| {
        (nodes + bucket.nodes.len(), pods + bucket.pods.len())
    })
}

/// Bytes that a plan takes until it is sent: the message and its encoded form.
pub(crate) fn plan(plan: &v1::Plan) -> usize {
    let parts = plan.actions().count() * (size_of::<v1::Action>() + size_of::<v1::ExpectedCreate>());
    2 * plan.encoded_len() + parts
}

/// Bytes on the heap that an explanation takes: its strings and lists, with their spare capacity.
fn besides(node: &v1::NodeExplanation) -> usize {
    let pods = node.pods.iter().map(|pod| &pod.pod_name);
    let texts = [&node.node_name, &node.message].into_iter().chain(&node.details);
    let texts = texts.chain(pods).map(String::capacity).sum::<usize>();
    let lists = node.details.capacity() * size_of::<String>()
        + node.pods.capacity() * size_of::<v1::PodExplanation>();
    texts + lists
}

/// A growing list of explanations. More memory is held as it grows.
pub(crate) struct Explanations<'a> {
    caller: Caller<'a>,
    needs: fn(usize) -> Needs,
    /// Bytes that explaining takes besides the response.
    work: usize,
    response: v1::ExplainResponse,
    taken: usize,
    held: usize,
    refused: Option<Refusal>,
}

impl<'a> Explanations<'a> {
    /// An empty list, with memory held for the first explanations.
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

    /// Adds an explanation, unless memory was refused.
    pub(crate) fn add(&mut self, node: v1::NodeExplanation) {
        if self.is_refused() {
            return;
        }
        // While the list grows, its new buffer with twice the room and its old one exist at the same time.
        self.taken += node.encoded_len() + besides(&node) + 3 * size_of::<v1::NodeExplanation>();
        self.response.nodes.push(node);
        if self.taken > self.held {
            self.hold();
        }
    }

    /// Whether memory was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The response. To be called once the snapshot has been dropped. `complete` is `None` if the planner was stopped.
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
    fn spare_capacity_of_an_explanation_counts() {
        let text = |capacity| {
            let mut text = String::with_capacity(capacity);
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
