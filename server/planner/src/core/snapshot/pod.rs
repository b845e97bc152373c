//! Properties of a single pod.

use super::Pod;

impl Pod {
    /// The deletion cost that an annotation states. An invalid one counts as 0: also a leading plus and leading zeros.
    #[must_use]
    pub fn deletion_cost_of(annotation: &str) -> i32 {
        let is_padded = annotation.starts_with('+') || (annotation.starts_with('0') && annotation.len() > 1);
        if is_padded {
            return 0;
        }
        annotation.parse().unwrap_or_default()
    }
}
