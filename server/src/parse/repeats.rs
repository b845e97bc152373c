//! What the answer repeats for every pod.

use std::ops::AddAssign;

use nodewise_planner::snapshot::{DaemonSet, Pod};

use super::problems::Path;
use crate::refusal::{Refusal, Violation};

/// Bytes that may be repeated however little the pods say: a handful never matters. The longest names and uids that the
/// protocol carries may be repeated for 129 pods, the longest that an apiserver makes for 279.
///
/// Twice as much still fits into what a request may take in memory; with ten times as much the adoptions of orphans of 16
/// bytes do not (measured with the large inputs of the fuzz targets, which hold it).
const LEAST: usize = 96 << 10;
/// Bytes that may be repeated for each byte of a pod's name and uid; its labels may be there once for all pods.
///
/// With four, the pods that a DaemonSet of the name left behind say enough, however many there are. An apiserver takes
/// names of 253 bytes and namespaces of 63 and makes uids of 36, together 352. Such a pod has a uid as well, and that name or
/// 58 bytes of it and a suffix: 99 bytes at least where the name is so long. Only pods that somebody made by hand, or for a
/// DaemonSet of another name, say less.
const TIMES: usize = 4;

/// Pods for each of which the answer may name the workload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Claims {
    /// Those without an owner: each may be adopted.
    orphans: Said,
    /// Those with one, which they share with others: each may be released.
    controlled: Said,
}

impl Claims {
    /// Those of a bucket.
    pub(crate) fn of(pods: &[Pod]) -> Self {
        let mut claims = Self::default();
        for pod in pods {
            let alike = match pod.controller {
                None => &mut claims.orphans,
                Some(_) => &mut claims.controlled,
            };
            *alike += Said::by(says(pod));
        }
        claims
    }
}

impl AddAssign for Claims {
    fn add_assign(&mut self, other: Self) {
        self.orphans += other.orphans;
        self.controlled += other.controlled;
    }
}

/// What pods say themselves: how many there are, and the bytes of theirs that count.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    count: usize,
    bytes: usize,
}

impl Said {
    /// By one pod that says so much.
    fn by(bytes: usize) -> Self {
        Self { count: 1, bytes }
    }

    /// Whether `identity` bytes for each are too much beside the bytes of each.
    fn too_many(self, identity: usize) -> bool {
        identity * self.count > LEAST + TIMES * self.bytes
    }
}

impl AddAssign for Said {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Refuses pods with next to nothing in them, when what names the workload is long: each orphan would be adopted with a patch
/// that has its name, namespace and uid, and each pod that it owned released with one that has its uid.
pub(super) fn check(workload: &DaemonSet, claims: Claims, at: &Path<'_>) -> Result<(), Refusal> {
    let uid = workload.uid.len();
    let identity = workload.name.len() + workload.namespace.len() + uid;
    let too_large = |repeated: String, count: usize, whose: &str| {
        Refusal::TooLarge(Violation {
            field: at.to_string(),
            description: format!(
                "with pods that say so little, {repeated} too long: the answer may repeat that for each of {count} pods \
                 {whose}, more than those are themselves"
            ),
        })
    };
    let Claims { orphans, controlled } = claims;
    if orphans.too_many(identity) {
        let repeated = format!("metadata.name, metadata.namespace and metadata.uid of {identity} bytes are");
        return Err(too_large(repeated, orphans.count, "without an owner"));
    }
    if controlled.too_many(uid) {
        let repeated = format!("metadata.uid of {uid} bytes is");
        return Err(too_large(repeated, controlled.count, "with an owner"));
    }
    Ok(())
}

/// The bytes of a pod that count.
fn says(pod: &Pod) -> usize {
    pod.name.len() + pod.uid.len()
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;
    use crate::limits::Limits;

    /// The longest names and namespaces that an apiserver takes, and the length of the uids that it makes.
    const NAME: usize = 253;
    const NAMESPACE: usize = 63;
    const UID: usize = 36;

    /// What the shortest pod says that an apiserver named for a DaemonSet with such a name (D-66, D-70), once it is an orphan.
    fn abandoned(name: usize) -> usize {
        UID + (name + 1).min(58) + 5
    }

    fn too_many(identity: usize, orphans: impl Iterator<Item = usize>) -> bool {
        let mut said = Said::default();
        orphans.for_each(|bytes| said += Said::by(bytes));
        said.too_many(identity)
    }

    #[test]
    fn pods_of_a_daemon_set_are_never_too_many() {
        for nodes in [1, 15_000, Limits::default().pods as usize] {
            for name in [1, 12, 56, 57, 58, 63, 177, 178, NAME] {
                for namespace in [1, NAMESPACE] {
                    let identity = name + namespace + UID;
                    assert!(!too_many(identity, repeat_n(abandoned(name), nodes)), "{name}");
                    // Those of the shortest name are enough for longer ones, too.
                    if name <= 73 {
                        assert!(!too_many(identity, repeat_n(abandoned(1), nodes)), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_handful_may_say_nothing() {
        let longest = 3 * Limits::NAME_BYTES;
        for (identity, most) in [(longest, 129), (NAME + NAMESPACE + UID, 279)] {
            assert!(!too_many(identity, repeat_n(0, most)));
            assert!(too_many(identity, repeat_n(0, most + 1)));
        }
    }

    // Names as people choose them, beside as many pods as there may be, with names of one letter.
    #[test]
    fn short_names_may_be_repeated_for_ever() {
        let most = Limits::default().pods as usize;
        for (identity, pods, refused) in [(148, most, false), (149, 98_304, false), (149, 98_305, true)] {
            assert_eq!(too_many(identity, repeat_n(UID + 1, pods)), refused, "{identity}");
        }
    }
}
