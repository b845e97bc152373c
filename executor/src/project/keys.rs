//! Which labels are sent: those that a decision can read.
//!
//! Of a node these are the labels that a nodeSelector or a required node affinity of a DaemonSet names; of a pod those that a
//! selector of a DaemonSet of its namespace names, and the two that tell of which template the pod is. Everything else of an
//! object's labels stays here: it changes no plan, and whoever may write one object could make it of any size.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::Value;

use crate::selector::Selector;

/// Labels of one object that are sent at most.
pub const MAX_LABELS: usize = 1_024;

/// Labels of a pod or revision that are kept whoever reads them.
const MAX_KEPT: usize = 64;

/// Labels of pods that every plan reads. They come first where there are too many.
const OF_EVERY_POD: [&str; 2] = ["controller-revision-hash", "pod-template-generation"];

/// What the decisions about one DaemonSet read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Keys of node labels: its nodeSelector and its required node affinity.
    pub node_labels: BTreeSet<String>,
    /// Keys of pod labels: its selector.
    pub pod_labels: BTreeSet<String>,
}

/// The parts of a pod template that are read. Nothing is checked: what the service refuses names nothing or too much.
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

impl Reads {
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

/// The keys of which labels are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    labels: BTreeSet<Arc<str>>,
    /// Labels that are sent however many others there are.
    first: &'static [&'static str],
}

impl KeySet {
    /// Of nodes, where these are all DaemonSets of the cluster.
    #[must_use]
    pub fn of_nodes<'a>(daemon_sets: impl IntoIterator<Item = &'a Reads>) -> Self {
        let mut named = Named::of_nodes();
        daemon_sets.into_iter().for_each(|reads| named.add(reads));
        KeySet::clone(named.keys())
    }

    /// Of the pods of a namespace, where these are all DaemonSets of it.
    #[must_use]
    pub fn of_pods<'a>(daemon_sets: impl IntoIterator<Item = &'a Reads>) -> Self {
        let mut named = Named::of_pods();
        daemon_sets.into_iter().for_each(|reads| named.add(reads));
        KeySet::clone(named.keys())
    }

    /// Whether labels of all of these keys are sent.
    pub(crate) fn has<'a>(&self, mut keys: impl Iterator<Item = &'a str>) -> bool {
        keys.all(|key| self.labels.contains(key))
    }

    /// Leaves of more labels of a pod or revision than are kept of any those that are sent. Answers whether it did.
    pub(crate) fn cut(&self, labels: &mut Vec<v1::Label>) -> bool {
        let is_cut = labels.len() > MAX_KEPT;
        if is_cut {
            let kept = std::mem::take(labels).into_iter();
            *labels = kept
                .filter(|label| self.labels.contains(label.key.as_str()))
                .collect::<Box<[_]>>()
                .into();
        }
        is_cut
    }

    /// Of these labels of a node, ordered by key, those that are sent.
    pub(crate) fn sent<'a>(
        &self,
        labels: impl Iterator<Item = &'a v1::Label>,
    ) -> impl Iterator<Item = &'a v1::Label> {
        labels
            .filter(|label| self.labels.contains(label.key.as_str()))
            .take(MAX_LABELS)
    }

    /// Takes out of these labels, ordered by key, what is not sent. Answers with how many of those that a DaemonSet names are left
    /// out, since there are too many: the last ones by key.
    pub fn reduce_labels(&self, labels: &mut Vec<v1::Label>) -> usize {
        labels.retain(|label| self.labels.contains(label.key.as_str()));
        let cut = labels.len().saturating_sub(MAX_LABELS);
        if cut > 0 {
            let is_first = |label: &v1::Label| self.first.contains(&label.key.as_str());
            let mut room = MAX_LABELS - labels.iter().filter(|label| is_first(label)).count();
            labels.retain(|label| {
                let is_first = is_first(label);
                let has_room = is_first || room > 0;
                room -= usize::from(has_room && !is_first);
                has_room
            });
        }
        cut
    }
}

/// Leaves of a node what is sent of it. Answers with how many labels that decisions could read are left out, since there are too many.
pub fn reduce_node(node: &mut v1::Node, keys: &KeySet) -> usize {
    keys.reduce_labels(&mut node.labels)
}

/// Leaves of a pod what is sent of it, and answers likewise.
pub fn reduce_pod(pod: &mut v1::Pod, keys: &KeySet) -> usize {
    keys.reduce_labels(&mut pod.labels)
}

/// Which keys DaemonSets that come and go name.
///
/// What is sent grows as soon as one names a new key. Keys that none names any more are dropped only then: dropping them changes the
/// digest of every bucket.
#[derive(Debug)]
pub(crate) struct Named {
    is_of_pods: bool,
    /// How many DaemonSets name each.
    labels: HashMap<Arc<str>, usize>,
    sent: Arc<KeySet>,
    has_grown: bool,
}

impl Named {
    pub(crate) fn of_nodes() -> Self {
        Self {
            is_of_pods: false,
            labels: HashMap::new(),
            sent: Arc::default(),
            has_grown: false,
        }
    }

    pub(crate) fn of_pods() -> Self {
        let mut named = Self {
            is_of_pods: true,
            has_grown: true,
            ..Self::of_nodes()
        };
        let keys = OF_EVERY_POD.map(|key| (Arc::from(key), 1));
        named.labels.extend(keys);
        named
    }

    fn of<'a>(&self, reads: &'a Reads) -> &'a BTreeSet<String> {
        if self.is_of_pods {
            &reads.pod_labels
        } else {
            &reads.node_labels
        }
    }

    /// A DaemonSet that reads this is there.
    pub(crate) fn add(&mut self, reads: &Reads) {
        for key in self.of(reads) {
            self.has_grown |= !self.sent.labels.contains(key.as_str());
            match self.labels.get_mut(key.as_str()) {
                Some(count) => *count += 1,
                None => _ = self.labels.insert(key.as_str().into(), 1),
            }
        }
    }

    /// It is not any more.
    pub(crate) fn remove(&mut self, reads: &Reads) {
        for key in self.of(reads) {
            if let Some(count) = self.labels.get_mut(key.as_str()) {
                *count -= 1;
                if *count == 0 {
                    self.labels.remove(key.as_str());
                }
            }
        }
    }

    /// What this reads is sent too, until what is sent grows for another reason.
    pub(crate) fn name_besides(&mut self, reads: &Reads) {
        self.add(reads);
        self.keys();
        self.remove(reads);
    }

    /// A key is named that is not sent yet.
    pub(crate) fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// What is sent now.
    pub(crate) fn keys(&mut self) -> &Arc<KeySet> {
        if std::mem::take(&mut self.has_grown) {
            self.sent = Arc::new(KeySet {
                labels: self.labels.keys().cloned().collect(),
                first: if self.is_of_pods { &OF_EVERY_POD } else { &[] },
            });
        }
        &self.sent
    }
}
