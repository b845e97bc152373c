//! What one caller sees of a cluster. Each part has the number of the change that brought it.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use nodewise_proto::v1;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::timeline::Timeline;

/// Names a workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The kind, for example `DaemonSet`.
    pub kind: String,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
}

impl Key {
    /// The key of a status.
    #[must_use]
    pub fn of(status: &v1::WorkloadStatus) -> Self {
        Self {
            kind: status.kind.clone(),
            namespace: status.namespace.clone(),
            name: status.name.clone(),
        }
    }
}

/// What the page shows about one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The status.
    pub status: v1::WorkloadStatus,
    /// Commands that may help. The most useful one is the first.
    pub commands: Vec<Command>,
    /// What the planner would do and the controller in charge has not done.
    pub divergence: Option<Divergence>,
}

/// A command for people to copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// What it does.
    pub purpose: String,
    /// The command line.
    pub line: String,
    /// Whether it changes the cluster.
    pub changes: bool,
}

/// Actions of a plan that have been pending for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// The time since which exactly these actions are pending, as RFC 3339.
    pub since: String,
    /// The first actions: the action, its reason, and one sentence.
    pub actions: Vec<String>,
    /// The number of actions beyond these.
    pub more: usize,
    /// What it probably means.
    pub verdict: String,
}

/// What the page says about the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The URL of the apiserver, or the names of the files.
    pub source: String,
    /// The namespaces that are shown. Empty: all.
    pub namespaces: Vec<String>,
    /// Whether the objects are from files. Then they do not change.
    pub dump: bool,
    /// Whether all objects were read once.
    pub complete: bool,
    /// What keeps the page from being up to date. Empty if nothing does.
    pub problem: String,
    /// Whether nothing is read any more. The problem says why.
    pub ended: bool,
    /// The URL of a search for traces, with `{kind}`, `{namespace}`, `{name}` and `{node}`. Empty: there are no links.
    pub trace_url: String,
    /// The version of Nodewise.
    pub version: String,
}

/// One part of the board, and the number of the change that brought it.
#[derive(Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) version: u64,
    pub(crate) value: T,
}

/// A workload on the board.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The status without nodes and pods.
    pub(crate) summary: Versioned<Workload>,
    /// By name.
    pub(crate) nodes: BTreeMap<String, Versioned<Arc<v1::NodeStatus>>>,
    /// The change that removed a node last, or brought the workload.
    pub(crate) reset: u64,
    pub(crate) pods: Versioned<Vec<v1::PodStatus>>,
    pub(crate) timeline: Versioned<Timeline>,
}

/// The state of a board.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The number of the last change.
    pub(crate) version: u64,
    pub(crate) cluster: Option<Versioned<Cluster>>,
    pub(crate) workloads: BTreeMap<Key, Entry>,
    /// The change that removed a workload last.
    pub(crate) removed: u64,
}

/// What one caller sees.
#[derive(Debug)]
pub struct Board {
    state: RwLock<State>,
    changed: watch::Sender<u64>,
    closed: CancellationToken,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            changed: watch::Sender::new(0),
            closed: CancellationToken::new(),
        }
    }
}

impl Board {
    /// Sets what is said about the cluster.
    pub fn set_cluster(&self, cluster: Cluster) {
        let mut state = self.write();
        if state.cluster.as_ref().is_some_and(|known| known.value == cluster) {
            return;
        }
        let version = state.version + 1;
        state.cluster = Some(Versioned {
            version,
            value: cluster,
        });
        self.finish(state, version);
    }

    /// Adds workloads, or replaces what is shown about them. What is equal to what was shown counts as unchanged.
    pub fn put(&self, workloads: Vec<Workload>) {
        if workloads.is_empty() {
            return;
        }
        let mut state = self.write();
        let version = state.version + 1;
        for workload in workloads {
            let key = Key::of(&workload.status);
            match state.workloads.get_mut(&key) {
                Some(entry) => entry.update(workload, version),
                None => {
                    state.workloads.insert(key, Entry::new(workload, version));
                }
            }
        }
        self.finish(state, version);
    }

    /// Removes the workloads that a condition does not select.
    pub fn retain(&self, keeps: impl Fn(&Key) -> bool) {
        let mut state = self.write();
        let before = state.workloads.len();
        state.workloads.retain(|key, _| keeps(key));
        if state.workloads.len() < before {
            let version = state.version + 1;
            state.removed = version;
            self.finish(state, version);
        }
    }

