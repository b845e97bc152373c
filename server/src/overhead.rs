//! Answers which DaemonSets would run on nodes that need not exist, and what their pods request there.

use nodewise_planner::daemonset::overhead::{self, Evaluations, Sums};
use nodewise_proto::v1;
use nodewise_telemetry::traces::{count, step};
use prost::Message as _;

use crate::{
    engine::Engine,
    parse::overhead::{self as parse, Evaluation},
    refusal::Refusal,
    render,
    response_memory::{Caller, Needs},
    steps,
};

/// Bytes that a node takes while the request is answered, besides the request.
const NODE: usize = 128;
/// Bytes that a decision takes for each node and DaemonSet: the table of all, and the distinct rows of it.
const DECISION: usize = 2 * size_of::<u32>();
/// Bytes of a decision with its explanation, for each byte of the explanation: the explanations are kept twice while they are made.
const EXPLANATION: usize = 8;
/// The most bytes of one explanation.
const LONGEST_EXPLANATION: usize = 16 << 10;
/// Bytes by which the response may grow before more memory is held for it.
const STEP: usize = 1 << 20;

impl Engine {
    /// Decides which DaemonSets would run on nodes that need not exist, and sums up what their pods request. `stop` as for
    /// [`Engine::plan`].
    pub fn evaluate_nodes(
        &self,
        request: v1::EvaluateNodesRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::EvaluateNodesResponse, Refusal> {
        self.evaluate_nodes_for(request, Caller::unbounded(stop))
    }

    /// Like [`Engine::evaluate_nodes`], for a caller whose memory is bounded.
    pub(crate) fn evaluate_nodes_for(
        &self,
        request: v1::EvaluateNodesRequest,
        caller: Caller<'_>,
    ) -> Result<v1::EvaluateNodesResponse, Refusal> {
        let parsed = step(steps::PARSE, || {
            parse::evaluate_nodes(request, self.context(caller.stop))
        })?;
        count("nodewise.nodes", parsed.nodes.len());
        let work = work(&parsed);
        (caller.hold)(Needs::Besides(work))?;
        let evaluations = step(steps::DECIDE, || {
            let (candidates, operators) = (&parsed.candidates, parsed.comparison_operators);
            overhead::evaluate(candidates, &parsed.nodes, operators, caller.stop)
        });
        let evaluations = evaluations.ok_or(Refusal::Stopped)?;
        let response = step(steps::RENDER, || respond(parsed, evaluations, work, caller))?;
        (caller.hold)(Needs::Alone(2 * response.encoded_len() + heap(&response)))?;
        Ok(response)
    }
}

/// Bytes that the decisions take, besides the request.
fn work(parsed: &Evaluation) -> usize {
    let nodes = parsed.nodes.len();
    let decisions = nodes.saturating_mul(parsed.candidates.len());
    let explanations = overhead::most_text(&parsed.nodes).min(decisions.saturating_mul(LONGEST_EXPLANATION));
    NODE * nodes + DECISION * decisions + EXPLANATION * explanations
}

fn respond(
    parsed: Evaluation,
    evaluations: Evaluations,
    work: usize,
    caller: Caller<'_>,
) -> Result<v1::EvaluateNodesResponse, Refusal> {
    let sums = Sums::new(&parsed.requests);
    let mut response = v1::EvaluateNodesResponse {
        node_evaluations: evaluations.of_node,
        ..Default::default()
    };
    let (mut taken, mut held) = (0, 0);
    for row in evaluations.distinct {
        if (caller.stop)() {
            return Err(Refusal::Stopped);
        }
        let sum = sums.of(row.iter().map(|index| &evaluations.decisions[*index as usize]));
        let evaluation = render::evaluation(row, sum);
        taken += evaluation.encoded_len() + heap_of_evaluation(&evaluation);
        response.evaluations.push(evaluation);
        if taken > held {
            held = taken + STEP;
            (caller.hold)(Needs::Besides(work + held))?;
        }
    }
    response.decisions = evaluations.decisions.into_iter().map(render::decision).collect();
    let daemon_sets = parsed.daemon_sets.into_iter().zip(parsed.requests);
    response.daemon_sets = daemon_sets
        .map(|(about, requests)| render::daemon_set_overhead(about, requests))
        .collect();
    Ok(response)
}

/// Bytes on the heap that a response takes.
fn heap(response: &v1::EvaluateNodesResponse) -> usize {
    let evaluations = response.evaluations.iter().map(heap_of_evaluation).sum::<usize>();
    let text = |texts: &[String]| {
        texts
            .iter()
            .map(|text| text.capacity() + size_of::<String>())
            .sum::<usize>()
    };
    let decisions = response
        .decisions
        .iter()
        .map(|decision| size_of_val(decision) + decision.message.capacity() + text(&decision.missing_labels));
    let sets = response.daemon_sets.iter().map(|set| {
        let texts = set.namespace.capacity() + set.name.capacity() + set.error.capacity();
        size_of_val(set) + texts + text(&set.notes) + heap_of_quantities(&set.requests)
    });
    evaluations + decisions.sum::<usize>() + sets.sum::<usize>() + response.node_evaluations.len() * 4
}

fn heap_of_evaluation(evaluation: &v1::NodeEvaluation) -> usize {
    2 * size_of_val(evaluation) + evaluation.decisions.len() * 4 + heap_of_quantities(&evaluation.requests)
}

fn heap_of_quantities(quantities: &[v1::ResourceQuantity]) -> usize {
    let each = |one: &v1::ResourceQuantity| size_of_val(one) + one.name.capacity() + one.quantity.capacity();
    quantities.iter().map(each).sum()
}
