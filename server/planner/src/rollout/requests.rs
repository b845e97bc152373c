//! What people ask for by annotations of a policy, and the digests that such a request must name. A digest says what was looked at
//! when the request was made: once that has changed, the request does nothing (L-30).

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The digest of these parts: 32 hexadecimal digits.
pub(crate) fn digest<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes[..16]
        .iter()
        .fold(String::with_capacity(32), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        })
}
