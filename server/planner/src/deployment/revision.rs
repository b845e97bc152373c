//! The revision numbers of ReplicaSets, and what the new ReplicaSet takes over from the Deployment (P-18 to P-21).

use crate::deployment::{
    annotations::{REVISION, REVISION_HISTORY, is_copied},
    set_write::SetWrite,
    workload::{Deployment, Set},
};

/// The longest revision history of a ReplicaSet, in bytes.
const MAX_HISTORY: usize = 2_000;

/// The revision of a ReplicaSet: 0 if absent, `None` if it is no number.
pub(crate) fn of(set: &Set) -> Option<i64> {
    set.annotation(REVISION)
        .map_or(Some(0), |value| value.parse().ok())
}

/// The revision that the new ReplicaSet should have: one more than the highest of the old ones (P-18). Wraps as in upstream.
pub(crate) fn wanted<'a>(old: impl IntoIterator<Item = &'a Set>) -> i64 {
    let highest = old.into_iter().filter_map(of).fold(0, i64::max);
    highest.wrapping_add(1)
}

/// The second highest revision of all ReplicaSets; 0 if there is none (P-48). Revisions that occur twice count twice.
pub(crate) fn second_highest<'a>(sets: impl IntoIterator<Item = &'a Set>) -> i64 {
    let (mut highest, mut second) = (0, 0);
    for revision in sets.into_iter().filter_map(of) {
        if revision >= highest {
            (highest, second) = (revision, highest);
        } else if revision > second {
            second = revision;
        }
    }
    second
}

/// The annotations that a new ReplicaSet copies from its Deployment.
pub(crate) fn copied(deployment: &Deployment) -> impl Iterator<Item = (&str, &str)> {
    deployment
        .annotations
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .filter(|(key, _)| is_copied(key))
}

/// Makes an existing new ReplicaSet follow the Deployment: annotations, revision and minReadySeconds (P-19 to P-22). Returns whether
/// the set must be written.
///
/// If the set's revision is no number, the copied annotations alone are no reason to write it, but any other write has them.
pub(crate) fn follow<'a>(write: &mut SetWrite<'a>, deployment: &'a Deployment, wanted: i64) -> bool {
    for (key, value) in copied(deployment) {
        write.annotate(key, value.to_owned());
    }
    let mut changed = raise(write, wanted).is_some_and(|()| write.changes_annotations());
    if write.set.min_ready_seconds != deployment.min_ready_seconds {
        write.min_ready_seconds = deployment.min_ready_seconds;
        changed = true;
    }
    if changed {
        write.require();
    }
    changed
}

/// Raises the revision to `wanted`, and records the earlier one (P-20). `None` if the present one is no number.
fn raise(write: &mut SetWrite<'_>, wanted: i64) -> Option<()> {
    let before = write.set.annotation(REVISION);
    let number: i64 = match before {
        // An empty revision counts as 0 here, and is recorded as it is.
        None | Some("") => 0,
        Some(value) => value.parse().ok()?,
    };
    if number >= wanted {
        return Some(());
    }
    write.annotate(REVISION, wanted.to_string());
    if let Some(before) = before {
        let history = write.set.annotation(REVISION_HISTORY).unwrap_or_default();
        if let Some(history) = append(history, before, MAX_HISTORY) {
            write.annotate(REVISION_HISTORY, history);
        }
    }
    Some(())
}

/// Appends a revision to a history of at most `most` bytes. The oldest entries are dropped if necessary. `None` if even the revision
/// alone is too long: the history then stays.
pub(crate) fn append(history: &str, revision: &str, most: usize) -> Option<String> {
    // A history that is empty or begins with an empty entry is replaced, whatever the length.
    if history.is_empty() || history.starts_with(',') {
        return Some(revision.to_owned());
    }
    let mut rest = Some(history);
    while let Some(entries) = rest {
        if entries.len() + 1 + revision.len() <= most {
            return Some(format!("{entries},{revision}"));
        }
        rest = entries.split_once(',').map(|(_, newer)| newer);
    }
    (revision.len() <= most).then(|| revision.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::fixtures::set;

    #[test]
    fn p_18_p_48_the_highest_and_the_second_highest_revision() {
        // (revisions, wanted for a new set, second highest)
        let table: [(&[&str], i64, i64); 7] = [
            (&[], 1, 0),
            (&["4"], 5, 0),
            (&["1", "3", "2"], 4, 2),
            (&["2", "2"], 3, 2),
            (&["x", "", "7"], 8, 0),
            (&["-5"], 1, 0),
            (&["9223372036854775807", "1"], i64::MIN, 1),
        ];
        for (revisions, next, second) in table {
            let sets: Vec<Set> = revisions
                .iter()
                .map(|revision| set("a", &[(REVISION, revision)], 1))
                .collect();
            assert_eq!(wanted(&sets), next, "{revisions:?}");
            assert_eq!(second_highest(&sets), second, "{revisions:?}");
        }
    }

    #[test]
    fn p_20_the_history_drops_its_oldest_entries() {
        // (scenario, history, revision, limit, result)
        let table = [
            ("PS-70", "1,3,5", "7", 7, Some("1,3,5,7")),
            ("PS-70", "1,3,5", "7", 6, Some("3,5,7")),
            ("PS-70", "1,3,5", "7", 3, Some("5,7")),
            ("PS-70", "1,3,5", "7", 1, Some("7")),
            ("PS-70", "1,3,5", "7", 0, None),
            ("empty", "", "7", 0, Some("7")),
            ("an empty entry at the front", ",2", "7", 9, Some("7")),
            ("an empty entry at the end", "2,", "7", 9, Some("2,,7")),
            ("an empty revision", "1", "", 9, Some("1,")),
        ];
        for (what, history, revision, most, expected) in table {
            assert_eq!(append(history, revision, most).as_deref(), expected, "{what}");
        }
    }
}
