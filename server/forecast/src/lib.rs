//! Plays a rollout to its end: what would happen if this workload were written now?
//!
//! [`daemon_set`], [`replica_set`] and [`deployment`] take a snapshot of a cluster with the changed workload, and assumptions about
//! pods. They run the real planner in a loop against the cluster of `nodewise-simulator`, under virtual time, and give each step to
//! the caller. The pods of a Deployment are planned by its ReplicaSets, as in a cluster: the planner runs for each of them.
//!
//! The crate is pure: it reads no clock, does no I/O and draws no random numbers. Equal inputs give equal steps.
//!
//! * [`Assumptions`] say how pods behave. `failing` chooses the pods that never become ready.
//! * `world` holds the pods in the simulated cluster, and shows them to the planner.
//! * `policies` plays those who steer a rollout with a RolloutPolicy: every check passes, and every stage is approved at once.
//! * `objects` converts between the planner's types and the JSON of the simulated cluster.
//! * `recorder` joins the plans of one time into a [`Step`], and says how the play ends.

mod assumptions;
mod daemon_set;
mod deployment;
mod failing;
mod objects;
mod policies;
mod recorder;
mod replica_set;
mod set_play;
mod sets;
mod step;
mod world;

pub use assumptions::{Assumptions, Bounds};
pub use daemon_set::daemon_set;
pub use deployment::deployment;
pub use replica_set::replica_set;
pub use step::{Budget, Change, Counts, End, Forecast, Limit, Step, Verb};

/// Why a snapshot cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The simulated cluster refuses an object of the snapshot, or a write.
    #[error("the simulated cluster refuses {object}: {message}")]
    Refused {
        /// The object.
        object: String,
        /// The message of the simulated apiserver.
        message: String,
    },
    /// There are more nodes or replicas than the bounds allow.
    #[error("the snapshot has {found} {what}, more than the {most} that are played")]
    TooLarge {
        /// `nodes` or `replicas`.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The bound.
        most: usize,
    },
}
