//! The own-write gate: nothing is planned from a cache that does not show the executor's own writes yet (D-110).

use std::cmp::Ordering;

use crate::core::{
    plan::{Plan, Verdict},
    snapshot::{OwnWrite, Snapshot},
};

/// The plan for a snapshot that is behind the executor's own writes; `None` if it is not behind.
pub(crate) fn plan<W>(snapshot: &Snapshot<W>) -> Option<Plan> {
    stale(&snapshot.own_writes).map(|behind| Plan {
        error: Some(behind),
        ..Plan::nothing(snapshot, Verdict::Stale)
    })
}

/// A message that names the cache that is behind; `None` if all caches are fresh.
pub(crate) fn stale(own_writes: &[OwnWrite]) -> Option<String> {
    let behind = own_writes
        .iter()
        .find(|write| is_newer(&write.written, &write.observed))?;
    Some(format!(
        "the cache of {} is at version {}, behind our own write at {}",
        behind.resource, behind.observed, behind.written
    ))
}

/// Whether version `a` is newer than `b`. False if the versions cannot be compared, so that those block nothing (D-111).
fn is_newer(a: &str, b: &str) -> bool {
    is_comparable(a) && is_comparable(b) && a.len().cmp(&b.len()).then_with(|| a.cmp(b)) == Ordering::Greater
}

fn is_comparable(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}
