//! Pods in encoded form, and the bytes of a bucket of pods.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use nodewise_proto::v1;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::encoded_object::{EncodedPod, OwnFields, Shared, merge};
use super::placement::Placement;
use super::shared_fields::{SharedFields, shared_len, write_shared};
use super::wire::{LIST_TAG, element_len, write_head};
use crate::label_keys::{KeySet, MAX_LABELS};
use crate::selector::Selector;

/// The tag in Pod of the number of its shared metadata.
const NUMBER_TAG: u32 = 13;
/// The tags in Pod of the node that it is on, and of the node that it is meant for.
const NODE_TAGS: [u32; 2] = [5, 6];

impl EncodedPod {
    /// Creates a pod. `own` has the fields that are not in `shared`.
    #[must_use]
    pub fn of_pod(own: &v1::Pod, shared: Arc<SharedFields>, version: &str) -> Self {
        Self::new(own, &own.uid, shared, version)
    }

    /// The uid of the controller.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.shared().owner()
    }

    /// Which bucket the pods of the controller belong to.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.shared().placement()
    }

    /// The keys of the labels that are stored; `None` if all are.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<KeySet>> {
        self.shared().known()
    }

    /// Whether all labels that the selector reads are stored, so that it can be evaluated.
    #[must_use]
    pub fn has_labels_of(&self, selector: &Selector) -> bool {
        self.known().is_none_or(|known| known.has(selector.keys()))
    }

    /// The node of the pod, or else its target node. Pods are ordered by it, so it is found without decoding the pod.
    #[must_use]
    pub fn target_node(&self) -> &str {
        self.first_text(&NODE_TAGS).unwrap_or_default()
    }

    /// Decodes the pod, with all labels that are stored.
    #[must_use]
    pub fn pod(&self) -> v1::Pod {
        let mut pod = self.decode_own::<v1::Pod>();
        merge(&mut pod, self.shared().encoded());
        pod
    }
}

/// The length of a pod with these fields in a bucket, without its tag and length. `number` is the number of the shared fields, or 0.
fn sent_len(own: OwnFields<'_>, number: u32) -> usize {
    let refers = if number == 0 {
        0
    } else {
        1 + encoded_len_varint(number.into())
    };
    own.len() + refers
}

/// Writes a pod with these fields as an element of its bucket.
fn write(own: OwnFields<'_>, number: u32, buffer: &mut impl BufMut) {
    write_head(LIST_TAG, sent_len(own, number), buffer);
    own.write_head(buffer);
    own.write_tail(buffer);
    if number > 0 {
        encode_key(NUMBER_TAG, WireType::Varint, buffer);
        encode_varint(number.into(), buffer);
    }
}

impl Shared for SharedFields {
    const MAY_SHARE_LABELS: bool = false;

    fn node(object: &EncodedPod) -> &str {
        object.target_node()
    }

    fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool {
        self.encoded() == other.encoded() || self.sent(keys) == other.sent(keys)
    }

    fn cut(&self, keys: &KeySet) -> usize {
        // An encoded label has at least four bytes.
        if self.encoded().len() / 4 > MAX_LABELS {
            keys.reduce_labels(&mut self.labels())
        } else {
            0
        }
    }

    /// Labels and controllers are sent once.
    fn write_bucket(members: &[&EncodedPod], keys: &KeySet, _: bool) -> (Bytes, bool) {
        let mut shared = SharedNumbers::default();
        let with_numbers = members
            .iter()
            .map(|pod| (pod.own(), shared.number(pod.shared(), keys)));
        let pods: Vec<_> = with_numbers.collect();
        let own = pods
            .iter()
            .map(|(own, number)| element_len(sent_len(*own, *number)));
        let parts = shared.parts.iter().map(|part| shared_len(part));
        let size = own.chain(parts).sum();
        let mut buffer = BytesMut::with_capacity(size);
        for (own, number) in pods {
            write(own, number, &mut buffer);
        }
        for part in &shared.parts {
            write_shared(part, &mut buffer);
        }
        debug_assert_eq!(buffer.len(), size);
        (buffer.freeze(), false)
    }
}

/// The shared fields of the pods of a bucket, numbered in order of their first use.
#[derive(Default)]
struct SharedNumbers<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    /// The numbers, by the encoded fields that are sent, so that the bytes of a bucket do not depend on the order of its
    /// changes.
    numbers: HashMap<Cow<'a, [u8]>, u32>,
    last: Option<(&'a Arc<SharedFields>, u32)>,
}

