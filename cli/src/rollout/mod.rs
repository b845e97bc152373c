//! `nodewise rollout`: one rollout in detail, live, and the commands that steer it.

mod exit;
mod hints;
pub(crate) mod status;
mod watch;
