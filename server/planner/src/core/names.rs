//! Derives the names of revisions (D-60, D-61) and of pods. The same decision always gives the same name.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::core::owner::Owner;

/// The characters of names that Kubernetes generates: no vowels, and no characters that look alike.
pub(crate) const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a derived hash in characters. 27^10 is about 2^47, so the nodes of a cluster do not collide by chance.
const HASH_LENGTH: usize = 10;
/// Longest object name (a DNS-1123 subdomain).
const MAX_OBJECT_NAME: usize = 253;
/// Longest pod name that is also a host name (a DNS-1123 label).
pub(crate) const MAX_POD_NAME: usize = 63;
/// The most derived names that are tried where the apiserver rejects them because other pods have them. After that the apiserver
/// chooses the name, which nobody can compute and take beforehand.
pub(crate) const MOST_REFUSED_NAMES: u32 = 3;
/// Longest value of a label.
const MAX_LABEL_VALUE: usize = 63;

/// The hash of a template. `data` is the canonical JSON of its revision. The hash is valid as a label value and in a name.
///
/// It differs from upstream's hash, which changes with Kubernetes versions. Upstream finds a revision by its data (D-53).
pub(crate) fn revision_hash(data: &[u8], collision_count: Option<i32>) -> String {
    let count = collision_count.map(i32::to_be_bytes);
    let count: &[u8] = count.as_ref().map_or(&[], |bytes| bytes);
    encoded_digest([data, count])
}

/// The name of a revision. With `shorten` the workload's name is cut so that the result is a valid object name.
pub(crate) fn revision_name(owner: Owner<'_>, hash: &str, shorten: bool) -> String {
    let limit = if shorten { MAX_OBJECT_NAME } else { usize::MAX };
    joined(owner.name, hash, limit)
}

/// The label value for a revision's name: the name itself, or its hash if the name is too long. Apart from the length, every
/// valid object name (a DNS-1123 subdomain) is a valid label value.
pub(crate) fn label_value(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_LABEL_VALUE {
        name.into()
    } else {
        encoded_digest([name.as_bytes()]).into()
    }
}

/// The name of the next pod on a node.
///
/// A repeated plan gives the same name, so the apiserver rejects the second create, even if the cache has shown other changes on
/// the node in between. `salt` grows when a name is taken, so a replacement does not wait for its predecessor's name.
pub(crate) fn pod_name(owner: Owner<'_>, node: &str, hash: &str, salt: u32) -> String {
    let salt = salt.to_be_bytes();
    let parts = [owner.uid.as_bytes(), node.as_bytes(), hash.as_bytes(), &salt];
    joined(owner.name, &encoded_digest(parts), MAX_POD_NAME)
}

/// `<name>-<suffix>`. The name is cut so that the result has at most `limit` bytes and is a valid subdomain.
pub(crate) fn joined(name: &str, suffix: &str, limit: usize) -> String {
    let room = limit.saturating_sub(suffix.len() + 1);
    let prefix = if name.len() <= room {
        name
    } else {
        // A part of a subdomain must not start or end with a dash. After a dot, the joining dash would start one.
        name[..name.floor_char_boundary(room)].trim_end_matches(['-', '.'])
    };
    if prefix.is_empty() {
        suffix.to_owned()
    } else {
        format!("{prefix}-{suffix}")
    }
}

/// Whether a name is a DNS-1123 subdomain, which most object names must be.
pub(crate) fn is_subdomain(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().last()];
        part.bytes().all(|byte| inner(byte) || byte == b'-')
            && ends.into_iter().all(|end| end.is_some_and(inner))
    };
    name.len() <= MAX_OBJECT_NAME && name.split('.').all(is_label)
}

