//! Names that are derived, not chosen.

use crate::snapshot::DaemonSet;

/// The hash of a template: `data` is the canonical JSON of its revision.
pub(crate) fn revision_hash(_data: &[u8], _collision_count: Option<i32>) -> String {
    todo!()
}

/// The name of a revision. `shorten`: cut the workload's name so that the whole fits an object name.
pub(crate) fn revision_name(_ds: &DaemonSet, _hash: &str, _shorten: bool) -> String {
    todo!()
}

/// The name of the next pod on a node. `uids_on_node` are those of the workload's pods there, ascending.
pub(crate) fn pod_name(
    _ds: &DaemonSet,
    _node: &str,
    _hash: &str,
    _uids_on_node: &[&str],
    _salt: u32,
) -> String {
    todo!()
}
