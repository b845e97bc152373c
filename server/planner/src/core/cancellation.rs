//! Giving up on a plan that nobody waits for any more.

/// How many nodes or pods are walked between two looks: often enough to stop within a fraction of a second though each has
/// as many taints and labels as a request may hold, rare enough to cost nothing.
const STRIDE: usize = 64;

/// Asks whether to stop. `None` from any method means that the answer is yes.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation<'s>(&'s dyn Fn() -> bool);

impl<'s> Cancellation<'s> {
    /// `stop` turns true when the plan is no longer wanted.
    pub(crate) fn new(stop: &'s dyn Fn() -> bool) -> Self {
        Self(stop)
    }

    /// Asks now.
    pub(crate) fn check(self) -> Option<()> {
        (!(self.0)()).then_some(())
    }

    /// Asks now and then in a walk over many things; `index` counts them.
    pub(crate) fn tick(self, index: usize) -> Option<()> {
        if index.is_multiple_of(STRIDE) {
            self.check()
        } else {
            Some(())
        }
    }
}
