//! The fields that many pods have in common, stored once, and sent once per bucket.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;
use prost::Message as _;

use super::placement::Placement;
use super::wire::{element_len, write_element};
use crate::label_keys::KeySet;

/// The tag of the shared metadata in PodBucket.
const SHARED_METADATA_TAG: u32 = 2;

/// Encoded fields that several objects share: a SharedMetadata message.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedFields {
    encoded: Box<[u8]>,
    /// The uid of the controller in the fields.
    owner: Option<Arc<str>>,
    /// The keys of the labels that are stored; `None` if all are.
    known: Option<Arc<KeySet>>,
    /// Which bucket the controller's pods belong to.
    placement: Placement,
}

impl SharedFields {
    /// Creates shared fields. `encoded` includes the controller with the uid `owner`.
    #[must_use]
    pub fn new(encoded: &[u8], owner: Option<&str>) -> Self {
        Self {
            encoded: encoded.into(),
            owner: owner.map(Arc::from),
            known: None,
            placement: Placement::default(),
        }
    }

    /// Sets which bucket the controller's pods belong to.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Notes that of the labels only those with these keys are stored; `None` if all are.
    #[must_use]
    pub fn with_known_keys(self, known: Option<Arc<KeySet>>) -> Self {
        Self { known, ..self }
    }

    /// The keys of the labels that are stored; `None` if all are.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<KeySet>> {
        self.known.as_ref()
    }

    /// The uid of the controller.
    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Which bucket the controller's pods belong to.
    pub(super) fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the fields as Protobuf.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Returns the labels in the fields.
    #[must_use]
    pub fn labels(&self) -> Vec<v1::Label> {
        self.decode().labels
    }

    fn decode(&self) -> v1::SharedMetadata {
        v1::SharedMetadata::decode(self.encoded()).expect("what was encoded here decodes")
    }

    /// Returns the encoded fields, with only the labels that are sent.
    pub(super) fn sent(&self, keys: &KeySet) -> Cow<'_, [u8]> {
        let mut metadata = self.decode();
        let all = metadata.labels.len();
        keys.reduce_labels(&mut metadata.labels);
        if metadata.labels.len() == all {
            Cow::Borrowed(self.encoded())
        } else {
            Cow::Owned(metadata.encode_to_vec())
        }
    }
}

/// The length of the output of [`write_shared`], in bytes.
pub(super) fn shared_len(encoded: &[u8]) -> usize {
    element_len(encoded.len())
}

/// Writes shared fields as an element of a PodBucket.
pub(super) fn write_shared(encoded: &[u8], buffer: &mut impl BufMut) {
    write_element(SHARED_METADATA_TAG, encoded, buffer);
}
