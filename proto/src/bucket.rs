//! The bucket that a node or pod belongs to, and the digest of a bucket.

/// SHA-256 of the bytes of a bucket.
pub type Digest = [u8; 32];

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
