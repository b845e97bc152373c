//! Selects the labels that are sent: those that a plan can read.
//!
//! For nodes, these are the labels in the nodeSelector or the required node affinity of a DaemonSet, and those that the stages of a
//! RolloutPolicy name. For pods, these are the
//! labels in the selector of a workload of the namespace, those in the template of a ReplicaSet of the namespace, and the two
//! labels that identify the template of a DaemonSet. Other labels change no plan and are not sent: a client that may write one
//! object could make them very large.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use nodewise_proto::v1;
use nodewise_proto::workload::HASH_LABEL;
use serde::Deserialize;
use serde_json::Value;

use crate::selector::Selector;

/// Most labels of one object that are sent.
pub const MAX_LABELS: usize = 1_024;

/// If a pod or revision has at most this many labels, the cache stores all of them.
const STORE_ALL_UP_TO: usize = 64;

/// Labels of pods that every plan reads. They are sent even if there are too many labels.
const ALWAYS_SENT: [&str; 2] = [HASH_LABEL, "pod-template-generation"];

/// The label keys that plans for one workload read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelKeysRead {
    /// Keys of node labels: those in its nodeSelector and its required node affinity.
    pub node_labels: BTreeSet<String>,
    /// Keys of pod labels: those in its selector, and of a ReplicaSet also those of its template.
    pub pod_labels: BTreeSet<String>,
}

/// The parts of a pod template that are read. They are not validated: a template that the service rejects may name too many
/// keys, or none.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Template {
    spec: Option<TemplateSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TemplateSpec {
    node_selector: Value,
    affinity: Value,
}

/// The metadata of a pod template that is read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct LabelledTemplate {
    metadata: Option<TemplateMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateMetadata {
    labels: Value,
}

impl LabelKeysRead {
    /// The keys of a workload that chooses no nodes, and that counts the pods which have all labels of its template.
    pub(crate) fn of_pods(selector: &Selector, template: LabelledTemplate) -> Self {
        let metadata = template.metadata.unwrap_or_default();
        let labels = metadata.labels.as_object().into_iter().flatten();
        let labels = labels.map(|(key, _)| key.clone());
        Self {
            node_labels: BTreeSet::new(),
            pod_labels: selector.keys().map(str::to_owned).chain(labels).collect(),
        }
    }

    /// The keys of node labels that a RolloutPolicy names.
    pub(crate) fn of_nodes(node_labels: BTreeSet<String>) -> Self {
        Self {
            node_labels,
            pod_labels: BTreeSet::new(),
        }
    }

    pub(crate) fn new(selector: &Selector, template: Template) -> Self {
        let spec = template.spec.unwrap_or_default();
        let required = &spec.affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = elements(&required["nodeSelectorTerms"]);
        let expressions = terms.flat_map(|term| elements(&term["matchExpressions"]));
        let selected = spec.node_selector.as_object().into_iter().flatten();
        Self {
            node_labels: selected
                .map(|(key, _)| key.clone())
                .chain(expressions.filter_map(key))
                .collect(),
            pod_labels: selector.keys().map(str::to_owned).collect(),
        }
    }
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn key(entry: &Value) -> Option<String> {
    entry["key"].as_str().map(str::to_owned)
}

/// The keys of the labels that are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    labels: BTreeSet<Arc<str>>,
    /// Labels that are sent even if there are too many.
    first: &'static [&'static str],
}

