//! The own-write gate: no plan for a workload while a cache is older than our last write to the workload or its pods.
//!
//! Of our own writes only the highest resourceVersion matters, per workload and resource (D-109). Records live in memory;
//! after a start the first lists are quorum reads, which cannot be older than what was written before them.
//!
//! Versions only grow, but for a cluster whose etcd was restored from a backup. Then a version that was written may never be
//! reached, and all records are forgotten when a list shows that (D-112).

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::event::{Key, Resource};

/// Highest own writes, by workload.
#[derive(Debug, Default)]
pub struct Gate {
    records: HashMap<Key, Record>,
    /// Workloads that were refused.
    waiting: BTreeSet<Key>,
}

#[derive(Debug)]
struct Record {
    uid: Arc<str>,
    /// At most one entry a resource, in order of the first write.
    written: Vec<(Resource, String)>,
}

/// A cache that has not seen one of our own writes yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cache of {resource} is at resourceVersion {reached}, our own write at {written}: waiting for the watch"
)]
pub struct Behind {
    /// The resource.
    pub resource: Resource,
    /// What was written.
    pub written: String,
    /// What the cache has reached.
    pub reached: String,
}

impl Gate {
    /// Records that a write of ours to the workload or one of its pods returned this resourceVersion. A record of another
    /// uid of the same name is replaced (D-112).
    pub fn record(&mut self, key: &Key, uid: &Arc<str>, resource: Resource, resource_version: &str) {
        let record = self.records.entry(key.clone()).or_insert_with(|| Record {
            uid: Arc::clone(uid),
            written: Vec::new(),
        });
        if record.uid != *uid {
            *record = Record {
                uid: Arc::clone(uid),
                written: Vec::new(),
            };
        }
        match record.written.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, highest)) => {
                if compare(highest, resource_version) != Some(Ordering::Greater) {
                    resource_version.clone_into(highest);
                }
            }
            None => record.written.push((resource, resource_version.into())),
        }
    }

    /// Passes when every cache has reached our own writes; the record is then forgotten (D-110). Else the workload waits,
    /// until [`Self::opened`] names it.
    pub fn check<'a>(&mut self, key: &Key, reached: impl Fn(Resource) -> &'a str) -> Result<(), Behind> {
        let Some(record) = self.records.get(key) else {
            return Ok(());
        };
        for (resource, written) in &record.written {
            let reached = reached(*resource);
            if is_behind(written, reached) {
                self.waiting.insert(key.clone());
                return Err(Behind {
                    resource: *resource,
                    written: written.clone(),
                    reached: reached.into(),
                });
            }
        }
        self.records.remove(key);
        self.waiting.remove(key);
        Ok(())
    }

    /// The workloads that waited and need not any more. Asked whenever a cache moved on: that is exact, while retries would
    /// come too early or, after some, much too late.
    pub fn opened<'a>(&mut self, reached: impl Fn(Resource) -> &'a str) -> Vec<Key> {
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

    /// The versions have begun anew: those that were written say nothing any more (D-112).
    pub fn begin_anew(&mut self) {
        self.records.clear();
    }

    /// Clears the record of a workload; with a uid only if it is of that uid (D-112).
    pub fn clear(&mut self, key: &Key, uid: Option<&str>) {
        if uid.is_none_or(|uid| self.records.get(key).is_some_and(|record| *record.uid == *uid)) {
            self.records.remove(key);
        }
    }
}

/// Whether a cache that has reached one version is behind the other.
#[must_use]
pub fn is_behind(written: &str, reached: &str) -> bool {
    compare(written, reached) == Some(Ordering::Greater)
}

/// Compares two resourceVersions: decimals without leading zero, the longer is greater; anything else cannot be compared
/// and must not block (D-111).
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

    fn setup() -> (Gate, Key, Arc<str>) {
        (Gate::default(), Key::new("ns", "foo"), Arc::from("u1"))
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

    // D-110, S-127: refused while the cache is behind; then the record is dropped.
    #[test]
    fn refuses_until_the_cache_has_reached_our_write() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::Pods, "10");
        let behind = Behind {
            resource: Resource::Pods,
            written: "10".into(),
            reached: "5".into(),
        };
        assert_eq!(gate.check(&key, |_| "5"), Err(behind));
        assert_eq!(gate.check(&key, |_| "10"), Ok(()));
        assert_eq!(gate.check(&key, |_| "5"), Ok(()), "forgotten once reached");
    }

    // D-110: whoever was refused is named once, as soon as every cache is there, or its record is gone.
    #[test]
    fn tells_who_need_not_wait_any_more() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::Pods, "10");
        assert_eq!(gate.opened(|_| "10"), [], "nobody was refused");
        assert!(gate.check(&key, |_| "5").is_err());
        assert_eq!(gate.opened(|_| "9"), []);
        assert_eq!(gate.opened(|_| "11"), std::slice::from_ref(&key));
        assert_eq!(gate.opened(|_| "11"), []);
        assert!(gate.check(&key, |_| "5").is_err());
        gate.clear(&key, None);
        assert_eq!(gate.opened(|_| "5"), [key]);
    }

    // D-109: the highest per resource, pods and daemonsets apart.
    #[test]
    fn remembers_the_highest_write_of_each_resource() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::Pods, "10");
        gate.record(&key, &uid, Resource::Pods, "9");
        gate.record(&key, &uid, Resource::DaemonSets, "7");
        let reached = |pods, daemon_sets| {
            move |resource| {
                if resource == Resource::Pods {
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

    // D-111: what cannot be compared does not block.
    #[test]
    fn odd_versions_do_not_block() {
        let (mut gate, key, uid) = setup();
        for (written, reached) in [("abc", "5"), ("10", ""), ("10", "0")] {
            gate.record(&key, &uid, Resource::Pods, written);
            assert_eq!(
                gate.check(&key, |_| reached),
                Ok(()),
                "{written} against {reached}"
            );
        }
    }

    // D-112
    #[test]
    fn writes_are_forgotten_when_versions_begin_anew() {
        let (mut gate, key, uid) = setup();
        gate.record(&key, &uid, Resource::Pods, "1000");
        gate.record(&key, &uid, Resource::DaemonSets, "20");
        assert!(gate.check(&key, |_| "500").is_err());
        gate.begin_anew();
        assert_eq!(gate.opened(|_| "10"), std::slice::from_ref(&key));
        gate.record(&key, &uid, Resource::Pods, "501");
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
        gate.record(&key, &old, Resource::Pods, "10");
        gate.clear(&key, Some("u2"));
        assert!(
            gate.check(&key, |_| "5").is_err(),
            "a record of another uid is not cleared"
        );
        gate.record(&key, &new, Resource::DaemonSets, "3");
        assert!(
            gate.check(&key, |resource| if resource == Resource::Pods {
                "5"
            } else {
                "3"
            })
            .is_ok()
        );
        gate.record(&key, &new, Resource::Pods, "10");
        gate.clear(&key, Some("u2"));
        assert!(gate.check(&key, |_| "5").is_ok());
        gate.record(&key, &new, Resource::Pods, "10");
        gate.clear(&key, None);
        assert!(gate.check(&key, |_| "5").is_ok());
    }
}
