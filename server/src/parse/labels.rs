//! Reads labels, with warnings about odd ones.

use crate::limits::Limits;
use crate::warnings::OddReason;

/// Most bytes of a key in a warning. The apiserver accepts no longer keys.
const KEY_BYTES: usize = 317;

/// The warnings about an object: reason, and a sentence that begins with the field.
pub(super) type Odd = Vec<(OddReason, String)>;

/// Sorts the entries by key, and makes the keys unique. All entries are read, however many, since a selector may name any of them. The
/// object has `besides` further labels, which are shared; they only count for the warning about their number.
/// Entries without a key, which Kubernetes does not allow, are left out. Of several entries with the same key the last one counts.
pub(super) fn tidy(entries: &mut Vec<(&str, &str)>, besides: usize) -> Odd {
    let mut odd = Odd::new();
    let all = entries.len() + besides;
    let is_usual = all <= Limits::LIST_ENTRIES
        && entries.first().is_none_or(|(key, _)| !key.is_empty())
        && entries.is_sorted_by(|a, b| a.0 < b.0);
    if is_usual {
        return odd;
    }
    let mut note = |sentence| odd.push((OddReason::Labels, sentence));
    let there = entries.len();
    if all > Limits::LIST_ENTRIES {
        let usual = Limits::LIST_ENTRIES;
        note(format!(
            "labels: there are {all}, more than {usual}; all of them are read"
        ));
    }
    entries.retain(|(key, _)| !key.is_empty());
    let nameless = there - entries.len();
    if nameless > 0 {
        note(format!("labels: {nameless} without a key; they are left out"));
    }
    // A stable sort, so that the last of equal keys stays last.
    entries.sort_by(|a, b| a.0.cmp(b.0));
    if let Some(twice) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let key = key_in_short(twice[0].0);
        note(format!(
            "labels: key `{key}` is there more than once; its last value is used"
        ));
        entries.reverse();
        entries.dedup_by(|later, first| later.0 == first.0);
        entries.reverse();
    }
    odd
}

/// A key, without what is beyond the length that the apiserver accepts.
pub(super) fn key_in_short(key: &str) -> &str {
    &key[..key.floor_char_boundary(KEY_BYTES)]
}
