//! The own-write gate (chapter 16): a snapshot that does not show our own writes decides nothing.

use std::cmp::Ordering;

use crate::core::snapshot::OwnWrite;

/// What is behind, for people; `None` when the snapshot is fresh (D-110).
pub(crate) fn stale(own_writes: &[OwnWrite]) -> Option<String> {
    let behind = own_writes
        .iter()
        .find(|write| is_newer(&write.written, &write.observed))?;
    Some(format!(
        "the cache of {} is at version {}, behind our own write at {}",
        behind.resource, behind.observed, behind.written
    ))
}

/// Whether version `a` is known to come after `b`; versions that cannot be compared block nothing (D-111).
fn is_newer(a: &str, b: &str) -> bool {
    is_comparable(a) && is_comparable(b) && a.len().cmp(&b.len()).then_with(|| a.cmp(b)) == Ordering::Greater
}

fn is_comparable(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}
