//! The bytes of a bucket of nodes: with the labels that several nodes have once, or with all labels of each node.
//!
//! Which labels are shared is the rule of [`nodewise_proto::nodes::sharing`], whose bytes are the same.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use nodewise_proto::v1;
use prost::encoding;

use super::encoded_object::EncodedNode;
use super::node_labels::{NodeLabels, write_label, written_label_len};
use super::wire::{LIST_TAG, element_len, write_head};
use crate::label_keys::KeySet;

/// The tag of the shared labels in NodeBucket.
const SHARED_LABELS_TAG: u32 = 2;
/// The tag in Node of the numbers of shared labels.
const NUMBERS_TAG: u32 = 9;

/// The labels of the nodes of a bucket.
#[derive(Debug)]
pub(super) struct SharedLabels<'a> {
    /// The entries that nodes refer to, in order.
    entries: Vec<&'a v1::SharedLabel>,
    /// What is written of each list of labels that a node has.
    lists: Vec<WrittenList<'a>>,
    /// For each node the index of its list.
    list_of: Vec<usize>,
}

/// What is written of a list of labels.
#[derive(Debug)]
struct WrittenList<'a> {
    /// The labels that are written with each node.
    own: Vec<&'a v1::SharedLabel>,
    /// The field with the numbers of the others, encoded.
    encoded_numbers: Vec<u8>,
}

impl<'a> SharedLabels<'a> {
    /// The labels of these nodes that are sent. If not `shares_labels`, each node has all of its own.
    pub(super) fn of(nodes: &[&'a EncodedNode], keys: &KeySet, shares_labels: bool) -> Self {
        let (mut lists, list_of) = lists(nodes);
        let mut found = Found::default();
        for list in &mut lists {
            let labels = keys.sent(list.labels.list());
            list.indices = labels.map(|label| found.count(label, list.nodes)).collect();
        }
        let (entries, entry_numbers) = found.numbered(shares_labels);
        let lists = lists
            .iter()
            .map(|list| found.written(&list.indices, &entry_numbers));
        Self {
            lists: lists.collect(),
            entries,
            list_of,
        }
    }

    /// Whether any node shares a label.
    pub(super) fn is_used(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Writes the bucket of these nodes, which are those of [`Self::of`].
    pub(super) fn write(&self, nodes: &[&EncodedNode]) -> Bytes {
        let lists = self.list_of.iter().map(|index| &self.lists[*index]);
        let with_lists = nodes.iter().zip(lists);
        let with_lengths: Vec<_> = with_lists
            .map(|(node, list)| (node, list, list.len_of(node)))
            .collect();
        let lengths = with_lengths.iter().map(|(.., len)| *len);
        let size = lengths.map(element_len).sum::<usize>()
            + self
                .entries
                .iter()
                .map(|entry| encoding::message::encoded_len(SHARED_LABELS_TAG, *entry))
                .sum::<usize>();
        let mut buffer = BytesMut::with_capacity(size);
        for (node, list, len) in with_lengths {
            list.write(node, len, &mut buffer);
        }
        for entry in &self.entries {
            encoding::message::encode(SHARED_LABELS_TAG, *entry, &mut buffer);
        }
        debug_assert_eq!(buffer.len(), size);
        buffer.freeze()
    }
}

/// A list of labels, and how many nodes have it.
struct List<'a> {
    labels: &'a NodeLabels,
    nodes: u32,
    /// The indices of the entries of the labels that are sent.
    indices: Vec<u32>,
}

/// The lists of labels of these nodes, and for each node the index of its list.
fn lists<'a>(nodes: &[&'a EncodedNode]) -> (Vec<List<'a>>, Vec<usize>) {
    let mut lists: Vec<List<'a>> = Vec::new();
    let mut known: HashMap<*const NodeLabels, usize> = HashMap::new();
    let list_of = nodes.iter().map(|node| {
        let labels = node.shared();
        let index = *known.entry(Arc::as_ptr(labels)).or_insert_with(|| {
            lists.push(List {
                labels,
                nodes: 0,
                indices: Vec::new(),
            });
            lists.len() - 1
        });
        lists[index].nodes += 1;
        index
    });
    let list_of = list_of.collect();
    (lists, list_of)
}

/// The labels so far, each once, with the number of nodes that have it.
#[derive(Default)]
struct Found<'a> {
    entries: Vec<(&'a v1::SharedLabel, u32)>,
    indices: HashMap<&'a v1::SharedLabel, u32>,
}

impl<'a> Found<'a> {
    /// Counts a label that so many more nodes have. Returns its index.
    fn count(&mut self, label: &'a v1::SharedLabel, nodes: u32) -> u32 {
        let index = *self.indices.entry(label).or_insert_with(|| {
            self.entries.push((label, 0));
            u32::try_from(self.entries.len() - 1).expect("fewer than there are labels")
        });
        self.entries[index as usize].1 += nodes;
        index
    }

