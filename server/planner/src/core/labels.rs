//! The labels of thousands of objects.

use std::{cmp::Ordering, fmt, sync::Arc};

/// Labels, sorted by key; keys are unique.
///
/// All keys and values of an object are one text: there are thousands of objects with a handful of labels each, and an
/// allocation for every key and value would cost more time and memory than everything else about them. A copy is the same text:
/// the pods of a workload have the same labels, and what is looked at for each of them should be in the processor's cache.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Labels(Option<Arc<Entries>>);

/// Labels of which there is at least one.
#[derive(PartialEq, Eq, Hash)]
struct Entries {
    /// Key, value, key, value, …
    text: Box<str>,
    /// Where in the text each key and its value end. An object may have thousands of short labels, so that what is kept of each
    /// besides its text is as little as can be: what an object takes is in proportion to its bytes.
    ends: Box<[(u32, u32)]>,
}

/// So many labels are looked through one by one.
const FEW: usize = 8;

impl Entries {
    fn key(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.text[start as usize..self.ends[index].0 as usize]
    }

    fn value(&self, index: usize) -> &str {
        let (start, end) = self.ends[index];
        &self.text[start as usize..end as usize]
    }

    /// The index of a key, found by halves.
    fn find(&self, key: &str) -> Option<usize> {
        let (mut start, mut end) = (0, self.ends.len());
        while start < end {
            let middle = start.midpoint(end);
            match self.key(middle).cmp(key) {
                Ordering::Less => start = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => end = middle,
            }
        }
        None
    }
}

/// Where a text ends.
///
/// # Panics
/// When it has 4 GiB or more: no message is as long.
fn end(text: &str) -> u32 {
    u32::try_from(text.len()).expect("the labels of one object are shorter than 4 GiB")
}

impl Labels {
    /// Bytes of memory that one label takes besides the text of its key and its value.
    pub const BYTES_PER_LABEL: usize = size_of::<(u32, u32)>();

    /// Sorts; of entries with equal keys the last one stays.
    #[must_use]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "who has a list of labels is done with it"
    )]
    pub fn new(entries: Vec<(String, String)>) -> Self {
        let mut entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        Self::of(&mut entries)
    }

    /// As [`Labels::new`], of borrowed entries, which are sorted on the way.
    #[must_use]
    pub fn of(entries: &mut [(&str, &str)]) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 <= b.0) {
            // Stable, so that the last of equal ones stays last.
            entries.sort_by(|a, b| a.0.cmp(b.0));
        }
        let length = entries
            .iter()
            .flat_map(|(key, value)| [key.len(), value.len()])
            .sum();
        let (mut text, mut ends) = (String::with_capacity(length), Vec::with_capacity(entries.len()));
        for (index, (key, value)) in entries.iter().enumerate() {
            if entries.get(index + 1).is_some_and(|next| next.0 == *key) {
                continue;
            }
            text.push_str(key);
            let end_of_key = end(&text);
            text.push_str(value);
            ends.push((end_of_key, end(&text)));
        }
        Self((!ends.is_empty()).then(|| {
            Arc::new(Entries {
                text: text.into_boxed_str(),
                ends: ends.into_boxed_slice(),
            })
        }))
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let entries = self.0.as_deref()?;
        let found = if entries.ends.len() <= FEW {
            // Most comparisons end at the length.
            (0..entries.ends.len()).find(|index| entries.key(*index) == key)?
        } else {
            entries.find(key)?
        };
        Some(entries.value(found))
    }

    /// All entries, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|entries| {
            let indices = 0..entries.ends.len();
            indices.map(|index| (entries.key(index), entries.value(index)))
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| entries.ends.len())
    }

    /// Where the text is: equal for copies, which all of them are of one content while this is alive; 0 without labels.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| Arc::as_ptr(entries).addr())
    }

    /// Whether one is a copy of the other, so that both take the memory of one.
    #[must_use]
    pub fn is_copy_of(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// No labels at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FromIterator<(String, String)> for Labels {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(entries: I) -> Self {
        Self::new(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Labels;

    fn of(entries: &[(&str, &str)]) -> Labels {
        Labels::of(&mut entries.to_vec())
    }

    #[test]
    fn labels_are_sorted_and_of_equal_keys_the_last_stays() {
        let labels = of(&[
            ("b", "1"),
            ("a", ""),
            ("b", "2"),
            ("ab", "x"),
            ("b", "3"),
            ("a", "y"),
        ]);
        assert_eq!(
            labels.iter().collect::<Vec<_>>(),
            [("a", "y"), ("ab", "x"), ("b", "3")]
        );
        assert_eq!(
            (labels.len(), labels.get("ab"), labels.get("x")),
            (3, Some("x"), None)
        );
        assert_eq!(format!("{labels:?}"), r#"{"a": "y", "ab": "x", "b": "3"}"#);
        assert!(of(&[]).is_empty() && !labels.is_empty());
    }

    #[test]
    fn every_key_is_found_however_many_there_are() {
        for count in 0..40 {
            let keys: Vec<String> = (0..count).map(|index| format!("key-{index}")).collect();
            let mut entries: Vec<_> = keys.iter().map(|key| (key.as_str(), &key[4..])).collect();
            let labels = Labels::of(&mut entries);
            for key in &keys {
                assert_eq!(labels.get(key), Some(&key[4..]), "{count}");
            }
            for missing in ["", "key", "key-", "key-41", "key-a", "l"] {
                assert_eq!(labels.get(missing), None, "{count}");
            }
        }
    }

    fn labels_of_two() -> Labels {
        of(&[("a", "b"), ("c", "d")])
    }

    #[test]
    fn labels_are_equal_only_with_equal_entries() {
        assert_eq!(of(&[("a", "b"), ("c", "d")]), of(&[("c", "d"), ("a", "b")]));
        let copied = labels_of_two().clone();
        assert!(copied.is_copy_of(&copied.clone()) && !copied.is_copy_of(&labels_of_two()));
        assert!(of(&[]).is_copy_of(&of(&[])) && !of(&[]).is_copy_of(&copied));
        // One text, cut differently.
        assert_ne!(of(&[("a", "bc")]), of(&[("ab", "c")]));
        assert_ne!(of(&[("a", ""), ("b", "")]), of(&[("a", "b")]));
    }
}
