//! Shared code of the end-to-end tests: a control plane with the real server and executor as separate processes. The
//! tests are in `tests/`. Tests that any executor must pass, in any language, are cases of `nodewise-conformance`.

mod replicas;
mod setup;
mod slow_proxy;
mod terminal;

pub use replicas::{Load, own_address};
pub use setup::{OBSERVER_COMPONENTS, OWNER_COMPONENTS, Setup, SetupOptions};
pub use slow_proxy::SlowProxy;
pub use terminal::Terminal;
