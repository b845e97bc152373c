//! The effects that each deviation may have in one sync. Any other difference in the default profile is a defect.

use nodewise_proto::v1::Deviation;

use crate::effects::Field;

/// Deviations that no plan names, because they have an effect only when the plan is applied.
pub const UNNAMED: [Deviation; 3] = [
    Deviation::LowerOnNamespaceTerminating,
    Deviation::DeletionsByUid,
    Deviation::StatusWithUid,
];

/// The fields that a deviation may change.
#[must_use]
pub fn may_change(deviation: Deviation) -> &'static [Field] {
    match deviation {
        // If upstream's sync ends early, all later effects differ.
        Deviation::RelabelDuplicatesOnly
        | Deviation::ShortenRevisionNames
        | Deviation::EmptySelectorByMeaning
        // Upstream goes on with the set that it released.
        | Deviation::ReleasedSetIsCollision => &Field::ALL,
        // If nothing is deleted, the rolling update follows at once, and its error can replace a timer.
        Deviation::SkipDeletingOnMissingNodes => &[
            Field::PodDeletes,
            Field::PodCreates,
            Field::RevisionDeletes,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
            Field::Error,
        ],
        // The steps after the avoided error also set timers.
        Deviation::SurgeIgnoresMissingNodes => &[
            Field::PodDeletes,
            Field::PodCreates,
            Field::Events,
            Field::Expectations,
            Field::RevisionDeletes,
            Field::Requeue,
            Field::Error,
        ],
        // A create that is not tried cannot fail, and does not block the next steps.
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
        Deviation::EarliestRequeue | Deviation::NoHotRequeue => &[Field::Requeue],
        Deviation::SkipEqualStatusWrites | Deviation::StatusWithUid => {
            &[Field::Status, Field::Requeue, Field::Error]
        }
        Deviation::LowerOnNamespaceTerminating | Deviation::DeletionsByUid => &[Field::Expectations],
        // Slow start continues at its last batch size, and the expectations decide whether more pods are created. After
        // as many creates as the burst the executor requeues at once, and may delay the status during a series of such
        // plans.
        Deviation::SlowStartAcrossPlans => &[
            Field::PodCreates,
            Field::Status,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
            Field::Error,
        ],
        // The refreshed annotations let a rollout go on in the next sync. If that write is refused, the sync ends.
        Deviation::RefreshDesiredReplicas => &[
            Field::Order,
            Field::Stored,
            Field::SetRefusals,
            Field::SetDeletes,
            Field::Error,
            Field::Status,
        ],
        Deviation::WideProportions => &[
            Field::Stored,
            Field::SetCreates,
            Field::Events,
            Field::Order,
            Field::SetRefusals,
            Field::Error,
            Field::Status,
            Field::SetDeletes,
            Field::Requeue,
        ],
        // Nothing is created for a workload that is gone, and the plan ends.
        Deviation::ConfirmBeforeCreates => &[
            Field::PodCreates,
            Field::SetCreates,
            Field::SetDeletes,
            Field::SetRefusals,
            Field::Stored,
            Field::Status,
            Field::Order,
            Field::Error,
            Field::Events,
            Field::Expectations,
            Field::Requeue,
        ],
        Deviation::RetryOldSetScaling => &[Field::Error, Field::Requeue, Field::SetDeletes, Field::Order],
        // The comparison ignores names and preconditions, and the others have an effect only between syncs.
        Deviation::IdempotentCreates
        | Deviation::DeleteWithUid
        | Deviation::ClearReplacedOwnWrites
        | Deviation::WakeOnNodeDelete
        | Deviation::Unspecified => &[],
    }
}
