//! What the answer repeats for every pod.

use std::sync::Arc;

use nodewise_planner::snapshot::{DaemonSet, Pod};

use super::problems::Path;
use crate::refusal::{Refusal, Violation};

/// Bytes that may be repeated however little the pods say: a handful never matters. The longest names and uids that the
/// protocol carries may be repeated for 129 pods, the longest that an apiserver makes for 279.
///
/// It cannot be much more. The answer holds each of these bytes several times while it is made and encoded, and of the
/// memory that a request may take besides a multiple of its bytes the reading of it is given 3 MiB (`weigh`), which
/// leaves 1 MiB to the answer.
const LEAST: usize = 96 << 10;
/// Bytes that may be repeated for each byte of a pod.
///
/// With three, the pods that a DaemonSet of the name left behind say enough, however many there are. An apiserver takes
/// names of 253 bytes and namespaces of 63 and makes uids of 36, together 352. Such a pod has a uid as well, that name or
/// 58 bytes of it and a suffix, and the labels `controller-revision-hash` and `pod-template-generation`: 148 bytes at least
/// where the name is so long. Only pods that somebody made by hand, or for a DaemonSet of another name, say less.
const TIMES: usize = 3;

/// Refuses orphans with next to nothing in them, each of which would be adopted with a patch that names the workload, when
/// that name is long. Pods that have an owner name it themselves.
pub(super) fn check(workload: &DaemonSet, pods: &[Arc<[Pod]>], at: &Path<'_>) -> Result<(), Refusal> {
    let identity = workload.name.len() + workload.namespace.len() + workload.uid.len();
    let pods = pods.iter().flat_map(|bucket| bucket.iter());
    let orphans = pods.filter(|pod| pod.controller.is_none());
    let Some(count) = too_many(identity, orphans.map(says)) else {
        return Ok(());
    };
    let description = format!(
        "with pods that say so little, metadata.name, metadata.namespace and metadata.uid of {identity} bytes are too long: the \
         answer may repeat them for each of {count} pods without an owner, more than those are themselves"
    );
    Err(Refusal::TooLarge(Violation {
        field: at.to_string(),
        description,
    }))
}

/// The bytes of a pod that count.
fn says(pod: &Pod) -> usize {
    let labels = pod.labels.iter().map(|(key, value)| key.len() + value.len());
    pod.name.len() + pod.uid.len() + labels.sum::<usize>()
}

/// How many orphans there are, when `identity` bytes for each are too much beside the bytes of each.
fn too_many(identity: usize, orphans: impl Iterator<Item = usize>) -> Option<usize> {
    let (count, said) = orphans.fold((0, LEAST), |(count, said), bytes| {
        (count + 1, said + TIMES * bytes)
    });
    (identity * count > said).then_some(count)
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
        let labels = "controller-revision-hash".len() + "pod-template-generation".len() + 2;
        UID + (name + 1).min(58) + 5 + labels
    }

    #[test]
    fn pods_of_a_daemon_set_are_never_too_many() {
        for nodes in [1, 15_000, Limits::default().pods as usize] {
            for name in [1, 12, 56, 57, 58, 63, 177, 178, NAME] {
                for namespace in [1, NAMESPACE] {
                    let identity = name + namespace + UID;
                    assert_eq!(
                        too_many(identity, repeat_n(abandoned(name), nodes)),
                        None,
                        "{name}"
                    );
                    // Those of the shortest name are enough for longer ones, too.
                    if name <= 177 {
                        assert_eq!(too_many(identity, repeat_n(abandoned(1), nodes)), None, "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_handful_may_say_nothing() {
        let longest = 3 * Limits::NAME_BYTES;
        for (identity, most) in [(longest, 129), (NAME + NAMESPACE + UID, 279)] {
            assert_eq!(too_many(identity, repeat_n(0, most)), None);
            assert_eq!(too_many(identity, repeat_n(0, most + 1)), Some(most + 1));
        }
    }

    // Names as people choose them, beside as many pods without labels as there may be, with names of one letter.
    #[test]
    fn short_names_may_be_repeated_for_ever() {
        let most = Limits::default().pods as usize;
        for (identity, pods, refused) in [(111, most, false), (112, 98_304, false), (112, 98_305, true)] {
            let count = too_many(identity, repeat_n(UID + 1, pods));
            assert_eq!(count.is_some(), refused, "{identity}");
        }
    }
}
