//! Labels as they come, and what is odd about them.

use nodewise_planner::snapshot::Labels;

use crate::limits::Limits;
use crate::warnings::OddReason;

/// Bytes of a key that a warning repeats. The apiserver takes none that is longer.
const KEY_BYTES: usize = 317;

/// What is odd about an object: the reason, and a sentence that begins with the field.
pub(super) type Odd = Vec<(OddReason, String)>;

/// The labels that `make` makes of these entries. All of them are read, however many there are: an object's owner decides how
/// many labels it has, and any of them may be the one that a selector names. Entries without a key are none of Kubernetes', and
/// are left out; of entries with one key the last counts.
pub(super) fn read<'a>(
    entries: &mut Vec<(&'a str, &'a str)>,
    make: impl FnOnce(&mut [(&'a str, &'a str)]) -> Labels,
) -> (Labels, Odd) {
    let mut odd = Odd::new();
    let mut note = |sentence| odd.push((OddReason::Labels, sentence));
    let there = entries.len();
    if there > Limits::LIST_ENTRIES {
        let usual = Limits::LIST_ENTRIES;
        note(format!(
            "labels: there are {there}, more than {usual}; all of them are read"
        ));
    }
    entries.retain(|(key, _)| !key.is_empty());
    let nameless = there - entries.len();
    if nameless > 0 {
        note(format!("labels: {nameless} without a key; they are left out"));
    }
    let labels = make(entries);
    if labels.len() != entries.len() {
        // They are sorted by now.
        let twice = entries.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let key = twice.map_or("", |pair| pair[0].0);
        let key = &key[..key.floor_char_boundary(KEY_BYTES)];
        note(format!(
            "labels: key `{key}` is there more than once; its last value is used"
        ));
    }
    (labels, odd)
}
