//! Parses requests into the planner's types. The parser reports every error with the name of its field, so the planner needs no
//! error type.
//!
//! A request is refused only for errors of its caller or of the workload's owner. Others write nodes, pods and revisions: an odd
//! one is a warning, and the plan is made all the same (docs/security.md lists who can reach which limit).

mod bucket;
mod items;
mod json;
mod labels;
mod nodes;
pub(crate) mod options;
pub(crate) mod overhead;
mod pods;
mod problems;
mod report;
pub(crate) mod request;
mod revision;
mod selector;
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
pub(crate) use workload::MOST_VALUE_BYTES;

/// Entries of small messages that are read between two checks of the deadline.
const ENTRIES_PER_CHECK: usize = 4_096;

/// The inputs of the parser besides the request, and its findings.
pub(crate) struct Context<'a> {
    /// Decoded buckets of earlier calls.
    pub(crate) cache: &'a Cache,
    /// The limits of a request.
    pub(crate) limits: &'a Limits,
    /// Whether the caller has stopped waiting.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// The errors so far.
    pub(crate) problems: Problems,
    /// The warnings so far.
    pub(crate) warnings: Warnings,
    /// Whether entries of the state name a node, as those of a DaemonSet do.
    has_nodes: bool,
    /// Whether the snapshot of a Deployment has the pods of its ReplicaSets. A plan does not need them; a simulation does.
    pub(crate) has_pods_of_sets: bool,
}

impl<'a> Context<'a> {
    /// A context for a new request.
    pub(crate) fn new(cache: &'a Cache, limits: &'a Limits, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            cache,
            limits,
            stop,
            problems: Problems::default(),
            warnings: Warnings::default(),
            has_nodes: true,
            has_pods_of_sets: false,
        }
    }

    /// Adds an error if a node is missing that the kind of workload needs.
    pub(crate) fn require_node(&mut self, at: &Path<'_>, node_name: &str) {
        if self.has_nodes {
            self.problems.require(&at.field("node_name"), node_name);
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

    /// Checks for a stop now and then in a loop over many entries; `index` counts the entries.
    pub(crate) fn check_stop_at(&self, index: usize) -> Result<(), Refusal> {
        if index.is_multiple_of(ENTRIES_PER_CHECK) {
            self.check_stop()
        } else {
            Ok(())
        }
    }

    /// An error once the caller has stopped waiting.
    pub(crate) fn check_stop(&self) -> Result<(), Refusal> {
        if (self.stop)() {
            Err(Refusal::Stopped)
        } else {
            Ok(())
        }
    }
}
