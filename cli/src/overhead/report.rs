//! The answer, with one entry for each node and DaemonSet, as programs get it.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use nodewise_proto::v1;
use serde::Serialize;

/// The answer about all nodes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) nodes: Vec<Node>,
    pub(super) daemon_sets: Vec<DaemonSet>,
}

/// A node, and what the DaemonSets that would run there request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The sum of the requests; `pods` is the number of DaemonSets that would run.
    pub(super) requests: BTreeMap<String, String>,
    /// Whether the sum is too small, because a DaemonSet could not be read.
    pub(super) is_incomplete: bool,
    pub(super) decisions: Vec<Decision>,
}

/// Whether one DaemonSet would run on one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Decision {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) runs: bool,
    pub(super) rule: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing_labels: Vec<String>,
}

/// What one pod of a DaemonSet requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DaemonSet {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) requests: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) error: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

impl Report {
    /// Resolves the indices of a response. `titles` are namespace and name of each DaemonSet of the request.
    pub(super) fn new(
        nodes: Vec<v1::NodeShape>,
        titles: &[(String, String)],
        response: v1::EvaluateNodesResponse,
    ) -> anyhow::Result<Self> {
        ensure!(
            response.node_evaluations.len() == nodes.len() && response.daemon_sets.len() == titles.len(),
            "the answer is about other nodes or DaemonSets than were asked about"
        );
        let decided = |index: &u32| {
            let decision = response.decisions.get(*index as usize)?;
            let (namespace, name) = titles.get(decision.daemon_set as usize)?;
            Some(Decision {
                namespace: namespace.clone(),
                name: name.clone(),
                runs: decision.runs,
                rule: decision.rule().as_str_name(),
                message: decision.message.clone(),
                missing_labels: decision.missing_labels.clone(),
            })
        };
        let node = |(shape, index): (v1::NodeShape, &u32)| {
            let evaluation = response.evaluations.get(*index as usize)?;
            Some(Node {
                name: shape.name,
                requests: by_name(&evaluation.requests),
                is_incomplete: evaluation.is_incomplete,
                decisions: evaluation.decisions.iter().map(decided).collect::<Option<_>>()?,
            })
        };
        let nodes = nodes.into_iter().zip(&response.node_evaluations).map(node);
        let nodes = nodes
            .collect::<Option<_>>()
            .context("the answer refers to an entry that it does not have")?;
        let sets = response.daemon_sets.into_iter().zip(titles);
        let daemon_sets = sets.map(|(set, (namespace, name))| DaemonSet {
            namespace: namespace.clone(),
            name: name.clone(),
            requests: by_name(&set.requests),
            error: set.error,
            notes: set.notes,
        });
        Ok(Self {
            nodes,
            daemon_sets: daemon_sets.collect(),
        })
    }
}

fn by_name(quantities: &[v1::ResourceQuantity]) -> BTreeMap<String, String> {
    let pair = |one: &v1::ResourceQuantity| (one.name.clone(), one.quantity.clone());
    quantities.iter().map(pair).collect()
}