    /// The entries that nodes refer to, and for each index the number of its entry, or 0.
    fn numbered(&self, shares_labels: bool) -> (Vec<&'a v1::SharedLabel>, Vec<u32>) {
        let is_shared =
            |(label, nodes): &(&v1::SharedLabel, u32)| shares_labels && *nodes > 1 && !label.key.is_empty();
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.retain(|index| is_shared(&self.entries[*index]));
        order.sort_unstable_by_key(|index| {
            let label = self.entries[*index].0;
            (&label.key, label.value_is_node_name, &label.value)
        });
        let mut entry_numbers = vec![0; self.entries.len()];
        for (number, index) in (1..).zip(&order) {
            entry_numbers[*index] = number;
        }
        (
            order.into_iter().map(|index| self.entries[index].0).collect(),
            entry_numbers,
        )
    }

    /// What is written of the labels of these indices. They are ordered by key, so the numbers ascend.
    fn written(&self, indices: &[u32], entry_numbers: &[u32]) -> WrittenList<'a> {
        let (mut own, mut packed) = (Vec::new(), Vec::new());
        for index in indices {
            match entry_numbers[*index as usize] {
                0 => own.push(self.entries[*index as usize].0),
                number => packed.push(number),
            }
        }
        let mut encoded_numbers = Vec::new();
        encoding::uint32::encode_packed(NUMBERS_TAG, &packed, &mut encoded_numbers);
        WrittenList { own, encoded_numbers }
    }
}

