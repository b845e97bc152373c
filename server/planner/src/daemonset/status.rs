//! The status: counts of nodes in the snapshot, before the plan's own writes (D-93).

use crate::{
    core::{
        plan::{Action, ActionKind, Reason},
        snapshot::{Deviation, Options},
        status::DaemonSetStatus,
    },
    daemonset::{bucket_summary::SettledNodes, cluster_view::ClusterView, workload::DaemonSet},
};

/// Counts the status. `observed_generation` is the generation to report (D-90).
pub(crate) fn count(view: &ClusterView<'_>, observed_generation: i64) -> DaemonSetStatus {
    let SettledNodes { running, keeping } = view.settled;
    let mut counts = [running, keeping, running, running, running];
    let [current, misscheduled, ready, updated, available] = &mut counts;
    for entry in view.entries.iter().filter(|entry| entry.node.is_some()) {
        match view.pods(entry).first() {
            Some(first) if entry.fit.run => {
                *current += 1;
                *ready += usize::from(first.pod.ready());
                *updated += usize::from(first.current());
                *available += usize::from(first.available);
            }
            Some(_) => *misscheduled += 1,
            None => {}
        }
    }
    let [current, misscheduled, ready, updated, available] = counts.map(saturate);
    let desired = saturate(view.desired);
    DaemonSetStatus {
        current_number_scheduled: current,
        number_misscheduled: misscheduled,
        desired_number_scheduled: desired,
        number_ready: ready,
        updated_number_scheduled: updated,
        number_available: available,
        number_unavailable: desired.saturating_sub(available),
        observed_generation,
    }
}

/// Whether to write the status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// Do not write: nothing changed (D-89).
    No,
    /// Do not write, though upstream would write the unchanged status.
    OnlyUpstream,
    /// Write with this action.
    Yes(Box<Action>),
}

/// Compares the new status with the present one.
pub(crate) fn write(ds: &DaemonSet, status: DaemonSetStatus, options: &Options) -> Write {
    let counts = |status: DaemonSetStatus| DaemonSetStatus {
        observed_generation: 0,
        ..status
    };
    let (same, changes) = (counts(status) == counts(ds.status), changes(ds.status, status));
    if same && ds.status.observed_generation >= ds.generation {
        return Write::No;
    }
    let (reason, message) = if !same {
        (Reason::StatusChanged, format!("status: {}", changes.join(", ")))
    } else if status.observed_generation != ds.status.observed_generation {
        (
            Reason::GenerationObserved,
            format!("generation {} is observed", status.observed_generation),
        )
    } else if options.deviates(Deviation::SkipEqualStatusWrites) {
        return Write::OnlyUpstream;
    } else {
        (
            Reason::StatusRewritten,
            "unchanged, but the generation is not observed yet".to_owned(),
        )
    };
    Write::Yes(Box::new(Action {
        reason,
        message,
        kind: ActionKind::UpdateStatus {
            status,
            collision: None,
            uid_precondition: options.deviates(Deviation::StatusWithUid),
        },
    }))
}

/// Whether a status must be written at once: the generation or the desired number changed, or another count changed by more than a
/// quarter of the desired number.
pub(crate) fn is_urgent(old: &DaemonSetStatus, new: &DaemonSetStatus) -> bool {
    let same = |of: fn(&DaemonSetStatus) -> i64| of(old) == of(new);
    let quarter = i64::from(new.desired_number_scheduled) / 4;
    let moved = |of: fn(&DaemonSetStatus) -> i32| {
        i64::from(of(old)).abs_diff(of(new).into()) > quarter.unsigned_abs()
    };
    !same(|status| status.observed_generation)
        || !same(|status| status.desired_number_scheduled.into())
        || moved(|status| status.current_number_scheduled)
        || moved(|status| status.number_misscheduled)
        || moved(|status| status.number_ready)
        || moved(|status| status.updated_number_scheduled)
        || moved(|status| status.number_available)
}

fn changes(old: DaemonSetStatus, new: DaemonSetStatus) -> Vec<String> {
    let fields = [
        (
            "desired",
            old.desired_number_scheduled,
            new.desired_number_scheduled,
        ),
        (
            "current",
            old.current_number_scheduled,
            new.current_number_scheduled,
        ),
        (
            "updated",
            old.updated_number_scheduled,
            new.updated_number_scheduled,
        ),
        ("ready", old.number_ready, new.number_ready),
        ("available", old.number_available, new.number_available),
        ("unavailable", old.number_unavailable, new.number_unavailable),
        ("misscheduled", old.number_misscheduled, new.number_misscheduled),
    ];
    let changed = fields.into_iter().filter(|(_, old, new)| old != new);
    changed
        .map(|(name, old, new)| format!("{name} {old} → {new}"))
        .collect()
}

/// Converts a count to the API's 32 bits (D-94).
fn saturate(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_more_than_a_quarter_are_urgent() {
        let old = DaemonSetStatus {
            current_number_scheduled: 10,
            number_misscheduled: 10,
            desired_number_scheduled: 40,
            number_ready: 10,
            updated_number_scheduled: 10,
            number_available: 10,
            number_unavailable: 30,
            observed_generation: 1,
        };
        let counts: [fn(&mut DaemonSetStatus) -> &mut i32; 5] = [
            |status| &mut status.current_number_scheduled,
            |status| &mut status.number_misscheduled,
            |status| &mut status.number_ready,
            |status| &mut status.updated_number_scheduled,
            |status| &mut status.number_available,
        ];
        for count in counts {
            for (value, urgent) in [(10, false), (20, false), (21, true), (0, false), (-1, true)] {
                let mut new = old;
                *count(&mut new) = value;
                assert_eq!(is_urgent(&old, &new), urgent, "{new:?}");
            }
        }
        let of_generation = DaemonSetStatus {
            observed_generation: 2,
            ..old
        };
        let of_nodes = DaemonSetStatus {
            desired_number_scheduled: 41,
            ..old
        };
        assert!(is_urgent(&old, &of_generation) && is_urgent(&old, &of_nodes));
    }
}
