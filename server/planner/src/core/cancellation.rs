//! Cancels the computation of a plan, for example after the deadline of the request.

/// Nodes or pods that are visited between two checks. With this many, the planner stops within a fraction of a second even if
/// each object has as many taints and labels as a request may hold, and the checks cost next to nothing.
const STRIDE: usize = 64;

/// Checks whether to stop. Every method returns `None` when the planner must stop.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation<'s>(&'s dyn Fn() -> bool);

impl<'s> Cancellation<'s> {
    /// `stop` returns true once the plan is no longer wanted.
    pub(crate) fn new(stop: &'s dyn Fn() -> bool) -> Self {
        Self(stop)
    }

    /// Checks now.
    pub(crate) fn check(self) -> Option<()> {
        (!(self.0)()).then_some(())
    }

    /// Checks once per [`STRIDE`] calls in a loop; `index` is the loop's index.
    pub(crate) fn tick(self, index: usize) -> Option<()> {
        if index.is_multiple_of(STRIDE) {
            self.check()
        } else {
            Some(())
        }
    }
}