impl<'a> SharedNumbers<'a> {
    /// The number of the shared fields of a pod, from 1; 0 if nothing is shared.
    fn number(&mut self, shared_fields: &'a Arc<SharedFields>, keys: &KeySet) -> u32 {
        if shared_fields.encoded().is_empty() {
            return 0;
        }
        // Most pods share the fields of the pod before them.
        if let Some((last, number)) = self.last
            && Arc::ptr_eq(last, shared_fields)
        {
            return number;
        }
        let sent = shared_fields.sent(keys);
        let number = if sent.is_empty() {
            0
        } else {
            *self.numbers.entry(sent).or_insert_with_key(|sent| {
                self.parts.push(sent.clone());
                u32::try_from(self.parts.len()).expect("fewer than there are pods")
            })
        };
        self.last = Some((shared_fields, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::testing::{NAMES, UIDS};
    use super::*;

    #[test]
    fn a_pod_decodes_to_its_input() {
        let labels = vec![v1::Label {
            key: "app".into(),
            value: "x".into(),
        }];
        let metadata = v1::SharedMetadata {
            labels: labels.clone(),
            controller: None,
        };
        let shared = Arc::new(SharedFields::new(&metadata.encode_to_vec(), Some("owner")));
        for (name, uid) in NAMES.into_iter().flat_map(|name| UIDS.map(|uid| (name, uid))) {
            let own = v1::Pod {
                name: name.into(),
                uid: uid.into(),
                target_node_name: "n".into(),
                ..Default::default()
            };
            let stored = EncodedPod::of_pod(&own, Arc::clone(&shared), "12");
            assert_eq!(
                (stored.name(), stored.version(), stored.owner()),
                (name, "12", Some("owner"))
            );
            assert_eq!(stored.target_node(), "n");
            let whole = v1::Pod {
                labels: labels.clone(),
                ..own.clone()
            };
            assert_eq!(stored.pod(), whole);
            assert_eq!(stored.decode_own::<v1::Pod>(), own);
            for number in [0, 1, 200] {
                let mut written = Vec::new();
                write(stored.own(), number, &mut written);
                let refers = v1::Pod {
                    shared_metadata: number,
                    ..own.clone()
                };
                let alone = v1::PodBucket {
                    pods: vec![refers],
                    shared_metadata: Vec::new(),
                };
                assert_eq!(written, alone.encode_to_vec(), "{uid}");
            }
            let keys = crate::testing::keys(&["app"]);
            let (data, _) = SharedFields::write_bucket(&[&stored], &keys, true);
            let refers = v1::Pod {
                shared_metadata: 1,
                ..own
            };
            let bucket = v1::PodBucket {
                pods: vec![refers],
                shared_metadata: vec![metadata.clone()],
            };
            assert_eq!(data, bucket.encode_to_vec());
        }
    }

    #[test]
    fn a_pod_without_a_node_has_none() {
        let pod = v1::Pod {
            name: "p".into(),
            uid: UIDS[0].into(),
            // In these bytes it is no text.
            creation_time: Some(nodewise_proto::Timestamp {
                seconds: 1_790_000_000,
                nanos: 0,
            }),
            ..Default::default()
        };
        let shared = Arc::new(SharedFields::new(&[], None));
        let stored = EncodedPod::of_pod(&pod, shared, "1");
        assert_eq!((stored.target_node(), stored.name()), ("", "p"));
        assert_eq!(stored.pod(), pod);
    }

    #[test]
    fn another_uid_is_another_object() {
        let keys = KeySet::default();
        let shared = Arc::new(SharedFields::new(&[], None));
        let pod = |uid: &str, changed: u64| {
            let pod = v1::Pod {
                uid: uid.into(),
                ..Default::default()
            };
            let mut pod = EncodedPod::of_pod(&pod, Arc::clone(&shared), &changed.to_string());
            pod.change(changed);
            pod
        };
        for (at, uid) in UIDS.iter().enumerate() {
            for (other_at, other) in UIDS.iter().enumerate() {
                let is_same = pod(uid, 1).is_sent_as_same_bytes(&pod(other, 2), &keys);
                assert_eq!(is_same, at == other_at);
            }
        }
        assert_eq!(pod("u", 7).changed(), 7);
    }
}
