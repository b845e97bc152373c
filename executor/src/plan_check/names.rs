//! Checks the names that the planner generates: the workload's name, a dash, and ten characters of a hash.
//!
//! Other controllers generate names of another form, such as `agent-0`. A plan must not use those.

/// The characters of Kubernetes' generated names, which encode the hash.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Number of characters of the hash.
const LENGTH: usize = 10;
/// Longest name of an object (a DNS-1123 subdomain).
const MAX_NAME: usize = 253;
/// Longest name of a pod that is also a host name (a DNS-1123 label).
const MAX_POD_NAME: usize = 63;

/// Longest value of a label.
const MAX_LABEL_VALUE: usize = 63;

/// Whether a pod of this workload may have this name.
pub(super) fn is_of_pod(name: &str, workload: &str) -> bool {
    prefix(name) == Some(cut(workload, MAX_POD_NAME))
}

/// Whether a revision of this workload may have this name. Without the deviation that cuts long names, a name may be
/// too long for the apiserver.
pub(super) fn is_of_revision(name: &str, workload: &str) -> bool {
    prefix(name).is_some_and(|prefix| prefix == workload || prefix == cut(workload, MAX_NAME))
}

/// Whether a pod or a revision can have this name: a DNS-1123 subdomain. Other names could lead to other paths of the
/// API.
pub(super) fn is_of_object(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

/// Whether a label can have this value.
pub(super) fn is_label_value(value: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_alphanumeric();
    let is_inner = |byte: u8| is_outer(byte) || b"-_.".contains(&byte);
    let bytes = value.as_bytes();
    let ends = bytes.first().into_iter().chain(bytes.last());
    value.len() <= MAX_LABEL_VALUE && value.bytes().all(is_inner) && ends.copied().all(is_outer)
}

/// The part of a name before the dash and the hash.
fn prefix(name: &str) -> Option<&str> {
    let (prefix, suffix) = name.rsplit_once('-')?;
    let is_hash = suffix.len() == LENGTH && suffix.chars().all(|letter| LETTERS.contains(letter));
    is_hash.then_some(prefix)
}

/// A workload's name, cut so that the whole name has at most `limit` characters. Trailing dashes and dots are removed.
fn cut(workload: &str, limit: usize) -> &str {
    let room = limit - LENGTH - 1;
    if workload.len() <= room {
        return workload;
    }
    workload[..workload.floor_char_boundary(room)].trim_end_matches(['-', '.'])
}
