//! The own-write gate: a workload is not planned while a cache is older than the executor's last write to the workload or its
//! pods.
//!
//! The gate keeps the highest resourceVersion of the own writes, per workload and resource (D-109). The records are in memory
//! only. After a start the first lists are quorum reads, so they include all earlier writes.
//!
//! resourceVersions only grow, except after etcd is restored from a backup. Then a cache may never reach the version of an
//! earlier write, so all records are dropped when a list shows a restore (D-112).

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use nodewise_projection::Key;

use crate::resource::Resource;

/// The highest own writes, by workload.
#[derive(Debug, Default)]
pub struct OwnWriteGate {
    records: HashMap<Key, Record>,
    /// Workloads that wait for a cache.
    waiting: BTreeSet<Key>,
    /// How often the resourceVersions have restarted.
    restarts: u64,
}

#[derive(Debug)]
struct Record {
    uid: Arc<str>,
    /// At most one entry per resource, in order of the first write.
    written: Vec<(Resource, String)>,
    /// The pods that were created by name, with the resourceVersions that the creates returned. They are its pods before
    /// the cache shows them. The workload waits for them only if a plan could not create its pods because of them.
    created: Vec<(String, String)>,
}

impl Record {
    fn of(uid: &Arc<str>) -> Self {
        Self {
            uid: Arc::clone(uid),
            written: Vec::new(),
            created: Vec::new(),
        }
    }

    /// Forgets the created pods that a cache of pods shows which has reached this resourceVersion.
    fn forget_seen(&mut self, reached: &str) {
        self.created.retain(|(_, written)| is_behind(written, reached));
    }
}

/// A cache that has not seen an own write yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cache of {resource} is at resourceVersion {reached}, our own write at {written}: waiting for the watch"
)]
pub struct CacheBehind {
    /// The resource.
    pub resource: Resource,
    /// The resourceVersion of the write.
    pub written: String,
    /// The resourceVersion that the cache has reached.
    pub reached: String,
}

impl OwnWriteGate {
    /// Records the resourceVersion that a write to the workload or one of its pods returned. Replaces a record of another uid
    /// with the same name (D-112).
    pub fn record(&mut self, key: &Key, uid: &Arc<str>, resource: Resource, resource_version: &str) {
        let record = self.record_of(key, uid);
        match record.written.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, highest)) => {
                if compare(highest, resource_version) != Some(Ordering::Greater) {
                    resource_version.clone_into(highest);
                }
            }
            None => record.written.push((resource, resource_version.into())),
        }
    }

    /// Records the create of a pod by name. Replaces a record as [`Self::record`] does.
    pub fn record_create(&mut self, key: &Key, uid: &Arc<str>, pod_name: &str, resource_version: &str) {
        let created = &mut self.record_of(key, uid).created;
        created.push((pod_name.to_owned(), resource_version.to_owned()));
    }

    /// Makes a workload wait until the cache of pods shows all pods that were created for it by name.
    pub fn await_creates(&mut self, key: &Key, uid: &Arc<str>) {
        let known = self.records.get(key).filter(|record| record.uid == *uid);
        let created = known.map_or_else(Vec::new, |record| record.created.clone());
        for (_, written) in created {
            self.record(key, uid, Resource::PODS, &written);
        }
    }

    fn record_of(&mut self, key: &Key, uid: &Arc<str>) -> &mut Record {
        let record = self.records.entry(key.clone()).or_insert_with(|| Record::of(uid));
        if record.uid != *uid {
            *record = Record::of(uid);
        }
        record
    }

    /// The names of the pods that were created for a workload and that the cache of pods, which has reached this
    /// resourceVersion, does not show yet. Forgets the others.
    pub fn unseen_creates(&mut self, key: &Key, uid: &str, reached: &str) -> Vec<String> {
        let Some(record) = self.records.get_mut(key).filter(|record| *record.uid == *uid) else {
            return Vec::new();
        };
        record.forget_seen(reached);
        record.created.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Succeeds if every cache has reached the own writes, and then drops the record (D-110). Otherwise the workload waits
    /// until [`Self::take_ready`] returns it.
    pub fn check<'a>(&mut self, key: &Key, reached: impl Fn(Resource) -> &'a str) -> Result<(), CacheBehind> {
        let Some(record) = self.records.get_mut(key) else {
            return Ok(());
        };
        record.forget_seen(reached(Resource::PODS));
        for (resource, written) in &record.written {
            let reached = reached(*resource);
            if is_behind(written, reached) {
                self.waiting.insert(key.clone());
                return Err(CacheBehind {
                    resource: *resource,
                    written: written.clone(),
                    reached: reached.into(),
                });
            }
        }
        if record.created.is_empty() {
            self.records.remove(key);
        } else {
            record.written.clear();
        }
        self.waiting.remove(key);
        Ok(())
    }

    /// Returns the workloads that need not wait any more. Call this whenever a cache has advanced. Retries would be too early
    /// or, with back-off, too late.
    pub fn take_ready<'a>(&mut self, reached: impl Fn(Resource) -> &'a str) -> Vec<Key> {
        let is_open = |key: &Key| {
            self.records.get(key).is_none_or(|record| {
                record
                    .written
                    .iter()
                    .all(|(resource, written)| !is_behind(written, reached(*resource)))
            })
        };
        let opened: Vec<_> = self.waiting.iter().filter(|key| is_open(key)).cloned().collect();
        for key in &opened {
            self.waiting.remove(key);
        }
        opened
    }

    /// Drops all records after the resourceVersions restarted at a lower number (D-112).
    pub fn handle_version_restart(&mut self) {
        self.records.clear();
        self.restarts += 1;
    }

    /// How often the resourceVersions have restarted. The version of a write that began before the last restart must not be
    /// recorded: no cache may ever reach it.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Drops the record of a workload. With a uid, only if the record has that uid (D-112).
    pub fn clear(&mut self, key: &Key, uid: Option<&str>) {
        if uid.is_none_or(|uid| self.records.get(key).is_some_and(|record| *record.uid == *uid)) {
            self.records.remove(key);
        }
    }
}