impl KeySet {
    /// The keys for nodes, given all workloads of the cluster.
    #[must_use]
    pub fn of_nodes<'a>(workloads: impl IntoIterator<Item = &'a LabelKeysRead>) -> Self {
        let mut named = LabelKeyCounts::of_nodes();
        workloads.into_iter().for_each(|reads| named.add(reads));
        KeySet::clone(named.keys())
    }

    /// The keys for the pods of a namespace, given all workloads of the namespace.
    #[must_use]
    pub fn of_pods<'a>(workloads: impl IntoIterator<Item = &'a LabelKeysRead>) -> Self {
        let mut named = LabelKeyCounts::of_pods();
        workloads.into_iter().for_each(|reads| named.add(reads));
        KeySet::clone(named.keys())
    }

    /// Whether all of these keys are sent.
    pub fn has<'a>(&self, mut keys: impl Iterator<Item = &'a str>) -> bool {
        keys.all(|key| self.labels.contains(key))
    }

    /// Removes the labels that are not sent, if a pod or revision has more than 64 labels. Returns whether it had more.
    pub fn cut(&self, labels: &mut Vec<v1::Label>) -> bool {
        let is_cut = labels.len() > STORE_ALL_UP_TO;
        if is_cut {
            let kept = std::mem::take(labels).into_iter();
            *labels = kept
                .filter(|label| self.labels.contains(label.key.as_str()))
                .collect::<Box<[_]>>()
                .into();
        }
        is_cut
    }

    /// Returns those of a node's labels, ordered by key, that are sent.
    pub fn sent<'a>(
        &self,
        labels: &'a [Arc<v1::SharedLabel>],
    ) -> impl Iterator<Item = &'a Arc<v1::SharedLabel>> {
        self.read(labels).take(MAX_LABELS)
    }

    /// Number of a node's labels that [`Self::sent`] leaves out because there are too many.
    #[must_use]
    pub fn cut_of(&self, labels: &[Arc<v1::SharedLabel>]) -> usize {
        // Hardly any node has so many.
        if labels.len() <= MAX_LABELS {
            return 0;
        }
        self.read(labels).count().saturating_sub(MAX_LABELS)
    }

    /// Those of a node's labels that a plan could read.
    fn read<'a>(&self, labels: &'a [Arc<v1::SharedLabel>]) -> impl Iterator<Item = &'a Arc<v1::SharedLabel>> {
        let is_read = |label: &&Arc<v1::SharedLabel>| self.labels.contains(label.key.as_str());
        labels.iter().filter(is_read)
    }

    /// Removes the labels that are not sent. The labels must be ordered by key. If more than [`MAX_LABELS`] remain, the last
    /// ones by key are removed, too. Returns the number of labels removed for that reason.
    pub fn reduce_labels(&self, labels: &mut Vec<v1::Label>) -> usize {
        labels.retain(|label| self.labels.contains(label.key.as_str()));
        let cut = labels.len().saturating_sub(MAX_LABELS);
        if cut > 0 {
            let is_first = |label: &v1::Label| self.first.contains(&label.key.as_str());
            let mut remaining = MAX_LABELS - labels.iter().filter(|label| is_first(label)).count();
            labels.retain(|label| {
                let is_first = is_first(label);
                let fits = is_first || remaining > 0;
                remaining -= usize::from(fits && !is_first);
                fits
            });
        }
        cut
    }
}

/// Removes the labels of a node that are not sent. Returns the number of labels that a plan could read but that were removed
/// because there are too many.
pub fn reduce_node(node: &mut v1::Node, keys: &KeySet) -> usize {
    keys.reduce_labels(&mut node.labels)
}

/// Removes the labels of a pod that are not sent. Returns the same number as [`reduce_node`].
pub fn reduce_pod(pod: &mut v1::Pod, keys: &KeySet) -> usize {
    keys.reduce_labels(&mut pod.labels)
}

/// Counts which label keys the current workloads read.
///
/// A new key is added to the sent keys at once. A key that no workload reads any more is removed only when a new key is
/// added, because a change of the keys changes the digest of every bucket.
#[derive(Debug)]
pub struct LabelKeyCounts {
    is_of_pods: bool,
    /// Number of workloads that read each key.
    labels: HashMap<Arc<str>, usize>,
    sent: Arc<KeySet>,
    has_grown: bool,
}

impl LabelKeyCounts {
    /// Creates a counter for node labels, without workloads.
    #[must_use]
    pub fn of_nodes() -> Self {
        Self {
            is_of_pods: false,
            labels: HashMap::new(),
            sent: Arc::default(),
            has_grown: false,
        }
    }

    /// Creates a counter for pod labels, without workloads.
    #[must_use]
    pub fn of_pods() -> Self {
        let mut named = Self {
            is_of_pods: true,
            has_grown: true,
            ..Self::of_nodes()
        };
        let keys = ALWAYS_SENT.map(|key| (Arc::from(key), 1));
        named.labels.extend(keys);
        named
    }

    fn of<'a>(&self, reads: &'a LabelKeysRead) -> &'a BTreeSet<String> {
        if self.is_of_pods {
            &reads.pod_labels
        } else {
            &reads.node_labels
        }
    }

    /// Adds the keys of a workload.
    pub fn add(&mut self, reads: &LabelKeysRead) {
        for key in self.of(reads) {
            self.has_grown |= !self.sent.labels.contains(key.as_str());
            match self.labels.get_mut(key.as_str()) {
                Some(count) => *count += 1,
                None => _ = self.labels.insert(key.as_str().into(), 1),
            }
        }
    }

    /// Removes the keys of a workload.
    pub fn remove(&mut self, reads: &LabelKeysRead) {
        for key in self.of(reads) {
            if let Some(count) = self.labels.get_mut(key.as_str()) {
                *count -= 1;
                if *count == 0 {
                    self.labels.remove(key.as_str());
                }
            }
        }
    }

    /// Sends these keys, too, until the sent keys grow for another reason.
    pub fn include_until_grown(&mut self, reads: &LabelKeysRead) {
        self.add(reads);
        self.keys();
        self.remove(reads);
    }

    /// Whether a workload reads a key that is not sent yet.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// Returns the keys that are sent now.
    pub fn keys(&mut self) -> &Arc<KeySet> {
        if std::mem::take(&mut self.has_grown) {
            self.sent = Arc::new(KeySet {
                labels: self.labels.keys().cloned().collect(),
                first: if self.is_of_pods { &ALWAYS_SENT } else { &[] },
            });
        }
        &self.sent
    }
}