impl WrittenList<'_> {
    /// The length of a node with these labels, in bytes.
    fn len_of(&self, node: &EncodedNode) -> usize {
        let own = self.own.iter().map(|label| written_label_len(label, node.name()));
        node.own().len() + own.sum::<usize>() + self.encoded_numbers.len()
    }

    /// Writes a node with these labels, whose length is that of [`Self::len_of`].
    fn write(&self, node: &EncodedNode, len: usize, buffer: &mut BytesMut) {
        let (own, name) = (node.own(), node.name());
        write_head(LIST_TAG, len, buffer);
        own.write_head(buffer);
        for label in &self.own {
            write_label(label, name, buffer);
        }
        own.write_tail(buffer);
        buffer.extend_from_slice(&self.encoded_numbers);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nodewise_proto::bucket::{Digest, Receiver};
    use nodewise_proto::{bucket, nodes};
    use prost::Message as _;
    use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::buckets::{NodeBuckets, render};

    fn label(key: &str, value: &str) -> v1::Label {
        v1::Label {
            key: key.into(),
            value: value.into(),
        }
    }

    /// A node as a large cluster has them, with the labels of a cloud.
    fn usual(index: usize) -> v1::Node {
        let name = format!(
            "ip-10-0-{}-{}.eu-central-1.compute.internal",
            index / 250,
            index % 250
        );
        let zone = ["eu-central-1a", "eu-central-1b", "eu-central-1c"][index % 3];
        let pool = ["general", "memory", "gpu"][index / 7 % 3];
        let labels = [
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/instance-type", "m6i.2xlarge"),
            ("beta.kubernetes.io/os", "linux"),
            ("failure-domain.beta.kubernetes.io/region", "eu-central-1"),
            ("failure-domain.beta.kubernetes.io/zone", zone),
            ("k8s.io/cloud-provider-aws", "17db9d0b1cf4e0c4a5d1f1b7f4b1cbd7"),
            ("karpenter.sh/capacity-type", "on-demand"),
            ("karpenter.sh/nodepool", pool),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", &name),
            ("kubernetes.io/os", "linux"),
            ("node.kubernetes.io/instance-type", "m6i.2xlarge"),
            ("topology.ebs.csi.aws.com/zone", zone),
            ("topology.kubernetes.io/region", "eu-central-1"),
            ("topology.kubernetes.io/zone", zone),
        ];
        v1::Node {
            labels: labels.map(|(key, value)| label(key, value)).into(),
            uid: format!("5a3c1f00-0000-4000-8000-{index:012x}"),
            ready: v1::ConditionStatus::True.into(),
            ready_transition_time: Some(nodewise_proto::Timestamp {
                seconds: 1_790_000_000,
                nanos: 0,
            }),
            name,
            ..Default::default()
        }
    }

    /// A bucket set of these nodes, all of whose labels are sent. Equal labels are stored once, as in the caches.
    struct Nodes {
        buckets: NodeBuckets,
        keys: Arc<KeySet>,
        interned: BTreeSet<(String, String, bool)>,
        labels: HashMap<(String, String, bool), Arc<v1::SharedLabel>>,
    }

    impl Nodes {
        fn of(keys: &[&str], count: u32) -> Self {
            Self {
                buckets: NodeBuckets::of_nodes(count),
                keys: Arc::new(crate::testing::keys(keys)),
                interned: BTreeSet::new(),
                labels: HashMap::new(),
            }
        }

        fn put(&mut self, node: &v1::Node) {
            let labels = node.labels.iter().map(|label| {
                let shared = v1::SharedLabel::of(label.clone(), &node.name);
                let key = (
                    shared.key.clone(),
                    shared.value.clone(),
                    shared.value_is_node_name,
                );
                // Not all equal labels are the same object: a label is dropped with the last node that has it.
                if self.interned.insert(key.clone()) || self.interned.len().is_multiple_of(5) {
                    self.labels.insert(key.clone(), Arc::new(shared));
                }
                Arc::clone(&self.labels[&key])
            });
            let labels = Arc::new(NodeLabels::new(labels.collect()));
            self.buckets.put(EncodedNode::of_node(node.clone(), labels, "1"));
        }

        fn render(&mut self, has: &dyn Fn(&Digest) -> bool, shared: bool) -> Vec<v1::Bucket> {
            let receiver = Receiver::new(has).reading_shared_labels(shared);
            let count = self.buckets.count();
            render(Some(&mut self.buckets), None, &self.keys, count, &receiver).buckets
        }
    }

    fn keys_of(nodes: &[v1::Node]) -> Vec<&str> {
        let labels = nodes.iter().flat_map(|node| &node.labels);
        labels.map(|label| &*label.key).collect()
    }

    #[test]
    fn shared_labels_take_a_fifth_of_the_bytes() {
        const NODES: usize = 5_000;
        let all: Vec<_> = (0..NODES).map(usual).collect();
        let mut nodes = Nodes::of(&keys_of(&all), 40);
        for node in &all {
            nodes.put(node);
        }
        let bytes =
            |buckets: &[v1::Bucket]| buckets.iter().map(v1::Bucket::encoded_len).sum::<usize>() / NODES;
        let (plain, shared) = (
            bytes(&nodes.render(&|_| false, false)),
            bytes(&nodes.render(&|_| false, true)),
        );
        println!("{plain} bytes a node, {shared} with shared labels");
        assert!(plain > 650 && shared < 130, "{plain} and {shared}");
    }

    /// The form of a bucket, its bytes and its digest fit each other, for any history of the bucket.
    #[test]
    fn the_bytes_are_those_of_the_rule() {
        const KEYS: [&str; 5] = ["", "a", "hostname", "zone", "zz"];
        let mut random = SmallRng::seed_from_u64(11);
        let mut nodes = Nodes::of(&KEYS, 2);
        let mut there = std::collections::BTreeMap::new();
        let (mut with, mut without) = (0, 0);
        for round in 0..3_000 {
            let name = format!("n{}", random.random_range(0..6));
            if random.random_bool(0.4) {
                nodes.buckets.remove(&name);
                there.remove(&name);
            } else {
                let value = |random: &mut SmallRng| format!("n{}", random.random_range(0..7));
                let labels = KEYS.iter().filter(|_| random.random_bool(0.5)).copied();
                let labels: Vec<_> = labels.collect();
                let labels = labels.into_iter().map(|key| label(key, &value(&mut random)));
                let node = v1::Node {
                    labels: labels.collect(),
                    name: name.clone(),
                    uid: round.to_string(),
                    unschedulable: random.random(),
                    ..Default::default()
                };
                nodes.put(&node);
                there.insert(name, node);
            }
            let (known, shared) = (random.random_bool(0.3), random.random_bool(0.7));
            let rendered = nodes.render(&|_| known, shared);
            for (index, found) in (0..).zip(rendered) {
                let members = there.values().filter(|node| bucket::of(&node.name, 2) == index);
                let members: Vec<_> = members.cloned().collect();
                let expected = if shared {
                    nodes::sharing(members)
                } else {
                    v1::NodeBucket {
                        nodes: members,
                        ..Default::default()
                    }
                };
                let data = expected.encode_to_vec();
                assert_eq!(found.digest[..], Sha256::digest(&data)[..]);
                let data = (!known).then_some(&data[..]);
                if expected.shared_labels.is_empty() {
                    without += 1;
                    assert_eq!(
                        (found.data.as_deref(), found.data_with_shared_labels),
                        (data, None)
                    );
                } else {
                    with += 1;
                    assert_eq!(
                        (found.data, found.data_with_shared_labels.as_deref()),
                        (None, data)
                    );
                }
            }
        }
        assert!(with > 300 && without > 300, "{with} and {without}");
    }

    /// Heartbeats change nodes all the time, and versions of the service may change from call to call.
    #[test]
    fn each_form_is_hashed_once() {
        let all: Vec<_> = (0..100).map(usual).collect();
        let mut nodes = Nodes::of(&keys_of(&all), 1);
        for node in &all {
            nodes.put(node);
        }
        let mut hashed = |shared| {
            let receiver = Receiver::EMPTY.reading_shared_labels(shared);
            render(Some(&mut nodes.buckets), None, &nodes.keys, 1, &receiver).hashed
        };
        assert!(hashed(true) > 0 && hashed(false) > 0);
        assert_eq!((hashed(true), hashed(false)), (0, 0));
    }
}
