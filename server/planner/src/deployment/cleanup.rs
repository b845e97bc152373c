//! Deletes old ReplicaSets beyond the history limit (P-51).

use crate::{
    core::plan::{Action, ActionKind, Reason, Resource},
    deployment::{plan_builder::PlanBuilder, revision, set_write, workload::Set},
};

/// Up to this many sets, upstream's sort is an insertion sort.
const INSERTION_SORT: usize = 12;

/// Plans the deletes. `old` are the old sets in the order in which upstream's sort finds them.
pub(crate) fn plan(builder: &mut PlanBuilder<'_>, mut old: Vec<&Set>) {
    let Some(limit) = builder.deployment.history_limit() else {
        return;
    };
    old.retain(|set| !set.deleting);
    let limit = usize::try_from(limit).unwrap_or(0);
    let Some(excess) = old.len().checked_sub(limit).filter(|excess| *excess > 0) else {
        return;
    };
    sort(&mut old);
    // A set that must stay is not replaced by another one.
    let deleted = old.iter().take(excess).filter(|set| is_empty(set));
    builder.cleanup = deleted
        .map(|set| Action {
            reason: Reason::HistoryLimit,
            message: format!(
                "{} has no pods, and of {} old ReplicaSets only {limit} are kept",
                set.name,
                old.len()
            ),
            kind: ActionKind::DeleteObject {
                resource: Resource::ReplicaSets,
                object: set_write::reference(set),
                resource_version: String::new(),
            },
        })
        .collect();
}

/// Whether a set has no pods, and its status is up to date.
fn is_empty(set: &Set) -> bool {
    set.replicas == 0 && set.status.replicas == 0 && set.generation <= set.status.observed_generation
}

/// Sorts by revision, then age. If a revision is no number, upstream compares such a pair by age, which is no order; then the result
/// depends on the steps of its sort. These are the same here as long as upstream uses an insertion sort. For more sets, such a
/// revision counts as 0.
pub(crate) fn sort(sets: &mut [&Set]) {
    let mut keys: Vec<(Option<i64>, &Set)> = sets.iter().map(|set| (revision::of(set), *set)).collect();
    let is_ordered = keys.iter().all(|(revision, _)| revision.is_some());
    if is_ordered || keys.len() > INSERTION_SORT {
        keys.sort_by(|(a, first), (b, second)| {
            (a.unwrap_or(0).cmp(&b.unwrap_or(0))).then_with(|| Set::by_age(first, second))
        });
    } else {
        for end in 1..keys.len() {
            let mut at = end;
            while at > 0 && is_before(keys[at], keys[at - 1]) {
                keys.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    for (place, (_, set)) in sets.iter_mut().zip(keys) {
        *place = set;
    }
}

fn is_before((a, first): (Option<i64>, &Set), (b, second): (Option<i64>, &Set)) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a != b => a < b,
        _ => Set::by_age(first, second).is_lt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::{annotations::REVISION, fixtures::set};

    /// The names of sets with these revisions after sorting. `-` stands for none. The sets are `a`, `b`, …, by age.
    fn sorted(revisions: &str, newest_first: bool) -> String {
        let sets: Vec<Set> = revisions
            .split(' ')
            .enumerate()
            .map(|(index, revision)| {
                let name = char::from(b'a' + u8::try_from(index).expect("few sets")).to_string();
                let annotations = [(REVISION, revision)];
                let annotations: &[_] = if revision == "-" { &[] } else { &annotations };
                set(&name, annotations, i64::try_from(index).expect("few sets"))
            })
            .collect();
        let mut sets: Vec<&Set> = sets.iter().collect();
        if newest_first {
            sets.reverse();
        }
        sort(&mut sets);
        sets.into_iter().map(|set| set.name.as_str()).collect()
    }

    #[test]
    fn p_51_the_order_of_old_sets() {
        // (scenario, revisions, from the oldest, from the newest)
        let table = [
            ("PS-102", "3 1 4 2", "bdac", "bdac"),
            ("PS-100", "1 -", "ba", "ba"),
            ("equal revisions", "2 2 1", "cab", "cab"),
            // A revision that is no number is compared by age with each neighbour.
            ("no number in the middle", "3 x 1", "abc", "bca"),
            ("no number first", "x 3 1", "acb", "acb"),
            ("an empty revision is no number", "3  1", "abc", "bca"),
            ("equal revisions beside no number", "2 2 x", "abc", "abc"),
            (
                "the most of an insertion sort",
                "1 2 3 4 5 6 7 8 9 10 11 x",
                "abcdefghijkl",
                "abcdefghijkl",
            ),
            (
                "more than an insertion sort, no number last",
                "1 2 3 4 5 6 7 8 9 10 11 12 x",
                "mabcdefghijkl",
                "mabcdefghijkl",
            ),
            (
                "more than an insertion sort",
                "x 1 2 3 4 5 6 7 8 9 10 11 0",
                "ambcdefghijkl",
                "ambcdefghijkl",
            ),
        ];
        for (what, revisions, oldest_first, newest_first) in table {
            assert_eq!(sorted(revisions, false), oldest_first, "{what}");
            assert_eq!(sorted(revisions, true), newest_first, "{what}, from the newest");
        }
    }
}
