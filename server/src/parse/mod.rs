//! From requests to what the planner takes. Whatever is wrong is found here, each time with the name of its field, so that
//! the planner needs no error type.
//!
//! A request is refused only for what its caller, or the owner of the workload, got wrong. Nodes, pods and revisions are others':
//! what is odd about one of them is a warning, and the plan is made all the same (docs/security.md lists who can reach which
//! limit).

mod bucket;
mod items;
mod json;
mod labels;
pub(crate) mod options;
mod problems;
mod report;
pub(crate) mod request;
mod revision;
mod selector;
mod shared;
mod snapshot;
mod state;
mod time;
mod wire;
mod workload;

use crate::{
    cache::Cache,
    limits::Limits,
    refusal::{Refusal, Violation},
    warnings::Warnings,
};
pub(crate) use problems::{Path, Problems};
pub(crate) use snapshot::Parsed;

/// Entries of small messages read between two looks at the deadline.
const ENTRIES_PER_LOOK: usize = 4_096;

/// What parsing needs besides the request.
pub(crate) struct Context<'a> {
    /// Buckets of earlier calls.
    pub(crate) cache: &'a Cache,
    /// What a request may hold.
    pub(crate) limits: &'a Limits,
    /// Whether nobody waits for the answer any more.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// What was found wrong so far.
    pub(crate) problems: Problems,
    /// What was found odd so far.
    pub(crate) warnings: Warnings,
}

impl<'a> Context<'a> {
    /// At the beginning of a request.
    pub(crate) fn new(cache: &'a Cache, limits: &'a Limits, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            cache,
            limits,
            stop,
            problems: Problems::default(),
            warnings: Warnings::default(),
        }
    }

    /// Refuses a list that is longer than `most`.
    pub(crate) fn bound(at: &Path<'_>, count: usize, most: usize) -> Result<(), Refusal> {
        if count <= most {
            return Ok(());
        }
        Err(Refusal::TooLarge(Violation {
            field: at.to_string(),
            description: format!("{count} are more than the {most} that this server takes"),
        }))
    }

    /// Looks now and then in a walk over many entries; `index` counts them.
    pub(crate) fn tick(&self, index: usize) -> Result<(), Refusal> {
        if index.is_multiple_of(ENTRIES_PER_LOOK) {
            self.look()
        } else {
            Ok(())
        }
    }

    /// Ends parsing when nobody waits for the answer any more.
    pub(crate) fn look(&self) -> Result<(), Refusal> {
        if (self.stop)() {
            Err(Refusal::Stopped)
        } else {
            Ok(())
        }
    }
}
