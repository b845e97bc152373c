//! What the parsers of nodes and of pods have in common.

use nodewise_proto::v1;

use super::{
    Context,
    problems::{Path, Problems},
};
use crate::{
    cache::{BucketBy, Cacheable},
    refusal::Refusal,
    warnings::{OddKind, OddReason, Warnings},
};

/// The field that has the bytes of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `data`: earlier versions of the service read it, too.
    Plain,
    /// `data_with_shared_labels`.
    SharedLabels,
}

impl Form {
    /// The name of the field.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Plain => "data",
            Self::SharedLabels => "data_with_shared_labels",
        }
    }
}

/// A table of nodes or of pods.
pub(super) trait Item: Cacheable {
    /// The field name of the items in their bucket.
    const LIST: &'static str;
    /// Whether the bucket may be in `data_with_shared_labels`.
    const MAY_SHARE_LABELS: bool;
    /// Reads the items of a bucket.
    type Reader<'a>: Reader<'a, Table = Self>;

    /// The number of items.
    fn count(&self) -> usize;

    /// The name whose hash decides the bucket of an item.
    fn bucket_name(&self, index: usize, by: BucketBy) -> &str;
}

/// Reads the items of a bucket into a table.
pub(super) trait Reader<'a>: Sized {
    /// The table.
    type Table;

    /// A reader for the bucket `data`, which has so many items; `at` is the bucket.
    fn new(
        data: (&'a [u8], Form),
        items: usize,
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Self, Refusal>;

    /// Reads an item. An error of the caller is a problem. An odd object is a warning, and the item is used all the same. Returns
    /// the name whose hash decides the bucket; an error if the bytes cannot be decoded.
    fn read(
        &mut self,
        element: &'a [u8],
        by: BucketBy,
        at: &Path<'_>,
        notes: Notes<'_>,
    ) -> Result<&'a str, String>;

    /// The table. Adds a problem if an item is there twice, as far as one bucket alone can show; `at` is the bucket's list.
    fn finish(self, at: &Path<'_>, context: &mut Context<'_>) -> Result<Self::Table, Refusal>;
}

/// Collects the problems and warnings of an item.
pub(super) struct Notes<'a> {
    pub(super) problems: &'a mut Problems,
    pub(super) warnings: &'a mut Warnings,
}

impl Notes<'_> {
    pub(super) fn odd(
        &mut self,
        kind: OddKind,
        name: &str,
        odd: impl IntoIterator<Item = (OddReason, String)>,
    ) {
        for (reason, sentence) in odd {
            self.warnings.add(kind, name, reason, || sentence);
        }
    }
}

/// Reads the status of a condition.
pub(super) fn condition(value: i32, at: &Path<'_>, problems: &mut Problems) -> Option<bool> {
    match v1::ConditionStatus::try_from(value) {
        Ok(v1::ConditionStatus::Unspecified) => None,
        Ok(v1::ConditionStatus::True) => Some(true),
        Ok(v1::ConditionStatus::False | v1::ConditionStatus::Unknown) => Some(false),
        Err(_) => {
            problems.add(
                at,
                format!("{value} is no ConditionStatus that this server knows"),
            );
            None
        }
    }
}
