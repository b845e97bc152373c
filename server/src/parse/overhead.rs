//! Parses a request about nodes that need not exist.
//!
//! The caller writes the nodes, so an odd one is an error of the call. Others write the DaemonSets: one that cannot be read has an
//! error of its own, and the others are answered for.

use nodewise_planner::{
    daemonset::overhead::{self, Candidate, PodRequests},
    snapshot::{Labels, Node, Nodes, Taint, TaintEffect},
};
use nodewise_proto::v1;

use super::{Context, Path, Problems, options, workload};
use crate::{
    limits::Limits,
    refusal::{Refusal, Violation},
};

/// A parsed EvaluateNodesRequest.
pub(crate) struct Evaluation {
    pub(crate) nodes: Nodes,
    /// What decides about each DaemonSet; `None` if it cannot be read.
    pub(crate) candidates: Vec<Option<Candidate>>,
    /// What a pod of each DaemonSet requests; `None` if that cannot be read.
    pub(crate) requests: Vec<Option<PodRequests>>,
    /// What else is known about each DaemonSet.
    pub(crate) daemon_sets: Vec<About>,
    pub(crate) comparison_operators: bool,
}

/// A DaemonSet of the request, for the response.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) error: String,
    pub(crate) notes: Vec<String>,
}

/// Reads an EvaluateNodesRequest.
pub(crate) fn evaluate_nodes(
    request: v1::EvaluateNodesRequest,
    mut context: Context<'_>,
) -> Result<Evaluation, Refusal> {
    let (at_nodes, at_sets) = (Path::root("nodes"), Path::root("daemon_sets"));
    let (nodes, sets) = (request.nodes.len(), request.daemon_sets.len());
    Context::bound(&at_nodes, nodes, context.limits.nodes as usize)?;
    Context::bound(&at_sets, sets, Limits::DAEMON_SETS)?;
    let decisions = nodes.saturating_mul(sets);
    if decisions > Limits::DECISIONS {
        let most = Limits::DECISIONS;
        return Err(Refusal::TooLarge(Violation {
            field: at_nodes.to_string(),
            description: format!(
                "{nodes} nodes and {sets} DaemonSets are {decisions} decisions; at most {most} are taken: send the nodes in parts"
            ),
        }));
    }
    let at = Path::root("feature_gates");
    let options = options::feature_gates(&request.feature_gates, &at, &mut context.problems);
    let mut parsed = Evaluation {
        nodes: Nodes::default(),
        candidates: Vec::with_capacity(sets),
        requests: Vec::with_capacity(sets),
        daemon_sets: Vec::with_capacity(sets),
        comparison_operators: options.toleration_comparison_operators,
    };
    let mut read = Vec::with_capacity(nodes);
    for (index, shape) in request.nodes.into_iter().enumerate() {
        read.push(node(shape, &at_nodes.index(index), &mut context)?);
        if context.problems.is_full() {
            break;
        }
    }
    context.problems.into_result()?;
    parsed.nodes = Nodes::in_order(read);
    for (index, set) in request.daemon_sets.into_iter().enumerate() {
        if (context.stop)() {
            return Err(Refusal::Stopped);
        }
        parsed.add(&set.object, &at_sets.index(index));
    }
    Ok(parsed)
}

impl Evaluation {
    /// Reads the JSON of a DaemonSet; `at` is the DaemonSet.
    fn add(&mut self, object: &[u8], at: &Path<'_>) {
        let mut problems = Problems::default();
        let mut about = About::default();
        let (mut candidate, mut requests) = (None, None);
        if let Some(read) = workload::read_template(object, &at.field("object"), &mut problems) {
            (about.namespace, about.name) = (read.namespace, read.name);
            candidate = read.candidate;
            about.notes = overhead::notes(&read.template);
            match overhead::requests(&read.template) {
                Ok(found) => requests = Some(found),
                Err(error) => about.error = error,
            }
        }
        // An error about where the pods run comes before one about what they request.
        if let Some(error) = problems.first() {
            error.clone_into(&mut about.error);
            (candidate, requests) = (None, None);
        }
        self.candidates.push(candidate);
        self.requests.push(requests);
        self.daemon_sets.push(about);
    }
}

fn node(shape: v1::NodeShape, at: &Path<'_>, context: &mut Context<'_>) -> Result<Node, Refusal> {
    context.check_stop()?;
    let problems = &mut context.problems;
    problems.bound_name(&at.field("name"), &shape.name);
    let at_labels = at.field("labels");
    for (index, label) in shape.labels.iter().enumerate() {
        problems.require(&at_labels.index(index).field("key"), &label.key);
    }
    let mut entries: Vec<_> = shape
        .labels
        .iter()
        .map(|label| (label.key.as_str(), label.value.as_str()))
        .collect();
    let labels = Labels::of(&mut entries);
    if labels.len() != entries.len() {
        // `of` has sorted the entries.
        let twice = entries.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let key = twice.map_or("", |pair| pair[0].0);
        problems.add(
            &at_labels,
            format!("`{key}` is there twice; a node has one value of each label"),
        );
    }
    let at_taints = at.field("taints");
    let taints = shape.taints.into_iter().enumerate();
    let taints = taints
        .map(|(index, message)| taint(message, &at_taints.index(index), problems))
        .collect();
    Ok(Node {
        name: shape.name,
        labels,
        taints,
        unschedulable: false,
        ready: None,
        ready_since: None,
        in_maintenance: false,
    })
}

fn taint(message: v1::Taint, at: &Path<'_>, problems: &mut Problems) -> Taint {
    problems.require(&at.field("key"), &message.key);
    let effect = match message.effect.as_str() {
        "NoSchedule" => TaintEffect::NoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        "PreferNoSchedule" => TaintEffect::Other,
        found => {
            problems.add(
                &at.field("effect"),
                format!("is `{found}`; must be NoSchedule, PreferNoSchedule or NoExecute"),
            );
            TaintEffect::Other
        }
    };
    Taint {
        key: message.key,
        value: message.value,
        effect,
    }
}
