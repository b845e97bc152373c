//! What the end-to-end tests share: a control plane with the real server and executor on it, as separate processes, and the
//! questions that tests ask of them. The scenarios themselves are in `tests/`; those that any executor has to go through, in
//! whatever language it is written, are cases of `nodewise-conformance`.

mod replicas;
mod rig;
mod slow_link;

pub use replicas::{Load, own_address};
pub use rig::{Rig, RigOptions};
pub use slow_link::SlowLink;
