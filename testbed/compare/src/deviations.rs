//! What each deviation may change in one sync. Whatever else differs in the default profile is a defect.

use nodewise_proto::v1::Deviation;

use crate::effects::Field;

/// Deviations that no plan names, since they show only when it is applied.
pub const UNTOLD: [Deviation; 3] = [
    Deviation::LowerOnNamespaceTerminating,
    Deviation::DeletionsByUid,
    Deviation::StatusWithUid,
];

/// The fields in which a deviation may show.
#[must_use]
pub fn may_change(deviation: Deviation) -> &'static [Field] {
    match deviation {
        // Where upstream's sync ends early, all that follows is different.
        Deviation::RelabelDuplicatesOnly
        | Deviation::ShortenRevisionNames
        | Deviation::EmptySelectorByMeaning => &Field::ALL,
        // Where nothing is deleted the rolling update comes at once, and an error of it in place of a timer.
        Deviation::SkipDeletingOnMissingNodes => &[
            Field::PodDeletes,
            Field::PodCreates,
            Field::RevisionDeletes,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
            Field::Error,
        ],
        // What comes after the error that is spared sets timers, too.
        Deviation::SurgeIgnoresMissingNodes => &[
            Field::PodDeletes,
            Field::PodCreates,
            Field::Events,
            Field::Expectations,
            Field::RevisionDeletes,
            Field::Requeue,
            Field::Error,
        ],
        // A create that is not made cannot fail either, and does not hold up what comes after it.
        Deviation::SurgeHonoursBackoff => &[
            Field::PodCreates,
            Field::PodDeletes,
            Field::RevisionDeletes,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
            Field::Error,
        ],
        Deviation::DecideAfterCut => &[Field::Events, Field::Backoff, Field::Requeue],
        Deviation::EarliestRequeue => &[Field::Requeue],
        Deviation::SkipEqualStatusWrites | Deviation::StatusWithUid => {
            &[Field::Status, Field::Requeue, Field::Error]
        }
        Deviation::LowerOnNamespaceTerminating | Deviation::DeletionsByUid => &[Field::Expectations],
        // The ramp begins where it was, and what was expected decides whether more is created. After as many creates as the burst
        // the executor comes back at once, and while such plans follow each other the status may wait.
        Deviation::SlowStartAcrossPlans => &[
            Field::PodCreates,
            Field::Status,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
            Field::Error,
        ],
        // Names are levelled, preconditions are not looked at, and the others show only between syncs.
        Deviation::IdempotentCreates
        | Deviation::DeleteWithUid
        | Deviation::ClearReplacedOwnWrites
        | Deviation::WakeOnNodeDelete
        | Deviation::Unspecified => &[],
    }
}
