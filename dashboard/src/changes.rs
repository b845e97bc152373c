//! What a browser that knows an older state must learn.

use std::sync::Arc;

use nodewise_proto::v1;
use serde::Serialize;

use crate::{
    board::{Cluster, Command, Divergence, Entry, Key, State, Versioned},
    timeline::Timeline,
};

/// The most nodes in one message. A browser shows the first ones while it reads the others.
const MAX_NODES: usize = 3_000;

/// What a browser wants to know beside the summaries of all workloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Nothing.
    #[default]
    None,
    /// One workload.
    Workload(Key),
    /// All workloads on a node.
    Node(String),
}

/// A message to a browser: the type of a server-sent event, and its data.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Message {
    Cluster(Cluster),
    Workloads(Workloads),
    Present { keys: Vec<Key> },
    Nodes(ChangedNodes),
    Pods { key: Key, pods: Vec<v1::PodStatus> },
    Timeline { key: Key, timeline: serde_json::Value },
    Node(OnNode),
}

/// Summaries that changed.
#[derive(Debug, Serialize)]
pub(crate) struct Workloads {
    workloads: Vec<Summary>,
}

/// One workload without its nodes and pods.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    key: Key,
    status: v1::WorkloadStatus,
    commands: Vec<Command>,
    divergence: Option<Divergence>,
}

/// Nodes of a workload that changed.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedNodes {
    key: Key,
    /// Whether all nodes that are not named here or in the following messages are gone.
    reset: bool,
    nodes: Vec<Arc<v1::NodeStatus>>,
}

/// All workloads on a node.
#[derive(Debug, Serialize)]
pub(crate) struct OnNode {
    name: String,
    workloads: Vec<Placed>,
}

/// A workload on a node.
#[derive(Debug, Serialize)]
pub(crate) struct Placed {
    key: Key,
    node: Option<Arc<v1::NodeStatus>>,
    /// Of ReplicaSets and Deployments: the pods on the node that are not available.
    pods: Vec<v1::PodStatus>,
}

impl Message {
    /// The type of the event.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "cluster",
            Self::Workloads(_) => "workloads",
            Self::Present { .. } => "present",
            Self::Nodes(_) => "nodes",
            Self::Pods { .. } => "pods",
            Self::Timeline { .. } => "timeline",
            Self::Node(_) => "node",
        }
    }
}

impl State {
    /// The messages to a browser that knows the state up to the change `seen`.
    pub(crate) fn since(&self, seen: u64, detail: &Detail) -> Vec<Message> {
        let mut messages = Vec::new();
        if let Some(cluster) = newer(self.cluster.as_ref(), seen) {
            messages.push(Message::Cluster(cluster.clone()));
        }
        let changed = self
            .workloads
            .iter()
            .filter(|(_, entry)| entry.summary.version > seen);
        let workloads: Vec<Summary> = changed.map(|(key, entry)| summary(key, entry)).collect();
        if !workloads.is_empty() {
            messages.push(Message::Workloads(Workloads { workloads }));
        }
        // Who begins may remember workloads of an earlier process.
        if self.removed > seen || seen == 0 {
            // All others are gone.
            let keys = self.workloads.keys().cloned().collect();
            messages.push(Message::Present { keys });
        }
        match detail {
            Detail::None => {}
            Detail::Workload(key) => {
                if let Some(entry) = self.workloads.get(key) {
                    entry.since(key, seen, &mut messages);
                }
            }
            Detail::Node(name) => self.node_since(name, seen, &mut messages),
        }
        messages
    }

    fn node_since(&self, name: &str, seen: u64, messages: &mut Vec<Message>) {
        let has_news = |entry: &Entry| {
            let node = entry.nodes.get(name).map_or(entry.reset, |node| node.version);
            node.max(entry.pods.version) > seen
        };
        if !self.workloads.values().any(has_news) && self.removed <= seen {
            return;
        }
        let placed = self.workloads.iter().filter_map(|(key, entry)| {
            let node = entry.nodes.get(name).map(|node| Arc::clone(&node.value));
            let pods = entry.pods.value.iter().filter(|pod| pod.node_name == name);
            let pods: Vec<v1::PodStatus> = pods.cloned().collect();
            (node.is_some() || !pods.is_empty()).then(|| Placed {
                key: key.clone(),
                node,
                pods,
            })
        });
        messages.push(Message::Node(OnNode {
            name: name.to_owned(),
            workloads: placed.collect(),
        }));
    }
}

impl Entry {
    fn since(&self, key: &Key, seen: u64, messages: &mut Vec<Message>) {
        let mut reset = self.reset > seen;
        let changed = self.nodes.values().filter(|node| reset || node.version > seen);
        let nodes: Vec<Arc<v1::NodeStatus>> = changed.map(|node| Arc::clone(&node.value)).collect();
        if nodes.is_empty() && reset {
            messages.push(Message::Nodes(ChangedNodes {
                key: key.clone(),
                reset,
                nodes: Vec::new(),
            }));
        }
        for part in nodes.chunks(MAX_NODES) {
            messages.push(Message::Nodes(ChangedNodes {
                key: key.clone(),
                reset,
                nodes: part.to_vec(),
            }));
            reset = false;
        }
        if self.pods.version > seen {
            messages.push(Message::Pods {
                key: key.clone(),
                pods: self.pods.value.clone(),
            });
        }
        if let Some(timeline) = newer::<Timeline>(Some(&self.timeline), seen) {
            messages.push(Message::Timeline {
                key: key.clone(),
                timeline: serde_json::to_value(timeline).unwrap_or_default(),
            });
        }
    }
}

fn summary(key: &Key, entry: &Entry) -> Summary {
    let workload = &entry.summary.value;
    Summary {
        key: key.clone(),
        status: workload.status.clone(),
        commands: workload.commands.clone(),
        divergence: workload.divergence.clone(),
    }
}

/// A part that changed after `seen`.
fn newer<T>(part: Option<&Versioned<T>>, seen: u64) -> Option<&T> {
    part.filter(|part| part.version > seen).map(|part| &part.value)
}
