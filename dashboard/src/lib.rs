//! The page of `nodewise dashboard`: its assets, and the handlers that feed it.
//!
//! The crate computes no states. Whoever runs the page puts [`Workload`]s on a [`Board`]; each has the message `WorkloadStatus` that all
//! views of Nodewise show. The handlers send browsers what has changed, as server-sent events. Questions that need the objects of the
//! cluster, such as the difference of two templates, go to the [`Source`] of the caller.
//!
//! * `board` keeps what is shown, with the number of the change that brought it.
//! * `changes` tells what a browser that knows an older state must learn.
//! * `access` lets in only who may: `Host`, session or bearer token.
//! * `assets` are the files of the page. `npm run build` writes them from `web/`, and they are committed.

mod access;
mod api;
mod assets;
mod board;
mod changes;
mod events;
mod server;
mod shared;
mod source;
mod timeline;

pub use access::{Access, Session, login_path};
pub use board::{Board, Cluster, Command, Divergence, Key, Workload};
pub use server::{Server, router};
pub use source::{Callers, Change, Comparison, Line, Problem, Reason, Revision, Source};
