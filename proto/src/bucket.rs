//! The bucket that a node or pod belongs to, the digest of a bucket, and what is known about a replica that gets buckets.

/// SHA-256 of the bytes of a bucket.
pub type Digest = [u8; 32];

impl crate::v1::Bucket {
    /// The bytes of the bucket, with or without shared labels; `None` if it is given by its digest alone.
    #[must_use]
    pub fn inline(&self) -> Option<&prost::bytes::Bytes> {
        self.data.as_ref().or(self.data_with_shared_labels.as_ref())
    }
}

/// The replica that a request is built for.
#[derive(Clone, Copy)]
pub struct Receiver<'a> {
    has: &'a dyn Fn(&Digest) -> bool,
    reads_shared_labels: bool,
}

impl Receiver<'static> {
    /// A replica that has no bucket.
    pub const EMPTY: Self = Self {
        has: &|_| false,
        reads_shared_labels: false,
    };
}

impl<'a> Receiver<'a> {
    /// A replica that has the buckets with these digests.
    #[must_use]
    pub fn new(has: &'a dyn Fn(&Digest) -> bool) -> Self {
        Self {
            has,
            reads_shared_labels: false,
        }
    }

    /// Sets whether the replica reads `Bucket.data_with_shared_labels`.
    #[must_use]
    pub fn reading_shared_labels(self, reads_shared_labels: bool) -> Self {
        Self {
            reads_shared_labels,
            ..self
        }
    }

    /// Whether the replica is expected to have this bucket, so that its digest is enough.
    #[must_use]
    pub fn has(&self, digest: &Digest) -> bool {
        (self.has)(digest)
    }

    /// Whether the replica reads `Bucket.data_with_shared_labels`.
    #[must_use]
    pub fn reads_shared_labels(&self) -> bool {
        self.reads_shared_labels
    }
}

impl std::fmt::Debug for Receiver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Receiver");
        fields
            .field("reads_shared_labels", &self.reads_shared_labels)
            .finish_non_exhaustive()
    }
}

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The index of the bucket of a node, or of a pod on the node or meant for it: the 64-bit FNV-1a hash of the node's name, modulo
/// `bucket_count`.
///
/// # Panics
/// If `bucket_count` is 0.
#[must_use]
pub fn of(node_name: &str, bucket_count: u32) -> u32 {
    let hash = node_name.bytes().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    u32::try_from(hash % u64::from(bucket_count)).expect("a remainder of a u32 fits a u32")
}

#[cfg(test)]
mod tests {
    use super::of;

    // The published FNV-1a test vectors: "" and "a" and "foobar".
    #[test]
    fn known_vectors() {
        assert_eq!(of("", 1), 0);
        assert_eq!(u64::from(of("", 1 << 31)), 0xcbf2_9ce4_8422_2325 % (1 << 31));
        assert_eq!(u64::from(of("a", 1 << 31)), 0xaf63_dc4c_8601_ec8c % (1 << 31));
        assert_eq!(u64::from(of("foobar", 1_000)), 0x8594_4171_f739_67e8 % 1_000);
    }
}
