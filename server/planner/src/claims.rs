//! Which objects are the workload's: who is kept, adopted, released, ignored.

use crate::snapshot::{ControllerRef, DaemonSet, Labels};

/// What to do about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The workload's already.
    Owned,
    /// An orphan that becomes the workload's.
    Adopt,
    /// The workload's, but not selected any more.
    Release,
    /// None of the workload's business.
    Ignore,
}

/// What to do about a pod (or anything else that is looked up by its controller's kind, name and uid).
pub(crate) fn claim(
    _ds: &DaemonSet,
    _labels: &Labels,
    _controller: Option<&ControllerRef>,
    _deleting: bool,
) -> Claim {
    todo!()
}

/// The strategic merge patch that makes the workload the controller of the object with this uid.
pub(crate) fn adopt_patch(_ds: &DaemonSet, _uid: &str) -> Vec<u8> {
    todo!()
}

/// The strategic merge patch that removes the workload from the owners of the object with this uid.
pub(crate) fn release_patch(_ds: &DaemonSet, _uid: &str) -> Vec<u8> {
    todo!()
}