/// [`HASH_LENGTH`] characters of the SHA-256 of the parts. Each part is preceded by its length, so that different lists of parts
/// give different input.
fn encoded_digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let (head, _) = digest
        .split_first_chunk()
        .expect("the digest is longer than a number");
    let mut rest = u128::from_be_bytes(*head);
    let letters = std::iter::repeat_with(|| {
        let letter = ALPHABET[(rest % 27) as usize];
        rest /= 27;
        char::from(letter)
    });
    letters.take(HASH_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::daemonset::DaemonSet;
    use crate::fixtures::daemon_set;

    fn named(name: &str) -> DaemonSet {
        DaemonSet {
            name: name.to_owned(),
            ..daemon_set()
        }
    }

    #[test]
    fn d_61_the_hash_depends_on_the_template_and_the_collision_count() {
        let hashes: BTreeSet<_> = [
            ("a", None),
            ("a", Some(0)),
            ("a", Some(1)),
            ("a", Some(-1)),
            ("b", None),
        ]
        .into_iter()
        .map(|(data, count)| revision_hash(data.as_bytes(), count))
        .collect();
        assert_eq!(hashes.len(), 5, "{hashes:?}");
        // The hash must be the same on every replica and in every version of Nodewise.
        assert_eq!(revision_hash(b"{}", Some(1)), "bh4bjtvq7r");
        for hash in hashes {
            assert_eq!(hash.len(), HASH_LENGTH);
            assert!(hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
        }
    }

    #[test]
    fn d_52_a_name_that_is_too_long_for_a_label_is_hashed() {
        let (longest, long, longer) = ("a".repeat(63), "a".repeat(64), "a".repeat(253));
        assert_eq!(label_value("foo-x"), "foo-x");
        assert_eq!(label_value(&longest), longest);
        let hashes = [label_value(&long), label_value(&longer)];
        assert_ne!(hashes[0], hashes[1]);
        for hash in hashes {
            assert_eq!(hash.len(), HASH_LENGTH);
            assert!(hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
        }
    }

    #[test]
    fn q_14_revision_names_are_shortened_only_where_the_deviation_is_on() {
        let long = "a".repeat(250);
        let dotted = format!("{}.-b", "a".repeat(240));
        // (workload, shortened, as upstream)
        let table = [
            ("foo", "foo-hhhhhhhhhh".to_owned(), "foo-hhhhhhhhhh".to_owned()),
            (
                &long,
                format!("{}-hhhhhhhhhh", "a".repeat(242)),
                format!("{long}-hhhhhhhhhh"),
            ),
            (
                &dotted,
                format!("{}-hhhhhhhhhh", "a".repeat(240)),
                format!("{dotted}-hhhhhhhhhh"),
            ),
        ];
        for (name, shortened, upstream) in table {
            let ds = named(name);
            assert_eq!(
                revision_name(ds.owner(), "hhhhhhhhhh", true),
                shortened,
                "D-60 with Q-14: {name}"
            );
            assert_eq!(
                revision_name(ds.owner(), "hhhhhhhhhh", false),
                upstream,
                "D-60: {name}"
            );
            assert!(is_subdomain(&shortened), "{shortened}");
        }
    }

    #[test]
    fn derived_pod_names_differ_with_every_part() {
        let ds = daemon_set();
        let other = DaemonSet {
            uid: "other".to_owned(),
            ..ds.clone()
        };
        let names = [
            pod_name(ds.owner(), "node-1", "h", 0),
            pod_name(other.owner(), "node-1", "h", 0),
            pod_name(ds.owner(), "node-2", "h", 0),
            pod_name(ds.owner(), "node-1", "i", 0),
            pod_name(ds.owner(), "node-1", "h", 1),
            // The boundary between two parts matters.
            pod_name(ds.owner(), "node-1h", "", 0),
        ];
        assert_eq!(BTreeSet::from(names.clone()).len(), names.len(), "{names:?}");
        assert_eq!(
            names[0], "foo-nvz74mvvkg",
            "the same on every replica and in every version"
        );
    }

    proptest! {
        #[test]
        fn derived_pod_names_are_host_names_where_the_workload_name_is_one(
            name in "[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,3}",
            node in ".*",
            salt in any::<u32>(),
        ) {
            let ds = named(&name);
            let pod = pod_name(ds.owner(), &node, "hash", salt);
            prop_assert!(pod.len() <= MAX_POD_NAME);
            prop_assert!(is_subdomain(&pod), "{}", pod);
            prop_assert!(is_subdomain(&revision_name(ds.owner(), "hhhhhhhhhh", true)));
        }

        #[test]
        fn names_never_panic(name in ".*", node in ".*", hash in ".*", salt in any::<u32>()) {
            let ds = named(&name.repeat(9));
            prop_assert!(pod_name(ds.owner(), &node, &hash, salt).len() <= MAX_POD_NAME);
            prop_assert!(revision_name(ds.owner(), &hash, true).len() <= MAX_OBJECT_NAME.max(hash.len()));
        }
    }
}
