//! What a plan holds, without the steps that it is divided into.

use crate::v1;

impl v1::Plan {
    /// All actions, in the order in which they are applied.
    pub fn actions(&self) -> impl Iterator<Item = &v1::Action> {
        let batches = self.phases.iter().flat_map(|phase| &phase.batches);
        batches.flat_map(|batch| &batch.actions)
    }
}
