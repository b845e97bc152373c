//! Which bucket an object belongs to, and how many buckets there are.
//!
//! A node belongs to the bucket of its name. So do the pods on it, for workloads with a pod on each node. Other workloads have
//! pods that belong to the bucket of the pod's own name. There are many such workloads with few pods each, so the number of
//! their buckets depends on the number of their pods.

use nodewise_proto::bucket;

use super::{Buckets, EncodedObject, PodBuckets, Shared, compare, empty_list};

/// Which bucket an object belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// That of its node.
    #[default]
    Node,
    /// That of its own name.
    Name,
}

/// The number of buckets is doubled when they have more objects than this on average.
const MOST_IN_BUCKET: usize = 128;
/// The number of buckets is halved when they have fewer objects than this on average. It is much less than half of the other
/// limit, so that the number of buckets stays while the number of objects goes up and down a little.
const FEWEST_IN_BUCKET: usize = 32;

impl PodBuckets {
    /// Creates one empty bucket of pods, by name. As pods are added there will be more buckets, up to this number.
    #[must_use]
    pub fn growing_to(count: u32) -> Self {
        Self {
            grows_to: Some(count),
            ..Self::of_pods(Placement::Name, 1)
        }
    }
}

impl<S: Shared> Buckets<S> {
    /// The index of the bucket that an object belongs to.
    pub(super) fn index(&self, object: &EncodedObject<S>) -> usize {
        self.index_of(match self.placement {
            Placement::Node => S::node(object),
            Placement::Name => object.name(),
        })
    }

    /// The index of the bucket of this name.
    pub(super) fn index_of(&self, name: &str) -> usize {
        bucket::of(name, self.count()) as usize
    }

    /// Changes the number of buckets if it does not fit the number of objects.
    pub(super) fn resize(&mut self) {
        let Some(most) = self.grows_to else { return };
        let count = self.list.len();
        let wanted = if self.len > count * MOST_IN_BUCKET {
            (self.count() * 2).min(most)
        } else if self.len < count * FEWEST_IN_BUCKET {
            (self.count() / 2).max(1)
        } else {
            return;
        };
        if wanted == self.count() {
            return;
        }
        let old = std::mem::replace(&mut self.list, empty_list(wanted));
        for object in old.into_iter().flat_map(|bucket| bucket.members) {
            let index = self.index(&object);
            self.list[index].members.push(object);
        }
        let placement = self.placement;
        for bucket in &mut self.list {
            bucket.members.sort_unstable_by(|a, b| compare(placement, a, b));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nodewise_proto::v1;

    use super::*;
    use crate::buckets::{EncodedPod, SharedFields};

    fn pod(index: usize) -> EncodedPod {
        let pod = v1::Pod {
            name: format!("pod-{index}"),
            ..v1::Pod::default()
        };
        EncodedPod::of_pod(&pod, Arc::new(SharedFields::new(&[], None)), "1")
    }

    /// Each object is in the bucket of its name, in order.
    fn check(buckets: &PodBuckets, len: usize) {
        assert_eq!((buckets.len(), buckets.iter().count()), (len, len));
        for index in 0..buckets.count() {
            let members = buckets.members(index);
            assert!(members.is_sorted_by(|a, b| a.name() < b.name()));
            for member in members {
                assert_eq!(bucket::of(member.name(), buckets.count()), index);
            }
        }
    }

    #[test]
    fn the_number_of_buckets_follows_the_number_of_objects() {
        let mut buckets = PodBuckets::growing_to(10);
        let mut counts = Vec::new();
        for index in 0..3_000 {
            buckets.put(pod(index));
            buckets.put(pod(index));
            counts.push((buckets.count(), index + 1));
        }
        counts.dedup_by_key(|(count, _)| *count);
        assert_eq!(counts, [(1, 1), (2, 129), (4, 257), (8, 513), (10, 1_025)]);
        check(&buckets, 3_000);
        let mut counts = Vec::new();
        for index in 0..3_000 {
            assert!(buckets.take_out(&pod(index)).is_some());
            assert!(buckets.take_out(&pod(index)).is_none());
            counts.push((buckets.count(), 2_999 - index));
            if index % 100 == 0 {
                check(&buckets, 2_999 - index);
            }
        }
        counts.dedup_by_key(|(count, _)| *count);
        assert_eq!(counts, [(10, 2_999), (5, 319), (2, 159), (1, 63)]);
        check(&buckets, 0);
    }

    #[test]
    fn a_fixed_number_of_buckets_stays() {
        let mut buckets = PodBuckets::of_pods(Placement::Name, 4);
        for index in 0..1_000 {
            buckets.put(pod(index));
        }
        assert_eq!(buckets.count(), 4);
        check(&buckets, 1_000);
    }
}