    /// The keys of all workloads.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.read().workloads.keys().cloned().collect()
    }

    /// Ends the streams of all browsers that read the board.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Becomes ready when the board is closed.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.closed.clone().cancelled_owned()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of changes, by their numbers.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, mut state: RwLockWriteGuard<'_, State>, version: u64) {
        state.version = version;
        drop(state);
        self.changed.send_replace(version);
    }
}

impl Entry {
    fn new(workload: Workload, version: u64) -> Self {
        let (workload, nodes, pods) = split(workload);
        let mut timeline = Timeline::default();
        timeline.record(&workload.status);
        let nodes = nodes.into_iter().map(|node| {
            (
                node.node_name.clone(),
                Versioned {
                    version,
                    value: Arc::new(node),
                },
            )
        });
        Self {
            nodes: nodes.collect(),
            reset: version,
            pods: Versioned { version, value: pods },
            timeline: Versioned {
                version,
                value: timeline,
            },
            summary: Versioned {
                version,
                value: workload,
            },
        }
    }

    fn update(&mut self, workload: Workload, version: u64) {
        let (workload, nodes, pods) = split(workload);
        if self.timeline.value.record(&workload.status) {
            self.timeline.version = version;
        }
        if !same(&self.summary.value, &workload) {
            self.summary = Versioned {
                version,
                value: workload,
            };
        }
        if self.pods.value != pods {
            self.pods = Versioned { version, value: pods };
        }
        let before = std::mem::take(&mut self.nodes);
        let mut before = before.into_iter().peekable();
        for node in nodes {
            // Both are in the order of the names, so each is looked at once.
            while before.next_if(|(name, _)| *name < node.node_name).is_some() {
                self.reset = version;
            }
            let known = before.next_if(|(name, _)| *name == node.node_name);
            let entry = match known {
                Some((_, known)) if *known.value == node => known,
                _ => Versioned {
                    version,
                    value: Arc::new(node),
                },
            };
            self.nodes.insert(entry.value.node_name.clone(), entry);
        }
        if before.next().is_some() {
            self.reset = version;
        }
    }
}

/// A workload, its nodes in the order of their names, and its pods.
fn split(mut workload: Workload) -> (Workload, Vec<v1::NodeStatus>, Vec<v1::PodStatus>) {
    let mut nodes = std::mem::take(&mut workload.status.nodes);
    nodes.sort_by(|a, b| a.node_name.cmp(&b.node_name));
    let pods = std::mem::take(&mut workload.status.pods);
    (workload, nodes, pods)
}

/// Whether two summaries differ in nothing but the time of their snapshots.
fn same(a: &Workload, b: &Workload) -> bool {
    if (&a.commands, &a.divergence) != (&b.commands, &b.divergence) {
        return false;
    }
    let mut a = a.status.clone();
    a.observed_at = b.status.observed_at;
    a == b.status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(nodes: &[(&str, &str)], seconds: i64) -> Workload {
        let node = |(name, message): &(&str, &str)| v1::NodeStatus {
            node_name: (*name).to_owned(),
            message: (*message).to_owned(),
            ..v1::NodeStatus::default()
        };
        let observed_at = nodewise_proto::Timestamp {
            seconds,
            ..Default::default()
        };
        Workload {
            status: v1::WorkloadStatus {
                name: "a".to_owned(),
                nodes: nodes.iter().map(node).collect(),
                observed_at: Some(observed_at),
                ..v1::WorkloadStatus::default()
            },
            commands: Vec::new(),
            divergence: None,
        }
    }

    fn versions(board: &Board) -> (u64, u64, Vec<u64>) {
        let state = board.read();
        let entry = state.workloads.values().next().expect("a workload");
        let nodes = entry.nodes.values().map(|node| node.version).collect();
        (entry.summary.version, entry.reset, nodes)
    }

    #[test]
    fn only_what_differs_gets_a_new_version() {
        let board = Board::default();
        board.put(vec![workload(&[("n1", "x"), ("n2", "x"), ("n4", "x")], 1)]);
        assert_eq!(versions(&board), (1, 1, vec![1, 1, 1]));
        board.put(vec![workload(&[("n1", "x"), ("n2", "y"), ("n4", "x")], 2)]);
        assert_eq!(versions(&board), (1, 1, vec![1, 2, 1]), "time alone is no news");
        board.put(vec![workload(&[("n1", "x"), ("n3", "y"), ("n4", "x")], 2)]);
        assert_eq!(versions(&board), (1, 3, vec![1, 3, 1]), "n2 is gone");
        board.put(vec![workload(&[("n1", "x")], 2)]);
        assert_eq!(versions(&board), (1, 4, vec![1]), "the last ones are gone");
    }
}
