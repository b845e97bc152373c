//! The deadline of the kit's waits.

use std::time::Duration;

/// How long to wait for a condition, unless a run says otherwise. Only failures reach it.
pub const DEADLINE: Duration = Duration::from_mins(2);
