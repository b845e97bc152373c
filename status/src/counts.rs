//! Counts units.

use nodewise_proto::v1;

use crate::units::{Progress, Unit};

/// The counts of a workload that should have `desired` units.
pub(crate) fn of(units: &[Unit], desired: u32) -> v1::UnitCounts {
    let mut counts = v1::UnitCounts {
        desired,
        ..v1::UnitCounts::default()
    };
    for unit in units {
        let count = match unit.progress {
            Progress::Done => &mut counts.done,
            Progress::Progressing => &mut counts.progressing,
            Progress::Blocked(_) => &mut counts.blocked,
            Progress::Waiting => &mut counts.waiting,
            Progress::MustNotRun => &mut counts.must_not_run,
        };
        *count = count.saturating_add(1);
    }
    counts
}
