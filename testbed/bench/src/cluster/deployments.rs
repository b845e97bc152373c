//! Deployments on a real apiserver: a large one, many small ones at once, and many at rest.

mod finding;
mod run;

use anyhow::Result;

use super::owner::{OwnerKind, Programs};
use super::sides::Sides;
use crate::report::Finding;

/// The size of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of pods of the large Deployment.
    pub pods: u32,
    /// The number of small Deployments.
    pub small: usize,
    /// The number of Deployments at rest.
    pub at_rest: usize,
    /// The number of rounds per owner.
    pub rounds: usize,
}

/// Measures both owners in turns.
///
/// # Errors
/// A program cannot be built or started, or a rollout does not finish.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let mut sides = Sides::default();
    for round in 1..=size.rounds {
        for who in OwnerKind::in_round(round) {
            let run = run::run(size, who, programs).await?;
            eprintln!("round {round} of {}, {}: {run}", size.rounds, who.name());
            sides.push(who, run);
        }
    }
    finding::of(size, &sides)
}
