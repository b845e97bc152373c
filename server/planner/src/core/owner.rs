//! What claims, patches and names need to know of a workload of any kind.

use crate::core::selector::Selector;

/// A workload as the owner of its pods and revisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// The kind, in the API group and version `apps/v1`.
    pub(crate) kind: &'static str,
    /// metadata.name.
    pub(crate) name: &'a str,
    /// metadata.uid.
    pub(crate) uid: &'a str,
    /// spec.selector; `None` when absent.
    pub(crate) selector: Option<&'a Selector>,
    /// metadata.deletionTimestamp is set.
    pub(crate) deleting: bool,
}
