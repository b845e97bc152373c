//! The labels of the metric families.

use prometheus_client::encoding::EncodeLabelSet;

use crate::resource::Resource;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Name {
    pub(super) name: &'static str,
}

/// The group and name of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct GroupResource {
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
}

impl GroupResource {
    /// Returns the labels of this resource.
    #[must_use]
    pub fn of(resource: Resource) -> Self {
        Self {
            group: resource.group,
            resource: resource.plural,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiCall {
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) code: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Fate {
    pub(super) fate: &'static str,
}
