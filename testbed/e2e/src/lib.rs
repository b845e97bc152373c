//! What the end-to-end tests share: a control plane with the real server and executor on it, as separate processes, and the
//! questions that tests ask of it. The scenarios themselves are in `tests/`.

mod binaries;
mod budget;
mod daemon_set;
mod newer_api;
mod odd;
mod owners;
mod picture;
mod replicas;
mod rig;
mod slow_link;

pub use binaries::{Binaries, binaries};
pub use budget::{BudgetWatch, Seen, is_live, is_ready, node_of};
pub use daemon_set::{DaemonSetBuilder, daemon_set, image_patch};
pub use newer_api::{NewerApi, add_later_fields, later_fields};
pub use odd::{odd_placement, odd_volumes, odd_words};
pub use owners::{UPSTREAM_USER, Upstream, plan_count};
pub use picture::Picture;
pub use replicas::{Load, Replica};
pub use rig::{DEADLINE, EXECUTOR_USER, Rig, RigOptions};
pub use slow_link::SlowLink;
