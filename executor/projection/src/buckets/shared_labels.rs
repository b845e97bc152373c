//! The labels that the nodes of a bucket share, and the bytes of a bucket in which each of them occurs once.
//!
//! The rule is that of [`nodewise_proto::nodes::sharing`], whose bytes are the same.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use nodewise_proto::v1;
use prost::encoding::{self, WireType, encode_key, encode_varint, encoded_len_varint};

use super::encoded_object::{EncodedObject, LABELS_TAG, LIST_TAG, element_len};
use crate::label_keys::KeySet;

/// The tag of the shared labels in NodeBucket.
const SHARED_LABELS_TAG: u32 = 2;
/// The tag in Node of the numbers of shared labels.
const NUMBERS_TAG: u32 = 9;

/// A label that several nodes may have. The order is that of the entries in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry<'a> {
    key: &'a str,
    /// The value is the name of each node. `value` is empty then.
    is_name: bool,
    value: &'a str,
}

impl<'a> Entry<'a> {
    fn of(label: &'a v1::Label, node: &str) -> Self {
        let is_name = label.value == node;
        Self {
            key: &label.key,
            is_name,
            value: if is_name { "" } else { &label.value },
        }
    }

    fn message(self) -> v1::SharedLabel {
        v1::SharedLabel {
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            value_is_node_name: self.is_name,
        }
    }
}

/// A label of a node.
#[derive(Clone, Copy, Debug)]
struct NodeLabel<'a> {
    label: &'a Arc<v1::Label>,
    /// At first the index of its entry in the order of their first use; then its number in the bucket, or 0 if it is the node's own.
    number: u32,
}

/// The labels of the nodes of a bucket.
#[derive(Debug)]
pub(super) struct SharedLabels<'a> {
    /// The entries that nodes refer to, in order.
    entries: Vec<v1::SharedLabel>,
    /// The labels that are sent, node by node.
    labels: Vec<NodeLabel<'a>>,
    /// The number of labels of all nodes up to this one.
    ends: Vec<usize>,
}

