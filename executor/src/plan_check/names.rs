//! Checks the names that the planner generates: the workload's name, a dash, and some characters of a hash.
//!
//! Other controllers generate names of another form, such as `agent-0`. A plan must not use those.

/// The characters of Kubernetes' generated names, which encode the hash.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Number of characters of the hash in the names of revisions, and in those of pods that are for one node. Also the most in
/// the name of an object of which the workload has one for each template.
pub(super) const LENGTH: usize = 10;
/// Longest name of an object (a DNS-1123 subdomain).
pub(super) const MAX_NAME: usize = 253;
/// Longest name of a pod that is also a host name (a DNS-1123 label).
const MAX_POD_NAME: usize = 63;

/// Whether a pod of this workload may have this name, which ends with a hash of `length` characters.
pub(super) fn is_of_pod(name: &str, workload: &str, length: usize) -> bool {
    prefix(name, length) == Some(cut(workload, MAX_POD_NAME - length - 1))
}

/// Whether a revision of this workload may have this name. Without the deviation that cuts long names, a name may be
/// too long for the apiserver.
pub(super) fn is_of_revision(name: &str, workload: &str) -> bool {
    let cut = || cut(workload, MAX_NAME - LENGTH - 1);
    prefix(name, LENGTH).is_some_and(|prefix| prefix == workload || prefix == cut())
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

/// The hash in the name of an object of which the workload has one for each template; `None` if the name is not derived
/// from the workload's name. That is cut as upstream does it, also before a dash.
pub(super) fn template_hash<'n>(name: &'n str, workload: &str) -> Option<&'n str> {
    let (prefix, hash) = name.rsplit_once('-')?;
    let has_hash = (1..=LENGTH).contains(&hash.len()) && is_hash(hash);
    let is_derived = || prefix == &workload[..workload.floor_char_boundary(MAX_NAME - hash.len() - 1)];
    (has_hash && is_derived()).then_some(hash)
}

/// The part of a name before the dash and a hash of `length` characters.
fn prefix(name: &str, length: usize) -> Option<&str> {
    let (prefix, hash) = name.rsplit_once('-')?;
    (hash.len() == length && is_hash(hash)).then_some(prefix)
}

fn is_hash(hash: &str) -> bool {
    hash.chars().all(|letter| LETTERS.contains(letter))
}

/// A workload's name, cut to at most `room` characters. Trailing dashes and dots of a cut name are removed.
fn cut(workload: &str, room: usize) -> &str {
    if workload.len() <= room {
        return workload;
    }
    workload[..workload.floor_char_boundary(room)].trim_end_matches(['-', '.'])
}