/// Whether a cache that has reached `reached` has not yet seen `written`. False if the two cannot be compared.
#[must_use]
pub fn is_behind(written: &str, reached: &str) -> bool {
    compare(written, reached) == Some(Ordering::Greater)
}

/// Compares two resourceVersions as decimal numbers without a leading zero. Returns `None` for other texts: such versions
/// cannot be compared and must not block (D-111).
#[must_use]
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    let comparable = |version: &str| {
        !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
    };
    (comparable(a) && comparable(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::DAEMON_SETS;

    fn setup() -> (OwnWriteGate, Key, Arc<str>) {
        (
            OwnWriteGate::default(),
            Key::new(DAEMON_SETS.kind, "ns", "foo"),
            Arc::from("u1"),
        )
    }

    // D-111
    #[test]
    fn versions_compare_as_decimals() {
        for (a, b, expected) in [
            ("10", "9", Some(Ordering::Greater)),
            ("9", "10", Some(Ordering::Less)),
            ("123", "123", Some(Ordering::Equal)),
            (
                "18446744073709551616",
                "9999999999999999999",
                Some(Ordering::Greater),
            ),
            ("", "1", None),
            ("0", "1", None),
            ("01", "1", None),
            ("1", "x1", None),
            ("1", "-1", None),
        ] {
            assert_eq!(compare(a, b), expected, "{a} and {b}");
        }
    }

    #[test]
    fn created_pods_are_unseen_until_the_cache_has_reached_them() {
        let (mut gate, key, uid) = setup();
        gate.record_create(&key, &uid, "a", "10");
        gate.record_create(&key, &uid, "b", "12");
        assert_eq!(gate.check(&key, |_| "5"), Ok(()), "no workload waits for them");
        assert_eq!(gate.unseen_creates(&key, "u1", "9"), ["a", "b"]);
        assert_eq!(gate.check(&key, |_| "9"), Ok(()));
        assert_eq!(
            gate.unseen_creates(&key, "u2", "9"),
            [""; 0],
            "of another workload"
        );
        assert_eq!(gate.unseen_creates(&key, "u1", "10"), ["b"]);
        assert_eq!(
            gate.unseen_creates(&key, "u1", "9"),
            ["b"],
            "forgotten once reached"
        );
        gate.record_create(&key, &Arc::from("u2"), "c", "13");
        assert_eq!(gate.unseen_creates(&key, "u2", "9"), ["c"]);
        gate.clear(&key, Some("u1"));
        assert_eq!(gate.unseen_creates(&key, "u2", "9"), ["c"]);
        gate.clear(&key, Some("u2"));
        assert_eq!(gate.unseen_creates(&key, "u2", "9"), [""; 0]);
        gate.record_create(&key, &uid, "d", "14");
        gate.record_create(&key, &uid, "e", "9");
        gate.await_creates(&key, &Arc::from("u2"));
        assert_eq!(gate.check(&key, |_| "8"), Ok(()), "another workload was meant");
        gate.await_creates(&key, &uid);
        assert!(gate.check(&key, |_| "13").is_err(), "it waits for all of them");
        assert_eq!(gate.check(&key, |_| "14"), Ok(()));
        assert!(gate.records.is_empty(), "nothing asks for those of a DaemonSet");
    }

    // D-110: the check fails while the cache is behind. Then the record is dropped.
    #[test]
    fn check_fails_until_the_cache_has_reached_the_write() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::PODS, "10");
        let behind = CacheBehind {
            resource: Resource::PODS,
            written: "10".into(),
            reached: "5".into(),
        };
        assert_eq!(gate.check(&key, |_| "5"), Err(behind));
        assert_eq!(gate.check(&key, |_| "10"), Ok(()));
        assert_eq!(gate.check(&key, |_| "5"), Ok(()), "forgotten once reached");
    }

    // D-110: a waiting workload is returned once, as soon as every cache has caught up or its record is gone.
    #[test]
    fn opened_returns_each_waiting_workload_once() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::PODS, "10");
        assert_eq!(gate.take_ready(|_| "10"), [], "nobody was refused");
        assert!(gate.check(&key, |_| "5").is_err());
        assert_eq!(gate.take_ready(|_| "9"), []);
        assert_eq!(gate.take_ready(|_| "11"), std::slice::from_ref(&key));
        assert_eq!(gate.take_ready(|_| "11"), []);
        assert!(gate.check(&key, |_| "5").is_err());
        gate.clear(&key, None);
        assert_eq!(gate.take_ready(|_| "5"), [key]);
    }

    // D-109: the gate keeps the highest version per resource, pods and daemonsets apart.
    #[test]
    fn keeps_the_highest_write_of_each_resource() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::PODS, "10");
        gate.record(&key, &uid, Resource::PODS, "9");
        gate.record(&key, &uid, DAEMON_SETS, "7");
        let reached = |pods, daemon_sets| {
            move |resource| {
                if resource == Resource::PODS {
                    pods
                } else {
                    daemon_sets
                }
            }
        };
        assert!(gate.check(&key, reached("9", "7")).is_err());
        assert!(gate.check(&key, reached("10", "6")).is_err());
        assert!(gate.check(&key, reached("10", "7")).is_ok());
    }

    // D-111: versions that cannot be compared do not block.
    #[test]
    fn incomparable_versions_do_not_block() {
        let (mut gate, key, uid) = setup();
        for (written, reached) in [("abc", "5"), ("10", ""), ("10", "0")] {
            gate.record(&key, &uid, Resource::PODS, written);
            assert_eq!(
                gate.check(&key, |_| reached),
                Ok(()),
                "{written} against {reached}"
            );
        }
    }

    // D-112
    #[test]
    fn records_are_dropped_when_versions_restart() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::PODS, "1000");
        gate.record(&key, &uid, DAEMON_SETS, "20");
        assert!(gate.check(&key, |_| "500").is_err());
        assert_eq!(gate.restarts(), 0);
        gate.handle_version_restart();
        assert_eq!(gate.restarts(), 1);
        assert_eq!(gate.take_ready(|_| "10"), std::slice::from_ref(&key));
        gate.record(&key, &uid, Resource::PODS, "501");
        assert!(
            gate.check(&key, |_| "500").is_err(),
            "what is written after that counts"
        );
        assert!(gate.check(&key, |_| "501").is_ok());
    }

    // D-112
    #[test]
    fn records_belong_to_a_uid() {
        let (mut gate, key, old) = setup();
        let new: Arc<str> = Arc::from("u2");
        gate.record(&key, &old, Resource::PODS, "10");
        gate.clear(&key, Some("u2"));
        assert!(
            gate.check(&key, |_| "5").is_err(),
            "a record of another uid is not cleared"
        );
        gate.record(&key, &new, DAEMON_SETS, "3");
        assert!(
            gate.check(&key, |resource| if resource == Resource::PODS {
                "5"
            } else {
                "3"
            })
            .is_ok()
        );
        gate.record(&key, &new, Resource::PODS, "10");
        gate.clear(&key, Some("u2"));
        assert!(gate.check(&key, |_| "5").is_ok());
        gate.record(&key, &new, Resource::PODS, "10");
        gate.clear(&key, None);
        assert!(gate.check(&key, |_| "5").is_ok());
    }
}