impl<'a> SharedLabels<'a> {
    /// The labels of these nodes that are sent.
    pub(super) fn of(nodes: &[&'a EncodedObject], keys: &KeySet) -> Self {
        let mut found = Found::default();
        let (mut labels, mut ends) = (Vec::new(), Vec::with_capacity(nodes.len()));
        let mut before = 0..0;
        for node in nodes {
            let start = labels.len();
            for label in node.sent_labels(keys) {
                // Most labels are those of the node before, at the same place.
                let other = labels.get(before.start + labels.len() - start).copied();
                let number = found.count(label, node.name(), other);
                labels.push(NodeLabel { label, number });
            }
            before = start..labels.len();
            ends.push(before.end);
        }
        let (entries, numbers) = found.numbered();
        for label in &mut labels {
            label.number = numbers[label.number as usize];
        }
        Self {
            entries,
            labels,
            ends,
        }
    }

    /// Whether any node shares a label.
    pub(super) fn is_used(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Writes the bucket of these nodes, which are those of [`Self::of`].
    pub(super) fn write(&self, nodes: &[&EncodedObject]) -> Bytes {
        let mut begin = 0;
        let mut parts = Vec::with_capacity(nodes.len());
        for (node, end) in nodes.iter().zip(&self.ends) {
            parts.push(NodeParts::of(node, &self.labels[begin..*end]));
            begin = *end;
        }
        let entry_len = |entry| encoding::message::encoded_len(SHARED_LABELS_TAG, entry);
        let size = parts.iter().map(|node| element_len(node.len)).sum::<usize>()
            + self.entries.iter().map(entry_len).sum::<usize>();
        let mut buffer = BytesMut::with_capacity(size);
        for node in &parts {
            node.write(&mut buffer);
        }
        for entry in &self.entries {
            encoding::message::encode(SHARED_LABELS_TAG, entry, &mut buffer);
        }
        buffer.freeze()
    }
}

/// The entries so far, with the number of nodes that have each.
#[derive(Default)]
struct Found<'a> {
    entries: Vec<(Entry<'a>, u32)>,
    indices: HashMap<Entry<'a>, u32>,
}

impl<'a> Found<'a> {
    /// Counts a label of a node. Returns the index of its entry. `other` is a label of another node that may be the same.
    fn count(&mut self, label: &'a v1::Label, node: &str, other: Option<NodeLabel<'a>>) -> u32 {
        let entry = Entry::of(label, node);
        let same = other.filter(|other| {
            let is_name = self.entries[other.number as usize].0.is_name;
            std::ptr::eq(&raw const **other.label, label) && !entry.is_name && !is_name
        });
        let index = match same {
            Some(other) => other.number,
            None => *self.indices.entry(entry).or_insert_with(|| {
                self.entries.push((entry, 0));
                u32::try_from(self.entries.len() - 1).expect("fewer than there are labels")
            }),
        };
        self.entries[index as usize].1 += 1;
        index
    }

    /// The entries that nodes refer to, and for each index the number of its entry, or 0.
    fn numbered(self) -> (Vec<v1::SharedLabel>, Vec<u32>) {
        let is_shared = |(entry, nodes): &(Entry<'_>, u32)| *nodes > 1 && !entry.key.is_empty();
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.retain(|index| is_shared(&self.entries[*index]));
        order.sort_unstable_by_key(|index| self.entries[*index].0);
        let mut numbers = vec![0; self.entries.len()];
        for (number, index) in (1..).zip(&order) {
            numbers[*index] = number;
        }
        let message = |index: usize| self.entries[index].0.message();
        (order.into_iter().map(message).collect(), numbers)
    }
}

/// A node and what is written of it.
struct NodeParts<'a> {
    /// The fields before and after the labels.
    fields: (&'a [u8], &'a [u8]),
    /// The labels, ordered by key; so the numbers ascend.
    labels: &'a [NodeLabel<'a>],
    /// The bytes of the numbers.
    numbers_len: usize,
    /// The bytes of the node.
    len: usize,
}

impl<'a> NodeParts<'a> {
    fn of(node: &'a EncodedObject, labels: &'a [NodeLabel<'a>]) -> Self {
        let fields = node.around_labels();
        let (mut own_len, mut numbers_len) = (0, 0);
        for label in labels {
            if label.number == 0 {
                own_len += encoding::message::encoded_len(LABELS_TAG, &**label.label);
            } else {
                numbers_len += encoded_len_varint(label.number.into());
            }
        }
        let numbers = if numbers_len == 0 {
            0
        } else {
            element_len(numbers_len)
        };
        Self {
            fields,
            labels,
            numbers_len,
            len: fields.0.len() + own_len + fields.1.len() + numbers,
        }
    }

    fn write(&self, buffer: &mut BytesMut) {
        encode_key(LIST_TAG, WireType::LengthDelimited, buffer);
        encode_varint(self.len as u64, buffer);
        buffer.extend_from_slice(self.fields.0);
        for own in self.labels.iter().filter(|label| label.number == 0) {
            encoding::message::encode(LABELS_TAG, &**own.label, buffer);
        }
        buffer.extend_from_slice(self.fields.1);
        if self.numbers_len > 0 {
            encode_key(NUMBERS_TAG, WireType::LengthDelimited, buffer);
            encode_varint(self.numbers_len as u64, buffer);
            for label in self.labels.iter().filter(|label| label.number > 0) {
                encode_varint(label.number.into(), buffer);
            }
        }
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
    use crate::buckets::{Buckets, render};

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
        buckets: Buckets,
        keys: Arc<KeySet>,
        interned: BTreeSet<(String, String)>,
        labels: HashMap<(String, String), Arc<v1::Label>>,
    }

    impl Nodes {
        fn of(keys: &[&str], count: u32) -> Self {
            Self {
                buckets: Buckets::of_nodes(count),
                keys: Arc::new(crate::testing::keys(keys)),
                interned: BTreeSet::new(),
                labels: HashMap::new(),
            }
        }

        fn put(&mut self, node: &v1::Node) {
            let bucket = bucket::of(&node.name, self.buckets.count());
            let labels = node.labels.iter().map(|label| {
                let key = (label.key.clone(), label.value.clone());
                // Not all equal labels are the same object: a label is dropped with the last node that has it.
                if self.interned.insert(key.clone()) || self.interned.len().is_multiple_of(5) {
                    self.labels.insert(key.clone(), Arc::new(label.clone()));
                }
                Arc::clone(&self.labels[&key])
            });
            let object = EncodedObject::of_node(node.clone(), labels.collect(), "1", bucket);
            self.buckets.put(Arc::new(object));
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
                nodes.buckets.remove(bucket::of(&name, 2), &name);
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
