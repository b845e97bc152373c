//! The manifest of the pods to create.

use crate::{
    plan::PodManifest,
    snapshot::{DaemonSet, Options},
};

/// The label that names a pod's revision.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// The label that tells a pod's template generation.
pub(crate) const GENERATION_LABEL: &str = "pod-template-generation";

/// The template generation, from its annotation; `None` when absent or not an int64.
pub(crate) fn template_generation(_ds: &DaemonSet) -> Option<i64> {
    todo!()
}

/// The manifest of every pod that a plan creates. An empty hash gives no hash label.
pub(crate) fn pod_manifest(_ds: &DaemonSet, _current_hash: &str, _options: &Options) -> PodManifest {
    todo!()
}
