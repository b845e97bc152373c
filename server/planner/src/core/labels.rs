//! Labels in compact form, since a snapshot holds those of thousands of objects.

pub(crate) mod classes;
mod view;

use std::{cmp::Ordering, fmt, sync::Arc};

pub use view::LabelView;

/// Labels, sorted by key; keys are unique.
///
/// All keys and values of an object share one allocation, because one allocation per key and value would dominate time and
/// memory for thousands of objects. A clone shares the text of the original: the pods of a workload have equal labels, and a
/// shared text stays in the processor's cache.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Labels(Option<Arc<Entries>>);

/// One or more labels.
#[derive(PartialEq, Eq, Hash)]
struct Entries {
    /// Key, value, key, value, …
    text: Box<str>,
    /// The offsets in `text` at which each key and its value end. The entries are small because an object may have thousands of
    /// short labels: the memory of an object stays in proportion to its size in the request.
    ends: Box<[(u32, u32)]>,
}

/// Up to this many labels, a linear search is used instead of a binary search.
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

    /// The index of a key, by binary search.
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

/// The length of a text.
///
/// # Panics
/// If the text has 4 GiB or more. No message is that long.
fn end(text: &str) -> u32 {
    u32::try_from(text.len()).expect("the labels of one object are shorter than 4 GiB")
}

impl Labels {
    /// Memory that one label takes besides the text of its key and its value, in bytes.
    pub const BYTES_PER_LABEL: usize = size_of::<(u32, u32)>();

    /// Sorts the entries. Of entries with equal keys the last one stays.
    #[must_use]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers do not use the list afterwards"
    )]
    pub fn new(entries: Vec<(String, String)>) -> Self {
        let mut entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        Self::of(&mut entries)
    }

    /// Like [`Labels::new`], for borrowed entries. Sorts the slice in place.
    #[must_use]
    pub fn of(entries: &mut [(&str, &str)]) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 <= b.0) {
            // A stable sort, so that the last of equal keys stays last.
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
            // Most comparisons end at the length of the key.
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

    /// The number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| entries.ends.len())
    }

    /// Memory of the labels, in bytes, without what the allocator adds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |entries| {
            size_of_val(entries) + entries.text.len() + size_of_val(&*entries.ends)
        })
    }

    /// Whether there are no labels.
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

    #[test]
    fn labels_are_equal_only_with_equal_entries() {
        assert_eq!(of(&[("a", "b"), ("c", "d")]), of(&[("c", "d"), ("a", "b")]));
        // The same text, split differently.
        assert_ne!(of(&[("a", "bc")]), of(&[("ab", "c")]));
        assert_ne!(of(&[("a", ""), ("b", "")]), of(&[("a", "b")]));
    }
}
